"""What protection costs: how good a model gets behind it, out of the table in assets/, or trained here by the table's own recipe."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from leakage.data.datasets import TITLES
from leakage.results.intervals import FEWEST, difference_interval
from leakage.runs.device_kinds import CPU, on_device
from leakage.runs.event_parts import TrainingPrivacy
from leakage.runs.events import TrainingEnd
from leakage.runs.reader import RunReader
from leakage.runs.store import Run
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Experiment, Part
from leakage.spec.tasks import Training
from leakage.spec.threat_model import format_value

ACCURACY_COSTS = ROOT / "assets" / "accuracy_cost.json"
RECIPE = ("model", "rounds", "pictures", "batch")  # what rows of the table that can be compared have in common
INFINITE = "∞"
UNCERTAIN = "{:.1f} percentage points {}; too few trainings to be certain"
SAME_MEAN = "the same mean; too few trainings to be certain"
SMALL = 1.0  # percentage points: where the difference lies within them with 95 % confidence, it is called small
NO_DIFFERENCE = "differs by less than 1 percentage point"
BUDGET = "Privacy budget (epsilon)"

EPSILONS = {  # above a column -> what it says; in the order of `Cost.epsilons`
    f"{BUDGET} of that training, not sampled": (
        "Differential privacy of one picture in the training whose accuracy stands here, as it was trained: "
        "no sampling is assumed, every picture takes part once in each pass. ∞: it bounds nothing."
    ),
    f"{BUDGET} of that training, if sampled": (
        "The same if every batch were drawn at random (Poisson sampling), which this training does not do. ∞: it bounds nothing."
    ),
    f"{BUDGET} of what was sent, not sampled": (
        "Differential privacy of one picture in what this client sent to the attacker (of all its pictures, where the threat model says "
        "so): one upload, or those of all rounds that it watched; no sampling is assumed. ∞: it bounds nothing."
    ),
}


@dataclass(frozen=True)
class Cost:
    """A training behind protections, and what has to be said beside its accuracy.

    recipe       which model, data and rounds; empty where there is no table
    blank        why there is no accuracy; empty where there is one
    accuracies   of the test pictures, one accuracy for each seed
    difference   from the training without protection, in words; empty for that training itself
    sampled      epsilon of that training, were its batches drawn at random; infinite where it bounds nothing, None where none is promised
    unsampled    the same as it was trained: every picture once in each pass
    """

    recipe: str = ""
    blank: str = "not measured"
    accuracies: tuple[float, ...] = ()
    difference: str = ""
    sampled: float | None = None
    unsampled: float | None = None

    @property
    def accuracy(self) -> float | None:
        """The mean over seeds."""
        return mean(self.accuracies) if self.accuracies else None

    def epsilons(self, sent: float | None) -> list[float | None]:
        """In the order of EPSILONS, beside that of what was sent."""
        return [self.unsampled, self.sampled, sent]


UNKNOWN = Cost()


@dataclass(frozen=True)
class Trained:
    """What was measured of a training: an accuracy for each seed, and its epsilon where a protection promises one."""

    accuracies: tuple[float, ...]
    privacy: TrainingPrivacy | None = None


def cost(runs: RunReader, experiment: Experiment, known: Catalog) -> Cost:
    """What the protections of this experiment cost a training; no accuracy where its model is not the table's, or none was measured."""
    if not table():
        return UNKNOWN
    recipe = recipe_words(known)
    if not same_model(experiment.model, known):
        return Cost(recipe=recipe, blank=f"measured of {recipe}; the model here is another")
    found, plain = trained(runs, experiment.defenses, known), trained(runs, (), known)
    if not found:
        return Cost(recipe=recipe)
    return Cost(
        recipe=recipe,
        blank="",
        accuracies=found.accuracies,
        difference=difference(found.accuracies, plain.accuracies) if plain and experiment.defenses else "",
        sampled=in_full(found.privacy.sampled) if found.privacy else None,
        unsampled=in_full(found.privacy.unsampled) if found.privacy else None,
    )


def in_full(epsilon: float | None) -> float:
    """An epsilon that somebody promised: JSON keeps an infinite one as None."""
    return math.inf if epsilon is None else epsilon


def epsilon_words(epsilon: float | None, digits: int = 2) -> str:
    """An epsilon for a reader.

    >>> [epsilon_words(one) for one in (4.387, math.inf, None)]
    ['4.39', '∞', '–']
    """
    return "–" if epsilon is None else INFINITE if math.isinf(epsilon) else f"{epsilon:.{digits}f}"


def difference(behind: Sequence[float], plain: Sequence[float]) -> str:
    """How accuracies behind a protection differ from those without, as far as so many trainings can tell.

    >>> difference([0.9, 0.91, 0.92], [0.97, 0.98, 0.99])
    'drop of 7.0 percentage points, 4.7 to 9.3 with 95 % confidence'
    >>> difference([0.2, 0.15, 0.94], [0.97, 0.98, 0.99])
    '55.0 percentage points lower; too few trainings to be certain'
    >>> difference([0.9755, 0.9736, 0.9752], [0.976, 0.9739, 0.9753])
    'differs by less than 1 percentage point'
    >>> difference([0.5], [0.97, 0.98, 0.99])
    'one training: whether it differs is not known'
    """
    if (fewest := min(len(behind), len(plain))) < FEWEST:
        return f"{'one training' if fewest == 1 else f'{fewest} trainings'}: whether it differs is not known"
    ends = sorted(100 * end for end in difference_interval(plain, behind))
    if max(map(abs, ends)) < SMALL:
        return NO_DIFFERENCE
    lost = 100 * (mean(plain) - mean(behind))
    if ends[0] <= 0 <= ends[1]:
        return SAME_MEAN if abs(lost) < 0.05 else UNCERTAIN.format(abs(lost), "lower" if lost > 0 else "higher")
    low, high = sorted(min(abs(end), 100.0 * max(mean(plain), 1 - mean(plain))) for end in ends)  # no accuracy is below 0 or above 1
    return f"{'drop' if lost > 0 else 'gain'} of {abs(lost):.1f} percentage points, {low:.1f} to {high:.1f} with 95 % confidence"


def heading(costs: Sequence[Cost]) -> str:
    """What stands above a column of accuracies.

    >>> heading([Cost("LeNet on MNIST, 6 rounds", accuracies=(0.9,)), Cost("LeNet on MNIST, 6 rounds", accuracies=(0.8, 0.9, 1.0))])
    'Accuracy of LeNet on MNIST, 6 rounds, 1 to 3 seeds'
    """
    recipe = next((one.recipe for one in costs if one.recipe), "")
    seeds = [len(one.accuracies) for one in costs if one.accuracies]
    return ", ".join([f"Accuracy of {recipe}" if recipe else "Accuracy", *([seeds_words(seeds)] if seeds else [])])


def seeds_words(counts: Sequence[int]) -> str:
    """How many seeds.

    >>> seeds_words([1]), seeds_words([3, 3]), seeds_words([3, 1])
    ('one seed', '3 seeds', '1 to 3 seeds')
    """
    low, high = min(counts), max(counts)
    return "one seed" if high == 1 else f"{high} seeds" if low == high else f"{low} to {high} seeds"


# ---------------------------------------------------------------- the table


def recipe_words(known: Catalog) -> str:
    """Model, data and rounds of the table."""
    rounds = (table() or {})["recipe"]["rounds"]
    return f"{scene_words(known)}, {rounds} round{'' if rounds == 1 else 's'}"


def scene_words(known: Catalog) -> str:
    """Model and data of the table."""
    recipe = (table() or {})["recipe"]
    model = Part(id=recipe["model"]["id"], fields=recipe["model"]["fields"])
    entry = known.models.find(model.id)
    usual = {field.name: field.default for field in entry.fields} if entry else {}
    unusual = [f"{name} {format_value(value)}" for name, value in model.fields.items() if name in usual and value != usual[name]]
    name = entry.short if entry else model.id
    return f"{' '.join([name, *unusual])} on {TITLES[recipe['data']]}"


def same_model(model: Part, known: Catalog) -> bool:
    """Whether this is the model whose accuracies the table has."""
    found = table()
    return found is not None and filled("model", model, known) == filled("model", Part(**found["recipe"]["model"]), known)


def same_scene(experiment: Experiment, known: Catalog) -> bool:
    """Whether what is attacked is the table's model with pictures of the table's data as it takes them: one plot may show both."""
    asked, shape = training((), known), (experiment.channels, experiment.size, experiment.size)
    alike = asked is not None and shape == asked.image_shape and {picture.source for picture in experiment.pictures} == {asked.data}
    return alike and same_model(experiment.model, known)


def trained(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> Trained | None:
    """The training behind these protections, of the table, or else of this machine; None where nobody measured it."""
    if listed := in_table(defenses, known):
        return listed
    run = training_of(runs, defenses, known)
    end = run.outcome(TrainingEnd) if run and run.status == "done" else None
    return Trained((end.accuracy,), end.privacy) if end and end.accuracy is not None else None


def in_table(defenses: Sequence[Part], known: Catalog) -> Trained | None:
    """Out of the table. Of several steps of the server the best: a protection is judged by what can be had with it."""
    wanted, found = [with_defaults(part, known) for part in defenses], table()
    alike = [row for row in found["rows"] if all(row[name] == found["recipe"][name] for name in RECIPE)] if found else []
    measured = [row for row in alike if row["accuracy"] and [with_defaults(Part(**one), known) for one in row["defenses"]] == wanted]
    best = max(measured, key=lambda row: mean(row["accuracy"]), default=None)
    return Trained(tuple(best["accuracy"]), privacy_of(best)) if best else None


def privacy_of(row: dict[str, Any]) -> TrainingPrivacy | None:
    """Epsilon of a training of the table."""
    return TrainingPrivacy.model_validate(row["epsilon"]) if row.get("epsilon") else None


def training(defenses: Sequence[Part], known: Catalog) -> Training | None:
    """The training that would fill the table's row, with a day's time for it; None where there is no table, or it cannot be asked."""
    found = table()
    try:
        return Training(**found["recipe"], defenses=tuple(defenses), max_seconds=24 * 3600).resolve(known) if found else None
    except ValueError:  # a SpecError, or a recipe of another version
        return None


def training_of(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> Run | None:
    """This machine's latest run of that training with today's code: one that ended well, else however it stands."""
    asked = training(defenses, known)
    found = [run for run in runs.equal("train", asked.digest()) if on_device(run.version, CPU) == known.version] if asked else []
    return next((run for run in found if run.status == "done"), None) or next(iter(found), None)


def table() -> dict[str, Any] | None:
    """What benchmarks/published/accuracy_cost.py left."""
    return _read(ACCURACY_COSTS, ACCURACY_COSTS.stat().st_mtime_ns) if ACCURACY_COSTS.exists() else None


@cache
def _read(path: Path, _changed: int) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def with_defaults(part: Part, known: Catalog) -> Part:
    """A protection with every field; as it is where this program knows no such protection."""
    return filled("defense", part, known)


def filled(kind: str, part: Part, known: Catalog) -> Part:
    """A plug-in with every field; as it is where this program knows none of that name."""
    try:
        return Part(id=part.id, fields=known.of(kind).get(part.id).resolve(part.fields))
    except CatalogError:
        return part
