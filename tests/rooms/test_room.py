"""A room: votes that count once, answers that stay hidden, doors, and rooms that are opened again."""

import json

import pytest

from leakage.rooms.outline import Outline
from leakage.rooms.registry import LETTERS, LONGEST, MAX_ROOMS, Rooms
from leakage.rooms.room import FEWEST, MAX_PHONES, RESTORE, Room
from leakage.rooms.room_errors import ANOTHER_BEAT, LOCKED, TOO_LATE, WRONG_KEY, RoomError

LESSON = Outline("07-noise", option_counts=(0, 3, 0, 0), grids=(("", 0), ("", 0), ("g07", 80), ("", 0)))
KEY = "the key of the teacher"


@pytest.fixture
def room() -> Room:
    return Room("KRT4P", KEY, LESSON, beat=2, now=0.0)


def join(room: Room, count: int) -> list[str]:
    """The hashed tokens of new phones."""
    return [room.seat(f"{number:024x}") for number in range(count)]


def test_a_vote_may_change_until_the_answer_is_shown(room: Room) -> None:
    phones = join(room, FEWEST)
    for student in phones:
        room.vote(student, 2, 0, 0, now=1.0)
    room.vote(phones[0], 2, 2, 0, now=2.0)
    room.vote(phones[0], 2, 2, 0, now=2.0)
    assert room.state("teacher")["vote"] == {"round": 0, "second": False, "count": 5, "revealed": False, "bars": [[4, 0, 1]]}
    room.reveal()
    with pytest.raises(RoomError, match=TOO_LATE):
        room.vote(phones[1], 2, 1, 0, now=3.0)
    assert room.state("student")["vote"]["bars"] == [[4, 0, 1]]


def test_phones_see_only_how_many_have_voted_before_the_answer(room: Room) -> None:
    for student in join(room, 6):
        room.vote(student, 2, 1, 0, now=1.0)
    seen = room.state("student")["vote"]
    assert (seen["count"], seen["bars"], seen["revealed"]) == (6, None, False)


def test_below_five_votes_nobody_sees_how_they_are_distributed(room: Room) -> None:
    for student in join(room, FEWEST - 1):
        room.vote(student, 2, 1, 0, now=1.0)
    room.reveal()
    for listener in ("teacher", "student"):
        assert room.state(listener)["vote"] | {"count": 4, "bars": [None]} == room.state(listener)["vote"]


def test_a_second_vote_stands_beside_the_first_and_a_third_replaces_the_oldest(room: Room) -> None:
    phones = join(room, 5)
    for round, option in ((0, 0), (1, 1), (2, 2)):
        if round:
            room.again()
        for student in phones:
            room.vote(student, 2, option, round, now=1.0)
    vote = room.state("teacher")["vote"]
    assert (vote["round"], vote["second"], vote["bars"]) == (2, True, [[0, 5, 0], [0, 0, 5]])
    with pytest.raises(RoomError, match=TOO_LATE):
        room.vote(phones[0], 2, 0, 1, now=1.0)  # of the round before
    with pytest.raises(RoomError, match=ANOTHER_BEAT):
        room.vote(phones[0], 2, 0, 0, now=1.0)  # of a round that is no longer shown


def test_nobody_discusses_a_question_that_nobody_has_voted_on(room: Room) -> None:
    room.reveal()
    room.again()
    assert room.state("teacher")["vote"] == {"round": 0, "second": False, "count": 0, "revealed": False, "bars": [None]}


def test_what_was_cleared_is_a_round_of_its_own_in_which_phones_choose_anew(room: Room) -> None:
    (student,) = join(room, 1)
    room.vote(student, 2, 1, 0, now=1.0)
    room.clear()
    vote = room.state("student")["vote"]
    assert (vote["round"], vote["count"], vote["second"]) == (1, 0, False)
    room.vote(student, 2, 2, 1, now=1.0)
    assert room.state("student")["vote"]["count"] == 1


def test_a_phone_has_one_dot_which_moves(room: Room) -> None:
    first, second = join(room, 2)
    room.lead(3)
    room.choose(first, 3, 12)
    room.choose(second, 3, 12)
    room.choose(second, 3, 40)
    assert room.state("student")["dots"] == {12: 1, 40: 1}
    for _ in range(2):  # the second time there is nothing to forget
        room.clear()
        assert (room.state("student")["dots"], room.state("student")["cleared"]) == ({}, 1)
    room.lead(4)
    assert room.state("student")["cleared"] == 0


@pytest.mark.parametrize(
    ("beat", "option", "status"), [(1, 0, 422), (2, 3, 422), (2, -1, 422), (0, 0, 422), (9, 0, 422), (2, 0, 204)], ids=str
)
def test_unknown_beats_and_options_are_refused_in_a_sentence(room: Room, beat: int, option: int, status: int) -> None:
    (student,) = join(room, 1)
    if status == 204:
        room.vote(student, beat, option, 0, now=1.0)
        return
    with pytest.raises(RoomError, match=r"^[A-Z].*\.$") as refused:
        room.vote(student, beat, option, 0, now=1.0)
    assert refused.value.status == status


def test_votes_for_another_beat_and_cells_outside_the_grid_are_refused(room: Room) -> None:
    (student,) = join(room, 1)
    with pytest.raises(RoomError, match=ANOTHER_BEAT):
        room.choose(student, 3, 0)
    room.lead(3)
    with pytest.raises(RoomError, match=ANOTHER_BEAT):
        room.vote(student, 2, 0, 0, now=1.0)
    with pytest.raises(RoomError, match="no cell 80"):
        room.choose(student, 3, 80)


def test_a_locked_door_keeps_new_phones_out_and_nobody_who_is_in(room: Room) -> None:
    join(room, 2)
    room.let_in(False)
    join(room, 2)
    with pytest.raises(RoomError, match=LOCKED):
        join(room, 3)
    room.let_in(True)
    assert len(join(room, 3)) == len(room.phones) == 3


def test_a_full_room_takes_no_further_phone(room: Room) -> None:
    join(room, MAX_PHONES)
    with pytest.raises(RoomError, match="300"):
        room.seat("f" * 24)


def test_a_room_keeps_no_token_and_no_key(room: Room) -> None:
    (student,) = join(room, 1)
    room.vote(student, 2, 1, 0, now=1.0)
    assert f"{0:024x}" not in repr(vars(room))
    assert KEY not in repr(vars(room))


def test_a_message_of_a_full_room_stays_below_four_kilobytes(room: Room) -> None:
    room.lead(3)
    for number, student in enumerate(join(room, MAX_PHONES)):
        room.choose(student, 3, number % 80)
    for cell in range(30):
        room.show_run(3, cell, "a" * 16)
    assert len(room.message("teacher").encode()) < 4096
    assert json.loads(room.message("student").removeprefix("data: "))["phones"] == MAX_PHONES


def test_every_change_rings_the_bell_and_is_in_the_next_message(room: Room) -> None:
    bell, before = room.bell, room.message("student")
    assert room.message("student") is before  # computed once
    room.lead(3)
    assert bell.is_set()
    assert room.message("student") != before


def test_another_lesson_keeps_the_phones_and_forgets_what_they_said(room: Room) -> None:
    (student,) = join(room, 1)
    room.vote(student, 2, 0, 0, now=1.0)
    room.reveal()
    room.lead(3)
    room.choose(student, 3, 5)
    room.show_run(3, 5, "run")
    before = room.state("student")
    next_lesson = Outline("08-clip", option_counts=(0, 4, 0), grids=(("", 0), ("", 0), ("g08", 6)))  # at the same beats
    with pytest.raises(RoomError, match="no part 4"):
        room.turn_to(next_lesson, 4)
    assert room.state("student") == before
    room.turn_to(next_lesson, 2)
    state = room.state("student")
    assert (state["id"], state["beat"], state["furthest"], state["phones"], state["opened"]) == ("08-clip", 2, 2, 1, before["opened"])
    assert state["lesson"] != before["lesson"]
    assert room.state("teacher")["vote"] == {"round": 0, "second": False, "count": 0, "revealed": False, "bars": [None]}
    assert not room.knows_answer(2)
    room.vote(student, 2, 3, 0, now=2.0)  # no seat is lost
    room.lead(3)
    assert (room.state("teacher")["dots"], room.state("teacher")["runs"]) == ({}, {})


# ---------------------------------------------------------------- opened again


def test_after_a_restart_phones_repeat_both_rounds_of_the_open_beat(room: Room) -> None:
    room.restore(round=4, second=True, revealed=True, students=True)
    phones = join(room, 5)
    for student in phones:
        room.vote(student, 2, 0, 3, now=5.0)
        room.vote(student, 2, 2, 4, now=5.0)
    assert room.state("student")["vote"] == {"round": 4, "second": True, "count": 5, "revealed": True, "bars": [[5, 0, 0], [0, 0, 5]]}
    with pytest.raises(RoomError, match=TOO_LATE):
        room.vote(phones[0], 2, 1, 4, now=6.0)  # the answer is known: only a vote that was lost may be repeated
    assert room.students


def test_votes_that_were_forgotten_before_a_restart_are_not_repeated(room: Room) -> None:
    (student,) = join(room, 1)
    room.vote(student, 2, 1, 0, now=1.0)
    room.clear()
    before = room.state("student")["vote"]
    room.votes.clear()
    room.restore(round=before["round"], second=before["second"], revealed=False, students=False)
    assert room.state("student")["vote"] == before
    with pytest.raises(RoomError, match=ANOTHER_BEAT):
        room.vote(student, 2, 1, 0, now=2.0)


def test_repeated_votes_are_taken_for_a_minute(room: Room) -> None:
    room.restore(round=0, second=False, revealed=True, students=False)
    (student,) = join(room, 1)
    with pytest.raises(RoomError, match=TOO_LATE):
        room.vote(student, 2, 0, 0, now=RESTORE + 1)


# ---------------------------------------------------------------- all rooms


def test_codes_have_five_letters_and_are_found_in_small_ones_too() -> None:
    rooms = Rooms()
    room, key = rooms.begin(LESSON, 1)
    assert len(room.code) == 5
    assert set(room.code) <= set(LETTERS)
    assert rooms.get(room.code.lower()) is room
    assert room.is_key(key)


def test_a_twenty_first_room_is_refused_until_one_is_closed() -> None:
    rooms = Rooms()
    opened = [rooms.begin(LESSON, 1)[0] for _ in range(MAX_ROOMS)]
    with pytest.raises(RoomError, match="20") as refused:
        rooms.begin(LESSON, 1)
    assert refused.value.status == 429
    rooms.close(opened[0])
    rooms.begin(LESSON, 1)
    assert rooms.get(opened[0].code) is None


def test_a_room_closes_after_three_hours_and_says_so_to_its_listeners() -> None:
    now = [0.0]
    rooms, closed = Rooms(clock=lambda: now[0]), list[str]()
    rooms.closed.append(lambda room: closed.append(room.code))
    room, _ = rooms.begin(LESSON, 1)
    now[0] = LONGEST
    assert rooms.get(room.code) is room
    now[0] = LONGEST + 1
    assert rooms.get(room.code) is None
    assert room.closed
    assert closed == [room.code]
    assert room.state("student")["closed"]


def test_a_room_is_opened_again_by_its_key_and_by_no_other() -> None:
    rooms, fresh = Rooms(), Rooms()
    room, key = rooms.begin(LESSON, 2)
    assert rooms.begin_again(room.code, key, LESSON, 2) == (room, False)
    with pytest.raises(RoomError, match=WRONG_KEY):
        rooms.begin_again(room.code, "x" * 24, LESSON, 2)
    again, new = fresh.begin_again(room.code, key, LESSON, 2)
    assert (again.code, new, again.is_key(key)) == (room.code, True, True)
    assert again.opened != room.opened
    for code in ("AAAAA", "KRT4", "../..", "krt4p"):
        with pytest.raises(RoomError):
            Rooms().begin_again(code, key, LESSON, 2)
