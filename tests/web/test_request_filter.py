"""Requests by pages of other servers, and under other names of this server, to a real server."""

import ast
import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_processes import Place, Server, place
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from leakage.settings import ROOT
from leakage.web.hosts import Hosts
from leakage.web.request_filter import RequestFilter

Served = tuple[Place, Server]
pytestmark = pytest.mark.processes


@pytest.fixture
def small() -> Iterator[TestClient]:
    """One route behind the filter, for what no browser here would send."""
    route = Route("/thing", lambda _: PlainTextResponse("done", headers={"Referrer-Policy": "no-referrer"}), methods=["GET", "POST"])
    app = Starlette(routes=[route], middleware=[Middleware(RequestFilter, hosts=Hosts(("class.example.org",)))])
    with TestClient(app, base_url="http://class.example.org") as client:
        yield client


def port_of(server: Server) -> int:
    return int(server.address.rsplit(":", 1)[1])


def asked(server: Server, method: str, path: str, **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    """Status, body and headers of the answer to exactly these headers."""
    there = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=120)
    there.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = there.getresponse()
    body = answer.read().decode("utf-8", "replace")
    there.close()
    return answer.status, body, answer.headers


def knock(server: Server, origin: str | None, host: str = "") -> tuple[int, str]:
    """What a WebSocket from this origin is answered: 101 and nothing, or the refusal."""
    address = server.address.replace("http", "ws") + "/_stcore/stream"
    if host:  # the client sends the Host of its address, so it connects by that name to this very machine
        address = address.replace("127.0.0.1", host)
    try:
        with connect(
            address, origin=origin, subprotocols=["streamlit"], proxy=None, open_timeout=120, sock=_socket(server) if host else None
        ) as opened:
            return opened.response.status_code, ""
    except InvalidStatus as refused:
        return refused.response.status_code, (refused.response.body or b"").decode()


def _socket(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)))


# ---------------------------------------------------------------- websockets


def test_a_page_of_the_server_itself_opens_the_websocket(server: Served) -> None:
    assert knock(server[1], server[1].address) == (101, "")


def test_a_page_from_another_port_of_the_same_host_cannot_open_the_websocket(server: Served) -> None:
    port = port_of(server[1])
    for origin in (f"http://127.0.0.1:{port + 1}", "http://127.0.0.1", f"http://localhost:{port}", "http://evil.example.org", "null"):
        status, sentence = knock(server[1], origin)
        assert status == 403, origin
        assert "Origin must equal its Host, port included" in sentence


def test_a_websocket_without_an_origin_is_refused(server: Served) -> None:
    assert knock(server[1], None)[0] == 403


def test_a_name_pointed_at_this_machine_cannot_open_the_websocket(server: Served) -> None:
    port = port_of(server[1])
    status, sentence = knock(server[1], f"http://evil.example.org:{port}", host="evil.example.org")
    assert status == 421
    assert "LEAKAGE_ALLOWED_HOSTS" in sentence
    assert knock(server[1], f"http://localhost:{port}", host="localhost")[0] == 101


# ---------------------------------------------------------------- requests that change something


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_requests_that_change_something_need_an_origin_that_equals_the_host(method: str, server: Served) -> None:
    port = port_of(server[1])
    path = "/_stcore/upload_file/none/none"
    for headers in ({}, {"Origin": f"http://127.0.0.1:{port + 1}"}, {"Origin": "null"}, {"Origin": f"ftp://127.0.0.1:{port}"}):
        status, sentence, _ = asked(server[1], method, path, **headers)
        assert (status, "Only pages of this server may do that" in sentence) == (403, True), headers
    assert "Only pages" not in asked(server[1], method, path, Origin=server[1].address)[1]


def test_reading_needs_no_origin(server: Served) -> None:
    assert asked(server[1], "GET", "/api/plotly.min.js")[0] == 200
    assert asked(server[1], "HEAD", "/learn")[0] == 200


def test_usual_ports_may_be_left_out_and_https_is_told_from_http(small: TestClient) -> None:
    def status(host: str, origin: str, **more: str) -> int:
        return small.post("/thing", headers={"Host": host, "Origin": origin, **more}).status_code

    assert status("class.example.org", "http://class.example.org") == 200
    assert status("class.example.org:80", "http://class.example.org") == 200
    assert status("class.example.org", "https://class.example.org") == 200  # behind a proxy that says nothing of it
    assert status("Class.Example.Org", "https://class.example.org:443") == 200
    assert status("class.example.org:443", "http://class.example.org") == 403
    assert status("class.example.org", "http://class.example.org:8501") == 403
    assert status("class.example.org", "https://class.example.org", **{"X-Forwarded-Proto": "https"}) == 200
    assert status("class.example.org", "http://class.example.org", **{"X-Forwarded-Proto": "https"}) == 403
    assert status("class.example.org", "https://class.example.org.evil.example.org") == 403
    assert status("class.example.org", "https://user@class.example.org") == 403


def test_two_origins_or_two_hosts_are_none(small: TestClient) -> None:
    twice = [("Origin", "http://class.example.org"), ("Origin", "http://evil.example.org")]
    assert small.post("/thing", headers=twice).status_code == 403
    assert small.get("/thing", headers=[("Host", "class.example.org"), ("Host", "evil.example.org")]).status_code == 400


# ---------------------------------------------------------------- names


def test_every_route_refuses_a_name_that_is_not_the_servers(server: Served) -> None:
    for path in ("/", "/learn", "/_stcore/health", "/api/plotly.min.js"):
        status, sentence, _ = asked(server[1], "GET", path, Host=f"evil.example.org:{port_of(server[1])}")
        assert status == 421
        assert "'evil.example.org'" in sentence
        assert "LEAKAGE_ALLOWED_HOSTS" in sentence


def test_an_address_of_the_network_works_without_any_setting(server: Served) -> None:
    assert asked(server[1], "GET", "/_stcore/health", Host="192.168.1.7:8501")[0] == 200
    assert asked(server[1], "GET", "/_stcore/health", Host="[fd00::7]:8501")[0] == 200


def test_names_in_the_setting_are_allowed_and_a_wildcard_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    with place(tmp_path / "named", LEAKAGE_ALLOWED_HOSTS="class.example.org, other.example.org") as home:
        server = home.serve(alone=True)
        assert asked(server, "GET", "/learn", Host="class.example.org")[0] == 200
        assert knock(server, f"https://other.example.org:{port_of(server)}", host="other.example.org")[0] == 101
        assert asked(server, "GET", "/learn", Host="third.example.org")[0] == 421
    with place(tmp_path / "wrong", LEAKAGE_ALLOWED_HOSTS="*") as home:
        process = home.start(["-m", "streamlit", "run", "app.py", "--server.port", "0"], "server.log")
        assert process.wait(240) == 1
        assert "There are no wildcards." in (home.home / "server.log").read_text()
        assert "Traceback" not in (home.home / "server.log").read_text()


def test_streamlits_own_list_of_hosts_counts_as_well(tmp_path: Path) -> None:
    with place(tmp_path / "both", STREAMLIT_SERVER_ALLOWED_HOSTS="localhost") as home:
        server = home.serve(alone=True)
        port = port_of(server)
        assert knock(server, f"http://localhost:{port}", host="localhost")[0] == 101
        assert knock(server, server.address)[0] == 403


# ---------------------------------------------------------------- what every answer carries


@pytest.mark.parametrize(
    "path", ["/", "/_stcore/health", "/_stcore/host-config", "/learn", "/api/runs/none/final.png", "/api/plotly.min.js"]
)
def test_answers_are_neither_guessed_at_nor_framed_nor_free_to_load_from_elsewhere(path: str, server: Served) -> None:
    _, _, headers = asked(server[1], "GET", path)
    assert headers.get_all("X-Content-Type-Options") == ["nosniff"]
    assert headers.get_all("Referrer-Policy") == ["same-origin"]
    (text,) = headers.get_all("Content-Security-Policy") or []
    policy = {name: values for name, *values in (part.split() for part in text.split(";"))}
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == ["'self'"]
    assert policy["object-src"] == ["'none'"]
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "http:", "https:", "data:"} & set(policy["script-src"])
    assert not re.search(r"https?:|\*", text), "something may be loaded from other servers"


def test_a_refusal_carries_them_too(server: Served) -> None:
    assert asked(server[1], "POST", "/")[2]["X-Content-Type-Options"] == "nosniff"
    assert asked(server[1], "GET", "/", Host="evil.example.org")[2]["X-Content-Type-Options"] == "nosniff"


def test_what_an_answer_says_itself_stays(small: TestClient, server: Served) -> None:
    assert small.get("/thing").headers["Referrer-Policy"] == "no-referrer"
    assert asked(server[1], "GET", "/api/plotly.min.js")[2]["Content-Type"].startswith("text/javascript")


# ---------------------------------------------------------------- routes that Streamlit brings along

BUILT_IN = {  # every one of this Streamlit: whether a page of ours needs it
    "/": True,  # its pages and their scripts
    "/_stcore/health": True,
    "/_stcore/host-config": True,
    "/_stcore/stream": True,
    "/_stcore/upload_file/{session_id}/{file_id}": True,
    "/_stcore/bidi-components/{path:path}": True,
    "/component/{path:path}": True,
    "/media/{file_id:path}": True,
    "/_stcore/metrics": False,
    "/_stcore/agent/interact": False,
    "/_stcore/agent/openapi.json": False,
    "/_stcore/agent/mcp": False,
    "/auth/login": False,
    "/auth/logout": False,
    "/oauth2callback": False,
}
LISTED = "import streamlit as st; print({route.path or '/' for route in st.App('app.py')._build_starlette_app().routes})"
NOTHING = (404, "There is nothing here.")


def test_every_built_in_route_is_in_the_table_so_that_an_update_opens_none_unseen() -> None:
    listed = subprocess.run([sys.executable, "-c", LISTED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ast.literal_eval(listed.stdout) == set(BUILT_IN)


@pytest.mark.parametrize(("path", "needed"), BUILT_IN.items())
def test_built_in_routes_that_no_page_needs_answer_nothing_by_any_method(path: str, needed: bool, server: Served) -> None:
    address = re.sub(r"\{[^}]*\}", "x", path)
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        found = asked(server[1], method, address, Origin=server[1].address)[:2]
        assert (found == NOTHING) == (not needed), method


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics/",
        "/_stcore/metrics?families=x",
        "/%5Fstcore/metrics",
        "/_stcore/agent/",
        "/_stcore/agent/new",
        "/_stcore/new",
        "/compare/_stcore/agent/mcp",
        "/_stcore/healthy",
        "/_stcore/",
        "/_stcore/agent%2Fmcp",
        "/_stcore/health/../agent/mcp",
    ],
)
def test_closed_routes_are_closed_however_they_are_written_and_new_ones_too(path: str, server: Served) -> None:
    assert asked(server[1], "GET", path)[:2] == NOTHING
    assert asked(server[1], "GET", "/_stcore/health")[0] == 200


def test_the_agent_interface_answers_where_it_was_switched_on(tmp_path: Path) -> None:
    with place(tmp_path / "agent", STREAMLIT_SERVER_ENABLE_AGENT_API="true") as home:
        server = home.serve(alone=True)
        assert asked(server, "GET", "/_stcore/agent/openapi.json")[0] == 200
        assert asked(server, "POST", "/_stcore/agent/mcp")[0] == 403  # from a page of this server alone
        assert asked(server, "GET", "/_stcore/metrics")[:2] == NOTHING
