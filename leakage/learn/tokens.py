"""Fills numbers into the sentences of a lesson: `{name}` of a claim, `{r09.psnr}` of a recording."""

import re
from collections.abc import Callable, Mapping
from math import prod

from leakage.learn.lessons import TOKEN, Lesson
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


def _twin(recording: RunRecording) -> str:
    found = recording.notes[-1][1].get("distance of the twin") if recording.notes else None
    if not isinstance(found, float):
        raise SpecError(f"{recording.title} has no twin.")
    return plain(float(f"{found:.2g}"))


OF_A_RECORDING: Mapping[str, Callable[[RunRecording], str]] = {
    "psnr": _score("psnr", "{:.1f}"),
    "shifted": _score("registered_psnr", "{:.1f}"),  # PSNR after the best circular shift
    "mse": _score("mse", "{:.2g}"),
    "ssim": _score("ssim", "{:.2f}"),
    "rank": _score("rank", "{:.0f}"),
    "entries": lambda recording: f"{recording.meta_event.entries:,}",  # numbers that were sent
    # numbers of the gradient
    "weights": lambda recording: f"{sum(prod(layer.shape) for layer in recording.meta_event.update.received.layers):,}",
    "grey": lambda recording: f"{recording.grey:.1f}",
    "word": lambda recording: recording.word,
    "twin": _twin,  # relative distance between the gradient of the twin (TwinData) and the received one
}


def plain(number: int | float) -> str:
    """Format a number for a reader.

    >>> plain(54.7), plain(0.0), plain(1.5e-30), plain(15826)
    ('54.7', '0', '1.5 × 10⁻³⁰', '15,826')
    """
    if number and abs(number) < SMALL:
        return with_power(f"{number:.3g}")
    return f"{int(number):,}" if number == int(number) and (isinstance(number, int) or not number) else f"{number:,}"


def with_power(text: str) -> str:
    """Write the exponent of a printed number, if it has one, as a power of ten.

    >>> with_power("5.8e-27"), with_power("1e+06"), with_power("19.1")
    ('5.8 × 10⁻²⁷', '1 × 10⁶', '19.1')
    """
    digits, exponent, power = text.partition("e")
    return f"{digits} × 10{str(int(power)).translate(POWERS)}" if exponent else text


def value_of(token: str, lesson: Lesson) -> str:
    """Return the text that replaces {token} in a lesson: the number of the claim of that name, or a number of a run, as in {r02.psnr}.

    Raises SpecError, with lesson and token, if there is no such number.
    """
    if token in lesson.claims:
        claim = lesson.claims[token]
        return f"{plain(claim.stated)} {claim.unit}".rstrip()
    if (found := value_of_run(token)) is not None:
        return found
    raise SpecError(
        f"lesson {lesson.id}: {{{token}}} is neither a claim nor one of {', '.join(OF_A_RECORDING)} of a recorded run, as in {{r02.psnr}}."
    )


def value_of_run(token: str) -> str | None:
    """Return the text that replaces {token} where it stands for a number of a recorded run, as in {r02.psnr}; None for other tokens."""
    run, _, name = token.partition(".")
    return OF_A_RECORDING[name](load(run)) if name in OF_A_RECORDING else None


def fill_run_numbers(text: str) -> str:
    """Return a text with each {token} replaced by its number of a recorded run; raise SpecError for another token."""

    def value(match: re.Match[str]) -> str:
        if (found := value_of_run(match[1])) is None:
            raise SpecError(f"{{{match[1]}}} is none of {', '.join(OF_A_RECORDING)} of a recorded run, as in {{r02.psnr}}.")
        return found

    return TOKEN.sub(value, text)
