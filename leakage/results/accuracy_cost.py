"""The accuracy cost of protections: the accuracy of models trained with them, from the table in assets/ or from this machine's runs."""

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
from leakage.spec.words import format_value

ACCURACY_COSTS = ROOT / "assets" / "accuracy_cost.json"
RECIPE = ("model", "rounds", "pictures", "batch")  # two rows of the table can be compared if these are equal
INFINITE = "∞"
UNCERTAIN = "{:.1f} percentage points {}; too few trainings to be certain"
SAME_MEAN = "the same mean; too few trainings to be certain"
SMALL = 1.0  # percentage points: a difference that is smaller with 95 % confidence is called small
CHANGED = "measured with an honest server; here the server changes the model, so the phones train another one"
NO_DIFFERENCE = "differs by less than 1 percentage point"
BUDGET = "Privacy budget (epsilon)"

EPSILONS = {  # heading of a column -> its explanation; in the order of `Cost.epsilons`
    f"{BUDGET} of that training, not sampled": (
        "A bound on what the training can show about one picture (differential privacy). It is for the training that reached this "
        "accuracy, as it was run: every picture takes part once in each pass. The sign ∞ means that it bounds nothing."
    ),
    f"{BUDGET} of that training, if sampled": (
        "The privacy budget if the pictures of every step were drawn at random (Poisson sampling), which this "
        "training does not do. The sign ∞ means that it bounds nothing."
    ),
    f"{BUDGET} of what was sent, not sampled": (
        "A bound on what this phone's uploads can show about one picture, or about all its pictures if the threat model says so "
        "(differential privacy). It covers one upload, or the uploads of all rounds that the attacker watched; it is not "
        "assumed that pictures were drawn at random. The sign ∞ means that it bounds nothing."
    ),
}


@dataclass(frozen=True)
class Cost:
    """What protections cost: the accuracy of a training with them, its epsilons, and sentences that compare it with the unprotected."""

    recipe: str = ""
    """The model, data and rounds of the training, in words; empty where there is no table."""
    blank: str = "not measured"
    """Why there is no accuracy; empty if there is an accuracy."""
    accuracies: tuple[float, ...] = ()
    """The accuracy on the test pictures, for each seed."""
    difference: str = ""
    """The difference from the training without protection, in words; empty for that training itself."""
    sampled: float | None = None
    """Epsilon of the training if its batches were drawn at random: infinite if it bounds nothing, None if the protection promises none."""
    unsampled: float | None = None
    """Epsilon of the training as it was run, with every picture once in each pass: infinite or None as in `sampled`."""

    @property
    def accuracy(self) -> float | None:
        """The mean accuracy over seeds; None if nothing was measured."""
        return mean(self.accuracies) if self.accuracies else None

    def epsilons(self, sent: float | None) -> list[float | None]:
        """Return three epsilons: of the training as it was run, of the training if batches were sampled, and `sent`.

        Args:
            sent: epsilon of what the client of the attacked experiment sent; None if no protection promises any.
        """
        return [self.unsampled, self.sampled, sent]


UNKNOWN = Cost()


@dataclass(frozen=True)
class Trained:
    """The measured result of a training: an accuracy for each seed, and its epsilon if a protection promises any."""

    accuracies: tuple[float, ...]
    privacy: TrainingPrivacy | None = None


def cost(runs: RunReader, experiment: Experiment, known: Catalog) -> Cost:
    """Return the accuracy and the privacy budget of a training with the protections of an experiment.

    Both are read from the accuracy table or from trainings on this machine. Where the experiment's model is not the model of the table,
    where a server changes the model, or where nothing was measured, there is no accuracy, and `Cost.blank` says why.
    """
    if not table():
        return UNKNOWN
    recipe = recipe_words(known)
    if experiment.server:
        return Cost(recipe=recipe, blank=CHANGED)
    if not same_model(experiment.model, known):
        return Cost(recipe=recipe, blank=f"measured of {recipe}; the model here is another")
    protected, plain = trained(runs, experiment.defenses, known), trained(runs, (), known)
    if not protected:
        return Cost(recipe=recipe)
    return Cost(
        recipe=recipe,
        blank="",
        accuracies=protected.accuracies,
        difference=difference(protected.accuracies, plain.accuracies) if plain and experiment.defenses else "",
        sampled=epsilon_of_json(protected.privacy.sampled) if protected.privacy else None,
        unsampled=epsilon_of_json(protected.privacy.unsampled) if protected.privacy else None,
    )


def epsilon_of_json(epsilon: float | None) -> float:
    """Return an epsilon as a number: None, as JSON stores an infinite epsilon, becomes infinity."""
    return math.inf if epsilon is None else epsilon


def epsilon_words(epsilon: float | None, digits: int = 2) -> str:
    """Write an epsilon as text, rounded to `digits` decimals.

    >>> [epsilon_words(epsilon) for epsilon in (4.387, math.inf, None)]
    ['4.39', '∞', '–']
    """
    return "–" if epsilon is None else INFINITE if math.isinf(epsilon) else f"{epsilon:.{digits}f}"


def difference(protected: Sequence[float], plain: Sequence[float]) -> str:
    """Describe the difference in accuracy between trainings with and without a protection, as far as so few trainings can show it.

    Args:
        protected: the accuracy of each training with the protection, in [0, 1].
        plain: the accuracy of each training without protection, in [0, 1].

    >>> difference([0.9, 0.91, 0.92], [0.97, 0.98, 0.99])
    'drop of 7.0 percentage points, 4.7 to 9.3 with 95 % confidence'
    >>> difference([0.2, 0.15, 0.94], [0.97, 0.98, 0.99])
    '55.0 percentage points lower; too few trainings to be certain'
    >>> difference([0.9755, 0.9736, 0.9752], [0.976, 0.9739, 0.9753])
    'differs by less than 1 percentage point'
    >>> difference([0.5], [0.97, 0.98, 0.99])
    'one training: whether it differs is not known'
    """
    if (fewest := min(len(protected), len(plain))) < FEWEST:
        return f"{'one training' if fewest == 1 else f'{fewest} trainings'}: whether it differs is not known"
    ends = sorted(100 * end for end in difference_interval(plain, protected))
    if max(map(abs, ends)) < SMALL:
        return NO_DIFFERENCE
    drop = 100 * (mean(plain) - mean(protected))
    if ends[0] <= 0 <= ends[1]:
        return SAME_MEAN if abs(drop) < 0.05 else UNCERTAIN.format(abs(drop), "lower" if drop > 0 else "higher")
    low, high = sorted(min(abs(end), 100.0 * max(mean(plain), 1 - mean(plain))) for end in ends)  # no accuracy is below 0 or above 1
    return f"{'drop' if drop > 0 else 'gain'} of {abs(drop):.1f} percentage points, {low:.1f} to {high:.1f} with 95 % confidence"


def heading(costs: Sequence[Cost]) -> str:
    """Return the heading of a column of accuracies: the recipe of the trainings and the number of their seeds.

    >>> heading([Cost("LeNet on MNIST, 6 rounds", accuracies=(0.9,)), Cost("LeNet on MNIST, 6 rounds", accuracies=(0.8, 0.9, 1.0))])
    'Accuracy of LeNet on MNIST, 6 rounds, 1 to 3 seeds'
    """
    recipe = next((cost.recipe for cost in costs if cost.recipe), "")
    seeds = [len(cost.accuracies) for cost in costs if cost.accuracies]
    return ", ".join([f"Accuracy of {recipe}" if recipe else "Accuracy", *([seeds_words(seeds)] if seeds else [])])


def seeds_words(counts: Sequence[int]) -> str:
    """Write the smallest and the largest count of seeds as text.

    >>> seeds_words([1]), seeds_words([3, 3]), seeds_words([3, 1])
    ('one seed', '3 seeds', '1 to 3 seeds')
    """
    low, high = min(counts), max(counts)
    return "one seed" if high == 1 else f"{high} seeds" if low == high else f"{low} to {high} seeds"


# ---------------------------------------------------------------- the table


def recipe_words(known: Catalog) -> str:
    """Describe the model, data and rounds of the accuracy table, such as "LeNet on MNIST, 6 rounds"."""
    rounds = (table() or {})["recipe"]["rounds"]
    return f"{scene_words(known)}, {rounds} round{'' if rounds == 1 else 's'}"


def scene_words(known: Catalog) -> str:
    """Describe the model and data of the accuracy table, such as "LeNet on MNIST"."""
    recipe = (table() or {})["recipe"]
    model = Part(id=recipe["model"]["id"], fields=recipe["model"]["fields"])
    entry = known.models.find(model.id)
    usual = {field.name: field.default for field in entry.fields} if entry else {}
    unusual = [f"{name} {format_value(value)}" for name, value in model.fields.items() if name in usual and value != usual[name]]
    name = entry.short if entry else model.id
    return f"{' '.join([name, *unusual])} on {TITLES[recipe['data']]}"


def same_model(model: Part, known: Catalog) -> bool:
    """Return whether a model is the model of the accuracy table, with the same fields."""
    costs = table()
    return costs is not None and fill_defaults("model", model, known) == fill_defaults("model", Part(**costs["recipe"]["model"]), known)


def same_scene(experiment: Experiment, known: Catalog) -> bool:
    """Return whether an experiment has the model and data of the accuracy table, so that one plot may show its leakage and its accuracy."""
    asked, shape = training((), known), (experiment.channels, experiment.size, experiment.size)
    alike = asked is not None and shape == asked.image_shape and {picture.source for picture in experiment.pictures} == {asked.data}
    return alike and same_model(experiment.model, known)


def trained(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> Trained | None:
    """Return the training with these protections, from the accuracy table or else from this machine's runs; None if none has finished."""
    if listed := trained_in_table(defenses, known):
        return listed
    run = training_of(runs, defenses, known)
    end = run.outcome(TrainingEnd) if run and run.status == "done" else None
    return Trained((end.accuracy,), end.privacy) if end and end.accuracy is not None else None


def trained_in_table(defenses: Sequence[Part], known: Catalog) -> Trained | None:
    """Return the training with these protections from the accuracy table; None if the table has none.

    If the table has several server learning rates, return the training with the best mean accuracy: a protection is judged by the best
    training that it permits.
    """
    stack, costs = [with_defaults(part, known) for part in defenses], table()
    comparable = [row for row in costs["rows"] if all(row[name] == costs["recipe"][name] for name in RECIPE)] if costs else []
    measured = [row for row in comparable if row["accuracy"] and [with_defaults(Part(**part), known) for part in row["defenses"]] == stack]
    best = max(measured, key=lambda row: mean(row["accuracy"]), default=None)
    return Trained(tuple(best["accuracy"]), privacy_of(best)) if best else None


def privacy_of(row: dict[str, Any]) -> TrainingPrivacy | None:
    """Return the epsilons of a row of the accuracy table; None if the row has none."""
    return TrainingPrivacy.model_validate(row["epsilon"]) if row.get("epsilon") else None


def training(defenses: Sequence[Part], known: Catalog) -> Training | None:
    """Return the task that trains the accuracy table's model on its data with these protections, with a time limit of a day.

    None if the table is missing, or if the task is not valid with these plug-ins.
    """
    costs = table()
    try:
        return Training(**costs["recipe"], defenses=tuple(defenses), max_seconds=24 * 3600).resolve(known) if costs else None
    except ValueError:  # a SpecError, or a recipe of another version
        return None


def training_of(runs: RunReader, defenses: Sequence[Part], known: Catalog) -> Run | None:
    """Return this machine's latest run of the training with these protections and today's code, on any device.

    A finished run comes before a later run in another state. None if there is no such run.
    """
    task = training(defenses, known)
    equal = [run for run in runs.equal("train", task.digest()) if on_device(run.version, CPU) == known.version] if task else []
    return next((run for run in equal if run.status == "done"), None) or next(iter(equal), None)


def table() -> dict[str, Any] | None:
    """Return the accuracy table, which benchmarks/published/accuracy_cost.py writes; None if the file is missing."""
    return _read(ACCURACY_COSTS, ACCURACY_COSTS.stat().st_mtime_ns) if ACCURACY_COSTS.exists() else None


@cache
def _read(path: Path, _changed: int) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def with_defaults(part: Part, known: Catalog) -> Part:
    """Return a protection with defaults filled in, or unchanged if it is not in the catalog."""
    return fill_defaults("defense", part, known)


def fill_defaults(kind: str, part: Part, known: Catalog) -> Part:
    """Return a part with the defaults of its plug-in filled in; unchanged if the catalog lacks the plug-in or refuses a field."""
    try:
        return Part(id=part.id, fields=known.of(kind).get(part.id).resolve(part.fields))
    except CatalogError:
        return part
