"""Fills numbers into the sentences of a lesson: `{name}` of a claim, `{r09.psnr}` of a recording."""

from collections.abc import Callable, Mapping
from math import log10, prod

from leakage.learn.lessons import Lesson
from leakage.learn.recordings import RunRecording, load
from leakage.spec.experiment import SpecError

SMALL = 1e-4  # smaller numbers are printed with a power of ten
POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _score(name: str, form: str) -> Callable[[RunRecording], str]:
    def printed(recording: RunRecording) -> str:
        value = getattr(recording.end.scores, name)
        if not isinstance(value, int | float):
            raise SpecError(f"{recording.title} has no {name}.")
        return plain(float(form.format(value)))

    return printed


OF_A_RECORDING: Mapping[str, Callable[[RunRecording], str]] = {
    "psnr": _score("psnr", "{:.1f}"),
    "mse": _score("mse", "{:.2g}"),
    "ssim": _score("ssim", "{:.2f}"),
    "rank": _score("rank", "{:.0f}"),
    "entries": lambda recording: f"{recording.meta_event.entries:,}",  # numbers that were sent
    # numbers of the gradient
    "weights": lambda recording: f"{sum(prod(layer.shape) for layer in recording.meta_event.update.received.layers):,}",
    "grey": lambda recording: f"{recording.grey:.1f}",
    "word": lambda recording: recording.word,
}


def plain(number: int | float) -> str:
    """Format a number for a reader.

    >>> plain(54.7), plain(0.0), plain(1.5e-30), plain(15826)
    ('54.7', '0', '1.5 × 10⁻³⁰', '15,826')
    """
    if number and abs(number) < SMALL:
        power = int(log10(abs(number)) // 1)
        return f"{number / 10**power:.3g} × 10{str(power).translate(POWERS)}"
    return f"{int(number):,}" if number == int(number) and (isinstance(number, int) or not number) else f"{number:,}"


def value_of(token: str, lesson: Lesson) -> str:
    """Return the text that replaces {token} in a lesson: the number of the claim of that name, or a number of a run, as in {r02.psnr}.

    Raises SpecError, with lesson and token, if there is no such number.
    """
    run, dot, name = token.partition(".")
    if not dot and token in lesson.claims:
        claim = lesson.claims[token]
        return f"{plain(claim.stated)} {claim.unit}".rstrip()
    if dot and name in OF_A_RECORDING:
        return OF_A_RECORDING[name](load(run))
    raise SpecError(
        f"lesson {lesson.id}: {{{token}}} is neither a claim nor one of {', '.join(OF_A_RECORDING)} of a recorded run, as in {{r02.psnr}}."
    )
