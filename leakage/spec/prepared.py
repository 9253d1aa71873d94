"""The contents of assets/prepared.json: experiments prepared for visitors with their texts, and what menus show first. No torch."""

from functools import cache
from typing import Any

from leakage.settings import ROOT
from leakage.spec.experiment import Assumptions, Base, Channels, Experiment, Part, parse_as

FILE = ROOT / "assets" / "prepared.json"


class Change(Base):
    """A change of an experiment: the fields that are set here replace those of the experiment.

    A plug-in without fields leaves the plug-in of the experiment as it is, if both have the same id.
    """

    model: Part | None = None
    protocol: Part | None = None
    aggregation: Part | None = None
    defenses: tuple[Part, ...] | None = None
    attack: Part | None = None
    rounds: int | None = None
    attacked_round: int | None = None

    def of(self, experiment: Experiment) -> dict[str, Any]:
        """Return the changed fields of an experiment, with their new values."""
        changed: dict[str, Any] = {}
        for name in self.model_fields_set:
            after, before = getattr(self, name), getattr(experiment, name)
            stays = isinstance(after, Part) and isinstance(before, Part) and not after.fields and after.id == before.id
            changed[name] = before if stays else after
        return changed


class Preset(Base):
    """Two runs of the Lab with a story: by a naive and by an adaptive attacker, or as `first` says."""

    name: str
    """The name in the address (?preset=...), which also groups the runs."""
    title: str
    help: str
    story: str
    titles: tuple[str, str]
    """The titles above the two runs."""
    adaptive: Experiment
    """The experiment of the second run."""
    recorded: tuple[str, str]
    """The names of the recordings of both runs in assets/lessons/runs, which are played at once."""
    first: Change | None = None
    """How the first run differs from the second. None: the first run has a naive attacker."""

    @property
    def pair(self) -> tuple[Experiment, Experiment]:
        """The experiments of the first and of the second run."""
        if self.first:
            return self.adaptive.model_copy(update=self.first.of(self.adaptive)), self.adaptive
        return self.adaptive.model_copy(update={"assume": Assumptions(adaptive=False)}), self.adaptive


class WhatIf(Base):
    """A question that follows from a run: its text, and the change that answers it."""

    title: str
    about: str
    change: Change


class WhatIfs(Base):
    """The questions that name a plug-in; the comment says when each is asked."""

    eight: WhatIf  # for a single client, unless `summed` is asked: more pictures in one update
    summed: WhatIf  # for a single client with 4, 8, 12 ... pictures: the updates of several clients are added up
    local: WhatIf  # if a gradient is sent
    plain: WhatIf  # if no gradient is sent
    pruned: WhatIf  # if a gradient is sent
    filtered: WhatIf  # if no gradient is sent: a protection as frameworks offer it
    connected: WhatIf  # if the model has no field `width`
    watched: WhatIf  # if the first round is attacked and an attacker can combine many rounds
    colluding: WhatIf  # if a later round is attacked and an attacker can use the gradient of another client
    exact: WhatIf  # if there are several pictures
    learned: WhatIf  # if the pictures have the form of those on which a generator was trained
    staged: WhatIf  # after `learned`
    taught: WhatIf  # after `staged`
    unlearned: WhatIf  # after `taught`
    undone: WhatIf  # if a network was trained to undo such updates
    coarse: WhatIf  # with a protection
    between: WhatIf  # if clients train for many local steps


class Search(Base):
    """An attack that searches, and the activation of the network with which it works best."""

    title: str
    activation: str
    attack: Part


class Verify(Base):
    """How the networks of the page Architecture are attacked: by equations, and by one of two searches."""

    network: Part
    """The model that reads a network as text."""
    equations: Part
    """The attack that solves equations layer by layer."""
    jointly: Part
    """The attack that solves the equations of all layers together, if a single layer has too few."""
    searches: tuple[Search, Search]
    """The search for shallow networks, and the search for deep networks."""


class Deployed(Base):
    """A comparison of protections as frameworks offer them, which one link opens."""

    title: str
    help: str
    experiment: Experiment
    """What all variants have in common."""
    presets: dict[str, Part]
    """Name of a protection in its framework -> the protection."""


class Compare(Base):
    """What the page Compare shows first."""

    experiment: Experiment
    """What all variants have in common."""
    protections: tuple[str, ...]
    """The chosen protections, by id."""
    attacks: tuple[str, ...]
    """The chosen attacks, by id."""
    answered: str
    swept: str
    """The protection and its field that is varied."""
    accuracy_cost_attack: str
    """The attack that measured the leakage beside the accuracy."""
    recorded: tuple[str, ...]
    """The names of the recordings in assets/lessons/runs of this comparison, which are played at once."""
    deployed: Deployed
    """Another comparison, which a link opens."""


class TrainingLinks(Base):
    """The attacks on trained models, and the trainings of attackers."""

    attack: str
    """The attack on a trained model, by id."""
    attack_of: dict[str, str]
    """Id of a model -> the id of the attack on it, if that is not `attack`."""
    attackers: dict[str, dict[str, int | float]]
    """Title -> the fields of an `InverterTraining` that differ from their defaults; the first is chosen."""


class AskedKind(Base):
    """A kind of picture on the page Ask."""

    title: str
    channels: Channels
    pictures: tuple[str, ...]
    """The ids of the pictures in the gallery."""
    label: str = ""
    """What the label may reveal about a person, to follow "such a label may be". Empty: nothing private."""


class Ask(Base):
    """The meaning of the answers on the page Ask."""

    kinds: dict[str, AskedKind]
    several: Part
    """The protocol with several local steps."""
    added_up: Part
    """The aggregation that adds up the updates of several clients."""
    stands_still: Part
    """The protocol of a server that sends the same model in every round."""
    watched: int
    """In how many rounds that server sends the same model."""


class SimpleNetwork(Base):
    """A network of the Lab's simple form, and the attacks on it: for one picture, for several, and with a protection."""

    title: str
    about: str
    model: Part
    single: Part
    several: Part
    protected: Part


class Strength(Base):
    """One strength of a protection: the defense with its fields, and the adaptive attacker's strategy against it."""

    defense: Part
    strategy: str = ""
    """The adaptive attacker's strategy; empty: the default."""


class SimpleProtection(Base):
    """A protection of the Lab's simple form in three strengths."""

    title: str
    weak: Strength
    middle: Strength
    strong: Strength

    def strengths(self) -> dict[str, Strength]:
        """Return the three strengths by name, the weakest first."""
        return {"weak": self.weak, "middle": self.middle, "strong": self.strong}


class SimpleForm(Base):
    """The choices of the Lab's simple form."""

    networks: dict[str, SimpleNetwork]
    local: Part
    """The protocol with several local steps."""
    counts: tuple[int, ...]
    """The numbers of pictures."""
    protections: dict[str, SimpleProtection]


class Prepared(Base):
    """The contents of assets/prepared.json."""

    presets: tuple[Preset, ...]
    simple: SimpleForm
    what_ifs: WhatIfs
    verify: Verify
    compare: Compare
    ask: Ask
    training: TrainingLinks


@cache
def prepared() -> Prepared:
    """Return the contents of assets/prepared.json, read once; raise SpecError with the first field that is wrong."""
    return parse_as(FILE.read_bytes(), Prepared, "a file of prepared experiments")
