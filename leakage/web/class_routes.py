"""The requests of rooms: a teacher opens and leads one, phones join it, vote and try, and all hear its state."""

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO
from typing import Any
from weakref import WeakKeyDictionary

import segno
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from leakage.frontend.join_page import join_files, join_page
from leakage.frontend.own_script import own_script_address
from leakage.learn.data_address import data_folder
from leakage.learn.reader_data import reader_lesson
from leakage.rooms.guest_lesson import guest_lesson
from leakage.rooms.outline import Outline
from leakage.rooms.registry import LENGTH, LETTERS, Rooms
from leakage.rooms.room import Listener, Room, hashed
from leakage.rooms.room_errors import NO_ROOM, WRONG_KEY, RoomError
from leakage.runs.service import Service
from leakage.settings import INSTALLED
from leakage.spec.experiment import SpecError
from leakage.spec.json_reading import parse_as
from leakage.web.code_throttle import CodeThrottle
from leakage.web.compressed import compressed
from leakage.web.lan import accepts, lan_addresses
from leakage.web.live_runs import LiveRuns
from leakage.web.proxies import visitor_of
from leakage.web.room_requests import Leading, LiveRequest, Opening, Saying, read_body
from leakage.web.routes import Routes
from leakage.web.stream import EventStreamResponse, Stream

ROUTE = "/api/class"
PAUSE = 0.5  # seconds between two messages to a listener, at least
ALIVE = 5.0  # and at most
NO_STORE = {"Cache-Control": "no-store"}
NO_CACHE = {"Cache-Control": "no-cache"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
COMMAND = "LEAKAGE_CLASS=1 gradient-leakage app --host 0.0.0.0" if INSTALLED else "make class"
TOO_MANY_CODES = "Too many wrong codes came from here. Try again in {} seconds."
NO_FILE = "There is no such file. Reload the page."
SAY_WHAT = "A phone says its vote (option) or its choice (cell), and at which beat."


def in_sentences(handler: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    """Return a method of ClassRoutes that responds with the sentence of a RoomError, or of a SpecError."""

    @functools.wraps(handler)
    async def answer(self: "ClassRoutes", request: Request) -> Response:
        try:
            return await handler(self, request)
        except RoomError as error:
            return PlainTextResponse(str(error), error.status, NO_STORE)
        except SpecError as error:
            return PlainTextResponse(str(error), 422, NO_STORE)

    return answer


class ClassRoutes:
    """The requests of the rooms of a server; `base` is the prefix of all addresses, such as `/gle`, or empty."""

    def __init__(self, service: Service, stream: Stream, files: Routes, base: str = "") -> None:
        self.service, self.stream, self.base = service, stream, base
        self.rooms, self.throttle, self.live_runs = Rooms(), CodeThrottle(), LiveRuns(service, stream, files)
        self.lessons = WeakKeyDictionary[Room, tuple[str, bytes]]()  # what phones may see of each room's lesson: version and JSON
        self.rooms.closed.append(self.live_runs.forget)
        stream.at_end.append(self.rooms.end_streams)

    def routes(self) -> list[Route]:
        """Return all routes, below the prefix."""
        room = f"{self.base}{ROUTE}/{{code}}"
        return [
            Route(f"{self.base}/j", self.page),
            Route(f"{self.base}/j/{{code}}", self.page),
            Route(f"{self.base}{ROUTE}", self.begin, methods=["POST"]),
            Route(f"{self.base}{ROUTE}/{{name}}", self.file),
            Route(f"{room}/qr.svg", self.qr),
            Route(f"{room}/lesson", self.lesson),
            Route(f"{room}/events", self.events),
            Route(f"{room}/me", self.say, methods=["PUT"]),
            Route(f"{room}/lead", self.lead, methods=["POST"]),
            Route(f"{room}/live", self.live, methods=["POST"]),
            Route(f"{room}/runs/{{run}}/{{name:path}}", self.run),
        ]

    # ---------------------------------------------------------------- pages and files

    async def page(self, request: Request) -> Response:
        """Respond with the page of a phone; the address may have the code of a room, which the page itself checks."""
        about = {"base": self.base, "data": data_folder(self.base), "own": own_script_address(self.base)}
        return HTMLResponse(join_page({**about, "code": request.path_params.get("code", "").upper()}, f"{self.base}{ROUTE}"), 200, NO_CACHE)

    async def file(self, request: Request) -> Response:
        """Respond with the script or the style sheet of that page."""
        data, type = join_files().get(request.path_params["name"], (b"", ""))
        return compressed(request, data, type, FOREVER) if data else PlainTextResponse(NO_FILE, 404, NO_STORE)

    @in_sentences
    async def qr(self, request: Request) -> Response:
        """Respond with the QR code of a room's address on the server `at`, as SVG. It does not say whether there is such a room."""
        code, at = request.path_params["code"].upper(), request.query_params.get("at", "")
        if len(code) != LENGTH or set(code) - set(LETTERS):
            raise RoomError(NO_ROOM, 404)
        if not at.startswith(("http://", "https://")) or len(at) > 200:
            raise RoomError("at: expected is the address of this server, such as http://192.168.1.5:8501.", 422)
        picture = BytesIO()
        segno.make_qr(join_address(at, self.base, code)).save(picture, kind="svg", scale=8, light="white", xmldecl=False)
        return Response(picture.getvalue(), media_type="image/svg+xml", headers=NO_STORE)

    # ---------------------------------------------------------------- rooms

    @in_sentences
    async def begin(self, request: Request) -> Response:
        """Open a room, or open it again, and respond with its code, the teacher's key, and the addresses that phones can reach.

        An open room whose lesson is another goes to the lesson that is asked for.
        """
        asked = await read_body(request, Opening)
        outline = Outline.of(await asyncio.to_thread(self.whole_lesson, asked.lesson))
        if asked.code:
            key = asked.key
            room, new = self.rooms.begin_again(asked.code, key, outline, asked.beat)
            if new:
                room.restore(round=asked.round, second=asked.second, revealed=asked.revealed, students=asked.students)
            elif room.outline.id != outline.id:
                room.turn_to(outline, asked.beat)
        else:
            room, key = self.rooms.begin(outline, asked.beat)
        addresses, local = await asyncio.to_thread(addresses_of, request)
        answer = {"code": room.code, "key": key, "addresses": addresses, "local": local, "command": COMMAND}
        return JSONResponse(answer, 201, NO_STORE)

    @in_sentences
    async def lesson(self, request: Request) -> Response:
        """Respond with the lesson of a room as far as its phones may see it."""
        room = self.find(request, slot=request.query_params.get("slot", ""))
        version, data = self.lessons.get(room, ("", b""))
        if version != room.lesson_version:
            data = json.dumps(guest_lesson(self.whole_lesson(room.outline.id), room), separators=(",", ":")).encode()
            self.lessons[room] = room.lesson_version, data
        return compressed(request, data, "application/json", NO_STORE)

    @in_sentences
    async def events(self, request: Request) -> Response:
        """Respond with the states of a room as server-sent events: for the teacher with the key, for a phone with its token."""
        slot, key = (request.query_params.get(name, "") for name in ("slot", "key"))
        room = self.find(request, slot=slot, key=key)
        if key and not room.is_key(key):
            raise RoomError(WRONG_KEY, 403)
        if not key:
            room.seat(parse_as({"slot": slot}, Saying, "a request to a room").slot)
        return EventStreamResponse(self.states(room, "teacher" if key else "student"), lambda: None)

    async def states(self, room: Room, listener: Listener) -> AsyncIterator[str]:
        """Yield the state of a room now and after every change, until it is closed or the server ends."""
        while not self.stream.closing:
            bell = room.bell  # before the state is read: what changes from now on rings it
            yield room.message(listener)
            if room.closed:
                break
            await asyncio.sleep(PAUSE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(bell.wait(), ALIVE - PAUSE)
            self.rooms.close_old()

    @in_sentences
    async def say(self, request: Request) -> Response:
        """Take what a phone says: that it is here, a vote, or a choice in a what-if."""
        said = await read_body(request, Saying)
        room = self.find(request, slot=said.slot)
        student = room.seat(said.slot)
        if said.option is not None and said.cell is None and said.beat is not None:
            room.vote(student, said.beat, said.option, said.round, now=self.rooms.clock())
        elif said.cell is not None and said.option is None and said.beat is not None:
            room.choose(student, said.beat, said.cell)
        elif said.beat is not None or said.cell is not None or said.option is not None:
            raise RoomError(SAY_WHAT, 422)
        return Response(None, 204, NO_STORE)

    @in_sentences
    async def lead(self, request: Request) -> Response:
        """Do what the teacher asks for."""
        led = await read_body(request, Leading)
        room = self.find(request, key=led.key)
        if not room.is_key(led.key):
            raise RoomError(WRONG_KEY, 403)
        if led.beat is not None:
            room.lead(led.beat)
        if led.act == "close":
            self.rooms.close(room)
        elif led.act in ("lock", "unlock"):
            room.let_in(led.act == "unlock")
        elif led.act in ("students", "teacher"):
            room.let_compute(led.act == "students")
        elif led.act in ("reveal", "hide"):
            room.reveal(shown=led.act == "reveal")
        elif led.act == "again":
            room.again()
        elif led.act == "clear":
            room.clear()
        return Response(None, 204, NO_STORE)

    @in_sentences
    async def live(self, request: Request) -> Response:
        """Compute a cell of a what-if live, and respond with the id of its run."""
        asked = await read_body(request, LiveRequest)
        room = self.find(request, slot=asked.slot or "", key=asked.key or "")
        if asked.key is not None and not room.is_key(asked.key):
            raise RoomError(WRONG_KEY, 403)
        by = "teacher" if asked.key is not None else room.seat(parse_as({"slot": asked.slot}, Saying, "a request to a room").slot)
        return JSONResponse({"run": await self.live_runs.ask(room, by, asked.beat, asked.cell)}, 200, NO_STORE)

    @in_sentences
    async def run(self, request: Request) -> Response:
        """Respond with the events or a picture of a live run of the room; an unknown room and an unknown run get the same response."""
        return await self.live_runs.show(self.rooms.get(request.path_params["code"]), request)

    # ---------------------------------------------------------------- helpers

    def whole_lesson(self, name: str) -> dict[str, Any]:
        """Return the data of a whole lesson. Raises SpecError if there is none of that name."""
        return reader_lesson(name, self.service.catalog())

    def find(self, request: Request, *, slot: str = "", key: str = "") -> Room:
        """Return the room of the code in an address.

        A visitor who is known there, by the token of a phone or the teacher's key, always gets it. Everybody else has tried a code: after
        too many wrong ones, the right one is refused as well.

        Raises:
            RoomError: if there is no such room, or too many wrong codes came from this visitor.
        """
        code, address, now = request.path_params["code"].upper(), visitor_of(request), time.monotonic()
        room = self.rooms.get(code)
        if room and ((slot and hashed(slot) in room.phones) or (key and room.is_key(key))):
            return room
        if wait := self.throttle.seconds_to_wait(address, now):
            raise RoomError(TOO_MANY_CODES.format(wait), 429)
        if room is None:
            self.throttle.record(address, code, now)
            raise RoomError(NO_ROOM, 404)
        return room


def join_address(at: str, base: str, code: str) -> str:
    """Return the address of a room's page for phones on the server `at`."""
    return f"{at}{base}/j/{code}"


def addresses_of(request: Request) -> tuple[list[str], bool]:
    """Return the addresses, best first, at which phones can reach the server that got a request, and whether it listens locally only.

    Without a network there is no address, wherever the server listens.
    """
    url, server = request.url, request.scope.get("server")
    if url.hostname not in LOOPBACK:
        return [f"{url.scheme}://{url.netloc}"], False
    port = server[1] if server and server[1] else url.port or 80
    addresses = lan_addresses()
    reachable = [f"{url.scheme}://{address}:{port}" for address in addresses if accepts(address, port)]
    return reachable, bool(addresses) and not reachable
