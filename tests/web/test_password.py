"""A class password: without it a visitor gets only the login page, whatever the request; with it, everything."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from home_fixtures import furnished
from home_processes import Server, place, until
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from leakage.settings import Settings
from leakage.web.class_key import ClassKey, join_path
from leakage.web.password import PasswordGate
from leakage.web.proxies import visitor_of
from leakage.web.throttle import PER_ADDRESS

PASSWORD = "seven blue cups"
HERE = "http://localhost"


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, slots=1, store_mb=16, memory_mb=0, password=PASSWORD)


@pytest.fixture
def gate(config: Settings, prefix: str) -> Iterator[TestClient]:
    """A page behind the gate."""
    key = ClassKey(config)
    app = Starlette(
        routes=[Route("/{path:path}", lambda _: PlainTextResponse("inside"))],
        middleware=[Middleware(PasswordGate, key=key, base=prefix)],
    )
    with TestClient(app, base_url=HERE, follow_redirects=False) as client:
        yield client


def type_in(client: httpx.Client, password: str, prefix: str = "", wanted: str = "") -> httpx.Response:
    return client.post(f"{prefix}/login", content=urlencode({"next": wanted, "password": password}), headers={"Origin": HERE})


# ---------------------------------------------------------------- the gate


def test_a_page_leads_to_the_login_and_from_there_back_to_itself(gate: TestClient, prefix: str) -> None:
    asked = gate.get(f"{prefix}/compare?ids=a,b&v=1")
    assert asked.status_code == 303
    assert asked.headers["Location"] == f"{prefix}/login?{urlencode({'next': f'{prefix}/compare?ids=a,b&v=1'})}"
    form = gate.get(asked.headers["Location"])
    assert form.status_code == 200
    (wanted,) = re.findall(r'name="next" value="([^"]*)"', form.text)
    let_in = type_in(gate, PASSWORD, prefix, wanted.replace("&amp;", "&"))
    assert (let_in.status_code, let_in.headers["Location"]) == (303, f"{prefix}/compare?ids=a,b&v=1")
    assert gate.get(f"{prefix}/compare").text == "inside"


def test_what_pages_fetch_is_answered_401_with_a_sentence(gate: TestClient, prefix: str) -> None:
    for path in ("/api/runs/stream?ids=a", "/_stcore/host-config", "/static/js/index.js", "/media/x.png", "/component/x"):
        answer = gate.get(prefix + path)
        assert answer.status_code == 401
        assert answer.text == f"This server asks for a password: open its page {prefix}/login in a browser first."
    assert gate.put(f"{prefix}/_stcore/upload_file/a/b").status_code == 401
    assert gate.post(f"{prefix}/").status_code == 401


def test_the_health_check_needs_no_password_and_nothing_like_it_does_without(gate: TestClient, prefix: str) -> None:
    assert gate.get(f"{prefix}/_stcore/health").text == "inside"
    for path in ("/_stcore/health/", "/_stcore/health/../stream", "/_stcore/healthy", "/login/", "/login/x", "//login", "/join/x"):
        assert gate.get(prefix + path).text != "inside", path


def test_a_wrong_password_is_told_and_sets_no_cookie(gate: TestClient, prefix: str) -> None:
    answer = type_in(gate, "seven blue cup", prefix)
    assert answer.status_code == 403
    assert "That is not the password. Ask the person who gave you this address." in answer.text
    assert "set-cookie" not in answer.headers
    assert gate.get(f"{prefix}/compare").status_code == 303


def test_wrong_passwords_are_throttled_and_the_right_one_too_until_then(gate: TestClient, prefix: str) -> None:
    for _ in range(PER_ADDRESS):
        assert type_in(gate, "wrong", prefix).status_code == 403
    for password in ("wrong", PASSWORD):
        refused = type_in(gate, password, prefix)
        assert refused.status_code == 429
        seconds = int(refused.headers["Retry-After"])
        assert 1 <= seconds <= 60
        assert f"Too many wrong passwords. Try again in {seconds} seconds." in refused.text


def test_who_has_the_cookie_passes_the_login_however_many_wrong_ones_come_from_the_same_address(gate: TestClient, prefix: str) -> None:
    assert type_in(gate, PASSWORD, prefix).status_code == 303
    cookie = dict(gate.cookies)
    gate.cookies.clear()
    for _ in range(PER_ADDRESS):
        type_in(gate, "wrong", prefix)
    assert type_in(gate, PASSWORD, prefix).status_code == 429
    gate.cookies.update(cookie)
    assert type_in(gate, PASSWORD, prefix, f"{prefix}/ask").headers["Location"] == f"{prefix}/ask"
    assert gate.get(f"{prefix}/compare").text == "inside"


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example.org",
        "//evil.example.org",
        "/\\evil.example.org",
        "\\\\evil",
        "javascript:alert(1)",
        "",
        "/a\r\nSet-Cookie: x=1",
        "a",
    ],
)
def test_the_login_leads_to_own_pages_only(wanted: str, gate: TestClient, prefix: str) -> None:
    let_in = type_in(gate, PASSWORD, prefix, wanted)
    assert let_in.headers["Location"] == f"{prefix}/"
    assert f'value="{prefix}/"' in gate.get(f"{prefix}/login", params={"next": wanted}).text


def test_the_link_to_join_lets_in_and_a_wrong_one_says_what_to_do(gate: TestClient, config: Settings, prefix: str) -> None:
    refused = gate.get(f"{prefix}/join?key=wrong")
    assert refused.status_code == 403
    assert f"open {prefix}/login and type the password" in refused.text
    let_in = gate.get(prefix + join_path(config))
    assert (let_in.status_code, let_in.headers["Location"]) == (303, f"{prefix}/")
    assert gate.get(f"{prefix}/compare").text == "inside"


def test_the_cookie_is_for_no_script_no_other_site_and_behind_tls_for_https_alone(gate: TestClient, config: Settings, prefix: str) -> None:
    link = prefix + join_path(config)
    assert re.fullmatch(r"gle_class=[0-9a-f]{64}; HttpOnly; Path=/; SameSite=lax", gate.get(link).headers["Set-Cookie"])
    assert gate.get(link, headers={"X-Forwarded-Proto": "https"}).headers["Set-Cookie"].endswith("; Secure")
    assert PASSWORD not in str(gate.cookies)


def test_a_cookie_that_somebody_made_up_opens_nothing(gate: TestClient, config: Settings, prefix: str) -> None:
    for value in ("", "0" * 64, PASSWORD, ClassKey(config).link, '"', "\xe4"):
        cookie = f"gle_class={value}".encode("latin-1")
        assert gate.get(f"{prefix}/api/x", headers=[(b"Cookie", cookie)]).status_code == 401


def test_what_a_visitor_wrote_is_text_on_the_page(gate: TestClient, prefix: str) -> None:
    page = gate.get(f"{prefix}/login", params={"next": f'{prefix}/"><script>alert(1)</script>'}).text
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_form_is_read_up_to_a_size_and_needs_no_fields(gate: TestClient, prefix: str) -> None:
    assert gate.post(f"{prefix}/login", content=b"x" * 20000).status_code == 413
    assert gate.post(f"{prefix}/login", content=b"\xff=&&%zz").status_code == 403
    assert gate.delete(f"{prefix}/login").status_code == 405


# ---------------------------------------------------------------- a real server


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[tuple[Server, Settings]]:
    """A server with a password."""
    home = furnished(tmp_path_factory.mktemp("school"), written)
    with place(home, LEAKAGE_PASSWORD=PASSWORD) as made:
        yield made.serve(alone=True), Settings(home=home, slots=1, store_mb=16, memory_mb=0, password=PASSWORD)


def opens(server: Server, cookie: str) -> tuple[int, bytes]:
    """The status of a WebSocket with this cookie, and the refusal."""
    try:
        address = server.address.replace("http", "ws") + "/_stcore/stream"
        with connect(address, origin=server.address, additional_headers={"Cookie": cookie}, proxy=None, open_timeout=120) as opened:
            return opened.response.status_code, b""
    except InvalidStatus as refused:
        return refused.response.status_code, refused.response.body or b""


@pytest.mark.processes
def test_the_websocket_opens_with_the_password_only(school: tuple[Server, Settings]) -> None:
    server, config = school
    status, sentence = opens(server, "a=1")
    assert status == 401
    assert sentence == b"This server asks for a password: open its page /login in a browser first."
    assert opens(server, f"gle_class={ClassKey(config).cookie}") == (101, b"")


@pytest.mark.processes
def test_a_real_server_shows_strangers_nothing_but_the_login(school: tuple[Server, Settings]) -> None:
    server, config = school
    with httpx.Client(base_url=server.address, transport=httpx.HTTPTransport(), timeout=120) as client:
        assert client.get("/_stcore/health").status_code == 200
        for path in ("/", "/ask", "/learn", "/learn/worksheets/plan.html"):
            assert client.get(path).headers["Location"].startswith("/login?next="), path
        assert client.get("/api/plotly.min.js").status_code == 401
        typed = client.post("/login", data={"password": PASSWORD, "next": "/learn"}, headers={"Origin": "http://evil.example.org"})
        assert typed.status_code == 403
        typed = client.post("/login", data={"password": PASSWORD, "next": "/learn"}, headers={"Origin": server.address})
        assert (typed.status_code, typed.headers["Location"]) == (303, "/learn")
        assert typed.headers["X-Content-Type-Options"] == "nosniff"
        assert client.get("/learn").status_code == 200
        assert "gle_owner" in client.get("/").headers["Set-Cookie"]
    log = until(lambda: (config.home / "server.log").read_text(), what="the server wrote its log")
    assert f"The address {join_path(config)} on this server needs no password." in log
    assert PASSWORD not in log
    assert os.stat(config.home / "class.key").st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- seventy wrong ones

WRONG_ONES = 70


def typed_from(server: Server, source: str, password: str, **headers: str) -> httpx.Response:
    """The answer to a password typed at this address of the loopback network, which needs no set-up on Linux."""
    with httpx.Client(base_url=server.address, transport=httpx.HTTPTransport(local_address=source), timeout=120) as client:
        sent = {"Origin": server.address, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return client.post("/login", data={"password": password}, headers=sent)


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives every process the addresses 127.0.0.0/8")
def test_the_right_password_passes_beside_seventy_wrong_ones_from_elsewhere(home: Path) -> None:
    with place(home, LEAKAGE_PASSWORD=PASSWORD) as made:
        server = made.serve(alone=True)
        config = Settings(home=home, slots=1, store_mb=16, memory_mb=0, password=PASSWORD)
        found = [typed_from(server, "127.0.0.1", "wrong", X_Forwarded_For=f"203.0.113.{number}").status_code for number in range(35)]
        assert found == [403] * PER_ADDRESS + [429] * (35 - PER_ADDRESS)  # a header that somebody made up is nobody's address
        found = [typed_from(server, f"127.0.1.{number % 7 + 1}", "wrong").status_code for number in range(35)]
        assert found == [403] * 35
        assert typed_from(server, "127.0.0.1", PASSWORD).status_code == 429
        assert typed_from(server, "127.0.2.1", PASSWORD).status_code == 303
        with httpx.Client(base_url=server.address, transport=httpx.HTTPTransport(), timeout=120) as client:
            assert client.get(join_path(config)).status_code == 303
            assert client.get("/learn").status_code == 200


@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives every process the addresses 127.0.0.0/8")
def test_a_named_proxy_says_who_asks_and_what_stands_before_its_word_is_made_up(home: Path) -> None:
    with place(home, LEAKAGE_PASSWORD=PASSWORD, LEAKAGE_PROXIES="127.0.0.1, 10.0.0.0/8") as made:
        server = made.serve(alone=True)
        for number in range(PER_ADDRESS):
            wrong = typed_from(server, "127.0.0.1", "wrong", X_Forwarded_For=f"203.0.113.{number}, 192.0.2.7")
            assert wrong.status_code == 403
        assert typed_from(server, "127.0.0.1", PASSWORD, X_Forwarded_For="192.0.2.7").status_code == 429
        assert typed_from(server, "127.0.0.1", PASSWORD, X_Forwarded_For="192.0.2.8").status_code == 303
        assert typed_from(server, "127.0.2.1", PASSWORD, X_Forwarded_For="192.0.2.7").status_code == 303  # named is 127.0.0.1


@pytest.mark.processes
def test_a_proxy_that_is_no_address_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    with place(tmp_path / "wrong", LEAKAGE_PROXIES="caddy") as made:
        process = made.start(["-m", "streamlit", "run", "app.py", "--server.port", "0"], "server.log")
        assert process.wait(240) == 1
        log = (made.home / "server.log").read_text()
    assert "LEAKAGE_PROXIES must be addresses or networks of reverse proxies" in log
    assert "got 'caddy'" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("host", "one"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
    ],
)
def test_one_visitor_is_an_address_or_the_network_that_a_visitor_is_given(host: str, one: str) -> None:
    assert visitor_of(HTTPConnection({"type": "http", "client": (host, 5), "headers": []})) == one
