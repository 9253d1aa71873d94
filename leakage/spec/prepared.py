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
    server: Part | None = None
    refuse: bool | None = None
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
    """A prepared example of the page Lab: two runs with a story, usually by a naive and by an adaptive attacker."""

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
    """The names of the recordings of both runs in assets/lessons, which are played at once."""
    first: Change | None = None
    """How the first run differs from the second. None: the first run has a naive attacker."""
    numbers: str = ""
    """A sentence with numbers of the recordings, as in {s01.psnr}; empty: there is none."""
    rows: tuple[str, ...] = ()
    """The ids of the rows of papers.json whose claim the runs show."""

    @property
    def pair(self) -> tuple[Experiment, Experiment]:
        """The experiments of the first and of the second run."""
        if self.first:
            return self.adaptive.model_copy(update=self.first.of(self.adaptive)), self.adaptive
        return self.adaptive.model_copy(update={"assume": Assumptions(adaptive=False)}), self.adaptive


class WhatIf(Base):
    """A question that follows from a run ("what if ...?"): its text, and the change of the experiment that answers it."""

    title: str
    about: str
    change: Change


class WhatIfs(Base):
    """The questions after a run that switch to a certain plug-in, such as another attack; each field says for which runs it is asked."""

    eight: WhatIf
    """More pictures in one update: for a single client, unless `summed` is asked."""
    summed: WhatIf
    """The updates of several clients added up: for a single client with 4, 8, 12 ... pictures."""
    local: WhatIf
    """Several local steps: if a gradient is sent."""
    plain: WhatIf
    """A plain gradient: if no gradient is sent."""
    pruned: WhatIf
    """Pruning: if a gradient is sent."""
    filtered: WhatIf
    """A protection as frameworks offer it: if no gradient is sent."""
    connected: WhatIf
    """A fully connected model: if the model has no field `width`."""
    watched: WhatIf
    """Many watched rounds: if the first round is attacked and an adaptive attacker can combine many rounds."""
    colluding: WhatIf
    """An accomplice: if a later round is attacked and an adaptive attacker can use the gradient of another client."""
    exact: WhatIf
    """An attack that separates a batch exactly: if there are several pictures."""
    learned: WhatIf
    """The first attack with a generator: if the pictures have the form of those on which the generator was trained."""
    staged: WhatIf
    """The next attack with a generator: after `learned`."""
    taught: WhatIf
    """The next attack with a generator: after `staged`."""
    unlearned: WhatIf
    """The last of these attacks: after `taught`."""
    undone: WhatIf
    """A network that inverts updates: if a network was trained for such updates."""
    coarse: WhatIf
    """An attack that searches a small, enlarged picture: with a protection."""
    between: WhatIf
    """An attack that does not replay local steps: if clients train for many local steps."""


class Search(Base):
    """An attack that optimizes a guess, and the activation function of the network with which this attack works best."""

    title: str
    activation: str
    attack: Part


class Verify(Base):
    """The attacks of the page Architecture on a network: an attack that solves equations, and an attack that optimizes a guess."""

    network: Part
    """The model that reads a network as text."""
    equations: Part
    """The attack that solves equations layer by layer."""
    jointly: Part
    """The attack that solves the equations of all layers together, if a single layer has too few."""
    searches: tuple[Search, Search]
    """The search for shallow networks, and the search for deep networks."""


class Deployed(Base):
    """A prepared comparison of protections with the settings of federated learning frameworks; a link on the page Compare opens it."""

    title: str
    help: str
    experiment: Experiment
    """What all variants have in common."""
    presets: dict[str, Part]
    """Name of a protection in its framework -> the protection."""


class RecordedComparison(Base):
    """A claim of a paper that more than two recorded runs show; the page Compare plays them, with a strip of their pictures."""

    title: str
    help: str
    story: str
    numbers: str
    """A sentence with numbers of the recordings, as in {s01.psnr}."""
    recorded: tuple[str, ...]
    """The names of the recordings in assets/lessons/runs."""
    rows: tuple[str, ...]
    """The ids of the rows of papers.json whose claim the runs show."""


class Compare(Base):
    """The comparison that the page Compare shows to a newcomer, and the first choices of its menus."""

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
    stories: tuple[RecordedComparison, ...]
    """Recorded comparisons, which links in the Lab open."""


class TrainingLinks(Base):
    """The attacks that the page Training suggests for a trained model, and the attackers' networks that it can train."""

    attack: str
    """The attack on a trained model, by id."""
    attack_of: dict[str, str]
    """Id of a model -> the id of the attack on it, if that is not `attack`."""
    attackers: dict[str, dict[str, int | float]]
    """Title -> the fields of an `InverterTraining` that differ from their defaults; the first is chosen."""


class AskedKind(Base):
    """A kind of private pictures, such as medical pictures, that a visitor of the page Ask can choose."""

    title: str
    channels: Channels
    pictures: tuple[str, ...]
    """The ids of the pictures in the gallery."""
    label: str = ""
    """What the label may reveal about a person, to follow "such a label may be". Empty: nothing private."""


class Ask(Base):
    """What the choices on the page Ask stand for: the pictures, the protocol and the aggregation of each choice."""

    kinds: dict[str, AskedKind]
    several: Part
    """The protocol with several local steps."""
    added_up: Part
    """The aggregation that adds up the updates of several clients."""
    stands_still: Part
    """The protocol of a server that sends the same model in every round."""
    watched: int
    """In how many rounds that server sends the same model."""
    checks: tuple[Part, ...]
    """What clients check of the model that they receive, if they check it: checks without false alarms here."""


class SimpleNetwork(Base):
    """A network in the simple form of the page Lab, and the attacks on it: on one picture, on several, and behind a protection."""

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
    """A protection in the simple form of the page Lab, in three strengths."""

    title: str
    weak: Strength
    middle: Strength
    strong: Strength

    def strengths(self) -> dict[str, Strength]:
        """Return the three strengths by name, the weakest first."""
        return {"weak": self.weak, "middle": self.middle, "strong": self.strong}


class SimpleForm(Base):
    """The networks, protections and other options in the simple form of the page Lab."""

    networks: dict[str, SimpleNetwork]
    local: Part
    """The protocol with several local steps."""
    counts: tuple[int, ...]
    """The numbers of pictures."""
    protections: dict[str, SimpleProtection]


class Prepared(Base):
    """The contents of assets/prepared.json: prepared experiments with their texts, and what menus of the pages show first."""

    presets: tuple[Preset, ...]
    simple: SimpleForm
    what_ifs: WhatIfs
    verify: Verify
    compare: Compare
    ask: Ask
    training: TrainingLinks

    @property
    def recordings(self) -> tuple[str, ...]:
        """The names of the recordings that the Lab's presets, Compare and its stories play, each once."""
        shown: list[Preset | Compare | RecordedComparison] = [*self.presets, self.compare, *self.compare.stories]
        return tuple(dict.fromkeys(name for part in shown for name in part.recorded))


@cache
def prepared() -> Prepared:
    """Return the contents of assets/prepared.json, read once; raise SpecError with the first field that is wrong."""
    return parse_as(FILE.read_bytes(), Prepared, "a file of prepared experiments")
