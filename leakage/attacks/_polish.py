"""L-BFGS from an answer on: until the gradient fits exactly, or as well as the errors in it allow."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from leakage.attacks._lbfgs import expected_squares, goal, one_start
from leakage.engine.core import Observation, Snapshot
from leakage.engine.discrepancy import entries_compared, left_by_fitting, slack
from leakage.engine.matching import from_pixels

FITTED = 0.75  # of the unknowns: chosen on ten runs behind Gaussian noise of 0.003 to 0.03, from noise and from Adam's answers
REACHED = "known from the protection: polishing ends before it fits them, after {} of {} steps"
READ = "read from what polishing leaves, as of any least squares: the answer is from before it fits them, after {} of {} steps"


def polished(
    seen: Observation, answer: Snapshot, rng: torch.Generator, *, steps: int, line_search: str | None = "strong_wolfe"
) -> Iterator[Snapshot]:
    """The answer, gone on from by at most so many steps of L-BFGS on the squared distance; the last Snapshot is the answer.

    Where the attacker knows how large the errors in the gradient are it ends when FITTED of the unknowns are fitted to them
    (`left_by_fitting`). Where it does not know, it goes on to the end. If that fits the gradient (`_lbfgs.goal`), there were no errors.
    Else the rest is taken for what a whole fit leaves of them, and the answer is the guess with which it would have ended had it known:
    the one from which it began where that fits as well as the true pictures would.
    """
    errors, kept = seen.errors, list[Snapshot]()
    entries, unknowns = entries_compared(seen.as_gradient(), seen.entry_weights), answer.x.numel()
    share = left_by_fitting(entries, unknowns, FITTED)
    until = share * expected_squares(seen)
    begin = from_pixels(seen, answer.x)
    for moment in one_start(seen, rng, labels=answer.y, steps=steps, begin=begin, line_search=line_search, until=until):
        kept = [*kept, moment] if errors is None else [*kept[-1:], moment]
        yield replace(moment, note=answer.note)
    last, words = kept[-1], REACHED
    if errors is None and float(last.loss) > goal(seen):
        words, whole = READ, float(last.loss) / left_by_fitting(entries, unknowns)
        until = whole if float(kept[0].loss) <= whole * (1 + slack(entries)) else share * whole
    nearest = next((place for place, moment in enumerate(kept) if float(moment.loss) <= until * (1 + slack(entries))), None)
    if not until or nearest is None:
        return
    if nearest and float(kept[nearest - 1].loss) * float(kept[nearest].loss) < until**2:  # in ratio: a step may go far below
        nearest -= 1
    note = {**answer.note, "errors": words.format(kept[nearest].step - 1, steps)}
    yield replace(kept[nearest], step=last.step, note=note)
