"""The differential privacy of a client's uploads, in figures: for a single upload, and after the number of uploads in question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakage.runs.event_parts import PrivacyBound
from leakage.spec.catalog import LOCAL_STEPS, Catalog
from leakage.spec.experiment import Part
from leakage.spec.gaussian_privacy import DELTA, LARGEST, USEFUL, gaussian_epsilon, mu_of
from leakage.spec.prepared import prepared
from leakage.spec.question import Question
from leakage.spec.words import counted

NONE_PROMISED = "No limit on what can be learned is promised (no epsilon), however many uploads"
NO_USE = "no useful promise"
ODDS = "What arrives can multiply the odds that it was there by up to"
ONE_PICTURE = "one picture, present or absent"


@dataclass(frozen=True)
class Promise:
    """The differential privacy that a protection promises for the updates that a client sends."""

    mu: float
    """Sensitivity over noise of a single upload, as for Gaussian noise, where T uploads have sqrt(T) times as much. Infinite: unbounded."""
    delta: float = DELTA
    """The probability with which the guarantee may fail; 0: each upload has epsilon `pure`, and mu is not used."""
    unit: str = ONE_PICTURE
    """What is protected, in words."""
    pure: float = 0.0
    """Epsilon of a single upload if delta is 0."""

    def epsilon(self, uploads: int) -> float:
        """Return epsilon after this number of uploads; infinite if it is above 200."""
        if not self.delta:
            total = self.pure * uploads
            return total if total <= LARGEST else math.inf
        return gaussian_epsilon(self.mu * math.sqrt(uploads), self.delta)


def promise_of(bound: PrivacyBound, uploads: int) -> Promise:
    """Return the promise for a single upload, from a run's bound on `uploads` uploads together."""
    value = math.inf if bound.value is None else bound.value
    if not bound.delta:
        return Promise(math.inf, 0.0, bound.whom, value / uploads)
    return Promise(mu_of(value, bound.delta) / math.sqrt(uploads) if math.isfinite(value) else math.inf, bound.delta, bound.whom)


def promise_before(question: Question, known: Catalog) -> Promise | None:
    """Compute the differential privacy that a question's protections promise for one update of a client, from their fields alone.

    The first protection with a noise multiplier among its fields gives it; None if no protection has such a field.
    """
    for part in question.defenses:
        entry = known.defenses.get(part.id)
        if entry.noise_field:
            noise_multiplier = float(entry.resolve(part.fields)[entry.noise_field])
            return Promise(math.sqrt(_sums(question, entry.stage)) / noise_multiplier if noise_multiplier else math.inf)
    return None


def with_epsilon(epsilon: float, question: Question, known: Catalog) -> Part:
    """Return a protection that keeps this epsilon, at the usual delta, over all uploads of the question.

    It is the first protection of the catalog with a noise multiplier among its fields. The noise multiplier is rounded up, so that the
    budget is kept, and limited to the range of the field.
    """
    entry = next(entry for entry in known.defenses if entry.noise_field)
    noise_multiplier = math.sqrt(question.uploads * _sums(question, entry.stage)) / mu_of(epsilon)
    limits = next(field for field in entry.fields if field.name == entry.noise_field)
    assert limits.low is not None
    assert limits.high is not None
    rounded = math.ceil(noise_multiplier * 1000) / 1000
    return Part(id=entry.id, fields={entry.noise_field: min(max(rounded, limits.low), limits.high)})


def _sums(question: Question, stage: str) -> int:
    """Return how many noisy sums of gradients in one update contain the same picture.

    Args:
        question: the question; it says how many local steps a client takes.
        stage: where the protection acts: "gradient" (every local step adds noise) or anything else (noise is added once).
    """
    if stage != "gradient" or question.steps == "one":
        return 1
    return int(prepared().ask.several.fields.get(LOCAL_STEPS, 1))


def sentence(promise: Promise, uploads: int) -> str:
    """Describe the epsilons of a promise and their meaning: the factor by which odds may be multiplied, or that it is no useful promise.

    >>> sentence(Promise(1.0), 1).partition(". ")[2]
    'What arrives can multiply the odds that it was there by up to 80'
    >>> sentence(Promise(1.0), 10)
    'epsilon 4.4 for one upload, 17.9 after 10 uploads, at delta 1e-05; of one picture, present or absent. Above 10: no useful promise'
    """
    single, total = promise.epsilon(1), promise.epsilon(uploads)
    words = f"epsilon {_figure(single)} for one upload"
    words += f", {_figure(total)} after {counted(uploads, 'upload')}" if uploads > 1 else ""
    judged = f"Above {USEFUL:g}: {NO_USE}" if total > USEFUL else f"{ODDS} {_factor(total)}"
    return ". ".join(filter(None, [f"{words}, at delta {promise.delta:g}; of {promise.unit}", judged]))


def _factor(epsilon: float) -> str:
    odds = math.exp(epsilon)
    return f"{odds:,.0f}" if odds >= 10 else f"{odds:.1f}"


def _figure(epsilon: float) -> str:
    return f"above {LARGEST:g}" if math.isinf(epsilon) else f"{epsilon:.1f}"


def first_promise(bounds: Sequence[tuple[PrivacyBound | None, int]]) -> Promise | None:
    """Return the first promise among the bounds that runs report, each with its number of uploads; None if all bounds are None."""
    return next((promise_of(bound, uploads) for bound, uploads in bounds if bound), None)
