"""The Lab's simple form as data: what its seven choices ask for, and which choice, if any, asks for a given experiment. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias, get_args

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Picture, SpecError
from leakage.spec.lab_settings import NONE, with_usual_unnamed
from leakage.spec.prepared import Strength, prepared

StrengthName: TypeAlias = Literal["weak", "middle", "strong"]
ONE_STEP = Experiment().protocol
STRENGTHS: tuple[StrengthName, ...] = get_args(StrengthName)


@dataclass(frozen=True)
class SimpleChoice:
    """What is chosen in the simple form, besides the pictures. Without a protection (NONE) `strength` says nothing."""

    network: str
    count: int
    protection: str = NONE
    strength: StrengthName = "middle"
    adaptive: bool = True
    local: bool = False  # the phone takes several steps before it sends

    def experiment(self, pictures: tuple[Picture, ...]) -> Experiment:
        """What it asks for."""
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
    """Everything that can be chosen for so many pictures."""
    form = prepared().simple
    for network, adaptive, local in product(form.networks if count in form.counts else (), (True, False), (False, True)):
        yield SimpleChoice(network, count, adaptive=adaptive, local=local)
        for protection, strength in product(form.protections, STRENGTHS):
            yield SimpleChoice(network, count, protection, strength, adaptive, local)


def nearest_choice(experiment: Experiment, known: Catalog) -> SimpleChoice | None:
    """The choice that asks for most of what this experiment asks for; None where no number of pictures of the form is this one's."""
    wanted = experiment.model_dump()

    def alike(choice: SimpleChoice) -> tuple[int, int]:
        asked = choice.experiment(experiment.pictures)
        parts = sum(one.id == other.id for (_, one), (_, other) in zip(asked.parts(), experiment.parts(), strict=False))
        return parts, sum(value == wanted[name] for name, value in asked.model_dump().items())

    return max(choices(len(experiment.pictures)), key=alike, default=None)


def find_choice(experiment: Experiment, known: Catalog) -> SimpleChoice | None:
    """The choice that asks for just this experiment; None where the simple form cannot show it."""
    ids = [part.id for _, part in experiment.parts()]
    try:
        wanted = with_usual_unnamed(experiment, known).resolve(known)
        for choice in choices(len(experiment.pictures)):
            asked = choice.experiment(experiment.pictures)
            if [part.id for _, part in asked.parts()] == ids and asked.resolve(known) == wanted:
                return choice
    except SpecError:
        return None
    return None
