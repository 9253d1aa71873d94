"""Sentences on how a run ended, for all pages, files and commands. No torch."""

from collections.abc import Sequence

from leakage.runs.event_parts import CheckFacts, Ending
from leakage.runs.events import AttackEnd
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment

NO_ANSWER = "{}: not the attack's answer"
OVER = "Stopped when the time of its question was over"
UNBEGUN = (
    "Its time limit of {} s was over before the attack could begin: what comes before it, above all what the phone trains, takes longer. "
    "Raise the limit, or choose fewer epochs, rounds or pictures."
)
INAPPLICABLE, REFUSED = "inapplicable", "refused"
WHY = "Does not apply: {}"
HOW = {"limit": "Stopped at its time limit of {limit} s", "stopped": "Stopped by hand", "over": OVER, "diverged": "Diverged"}
STATES = {"queued": "Waiting", "running": "Running", "done": "Finished", "cancelled": "Stopped", "failed": "Failed"}


def ending(how: str, step: int, asked: Experiment) -> Ending:
    """Return how an attack ended, with a sentence for pages.

    Args:
        how: "answer" (the attack finished), "limit" (its time limit), "stopped" (by hand), "over" (the time that the page Ask gives a
            question) or "diverged".
        step: the step at which it ended.
        asked: the experiment.
    """
    if how == "answer":
        return Ending(how=how, words="Attack finished")
    steps = int(asked.attack.fields.get("steps", 0))  # of one start, if the attack has several; 0: a closed form
    at = f", at step {step:,} of {steps:,}" if step <= steps else f", at step {step:,}"
    return Ending(how=how, words=NO_ANSWER.format(HOW[how].format(limit=asked.max_seconds) + (at if steps else "")))


def inapplicable(why: str) -> Ending:
    """Return the ending of an attack that cannot work in its setting, with the reason `why`; such an attack does not count as tried."""
    return Ending(how=INAPPLICABLE, words=WHY.format(why))


def why_inapplicable(ending: Ending | None) -> str:
    """Return why an attack does not apply to its setting; "" if it applies, or if it has not ended."""
    return ending.words.removeprefix(WHY.format("")) if ending and ending.how == INAPPLICABLE else ""


def refused(why: str, checks: Sequence[CheckFacts]) -> Ending:
    """Return the ending of a run in which a phone refused to train the model that it received, so that nothing was sent.

    Args:
        why: the refusal, as a sentence; pages show nothing else of such a run.
        checks: what the phones' checks found.
    """
    return Ending(how=REFUSED, words=why, checks=tuple(checks))


def why_refused(ending: Ending | None) -> str:
    """Return the sentence of a phone's refusal; "" if the phone did not refuse, or if the run has not ended."""
    return ending.words if ending and ending.how == REFUSED else ""


def how_it_stands(run: Run) -> str:
    """Describe the state of a run; for a run that has ended, how it ended, and for a failed run the reason."""
    end = run.outcome(AttackEnd) if run.kind == "attack" else None
    if end and end.ending:
        return end.ending.words
    state = "Attack finished" if run.kind == "attack" and run.status == "done" else STATES[run.status]
    return f"{state}: {run.message}" if run.message and run.status in ("cancelled", "failed") else state
