"""The L-BFGS loop of DLG, iDLG, and the attacks that polish an answer."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from leakage.attacks._examples import example_classes, with_examples
from leakage.engine.core import Observation, Snapshot
from leakage.engine.discrepancy import entries_compared, goal_of, left_by_fitting
from leakage.engine.matching import diverged, nonsmooth_layer, normal_start, squared_distance, to_pixels
from leakage.engine.optimizers import lbfgs

SOLVED = 1e-4  # a start has succeeded when the distance is below this fraction of ||g*||^2
FITTED = 0.9  # a start ends when it has fitted known errors in this fraction of its unknowns; an earlier end keeps more of its noise
PATIENCE = 20  # a start ends when the distance fell by less than SETTLED or STUCK in so many steps
WARNING = "This model has {} layers, whose second derivative is 0 or does not exist; this search often sticks. Try Inverting Gradients."
AGREE = 0.05  # two starts agree when their distances differ by less than this fraction
SETTLED, STUCK = 0.01, 0.3  # 1 % after a start has succeeded, 30 % before; the distance of good starts falls tenfold in PATIENCE steps

Note = Mapping[str, str | int | float]


def descend(seen: Observation, rng: torch.Generator, *, labels: Tensor | None, note: Note, steps: int, restarts: int) -> Iterator[Snapshot]:
    """Search from one random start after another until a start succeeds or two agree; the last Snapshot is the best of all starts.

    A start that diverges or sticks yields an event. Noise, or a protection that the attacker does not imitate, keeps the distance above 0;
    then good starts end at the same distance. If the attacker knows how large such errors are, a start has succeeded when it fits as well
    as the true pictures would. It ends when it has fitted as much of the errors as its unknowns can, as this search has no prior that
    would choose among the guesses in between.
    Each start begins at other granted examples of the classes, and at noise once the examples are used up.
    The first Snapshot warns of a model with kinks (ReLU): L-BFGS needs second derivatives, which are 0 between kinks and do not exist at
    them.

    Args:
        seen: what the attacker observed.
        rng: draws the starts.
        labels: (B,); None: soft labels are searched together with the pictures.
        note: entries of the note of every Snapshot.
        steps: the most L-BFGS steps of each start.
        restarts: the most starts.
    """
    warning = WARNING.format(nonsmooth_layer(seen.model)) if nonsmooth_layer(seen.model) else ""
    solved, classes = goal(seen), example_classes(seen) if labels is None else labels
    until, errors = fitted_squares(seen), goal_of(seen, "squared").note
    ended: list[tuple[bool, float, Snapshot]] = []  # (whether it diverged, distance, answer) of every start
    taken = 0
    for start in range(1, restarts + 1):
        last: Snapshot | None = None
        z, begin_note = with_examples(seen, normal_start(seen, rng)[None], classes, before=start - 1)
        for moment in search_once(seen, rng, labels=labels, steps=steps, begin=z[0], until=until):
            last = replace(moment, step=taken + moment.step, note={"start": start, **note, **begin_note, **errors})
            yield replace(last, note={**last.note, "event": warning}) if warning else last
            warning = ""
        assert last is not None
        taken, failed, value = last.step, diverged(last.x, float(last.loss)), float(last.loss)
        lowest = min((other for diverged, other, _ in ended if not diverged), default=math.inf)
        agree = not failed and abs(value - lowest) <= AGREE * value
        ended.append((failed, value, last))
        if not failed and value <= solved:
            break
        failure = "diverged" if failed else f"got stuck at a gradient distance of {value:.2g}"
        outlook = "trying again" if start < restarts else "the best of all is shown"
        if agree:
            outlook = "an earlier one ended there too: the noise or protection keeps it from 0"
        name = "First try" if start == 1 else f"Try {start} of {restarts}"
        best = min(ended, key=lambda end: (end[0], end[1]))[2]
        yield replace(best, step=taken, note={**best.note, "event": f"{name} failed ({failure}), {outlook}."})
        if agree:
            break
    yield replace(min(ended, key=lambda end: (end[0], end[1]))[2], step=taken)


def goal(seen: Observation) -> float:
    """Return the squared gradient distance at or below which a start has succeeded."""
    target = seen.as_gradient()
    nothing = {name: torch.zeros_like(g) for name, g in target.items()}
    solved = SOLVED * float(squared_distance(target, seen.knowledge.entry_weights)(nothing))
    return max(solved, expected_squares(seen))


def expected_squares(seen: Observation) -> float:
    """Return the squared gradient distance expected of the true pictures; 0 if they fit exactly or the attacker does not know it."""
    floor = goal_of(seen, "squared").floor
    return 0.0 if floor is None else float(floor)


def fitted_squares(seen: Observation) -> float:
    """Return the squared gradient distance at which a search of all pixels ends: it has fitted a part of the expected errors too."""
    entries = entries_compared(seen.as_gradient(), seen.knowledge.entry_weights)
    unknowns = seen.batch.size * math.prod(seen.batch.image_shape)
    return left_by_fitting(entries, unknowns, FITTED) * expected_squares(seen)


def search_once(  # noqa: PLR0913  (where it begins and where it ends)
    seen: Observation,
    rng: torch.Generator,
    *,
    labels: Tensor | None,
    steps: int,
    begin: Tensor | None = None,
    line_search: str | None = None,
    until: float = 0.0,
) -> Iterator[Snapshot]:
    """Minimize ||g(x, y) - g*||^2 over x, and over soft labels y if `labels` is None; end early when settled, stuck or diverged.

    The optimizer is torch.optim.LBFGS with step 1, 20 inner iterations and history 100, as in the DLG code.

    Args:
        seen: what the attacker observed.
        rng: draws the start.
        labels: (B,); None: soft labels are searched too.
        steps: the most steps.
        begin: the start, (B, C, H, W) in the model's normalized space; None: N(0, 1).
        line_search: None, as in the DLG code, or "strong_wolfe", with which every step goes down.
        until: the search ends at this squared distance or below.

    Unlike the paper: Geiping et al. 2020, appendix C.1, print a step of 1e-4 for L-BFGS as a baseline; their code runs it with 1.
    """
    distance, pixels = squared_distance(seen.as_gradient(), seen.knowledge.entry_weights), to_pixels(seen)
    z = (normal_start(seen, rng) if begin is None else begin.detach().clone()).requires_grad_()  # (B, C, H, W)
    logits = torch.randn((seen.batch.size, seen.batch.num_classes), generator=rng).to(seen.device, seen.dtype).requires_grad_()
    leaves = [z, logits] if labels is None else [z]

    def classes() -> Tensor:
        return logits.softmax(1) if labels is None else labels  # (B, K) or (B,)

    def objective() -> Tensor:
        return distance(seen.gradient(pixels(z), classes()))

    solved, step_once = goal(seen), minimizer(leaves, objective, line_search)
    recent: deque[float] = deque(maxlen=PATIENCE)
    step = 0
    for step in range(1, steps + 1):
        x, y = pixels(z.detach().clone()), classes().detach()
        loss = step_once()  # the distance of x, from which this step starts
        value = float(loss)
        yield Snapshot(step=step, x=x, y=y, loss=loss)
        if value <= until:
            return
        enough = 1 - (SETTLED if value <= solved else STUCK)
        if diverged(z.detach(), value) or (len(recent) == PATIENCE and value > enough * recent[0]):
            break
        recent.append(value)
    yield Snapshot(step=step, x=pixels(z.detach()), y=classes().detach(), loss=objective().detach())


def minimizer(leaves: list[Tensor], objective: Callable[[], Tensor], line_search: str | None) -> Callable[[], Tensor]:
    """Return a function that moves the leaves by a step of L-BFGS (20 iterations) and returns the objective before that step."""
    optimiser = lbfgs(leaves, lr=1, max_iter=20, history_size=100, line_search_fn=line_search)

    def closure() -> Tensor:
        loss = objective()
        for leaf, gradient in zip(leaves, torch.autograd.grad(loss, leaves), strict=True):
            leaf.grad = gradient.contiguous()
        return loss.detach()

    return lambda: optimiser.step(closure)
