"""L-BFGS from the answer of an attack: it fits the gradient exactly, or weighs smoothness against the errors in the gradient."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from leakage.attacks._lbfgs import FITTED, expected_squares, goal, minimizer, search_once
from leakage.engine.core import Observation, Snapshot
from leakage.engine.discrepancy import entries_compared, left_by_fitting, slack
from leakage.engine.matching import from_pixels, squared_distance, to_pixels

GREY_LEVEL = 1 / 255  # differences between neighboring pixels that are smaller hardly count
SETTLED = 1e-5  # polishing ends when one step lowers its objective by less
KNOWN = "known from the protection: polishing weighs their expected squares, {:.2g} in all, against smoothness"
READ = "read from what a fit to the end leaves: polishing weighs their squares, {:.2g} in all, against smoothness"
PLAIN = "{}: polishing ends before it fits them"


def polished(
    seen: Observation, answer: Snapshot, rng: torch.Generator, *, steps: int, line_search: str | None = "strong_wolfe", smooth: bool = True
) -> Iterator[Snapshot]:
    """Improve an answer by L-BFGS, with at most `steps` steps in each search; the last Snapshot is the new answer.

    An exact gradient is fitted to the end, by its squared distance. If the attacker knows the size of the errors, `most_probable` searches
    instead; without `smooth` the squared distance is minimized until the search has fitted the errors in a fraction of its unknowns, as in
    DLG. An attacker that does not know the errors fits to the end first. If this succeeds (`_lbfgs.goal`), there were no errors.
    Otherwise the remaining distance gives their size (`left_by_fitting`), and polishing begins again, so that it takes twice as many steps.
    """
    entries, unknowns = entries_compared(seen.as_gradient(), seen.knowledge.entry_weights), answer.x.numel()
    expected, sentence, taken = expected_squares(seen), KNOWN, 0
    begin = from_pixels(seen, answer.x)
    if not expected:
        for last in search_once(seen, rng, labels=answer.y, steps=steps, begin=begin, line_search=line_search):
            yield replace(last, note=answer.note)
        if seen.knowledge.errors is not None or float(last.loss) <= goal(seen):
            return
        expected, sentence, taken = float(last.loss) / left_by_fitting(entries, unknowns), READ, last.step
    note = {**answer.note, "errors": sentence.format(expected)}
    if smooth:
        moments = most_probable(seen, answer, expected, steps=steps)
    else:
        note["errors"] = PLAIN.format(sentence.split(":")[0])
        until = left_by_fitting(entries, unknowns, FITTED) * expected
        moments = search_once(seen, rng, labels=answer.y, steps=steps, begin=begin, line_search=line_search, until=until)
    for moment in moments:
        yield replace(moment, step=taken + moment.step, note=note)


def most_probable(seen: Observation, answer: Snapshot, expected: float, *, steps: int) -> Iterator[Snapshot]:
    """Minimize log TV(x) - 1/2 log(E - ||g(x) - g*||^2) by L-BFGS from the answer; E is the expected sum of squared errors.

    The minimum is the most probable picture if errors are normal and differences between neighboring pixels have a Laplace distribution of
    unknown width (MacKay 1992, "Bayesian interpolation", for a normal prior). Of n squared errors with the sum E a picture that has fitted
    gamma unknowns to the data leaves E (1 - gamma / n), and the differences have the mean width TV / gamma. So the derivative of the
    posterior, n / (2 E) d||g - g*||^2 + gamma / TV dTV with gamma = n (1 - ||g - g*||^2 / E), vanishes where that of the objective does. No
    weight is chosen: it follows from E. The objective grows steeply towards E, so that an answer fits about as well as the true pictures
    would, or better; as E tends to 0, TV loses its influence. Where the squared distance is above E less one standard deviation of the
    truth's squared distance, a straight line continues the logarithm.

    Args:
        seen: what the attacker observed.
        answer: the start of the search, with the labels, which are not changed.
        expected: E.
        steps: the most steps of L-BFGS, with 20 inner iterations each.
    """
    distance, pixels = squared_distance(seen.as_gradient(), seen.knowledge.entry_weights), to_pixels(seen)
    least = slack(entries_compared(seen.as_gradient(), seen.knowledge.entry_weights)) / 2
    z = from_pixels(seen, answer.x).detach().clone().requires_grad_()  # (B, C, H, W)

    def squares() -> Tensor:
        return distance(seen.gradient(pixels(z), answer.y))

    def objective() -> Tensor:
        left = 1 - squares() / expected
        near = left.clamp(min=least)
        return smooth_variation(pixels(z)).log() - (near.log() + (left - near) / least) / 2

    step_once, before = minimizer([z], objective, "strong_wolfe"), float("inf")
    for step in range(1, steps + 1):
        value = float(step_once())  # of the objective, before this step
        yield Snapshot(step=step, x=pixels(z.detach().clone()), y=answer.y, loss=squares().detach())
        if before - value < SETTLED:
            return
        before = value


def smooth_variation(x: Tensor) -> Tensor:
    """Compute the total variation of x (B, C, H, W) with sqrt(d^2 + GREY_LEVEL^2) in place of |d|, which has no derivative at 0."""
    across, down = x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]
    return torch.cat([d.flatten() for d in (across, down)]).square().add(GREY_LEVEL**2).sqrt().sum()
