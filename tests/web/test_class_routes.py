"""A room over HTTP: who may join, vote, lead and compute, in sentences, and what is kept of it: nothing."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from event_loop import run_async
from starlette.applications import Starlette
from starlette.testclient import TestClient

from leakage.frontend.join_page import join_files
from leakage.rooms.room import FEWEST
from leakage.runs.service import Service
from leakage.runs.store import Store
from leakage.settings import Settings
from leakage.web.class_routes import ClassRoutes
from leakage.web.routes import Routes
from leakage.web.stream import Stream
from leakage.web.throttle import PER_ADDRESS

LESSON = "07-noise"
QUESTION, TRY = 3, 5  # beats of this lesson


@pytest.fixture
def classes(store: Store, tmp_path: Path, prefix: str) -> ClassRoutes:
    service = Service(store, Settings(home=tmp_path, slots=2, store_mb=4096, memory_mb=0))
    stream = Stream(service, store)
    return ClassRoutes(service, stream, Routes(service, store, stream), prefix)


@pytest.fixture
def web(classes: ClassRoutes, prefix: str) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=classes.routes()), base_url=f"http://192.168.1.5:8501{prefix}") as client:
        yield client


class Class:
    """A room that is open at a beat."""

    def __init__(self, web: TestClient, beat: int = 1) -> None:
        self.web = web
        answer = web.post("api/class", json={"lesson": LESSON, "beat": beat}).raise_for_status().json()
        self.code, self.key, self.addresses = answer["code"], answer["key"], answer["addresses"]

    def say(self, number: int, **more: Any) -> httpx.Response:
        """What phone `number` says."""
        return self.web.put(f"api/class/{self.code}/me", json={"slot": slot(number), **more})

    def lead(self, **more: Any) -> httpx.Response:
        return self.web.post(f"api/class/{self.code}/lead", json={"key": self.key, **more})

    def live(self, **more: Any) -> httpx.Response:
        return self.web.post(f"api/class/{self.code}/live", json={"beat": TRY, **more})


def slot(number: int) -> str:
    return f"{number:024x}"


def heard(classes: ClassRoutes, code: str, listener: Any = "student") -> dict[str, Any]:
    """The first message that a listener gets."""

    async def first() -> str:
        room = classes.rooms.get(code)
        assert room is not None
        async for text in classes.states(room, listener):
            return text
        raise AssertionError("the stream ended")

    found: dict[str, Any] = json.loads(run_async(first()).removeprefix("data: "))
    return found


def test_a_room_is_opened_joined_and_led(classes: ClassRoutes, web: TestClient) -> None:
    room = Class(web)
    assert room.addresses == ["http://192.168.1.5:8501"]
    assert room.say(1).status_code == room.say(2).status_code == room.say(1).status_code == 204
    assert room.lead(beat=QUESTION).status_code == 204
    state = heard(classes, room.code)
    assert (state["phones"], state["beat"], state["id"], state["vote"]["count"]) == (2, QUESTION, LESSON, 0)
    assert room.say(1, beat=QUESTION, option=1).status_code == 204
    assert heard(classes, room.code)["vote"]["count"] == 1


def test_code_and_key_take_the_class_to_another_lesson(classes: ClassRoutes, web: TestClient) -> None:
    room = Class(web, QUESTION)
    room.say(1, beat=QUESTION, option=1)
    asked = {"lesson": "02-search", "beat": 2, "code": room.code, "key": room.key}
    assert web.post("api/class", json={**asked, "key": "x" * 24}).status_code == 403
    answer = web.post("api/class", json=asked)
    assert (answer.status_code, answer.json()["code"], answer.json()["key"]) == (201, room.code, room.key)
    assert {**heard(classes, room.code), "id": "02-search", "beat": 2, "phones": 1} == heard(classes, room.code)
    told = web.get(f"api/class/{room.code}/lesson").json()
    assert (told["id"], len(told["beats"])) == ("02-search", 2)


def test_the_lesson_of_a_phone_grows_with_the_class_and_never_holds_an_open_answer(web: TestClient) -> None:
    room = Class(web)
    for beat in range(1, QUESTION + 1):
        room.lead(beat=beat)
        told = web.get(f"api/class/{room.code}/lesson").json()
        assert (len(told["beats"]), told["all"]) == (beat, 7)
    assert all(option.keys() == {"text"} for option in told["beats"][-1]["options"])
    room.lead(act="reveal")
    _, _, question, _ = web.get(f"api/class/{room.code}/lesson").json()["beats"]  # the beat that answers it comes with the answer
    assert sum(option["right"] for option in question["options"]) == 1


def test_bars_go_to_the_teacher_at_once_and_to_phones_with_the_answer(classes: ClassRoutes, web: TestClient) -> None:
    room = Class(web, QUESTION)
    for number in range(FEWEST):
        room.say(number, beat=QUESTION, option=0)
    assert heard(classes, room.code)["vote"]["bars"] is None
    assert heard(classes, room.code, "teacher")["vote"]["bars"] == [[FEWEST, 0, 0]]
    room.lead(act="reveal")
    assert heard(classes, room.code)["vote"]["bars"] == [[FEWEST, 0, 0]]


def test_every_refusal_is_a_sentence_that_says_what_to_do(web: TestClient) -> None:
    room = Class(web, QUESTION)
    refused = {
        "unknown room": (web.put("api/class/ZZZZZ/me", json={"slot": slot(1)}), 404),
        "long body": (web.put(f"api/class/{room.code}/me", content=b" " * 501), 413),
        "no JSON": (web.put(f"api/class/{room.code}/me", content=b"x"), 422),
        "a name": (room.say(1, name="Ada"), 422),
        "no token": (web.put(f"api/class/{room.code}/me", json={"slot": "1"}), 422),
        "unknown beat": (room.say(1, beat=99, option=0), 422),
        "unknown option": (room.say(1, beat=QUESTION, option=3), 422),
        "unknown cell": (room.say(1, beat=TRY, cell=80), 422),
        "option and cell": (room.say(1, beat=TRY, cell=1, option=1), 422),
        "wrong key": (web.post(f"api/class/{room.code}/lead", json={"key": "x" * 24, "beat": 1}), 403),
        "unknown act": (room.lead(act="dance"), 422),
        "unknown lesson": (web.post("api/class", json={"lesson": "99-none"}), 422),
        "another's room": (web.post("api/class", json={"lesson": LESSON, "code": room.code, "key": "x" * 24}), 403),
        "live by nobody": (room.live(cell=0), 422),
        "live by a phone": (room.live(slot=slot(1), cell=0), 403),
        "events without a token": (web.get(f"api/class/{room.code}/events"), 422),
        "events with a wrong key": (web.get(f"api/class/{room.code}/events", params={"key": "x" * 24}), 403),
        "another's run": (web.get(f"api/class/{room.code}/runs/abc/private.png"), 404),
        "another server's QR": (web.get(f"api/class/{room.code}/qr.svg", params={"at": "javascript:alert(1)"}), 422),
    }
    for why, (answer, status) in refused.items():
        assert answer.status_code == status, why
        assert answer.text[-1] == ".", why
        assert "Traceback" not in answer.text, why


def test_a_locked_or_closed_room_takes_nobody(web: TestClient) -> None:
    room = Class(web)
    room.say(1)
    room.lead(act="lock")
    assert (room.say(2).status_code, room.say(1).status_code) == (403, 204)
    room.lead(act="close")
    assert room.say(1).status_code == 404


def test_after_a_restart_the_same_room_is_there_again(classes: ClassRoutes, web: TestClient) -> None:
    room = Class(web, QUESTION)
    again = {"lesson": LESSON, "beat": QUESTION, "code": room.code, "key": room.key, "round": 1, "second": True}
    before = heard(classes, room.code)["opened"]
    assert web.post("api/class", json=again).json()["code"] == room.code
    assert heard(classes, room.code)["opened"] == before  # it was still open
    classes.rooms.open.clear()  # as after a restart
    assert room.say(1).status_code == 404
    assert web.post("api/class", json=again).json()["code"] == room.code
    room.say(1, beat=QUESTION, option=0, round=0)
    room.say(1, beat=QUESTION, option=2, round=1)
    state = heard(classes, room.code)
    assert state["opened"] != before
    assert (state["vote"]["round"], state["vote"]["second"], state["vote"]["count"]) == (1, True, 1)


def test_codes_cannot_be_guessed_and_a_class_does_not_lock_itself_out(web: TestClient) -> None:
    room = Class(web)
    room.say(1)
    for _ in range(5 * PER_ADDRESS):  # phones after a restart: the same code again and again
        assert web.put("api/class/KRT4P/me", json={"slot": slot(1)}).status_code == 404
    for number in range(PER_ADDRESS):
        web.put(f"api/class/KRT{number}Z/me", json={"slot": slot(9)})
    assert web.put("api/class/KRT4Z/me", json={"slot": slot(9)}).status_code == 429
    assert room.say(2).status_code == 429  # even the right code, for who was not in
    assert room.say(1).status_code == room.lead(beat=2).status_code == 204


def test_neither_a_run_nor_a_qr_code_tells_whether_there_is_a_room(web: TestClient) -> None:
    room = Class(web)
    for path in ("runs/abc/private.png", "runs/abc/events", "qr.svg?at=http://a"):
        there, nowhere = web.get(f"api/class/{room.code}/{path}"), web.get(f"api/class/ZZZZZ/{path}")
        assert there.status_code == nowhere.status_code
        assert "qr.svg" in path or there.text == nowhere.text


def test_the_qr_code_is_that_of_the_address(web: TestClient, prefix: str) -> None:
    import segno

    picture = web.get("api/class/KRT4P/qr.svg", params={"at": "http://192.168.1.5:8501"})
    path = segno.make_qr(f"http://192.168.1.5:8501{prefix}/j/KRT4P").svg_inline(scale=8, light="white").partition('class="qrline"')[2]
    assert path
    assert path.removesuffix("</svg>") in picture.text
    assert picture.headers["Content-Type"] == "image/svg+xml"


def test_the_page_of_a_phone_is_one_page_one_script_and_one_style(web: TestClient, prefix: str) -> None:
    page = web.get("j/krt4p")
    assert '"code": "KRT4P"' in page.text
    assert "set-cookie" not in page.headers
    for name, (data, type) in join_files().items():
        assert f"{prefix}/api/class/{name}" in page.text
        answer = web.get(f"api/class/{name}")
        assert (answer.content, answer.headers["Content-Type"].split(";")[0]) == (data, type)
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "immutable" in answer.headers["Cache-Control"]
    assert web.get("api/class/phone.000000000000.js").status_code == 404


# ---------------------------------------------------------------- live runs


def test_forty_phones_that_ask_for_twelve_cells_cause_twelve_runs_and_the_teacher_is_next(web: TestClient, store: Store) -> None:
    room = Class(web, TRY)
    room.lead(act="students")
    runs = {room.live(slot=slot(number), cell=number % 12).raise_for_status().json()["run"] for number in range(40)}
    assert len(runs) == len(store.queue()) == 12
    first, second = store.claim("0:1"), store.claim("1:1")
    assert first is not None
    assert second is not None
    assert {first.id, second.id} < runs
    experiment = store.queue()[0].experiment
    row = {"kind": "attack", "digest": "teacher", "version": "1", "experiment": experiment}
    from store_rows import run

    store.ask([(run("teacher's", owner="browser of the teacher", **row), {})])
    third = store.claim("0:2")
    assert third is not None
    assert third.id == "teacher's"


def test_a_phone_has_one_open_request(web: TestClient) -> None:
    room = Class(web, TRY)
    room.lead(act="students")
    assert room.live(slot=slot(1), cell=0).status_code == 200
    assert room.live(slot=slot(1), cell=0).status_code == 200  # the same
    refused = room.live(slot=slot(1), cell=1)
    assert refused.status_code == 429
    assert room.live(slot=slot(2), cell=1).status_code == 200


def test_a_full_queue_leads_to_the_recorded_result(web: TestClient) -> None:
    room = Class(web, TRY)
    room.lead(act="students")
    answers = [room.live(slot=slot(number), cell=number) for number in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert "recorded result" in answers[-1].text


# ---------------------------------------------------------------- nothing is kept


def test_after_three_classes_nothing_is_left_of_them(
    classes: ClassRoutes, web: TestClient, store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    files = {path.name for path in tmp_path.rglob("*")}
    codes = []
    for _ in range(3):
        room = Class(web, QUESTION)
        codes.append(room.code)
        for number in range(3):
            room.say(number, beat=QUESTION, option=0)
        room.lead(beat=TRY)
        room.say(1, beat=TRY, cell=3)
        assert room.live(key=room.key, cell=3).status_code == 200
        room.lead(act="close")
    deadline = 600
    while store.queue() and deadline:
        deadline -= 1
        web.portal.call(asyncio.sleep, 0.1)  # type: ignore[union-attr]
    assert store.queue() == []
    assert classes.rooms.open == {}
    assert {path.name for path in tmp_path.rglob("*")} == files
    assert not any(code in record.getMessage() for code in codes for record in caplog.records if record.name.startswith("leakage"))
