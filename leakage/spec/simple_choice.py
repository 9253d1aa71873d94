"""The Lab's simple form as data: the experiment of a choice, and the choice of an experiment. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias, get_args

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Picture, SpecError
from leakage.spec.lab_settings import NONE, without_default_strategy
from leakage.spec.prepared import Strength, prepared

StrengthName: TypeAlias = Literal["weak", "middle", "strong"]
ONE_STEP = Experiment().protocol
STRENGTHS: tuple[StrengthName, ...] = get_args(StrengthName)


@dataclass(frozen=True)
class SimpleChoice:
    """What a visitor chose in the simple form of the page Lab, apart from the pictures."""

    network: str
    count: int
    """How many pictures are attacked."""
    protection: str = NONE
    strength: StrengthName = "middle"
    """The strength of the protection; without effect if the protection is NONE."""
    adaptive: bool = True
    local: bool = False
    """Whether the client takes several local steps before it sends."""

    def experiment(self, pictures: tuple[Picture, ...]) -> Experiment:
        """Return the experiment of this choice with these private pictures."""
        network, strength = prepared().simple.networks[self.network], self._strength()
        attack = network.protected if strength else network.single if self.count == 1 else network.several
        strategy = strength.strategy if strength and self.adaptive else ""
        return Experiment(
            pictures=pictures,
            model=network.model,
            protocol=prepared().simple.local if self.local else ONE_STEP,
            defenses=(strength.defense,) if strength else (),
            attack=attack,
            assume=Assumptions(adaptive=self.adaptive, strategy=strategy),
        )

    def _strength(self) -> Strength | None:
        if self.protection == NONE:
            return None
        return prepared().simple.protections[self.protection].strengths()[self.strength]


def choices(count: int) -> Iterator[SimpleChoice]:
    """Yield every combination that the simple form of the page Lab offers for this number of pictures."""
    form = prepared().simple
    for network, adaptive, local in product(form.networks if count in form.counts else (), (True, False), (False, True)):
        yield SimpleChoice(network, count, adaptive=adaptive, local=local)
        for protection, strength in product(form.protections, STRENGTHS):
            yield SimpleChoice(network, count, protection, strength, adaptive, local)


def nearest_choice(experiment: Experiment) -> SimpleChoice | None:
    """Return the simple form's choice whose experiment is most similar; None if the form does not offer this number of pictures."""
    values = experiment.model_dump()

    def similarity(choice: SimpleChoice) -> tuple[int, int]:
        chosen = choice.experiment(experiment.pictures)
        equal_parts = sum(part.id == other.id for (_, part), (_, other) in zip(chosen.parts(), experiment.parts(), strict=False))
        return equal_parts, sum(value == values[name] for name, value in chosen.model_dump().items())

    return max(choices(len(experiment.pictures)), key=similarity, default=None)


def find_choice(experiment: Experiment, known: Catalog) -> SimpleChoice | None:
    """Return the choice that gives exactly this experiment; None if the simple form has no such choice."""
    ids = [part.id for _, part in experiment.parts()]
    try:
        resolved = without_default_strategy(experiment, known).resolve(known)
        for choice in choices(len(experiment.pictures)):
            chosen = choice.experiment(experiment.pictures)
            if [part.id for _, part in chosen.parts()] == ids and chosen.resolve(known) == resolved:
                return choice
    except SpecError:
        return None
    return None
