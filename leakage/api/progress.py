"""The progress of an attack, reported to a function of the caller or drawn as a bar by tqdm."""

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from leakage.engine.core import Attack
from leakage.engine.plugin import described
from leakage.evaluation.referee import Frame

ReportProgress = Callable[[int, int | None, float], object]  # (step, steps, loss)
PAUSE = 0.1  # least seconds between two calls
NO_BAR = "progress=True draws its bar with tqdm, which is not installed. Install tqdm, or give a function of (step, steps, loss)."


@dataclass
class AttackProgress:
    """The progress report of an attack: it calls a function for a Frame at most ten times a second, and always for the last Frame.

    Args:
        tell: function of (step, steps, loss).
        steps: largest number of optimiser steps of the attack; None where it is unknown.
    """

    tell: ReportProgress
    steps: int | None
    due: float = field(default=-math.inf, init=False)

    def frame(self, frame: Frame) -> None:
        """Report a frame, if the last report was PAUSE seconds ago or the frame is final."""
        now = time.perf_counter()
        if frame.final or now >= self.due:
            self.tell(frame.step, self.steps, frame.loss)
            self.due = now + PAUSE
        if frame.final:
            self.close()

    def close(self) -> None:
        """End the bar, if tqdm draws one: no more frames come."""
        if isinstance(self.tell, TqdmBar):
            self.tell.drawn.close()


@dataclass
class TqdmBar:
    """An attack's progress as a bar of tqdm, to be called with (step, steps, loss)."""

    steps: int | None

    def __post_init__(self) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]  # its types are a package of their own

        self.drawn = tqdm(total=self.steps, unit="step")

    def __call__(self, step: int, steps: int | None, loss: float) -> None:
        self.drawn.set_postfix(loss=f"{loss:.3g}", refresh=False)
        self.drawn.update(step - self.drawn.n)


def most_steps(attack: Attack) -> int | None:
    """Return the largest number of optimiser steps by the attack's fields; None where it has no steps, or several kinds of steps."""
    fields = {declared.name: getattr(attack, declared.name) for declared in described(type(attack))}
    if "steps" not in fields or any(name.endswith("_steps") for name in fields):
        return None
    return int(fields["steps"] * fields.get("restarts", 1) + 2 * fields.get("polish", 0))  # see `polished`


def progress_of(given: object, attack: Attack) -> AttackProgress | None:
    """Return the progress report that `progress=` asks for; None for no report. Raises TypeError, ValueError.

    Args:
        given: a function of (step, steps, loss); True: a bar; False or None: nothing.
        attack: the attack; its steps are counted.
    """
    if given is None or given is False:
        return None
    steps = most_steps(attack)
    if given is True:
        if importlib.util.find_spec("tqdm") is None:
            raise ValueError(NO_BAR)
        return AttackProgress(TqdmBar(steps), steps)
    if not callable(given):
        raise TypeError(f"progress must be True, or a function of (step, steps, loss); got a {type(given).__name__}.")
    return AttackProgress(given, steps)
