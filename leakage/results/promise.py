"""What differential privacy promises of one client's uploads, in figures: for one upload, and after as many as were asked about."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakage.runs.event_parts import PrivacyBound
from leakage.spec.catalog import LOCAL_STEPS, Catalog
from leakage.spec.experiment import Part
from leakage.spec.gaussian_privacy import DELTA, LARGEST, USEFUL, gaussian_epsilon, mu_of
from leakage.spec.prepared import prepared
from leakage.spec.question import Question
from leakage.spec.threat_model import counted

NONE_PROMISED = "None is promised: no epsilon, however many uploads"
NO_USE = "no useful promise"
ODDS = "What arrives can multiply the odds that it was there by up to"
ONE_PICTURE = "one picture, present or absent"


@dataclass(frozen=True)
class Promise:
    """Differential privacy of the uploads of one client.

    Args:
        mu: sensitivity over the noise of one upload: that of Gaussian noise, of which T uploads have sqrt(T) times as much. Infinite
            where nothing is bounded.
        delta: how often the guarantee may fail; 0: the promise is `pure` epsilon for each upload, and mu is not used.
        whom: whom it is about.
        pure: epsilon of one upload where delta is 0.
    """

    mu: float
    delta: float = DELTA
    whom: str = ONE_PICTURE
    pure: float = 0.0

    def epsilon(self, uploads: int) -> float:
        """After so many uploads; infinite above 200."""
        if not self.delta:
            total = self.pure * uploads
            return total if total <= LARGEST else math.inf
        return gaussian_epsilon(self.mu * math.sqrt(uploads), self.delta)


def promise_of(bound: PrivacyBound, uploads: int) -> Promise:
    """What a run states of so many uploads, for one of them."""
    value = math.inf if bound.value is None else bound.value
    if not bound.delta:
        return Promise(math.inf, 0.0, bound.whom, value / uploads)
    return Promise(mu_of(value, bound.delta) / math.sqrt(uploads) if math.isfinite(value) else math.inf, bound.delta, bound.whom)


def promise_before(question: Question, known: Catalog) -> Promise | None:
    """What is known before anything runs: of the first protection whose noise multiplier is one of its fields; None without one."""
    for part in question.defenses:
        entry = known.defenses.get(part.id)
        if entry.noise_field:
            sigma = float(entry.resolve(part.fields)[entry.noise_field])
            return Promise(math.sqrt(_sums(question, entry.stage)) / sigma if sigma else math.inf)
    return None


def with_epsilon(epsilon: float, question: Question, known: Catalog) -> Part:
    """The protection whose uploads keep this epsilon in all, at the usual delta: the first whose noise multiplier is one of its fields."""
    entry = next(entry for entry in known.defenses if entry.noise_field)
    sigma = math.sqrt(question.uploads * _sums(question, entry.stage)) / mu_of(epsilon)
    limits = next(field for field in entry.fields if field.name == entry.noise_field)
    assert limits.low is not None
    assert limits.high is not None
    upward = math.ceil(sigma * 1000) / 1000  # so that the budget is kept
    return Part(id=entry.id, fields={entry.noise_field: min(max(upward, limits.low), limits.high)})


def _sums(question: Question, stage: str) -> int:
    """In how many noisy sums of one upload a picture takes part: one for each local step where noise is added in each."""
    if stage != "gradient" or question.steps == "one":
        return 1
    return int(prepared().ask.several.fields.get(LOCAL_STEPS, 1))


def sentence(promise: Promise, uploads: int) -> str:
    """The figures, and what they promise: odds multiplied by e^epsilon at most, or nothing of use.

    >>> sentence(Promise(1.0), 1).partition(". ")[2]
    'What arrives can multiply the odds that it was there by up to 80'
    >>> sentence(Promise(1.0), 10)
    'epsilon 4.4 for one upload, 17.9 after 10 uploads, at delta 1e-05; of one picture, present or absent. Above 10: no useful promise'
    """
    one, all_ = promise.epsilon(1), promise.epsilon(uploads)
    words = f"epsilon {_figure(one)} for one upload"
    words += f", {_figure(all_)} after {counted(uploads, 'upload')}" if uploads > 1 else ""
    judged = f"Above {USEFUL:g}: {NO_USE}" if all_ > USEFUL else f"{ODDS} {_factor(all_)}"
    return ". ".join(filter(None, [f"{words}, at delta {promise.delta:g}; of {promise.whom}", judged]))


def _factor(epsilon: float) -> str:
    odds = math.exp(epsilon)
    return f"{odds:,.0f}" if odds >= 10 else f"{odds:.1f}"


def _figure(epsilon: float) -> str:
    return f"above {LARGEST:g}" if math.isinf(epsilon) else f"{epsilon:.1f}"


def stated(bounds: Sequence[tuple[PrivacyBound | None, int]]) -> Promise | None:
    """The first promise that runs state, each beside how many uploads it is about; None where none is stated."""
    return next((promise_of(bound, uploads) for bound, uploads in bounds if bound), None)
