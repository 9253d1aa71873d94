"""What is prepared for visitors: experiments with their words, and where menus begin. All of it lies in assets/prepared.json. No torch."""

from functools import cache
from typing import Any

from leakage.settings import ROOT
from leakage.spec.experiment import Assumptions, Base, Channels, Experiment, Part, parse_as

FILE = ROOT / "assets" / "prepared.json"


class Change(Base):
    """What is put in place of parts of an experiment; one named without fields stays as it is set where it is chosen already."""

    model: Part | None = None
    protocol: Part | None = None
    aggregation: Part | None = None
    defenses: tuple[Part, ...] | None = None
    attack: Part | None = None
    rounds: int | None = None
    attacked_round: int | None = None

    def of(self, experiment: Experiment) -> dict[str, Any]:
        """The fields of the experiment that become others."""
        made: dict[str, Any] = {}
        for name in self.model_fields_set:
            own, before = getattr(self, name), getattr(experiment, name)
            stays = isinstance(own, Part) and isinstance(before, Part) and not own.fields and own.id == before.id
            made[name] = before if stays else own
        return made


class Preset(Base):
    """Two runs of the lab with a story: against a naive attacker, and against one who knows all; `first` makes the former another one.

    `name` is in the address (?preset=...) and groups the runs; `titles` stand above them. `recorded` names the recordings of both
    in assets/lessons/runs, which are played at once.
    """

    name: str
    title: str
    help: str
    story: str
    titles: tuple[str, str]
    adaptive: Experiment
    recorded: tuple[str, str]
    first: Change | None = None

    @property
    def pair(self) -> tuple[Experiment, Experiment]:
        """The experiment against an attacker who knows nothing of the client, or changed by `first`, and as it is."""
        if self.first:
            return self.adaptive.model_copy(update=self.first.of(self.adaptive)), self.adaptive
        return self.adaptive.model_copy(update={"assume": Assumptions(adaptive=False)}), self.adaptive


class WhatIf(Base):
    """A question that follows from a run: its words and what it changes."""

    title: str
    about: str
    change: Change


class WhatIfs(Base):
    """The questions that name a plug-in."""

    eight: WhatIf  # more pictures in one update
    summed: WhatIf
    local: WhatIf  # where a gradient is sent
    plain: WhatIf  # where none is
    pruned: WhatIf  # where a gradient is sent
    filtered: WhatIf  # where none is: as frameworks do it
    connected: WhatIf  # where the model has no width
    watched: WhatIf  # for many rounds, where an attacker can put them together
    colluding: WhatIf  # where an attacker can make use of another phone
    exact: WhatIf  # of several pictures
    learned: WhatIf  # of pictures that have the form of those that a generator was trained on
    staged: WhatIf  # after that
    taught: WhatIf  # after that
    unlearned: WhatIf  # after that
    undone: WhatIf  # where a network was trained to undo such updates
    coarse: WhatIf  # behind a protection
    between: WhatIf  # where phones train for many steps


class Search(Base):
    """An attack that searches, and the activation with which it finds most."""

    title: str
    activation: str
    attack: Part


class Verify(Base):
    """How the networks of the page Architecture are attacked: by equations, and by one of two searches."""

    network: Part  # the model that takes a network as text
    equations: Part
    jointly: Part  # the same, of networks whose layers alone have too few
    searches: tuple[Search, Search]  # of shallow networks, and of deep ones


class Deployed(Base):
    """Protections as frameworks offer them, compared by one link: what all arms share, and each protection by its name there."""

    title: str
    help: str
    experiment: Experiment
    presets: dict[str, Part]


class Compare(Base):
    """Where the page Compare begins: what all arms share, and what is chosen in its menus.

    recorded  names the recordings in assets/lessons/runs of what it would run, which are played at once
    deployed  another comparison, a link away
    """

    experiment: Experiment
    protections: tuple[str, ...]
    attacks: tuple[str, ...]
    answered: str
    swept: str  # a protection and its number
    accuracy_cost_attack: str  # the attack whose leakage stands beside the accuracy
    recorded: tuple[str, ...]
    deployed: Deployed


class TrainingLinks(Base):
    """By which attack a trained model is attacked, and how attackers are trained.

    attack     for most models ...
    attack_of  ... others by the model's id
    attackers  in words -> the fields of an `InverterTraining` that are not as usual; the first is chosen
    """

    attack: str
    attack_of: dict[str, str]
    attackers: dict[str, dict[str, int | float]]


class AskedKind(Base):
    """A kind of picture that the page Ask asks about: pictures of the gallery by id, and whether they are in colour (3 channels).

    `label`: what the label of such a picture may be to the person it is about, to follow "such a label may be"; empty: nothing private.
    """

    title: str
    channels: Channels
    pictures: tuple[str, ...]
    label: str = ""


class Ask(Base):
    """What the answers of the page Ask stand for."""

    kinds: dict[str, AskedKind]
    several: Part  # local steps before a phone sends
    added_up: Part  # the updates of several phones
    stands_still: Part  # a server that sends the same model round after round ...
    watched: int  # ... so many times


class SimpleNetwork(Base):
    """A network of the Lab's simple form, and by which attack it is attacked: one picture, several, or behind a protection."""

    title: str
    about: str
    model: Part
    single: Part
    several: Part
    protected: Part


class Strength(Base):
    """A protection with its strength, and what the attacker does who knows it; empty: the usual."""

    defense: Part
    strategy: str = ""


class SimpleProtection(Base):
    """A protection of the Lab's simple form in three strengths."""

    title: str
    weak: Strength
    middle: Strength
    strong: Strength

    def strengths(self) -> dict[str, Strength]:
        """By their names, the weakest first."""
        return {"weak": self.weak, "middle": self.middle, "strong": self.strong}


class SimpleForm(Base):
    """What the Lab's simple form offers: networks and protections by the names in its own settings, and how many pictures.

    local  how the phone trains that takes several steps before it sends
    """

    networks: dict[str, SimpleNetwork]
    local: Part
    counts: tuple[int, ...]
    protections: dict[str, SimpleProtection]


class Prepared(Base):
    """The whole file."""

    presets: tuple[Preset, ...]
    simple: SimpleForm
    what_ifs: WhatIfs
    verify: Verify
    compare: Compare
    ask: Ask
    training: TrainingLinks


@cache
def prepared() -> Prepared:
    """All of it, read once. Raises SpecError, naming the first field that is wrong."""
    return parse_as(FILE.read_bytes(), Prepared, "a file of prepared experiments")
