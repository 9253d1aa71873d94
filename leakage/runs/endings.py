"""How a run ended, in the words that every page, file and command uses. No torch."""

from leakage.runs.event_parts import Ending
from leakage.runs.events import AttackEnd
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment

NO_ANSWER = "{}: not the attack's answer"
OVER = "Stopped when the time of its question was over"
UNBEGUN = (
    "Its time limit of {} s was over before the attack could begin: what comes before it, above all what the phone trains, takes longer. "
    "Raise the limit, or choose fewer epochs, rounds or pictures."
)
INAPPLICABLE = "inapplicable"
WHY = "Does not apply: {}"
HOW = {"limit": "Stopped at its time limit of {limit} s", "stopped": "Stopped by hand", "over": OVER, "diverged": "Diverged"}
STATES = {"queued": "Waiting", "running": "Running", "done": "Finished", "cancelled": "Stopped", "failed": "Failed"}


def ending(how: str, step: int, asked: Experiment) -> Ending:
    """How an attack ended, at which step: "answer", "limit", "stopped", "over" or "diverged". Of "inapplicable" see `inapplicable`."""
    if how == "answer":
        return Ending(how=how, words="Attack finished")
    steps = int(asked.attack.fields.get("steps", 0))  # of one start, where there are several; 0: a closed form has none
    at = f", at step {step:,} of {steps:,}" if step <= steps else f", at step {step:,}"
    return Ending(how=how, words=NO_ANSWER.format(HOW[how].format(limit=asked.max_seconds) + (at if steps else "")))


def inapplicable(why: str) -> Ending:
    """The ending of an attack that cannot work on its setting: it has no answer, no scores and no verdict, and does not count as tried."""
    return Ending(how=INAPPLICABLE, words=WHY.format(why))


def why_inapplicable(found: Ending | None) -> str:
    """Why an attack does not apply; "" where it does, or has not ended."""
    return found.words.removeprefix(WHY.format("")) if found and found.how == INAPPLICABLE else ""


def how_it_stands(run: Run) -> str:
    """A run's state in words: how it ended, where it did; of a failed one why."""
    end = run.outcome(AttackEnd) if run.kind == "attack" else None
    if end and end.ending:
        return end.ending.words
    state = "Attack finished" if run.kind == "attack" and run.status == "done" else STATES[run.status]
    return f"{state}: {run.message}" if run.message and run.status in ("cancelled", "failed") else state
