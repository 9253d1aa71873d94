"""What lessons say of recordings before they are made: one that shows something else is not written, and the lesson is."""

from collections.abc import Iterator, Mapping

from leakage.learn.lessons import Expectation, Lesson
from leakage.learn.recordings import RunRecording
from leakage.spec.experiment import SpecError

OVER_GREY = "over grey"  # PSNR above that of a plain grey picture, in dB


def score_of(recording: RunRecording, name: str) -> float:
    """A score of the answer. Raises SpecError when it has none of that name."""
    scores = recording.end.scores
    if name == OVER_GREY:
        return score_of(recording, "psnr") - recording.grey
    found = getattr(scores, name, None)
    if not isinstance(found, int | float):
        raise SpecError(f"{recording.title} has no score {name!r}.")
    return float(found)


def contradicted(lessons: tuple[Lesson, ...], recordings: Mapping[str, RunRecording]) -> Iterator[str]:
    """A sentence for each expectation that these recordings do not meet; what needs another recording is left open."""
    for lesson in lessons:
        for one in lesson.expects:
            if one.run in recordings and (not one.over or one.over in recordings):
                found = score_of(recordings[one.run], one.score) - (score_of(recordings[one.over], one.score) if one.over else 0)
                if (one.least is not None and found < one.least) or (one.most is not None and found > one.most):
                    yield f"lesson {lesson.id} says {_words(one)}; recorded was {found:.2f}"


def _words(one: Expectation) -> str:
    about = f"{one.score} of {one.run}" + (f" above that of {one.over}" if one.over else "")
    bounds = [f"at least {one.least:g}"] if one.least is not None else []
    bounds += [f"at most {one.most:g}"] if one.most is not None else []
    return f"{about}: {' and '.join(bounds)}"
