"""The steps on a strip: those of an address, the default ones, and the nearest where one is not kept."""

import pytest

from leakage.results.strip_steps import MOST, AskedSteps, StripColumns, choose, parse_steps


@pytest.mark.parametrize(
    ("text", "steps", "notes"),
    [
        ("", (), ()),
        ("0,10,40", (0, 10, 40), ()),
        (" 40 ,0,,40", (40, 0), ()),
        ("-5,007", (-5, 7), ()),
        ("ten,1e3,²,10", (10,), tuple(f'"{word}" is no step and was left out.' for word in ("ten", "1e3", "²"))),
        ("9" * 30, (), ('"999999999999" is no step and was left out.',)),
        ("0,1,2,3,4,5,6,7,8,9,10,11", tuple(range(10)), ("A strip shows at most 10 steps; 2 more were asked for.",)),
    ],
)
def test_steps_in_an_address_are_read_once_each_and_the_others_are_named(text: str, steps: tuple[int, ...], notes: tuple[str, ...]) -> None:
    assert parse_steps(text) == AskedSteps(steps, notes)


@pytest.mark.parametrize(
    ("kept", "answer", "wanted", "shown"),
    [
        (range(300), 300, [0, 10, 20, 40, 80, 160], [0, 10, 20, 40, 80, 160]),
        (range(1, 300), 300, [0, 10, 20, 40, 80, 160], [1, 10, 20, 40, 80, 160]),
        (range(42), 42, [0, 1, 2, 4, 8, 16, 32], [0, 1, 2, 4, 8, 16, 32]),
        (range(0, 24_000, 10), 24_000, [0, *(80 * 2**power for power in range(9))], [0, *(80 * 2**power for power in range(9))]),
        ([1, 2, 6, 12, 99], 100, [1, 2, 6, 12, 99], [1, 2, 6, 12, 99]),  # so few are all shown
        ([*range(3, 120, 12)], 130, [*range(3, 120, 12)], [*range(3, 120, 12)]),  # ten too
        ([1, 6, 13, *range(24, 120, 12)], 130, [0, 10, 20, 40, 80], [1, 13, 24, 36, 84]),
        ([], 1, [], []),
    ],
)
def test_without_steps_in_the_address_the_step_doubles_from_column_to_column(
    kept: range | list[int], answer: int, wanted: list[int], shown: list[int]
) -> None:
    assert choose([kept], [answer], ()) == StripColumns(wanted, [(step,) for step in shown], [])
    assert len(wanted) <= MOST


def test_an_attack_that_ended_early_has_empty_places_beyond_its_end() -> None:
    columns = choose([range(300), range(30)], [300, 30], ())
    assert columns.wanted == [0, 10, 20, 40, 80, 160]
    assert [column[0] for column in columns.steps] == [0, 10, 20, 40, 80, 160]
    assert [column[1] for column in columns.steps] == [0, 10, 20, 29, None, None]  # 29 is nearer to 40 than to 20 on a log scale


@pytest.mark.parametrize(
    ("asked", "shown", "notes"),
    [
        ((0, 38), [0, 38], []),
        ((40,), [38], ["Step 40 was asked for; the nearest kept is 38."]),
        ((49,), [38], ["Step 49 was asked for; the nearest kept is 38."]),  # 60 is as near
        ((-5,), [0], ["Step -5 was asked for; the nearest kept is 0."]),
        ((38, 40), [38], ["Step 40 was asked for; the nearest kept is 38."]),
        (
            (-5, 40, 37, -1, -2),
            [0, 38],
            ["Steps -5, -1 and -2 were asked for; the nearest kept is 0.", "Steps 40 and 37 were asked for; the nearest kept is 38."],
        ),
        ((300,), [], []),  # the answer, which is there anyway
        ((0, 999), [0], ["Step 999 was asked for; the nearest kept is 300."]),
    ],
)
def test_a_step_that_is_not_kept_becomes_the_nearest_and_a_note_says_so(asked: tuple[int, ...], shown: list[int], notes: list[str]) -> None:
    columns = choose([[0, 38, 60]], [300], asked)
    assert ([step for (step,) in columns.steps], columns.notes) == (shown, notes)


def test_with_several_rows_the_note_names_each_row() -> None:
    columns = choose([[0, 38], [0, 41], []], [300, 300, 300], (0, 40))
    assert columns.steps == [(0, 0, None), (38, 41, None)]  # the steps of the third row are gone
    assert columns.notes == ["Step 40 was asked for; the nearest kept are 38 (row 1), 41 (row 2)."]
