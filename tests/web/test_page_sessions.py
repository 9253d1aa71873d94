"""One browser with many live connections, garbage over one of them, and the headers of refusals, on a real server."""

import asyncio
import http.client
import random
import socket
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from event_loop import run_async
from home_processes import Place, Server, get, until
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from store_rows import run
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from leakage.runs.owners import COOKIE
from leakage.web.page_sessions import MOST, TOO_MANY
from leakage.web.server import middleware
from leakage.web.stream import MAX_LISTENERS

Served = tuple[Place, Server]


def page(server: Server, owner: str = "", path: str = "/_stcore/stream") -> ClientConnection:
    """A live connection of this browser."""
    return connect(
        server.address.replace("http", "ws") + path,
        origin=Origin(server.address),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": f"{COOKIE}={owner}"} if owner else {},
        max_size=None,
        proxy=None,
    )


@pytest.mark.processes
def test_one_browser_holds_so_many_live_connections_and_another_opens_its_own(server: Served) -> None:
    with ExitStack() as opened:
        for _ in range(MOST):
            opened.enter_context(page(server[1], "greedy-browser-0000"))
        with pytest.raises(InvalidStatus) as refused:
            page(server[1], "greedy-browser-0000")
        assert refused.value.response.status_code == 429
        assert (refused.value.response.body or b"").decode() == TOO_MANY
        assert opens(server[1], "another-browser-0000")
    until(lambda: opens(server[1], "greedy-browser-0000"), what="those that were closed are no longer counted")


def opens(server: Server, owner: str) -> bool:
    try:
        with page(server, owner):
            return True
    except InvalidStatus:
        return False


@pytest.mark.processes
def test_of_fifty_streams_that_one_browser_opens_at_once_no_more_than_the_limit_pass(server: Served) -> None:
    place, served = server
    place.store.add(run("followed"), {})

    async def ask() -> dict[int, int]:
        limits, found = httpx.Limits(max_connections=None), defaultdict[int, int](int)
        async with httpx.AsyncClient(base_url=served.address, timeout=120, limits=limits) as web, asyncio.TaskGroup() as group:
            over = asyncio.Event()

            async def follow() -> None:
                async with web.stream("GET", "/api/runs/stream?ids=followed", headers={"Cookie": f"{COOKIE}=follower-00000000"}) as stream:
                    found[stream.status_code] += 1
                    if sum(found.values()) == 50:
                        over.set()
                    await over.wait()

            for _ in range(50):
                group.create_task(follow())
        return found

    assert run_async(ask()) == {200: MAX_LISTENERS, 429: 50 - MAX_LISTENERS}
    until(lambda: run_async(ask())[200] == MAX_LISTENERS, what="those that have left are no longer counted")
    place.store.drop("followed", "me")


@pytest.mark.processes
def test_garbage_over_a_live_connection_writes_no_traceback(server: Served) -> None:
    place, served = server
    log = place.home / "server.log"
    before, drawn = len(log.read_text()), random.Random(0)
    frames: list[str | bytes] = ["text", "", b"\xff" * 100, b"\x08", b"\x0a\xff", *(drawn.randbytes(size) for size in range(1, 40))]
    for number, content in enumerate(frames):
        with page(served, f"garbage-browser-{number:04}") as opened:
            opened.send(content)
            try:
                while True:
                    opened.recv(timeout=0.05)
            except (TimeoutError, ConnectionClosed):
                pass
    time.sleep(0.5)
    written = log.read_text()[before:]
    assert "Traceback" not in written
    assert len(written) < 3000
    with served.get("/_stcore/health") as answer:
        assert answer.status == 200


def head_of(server: Server, data: bytes) -> str:
    """What is answered to these bytes, up to the end of its head."""
    with socket.create_connection(("127.0.0.1", int(server.address.rsplit(":", 1)[1])), timeout=120) as there:
        there.sendall(data)
        found = b""
        while b"\r\n\r\n" not in found and (part := there.recv(4096)):
            found += part
    return found.decode("latin-1").lower()


@pytest.mark.processes
@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_with_the_headers_of_every_answer(data: bytes, server: Served) -> None:
    head = head_of(server[1], data)
    assert head.startswith("http/1.1 4")
    assert head.count("\r\nx-content-type-options: nosniff") == 1
    assert head.count("\r\ncontent-security-policy: ") == 1


@pytest.mark.processes
def test_a_live_connection_that_is_refused_carries_them_too(server: Served) -> None:
    for path in ("/nothing", "/api/runs/stream", "/_stcore/metrics"):
        with pytest.raises(InvalidStatus) as refused:
            page(server[1], path=path)
        assert refused.value.response.status_code in (403, 404), path
        assert refused.value.response.headers["X-Content-Type-Options"] == "nosniff", path


@pytest.mark.processes
def test_behind_tls_every_cookie_is_for_tls_alone(server: Served) -> None:
    for path in ("/", "/_stcore/host-config", "/_stcore/health"):
        for proto, secure in (("https", True), ("http", False)):
            with get(server[1].address + path, {"X-Forwarded-Proto": proto}) as answer:
                message: http.client.HTTPMessage = answer.headers
                for cookie in message.get_all("Set-Cookie") or []:
                    assert ("secure" in cookie.lower()) == secure, cookie
    with get(server[1].address + "/_stcore/health", {"X-Forwarded-Proto": "https"}) as answer:
        assert any(cookie.startswith("_streamlit_xsrf=") for cookie in answer.headers.get_all("Set-Cookie"))


def test_an_upload_is_never_written_to_the_disk_while_it_comes(tmp_path: Path) -> None:
    middleware()  # as the server does at its start

    async def spooled(request: Request) -> JSONResponse:
        async with request.form() as form:
            (file,) = form.values()
            return JSONResponse(file.file._rolled)  # type: ignore[union-attr]

    web = TestClient(Starlette(routes=[Route("/", spooled, methods=["PUT"])]))
    assert web.put("/", files={"file": ("large.png", b"x" * 10 * 2**20)}).json() is False
