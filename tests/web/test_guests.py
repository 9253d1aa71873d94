"""What visitors reach on a server for a class: every route of the program against every kind of visitor."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from leakage.settings import Settings
from leakage.web.class_key import ClassKey
from leakage.web.guests import GuestGuard
from leakage.web.password import COOKIE, PasswordGate

# Every route of the program: True where guests may go. Streamlit's routes are below /_stcore/, or serve files.
FOR_GUESTS = {
    **dict.fromkeys(("/j", "/j/{code}", "/api/class/{name}", "/api/class/{code}/qr.svg", "/api/class/{code}/lesson"), True),
    **dict.fromkeys(("/api/class/{code}/events", "/api/class/{code}/me", "/api/class/{code}/lead", "/api/class/{code}/live"), True),
    "/api/class/{code}/runs/{run}/{name:path}": True,
    "/api/scripts/{version}/{name:path}": True,
    "/api/own/{name}": True,
    "/api/learn/{version}/thumbnails/{lesson}.webp": True,
    "/api/learn/{version}/{folder}/{name}.webp": True,
    "/api/class": False,  # opening a room
    **dict.fromkeys(("/api/runs/stream", "/api/runs/{run}/{name:path}", "/api/compare/{name}", "/api/ask/{name}"), False),
    **dict.fromkeys(("/api/runs/{run}/strip.{kind}", "/api/compare/strip.{kind}"), False),
    **dict.fromkeys(("/api/plotly.min.js", "/api/updates/{owner}/{set}/{file}"), False),
    **dict.fromkeys(("/learn", "/learn/{lesson}", "/learn/worksheets/{name}.html"), False),
    **dict.fromkeys(("/papers", "/papers/{name}", "/api/learn/{version}/records/{run}.json"), False),
    "/api/learn/{version}/lessons/{lesson}.json": False,
    "/api/learn/{version}/slides/{name}.{kind}": False,
    "/api/learn/{version}/stories/{run}.webp": False,
    **dict.fromkeys((f"/{page}" for page in ("ask", "architecture", "audit", "compare", "runs", "training", "lab")), False),
}
SAMPLES = {"folder": "runs", "code": "KRT4P", "version": "0123", "kind": "png"}
LAN = ("192.168.1.77", 40000)
LOCAL = ("127.0.0.1", 40000)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The paths of all routes, ours and Streamlit's, from the program itself."""
    text = (
        "import json, os, sys; import streamlit as st\n"
        "from leakage.web.server import routes; from streamlit.web.server.starlette.starlette_app import create_streamlit_routes\n"
        "app = st.App('app.py'); found = create_streamlit_routes(app._create_runtime())\n"
        "print(json.dumps({'ours': [route.path for route in routes()], 'streamlit': [route.path for route in found]}))"
    )
    home = tmp_path_factory.mktemp("guests")
    environment = {"LEAKAGE_HOME": str(home), "PATH": "", "HOME": str(home)}
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    found: dict[str, list[str]] = json.loads(run.stdout.splitlines()[-1])
    return found


async def inside(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


@pytest.fixture
def key(tmp_path: Path) -> ClassKey:
    return ClassKey(Settings(home=tmp_path, slots=1, store_mb=16, memory_mb=0, password="seven blue cups"))


def class_server(key: ClassKey | None = None) -> ASGIApp:
    """Something that answers to every address, behind the guard; with a key also behind the class password."""
    layers = [Middleware(GuestGuard, key=key)]
    if key:
        layers.insert(0, Middleware(PasswordGate, key=key))
    answer = Route("/{path:path}", lambda _: PlainTextResponse("inside"), methods=["GET", "POST", "PUT", "DELETE"])
    return Starlette(routes=[WebSocketRoute("/{path:path}", inside), answer], middleware=layers)


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)(?::path)?\}", lambda found: SAMPLES.get(found[1], "abc"), path)


def addresses(program: dict[str, list[str]]) -> Iterator[tuple[str, bool]]:
    """Every address of the program, and whether guests may go there."""
    for path in program["ours"]:
        assert path in FOR_GUESTS, f"{path} is a new route: say in FOR_GUESTS whether the guests of a class may use it"
        yield filled(path), FOR_GUESTS[path]
    for path in program["streamlit"]:
        yield filled(path), False
    yield "/", False


VISITORS = {
    "loopback": (LOCAL, {}, True),
    "loopback of IPv6": (("::1", 1), {}, True),
    "loopback behind a proxy": (LOCAL, {"X-Forwarded-For": "192.168.1.77"}, False),
    "loopback behind another proxy": (LOCAL, {"Forwarded": "for=192.168.1.77"}, False),
    "local network": (LAN, {}, False),
    "local network that claims to be local": (LAN, {"X-Forwarded-For": "127.0.0.1"}, False),
    "local network that names the loopback": (LAN, {"Host": "127.0.0.1:8501"}, False),
}


@pytest.mark.parametrize("visitor", VISITORS)
def test_a_guest_reaches_the_room_and_a_member_the_program(program: dict[str, list[str]], visitor: str) -> None:
    client, headers, member = VISITORS[visitor]
    web = TestClient(class_server(), client=client, headers=headers, follow_redirects=False)
    for path, for_guests in addresses(program):
        answer = web.get(path)
        assert (answer.status_code, answer.text == "inside") == ((200, True) if member or for_guests else (403, False)), path
        if not (member or for_guests):
            assert "/j" in answer.text, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_what_a_guest_may_not_read_it_may_not_write_either(program: dict[str, list[str]], method: str) -> None:
    web = TestClient(class_server(), client=LAN)
    for path, for_guests in addresses(program):
        assert web.request(method, path).status_code == (200 if for_guests else 403), path


def test_the_password_makes_a_member_and_the_code_of_a_room_makes_none(program: dict[str, list[str]], key: ClassKey) -> None:
    with_cookie = TestClient(class_server(key), client=LAN, cookies={COOKIE: key.cookie}, follow_redirects=False)
    without = TestClient(class_server(key), client=LAN, follow_redirects=False)
    wrong = TestClient(class_server(key), client=LOCAL, cookies={COOKIE: "x" * 64}, follow_redirects=False)
    for path, for_guests in addresses(program):
        assert with_cookie.get(path).text == "inside", path
        for web in (without, wrong):
            answer = web.get(path)
            free = for_guests or path == "/_stcore/health"  # a monitor needs no password, but it must be at this computer
            assert answer.status_code in ((200, 403) if free else (303, 401)), path
            assert (answer.text == "inside") == (for_guests or (free and web is wrong)), path


def test_the_live_connection_of_pages_is_closed_to_guests() -> None:
    with TestClient(class_server(), client=LOCAL).websocket_connect("/_stcore/stream"):
        pass
    for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}):
        with (
            pytest.raises(WebSocketDenialResponse),
            TestClient(class_server(), client=LAN, headers=headers).websocket_connect("/_stcore/stream"),
        ):
            pass
    with pytest.raises(WebSocketDenialResponse), TestClient(class_server(), client=LAN).websocket_connect("/j/KRT4P"):
        pass


@pytest.mark.parametrize(
    "path", ["/jail", "/api/classes", "/api/classroom/x", "/x/api/class/KRT4P/me", "/j/KRT4P/more", "/api/learn/x/runs/a/b.webp"]
)
def test_addresses_that_only_look_like_those_of_rooms_are_closed(path: str) -> None:
    assert TestClient(class_server(), client=LAN).get(path).status_code == 403


def test_nobody_is_a_guest_where_the_server_is_for_no_class(tmp_path: Path) -> None:
    config = Settings(home=tmp_path, slots=1, store_mb=16, memory_mb=0)
    assert config.guests is False
