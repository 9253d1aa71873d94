"""The phones of a class as one process: each loads the page as a browser does, follows the room, votes, and comes back after a silence.

`room.py` starts this process and tells it by lines of JSON what to do: {"do": "join", ...}; each gets one line of JSON as the response. The
process imports the standard library only, because it computes on the cores of the server that it measures.
"""

import asyncio
import gzip
import json
import random
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

RULE = Path(__file__).parents[2] / "leakage" / "ui" / "components" / "room" / "room_stream.js"
SILENT_TOO_LONG = (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError)
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Message = tuple[float, int, int | None]  # when it came, the beat, and the votes in the bars that it shows


def spans() -> dict[str, list[float]]:
    """Return the pauses of room_stream.js in seconds, from and to: FIRST, LATER, PATIENCE, and SILENCE with one number."""
    text = RULE.read_text(encoding="utf-8")
    return {name: [int(ms) / 1000 for ms in re.findall(r"\d+", span)] for name, span in re.findall(r"^const ([A-Z]+) = (.+?);", text, re.M)}


def files_of(page: str) -> list[str]:
    """Return the addresses of the style sheet and of the script of a phone's page."""
    return re.findall(r'(?:stylesheet" href|<script src)="([^"]+)"', page)


class Student:
    """A phone in a room. It has an address of its own in 127.0.0.0/8, and the header Via makes the server treat it as a guest."""

    def __init__(self, number: int, server: str, code: str, sent: list[float]) -> None:
        where = urlsplit(server)
        self.host, self.port, self.code, self.sent = where.hostname, where.port, code, sent
        self.own, self.slot, self.spans = f"127.0.{1 + number // 200}.{1 + number % 200}", secrets.token_hex(12), spans()
        self.always = f"Host: {where.netloc}\r\nOrigin: {server}\r\nAccept-Encoding: gzip\r\nVia: 1.1 classroom\r\n"
        self.idle = list[Wire]()
        self.messages = list[Message]()
        self.state, self.lesson, self.version, self.data = dict[str, Any](), dict[str, Any](), "", ""
        self.loaded, self.ready = set[str](), asyncio.Event()
        self.updating: asyncio.Task[None] | None = None
        self.following: asyncio.Task[None] | None = None

    # ---------------------------------------------------------------- requests

    async def connect(self) -> Wire:
        """Return a connection that the server has kept open, or a new one."""
        while self.idle:
            wire = self.idle.pop()
            if not wire[0].at_eof():
                return wire
            wire[1].close()
        return await asyncio.open_connection(self.host, self.port, local_addr=(self.own, 0))

    async def send(self, wire: Wire, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str]]:
        """Send a request, and return the status and the headers of the response."""
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        self.sent.append(time.monotonic())
        wire[1].write(f"{method} {path} HTTP/1.1\r\n{self.always}{length}\r\n".encode() + body)
        first, *lines = (await wire[0].readuntil(b"\r\n\r\n")).decode().split("\r\n")
        return int(first.split()[1]), {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}

    async def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        """Return the content of a response. Raises OSError if the server refuses the request."""
        wire = await self.connect()
        status, headers = await self.send(wire, method, path, json.dumps(body).encode() if body else b"")
        if "chunked" in headers.get("transfer-encoding", ""):
            content = b"".join([chunk async for chunk in chunks(wire[0])])
        else:
            content = await wire[0].readexactly(int(headers.get("content-length", 0)))
        self.idle.append(wire)
        if status >= 400:
            raise OSError(f"{method} {path}: {status} {content.decode()}")
        return gzip.decompress(content) if headers.get("content-encoding") == "gzip" else content

    async def say(self, **what: Any) -> None:
        """Tell the room something: only that the phone is here, or a vote."""
        await self.request("PUT", f"/api/class/{self.code}/me", {"slot": self.slot, **what})

    # ---------------------------------------------------------------- the page

    async def join(self) -> float:
        """Load the page, join the room, and return the seconds until the pictures of the class's beat are here."""
        began = time.monotonic()
        page = (await self.request("GET", f"/j/{self.code}")).decode()
        files = files_of(page)
        about = re.search(r'id="about">(.*?)</script>', page, re.S)
        if len(files) != 2 or not about:
            raise OSError("The page of a phone has no script, no style or no data.")
        self.data = json.loads(about[1])["data"]
        await asyncio.gather(*(self.request("GET", file) for file in files))
        await self.say()
        self.listen()
        await self.ready.wait()
        return time.monotonic() - began

    def missing(self) -> list[str]:
        """Return the addresses of the pictures of the class's beat that are not here yet."""
        beat = self.lesson["beats"][self.state["beat"] - 1]
        names = [f"runs/{run}" for run in beat.get("runs", ()) if "columns" in self.lesson["runs"][run]]
        names += [f"grids/{beat['grid']}"] if beat.get("grid") else []
        return [address for name in names if (address := f"{self.data}/{name}.webp") not in self.loaded]

    async def update(self) -> None:
        """Load the version of the lesson that the state names, and the pictures of its beat."""
        while self.version != (wanted := self.state["lesson"]) or self.missing():
            if self.version != wanted:
                self.lesson = json.loads(await self.request("GET", f"/api/class/{self.code}/lesson?v={wanted}&slot={self.slot}"))
                self.version = wanted
            for address in self.missing():
                await self.request("GET", address)
                self.loaded.add(address)
        self.ready.set()

    # ---------------------------------------------------------------- the stream

    def hear(self, state: dict[str, Any]) -> None:
        """Note a message, and load what it names."""
        bars = (state["vote"] or {}).get("bars")
        self.messages.append((time.monotonic(), state["beat"], sum(bars[-1]) if bars and bars[-1] else None))
        self.state = state
        if self.updating is None or self.updating.done():
            self.updating = asyncio.create_task(self.update())

    def listen(self) -> None:
        """Follow the room from now on."""
        self.following = asyncio.create_task(self.follow())

    async def rest(self) -> None:
        """Close the stream, as a hidden page does."""
        if self.following:
            self.following.cancel()
            await asyncio.gather(self.following, return_exceptions=True)

    async def follow(self) -> None:
        """Hear every message; connect again after a silence, by the rule of room_stream.js."""
        failures = 0
        while True:
            with suppress(*SILENT_TOO_LONG):
                async for state in self.states():
                    failures = 0
                    self.hear(state)
            await asyncio.sleep(random.uniform(*self.spans["LATER" if failures else "FIRST"]))
            failures += 1

    async def states(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the states of one connection. Raises one of SILENT_TOO_LONG when it ends or is silent."""
        within = random.uniform(*self.spans["PATIENCE"])
        began = time.monotonic()
        wire = await asyncio.wait_for(asyncio.open_connection(self.host, self.port, local_addr=(self.own, 0)), within)
        try:
            path = f"/api/class/{self.code}/events?slot={self.slot}"
            status, _ = await asyncio.wait_for(self.send(wire, "GET", path), within - (time.monotonic() - began))
            if status != 200:
                await self.say()  # the page asks for the reason, which it cannot read here
                return
            messages = chunks(wire[0])
            while True:
                message = await asyncio.wait_for(anext(messages), self.spans["SILENCE"][0])
                yield json.loads(message.removeprefix(b"data: "))
        except StopAsyncIteration:
            return
        finally:
            wire[1].close()


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the chunks of a response (RFC 9112, section 7.1) up to its end."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")


class Crowd:
    """All students, and what `room.py` asks of them."""

    def __init__(self, server: str, code: str, count: int) -> None:
        self.sent = list[float]()
        self.students = [Student(number, server, code, self.sent) for number in range(count)]

    async def each(self, act: Any, within: float) -> dict[str, Any]:
        """Let every student act at a random time within so many seconds; return the seconds of each, and the errors."""

        async def one(student: Student) -> float:
            await asyncio.sleep(random.uniform(0, within))
            began = time.monotonic()
            await act(student)
            return time.monotonic() - began

        done = await asyncio.gather(*(one(student) for student in self.students), return_exceptions=True)
        return {
            "seconds": [value for value in done if isinstance(value, float)],
            "errors": [repr(error) for error in done if isinstance(error, BaseException)],
        }

    async def join(self, within: float) -> dict[str, Any]:
        """Let all students join; the seconds are those of `Student.join`."""
        return await self.each(Student.join, within)

    async def vote(self, within: float, beat: int, options: int) -> dict[str, Any]:
        """Let all students vote in the first round of a question; the seconds are those of the requests."""
        return await self.each(lambda student: student.say(beat=beat, option=random.randrange(options), round=0), within)

    async def listen(self, within: float) -> dict[str, Any]:
        """Let all students open their streams again."""

        async def one(student: Student) -> None:
            student.listen()

        return await self.each(one, within)

    async def rest(self) -> dict[str, Any]:
        """Let all students close their streams."""
        return await self.each(Student.rest, 0.0)

    async def report(self, since: float) -> dict[str, Any]:
        """Return for each student the messages since a time, and the times at which any request was sent."""
        messages = [[message for message in student.messages if message[0] >= since] for student in self.students]
        return {"messages": messages, "sent": [at for at in self.sent if at >= since]}


async def obey(crowd: Crowd) -> None:
    """Do what each line of the standard input says, up to its end."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        act: Coroutine[Any, Any, dict[str, Any]] = getattr(crowd, order.pop("do"))(**order)
        sys.stdout.write(json.dumps(await act) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(obey(Crowd(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
