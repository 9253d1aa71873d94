"""The results that lessons expect of recordings. If a recording contradicts a lesson, the recording is not written."""

from collections.abc import Iterator, Mapping

from leakage.learn.lessons import Expectation, Lesson
from leakage.learn.recordings import RunRecording
from leakage.spec.experiment import SpecError

OVER_GREY = "over grey"  # PSNR above that of a plain grey picture, in dB


def score_of(recording: RunRecording, name: str) -> float:
    """Return a score of the final reconstruction of a recorded run; raise SpecError if it has no score of that name."""
    scores = recording.end.scores
    if name == OVER_GREY:
        return score_of(recording, "psnr") - recording.grey
    found = getattr(scores, name, None)
    if not isinstance(found, int | float):
        raise SpecError(f"{recording.title} has no score {name!r}.")
    return float(found)


def contradictions(lessons: tuple[Lesson, ...], recordings: Mapping[str, RunRecording]) -> Iterator[str]:
    """Yield a sentence for each expectation of a lesson that recorded runs contradict; skip expectations about runs that are missing.

    Args:
        lessons: the lessons, with their expectations.
        recordings: the recorded runs, by name.
    """
    for lesson in lessons:
        for expected in lesson.expects:
            run, other, score = expected.run, expected.over, expected.score
            if run in recordings and (not other or other in recordings):
                found = score_of(recordings[run], score) - (score_of(recordings[other], score) if other else 0)
                if (expected.least is not None and found < expected.least) or (expected.most is not None and found > expected.most):
                    yield f"lesson {lesson.id} says {_words(expected)}; recorded was {found:.2f}"


def _words(expected: Expectation) -> str:
    about = f"{expected.score} of {expected.run}" + (f" above that of {expected.over}" if expected.over else "")
    bounds = [f"at least {expected.least:g}"] if expected.least is not None else []
    bounds += [f"at most {expected.most:g}"] if expected.most is not None else []
    return f"{about}: {' and '.join(bounds)}"
