"""The steps of an attack that a strip shows: those that were asked for, or few of those that are kept."""

import math
from collections.abc import Sequence
from typing import NamedTuple

MOST = 10  # steps of a strip, besides the private pictures and the answer
LETTERS = 12  # of a wrong step in a sentence
DIGITS = 9  # of a step
FAST = 100  # steps: a shorter attack is shown from step 1 on, a longer one from step 10 on


class AskedSteps(NamedTuple):
    """The steps that an address asks for, each once, and sentences about what it asks for in vain."""

    steps: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class StripColumns(NamedTuple):
    """The columns of a strip between the private pictures and the answer, and sentences about steps that were not kept."""

    wanted: list[int]
    """For each column the step that it stands for."""
    steps: list[tuple[int | None, ...]]
    """For each column the step that every row shows; None where a row shows nothing."""
    notes: list[str]


def parse_steps(text: str) -> AskedSteps:
    """Read steps from an address.

    >>> parse_steps("0,10,,10,40")
    AskedSteps(steps=(0, 10, 40), notes=())
    >>> parse_steps("-5,ten")
    AskedSteps(steps=(-5,), notes=('"ten" is no step and was left out.',))
    """
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    steps = dict.fromkeys(int(word) for word in words if _is_step(word))
    wrong = [f'"{word[:LETTERS]}" is no step and was left out.' for word in words if not _is_step(word)]
    more = [f"A strip shows at most {MOST} steps; {len(steps) - MOST} more were asked for."] if len(steps) > MOST else []
    return AskedSteps(tuple(steps)[:MOST], (*wrong[:MOST], *more))


def _is_step(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= DIGITS


def choose(kept: Sequence[Sequence[int]], answers: Sequence[int | None], asked: Sequence[int]) -> StripColumns:
    """Choose the columns of a strip. No row shows a step twice, and no column is empty.

    Args:
        kept: for each row the steps with a picture, without the step of the answer; empty if they are gone.
        answers: for each row the step of the answer, which has a column of its own; None without an answer.
        asked: the steps to show; empty for a choice that doubles the step from column to column.

    Returns:
        The columns. Where a step was asked for that a row does not have, they show its nearest step, and a note says so.
    """
    if not asked:
        wanted = _default_steps(kept)
        return _filled(wanted, [_binned(row, wanted) for row in kept], [])
    rows = [_nearest_steps(row, answer, asked) for row, answer in zip(kept, answers, strict=True)]
    return _filled(asked, [_once(row, answer) for row, answer in zip(rows, answers, strict=True)], _notes(asked, rows))


def _notes(asked: Sequence[int], rows: Sequence[Sequence[int | None]]) -> list[str]:
    """Say which steps the rows show in place of steps that were asked for, in a sentence for all that have the same nearest steps."""
    replaced: dict[str, list[int]] = {}
    for step, nearest in zip(asked, zip(*rows, strict=True), strict=True):
        found = {other for other in nearest if other is not None}
        if len(found) > 1:
            every = ", ".join(f"{other} (row {row})" for row, other in enumerate(nearest, 1) if other is not None)
            replaced.setdefault(f"the nearest kept are {every}.", []).append(step)
        elif found - {step}:
            replaced.setdefault(f"the nearest kept is {min(found)}.", []).append(step)
    return [
        f"Step{'s' if len(steps) > 1 else ''} {_in_words(steps)} {'were' if len(steps) > 1 else 'was'} asked for; {words}"
        for words, steps in replaced.items()
    ]


def _in_words(steps: Sequence[int]) -> str:
    *first, last = map(str, steps)
    return f"{', '.join(first)} and {last}" if first else last


def _default_steps(kept: Sequence[Sequence[int]]) -> list[int]:
    """Return all kept steps if they are few, else 0, 10, 20, 40, 80 ... of a long attack, and 0, 1, 2, 4, 8 ... of a short one."""
    every = sorted({step for row in kept for step in row})
    if len(every) <= MOST:
        return every
    first = 10 if every[-1] >= FAST else 1
    doubled = [first * 2**power for power in range(every[-1].bit_length()) if first * 2**power <= every[-1]]
    return [0, *doubled[-(MOST - 1) :]]


def _binned(row: Sequence[int], wanted: Sequence[int]) -> list[int | None]:
    """Give each step of a row to the wanted step of the nearest logarithm; return for each wanted step the nearest that it was given."""
    given: dict[int, list[int]] = {step: [] for step in wanted}
    for step in row:
        given[min(wanted, key=lambda other: abs(math.log((step + 1) / (other + 1))))].append(step)
    return [nearest_step(given[step], step) if given[step] else None for step in wanted]


def _nearest_steps(row: Sequence[int], answer: int | None, asked: Sequence[int]) -> list[int | None]:
    """Return the nearest kept step to each step that was asked for; None everywhere if the steps of the row are gone."""
    own = [*row] if answer is None else [*row, answer]
    return [nearest_step(own, step) if row else None for step in asked]


def _once(row: Sequence[int | None], answer: int | None) -> list[int | None]:
    """Replace steps that stand in an earlier column, or in that of the answer, by None."""
    return [None if step == answer or step in row[:column] else step for column, step in enumerate(row)]


def _filled(wanted: Sequence[int], rows: Sequence[Sequence[int | None]], notes: list[str]) -> StripColumns:
    """Turn rows into columns, without those that are empty."""
    columns = [(step, column) for step, column in zip(wanted, zip(*rows, strict=True), strict=True) if set(column) != {None}]
    return StripColumns([step for step, _ in columns], [column for _, column in columns], notes)


def nearest_step(steps: Sequence[int], step: int) -> int:
    """Return the element of `steps` nearest to `step`, the lower of two.

    >>> nearest_step([0, 38, 42], 40)
    38
    """
    return min(steps, key=lambda other: (abs(other - step), other))
