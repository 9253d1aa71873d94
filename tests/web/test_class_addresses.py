"""Which addresses a class is offered, and what is said where there is none."""

import socket
from collections.abc import Sequence

import pytest
from starlette.requests import Request

from leakage.web import class_routes
from leakage.web.class_routes import addresses_of


def asked(host: str, port: int) -> Request:
    """A request of a browser on the server's own computer, or of another one."""
    scope = {
        "type": "http",
        "headers": [(b"host", f"{host}:{port}".encode())],
        "path": "/",
        "scheme": "http",
        "server": ("127.0.0.1", port),
    }
    return Request({**scope, "query_string": b"", "root_path": ""})


@pytest.mark.parametrize(
    ("networks", "open_at", "offered", "local"),
    [
        (["127.0.0.2", "127.0.0.3"], ["127.0.0.3"], ["127.0.0.3"], False),
        (["127.0.0.2"], ["127.0.0.1"], [], True),
        ([], ["127.0.0.1"], [], False),  # no network: it is not the server that keeps phones away
    ],
    ids=["one of two networks", "this computer only", "no network"],
)
def test_offered_is_where_the_server_accepts_connections(
    networks: Sequence[str], open_at: Sequence[str], offered: Sequence[str], local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_routes, "lan_addresses", lambda: list(networks))
    with socket.create_server((open_at[0], 0)) as server:
        port = server.getsockname()[1]
        assert addresses_of(asked("127.0.0.1", port)) == ([f"http://{address}:{port}" for address in offered], local)


def test_a_browser_that_came_by_an_address_passes_that_one_on() -> None:
    assert addresses_of(asked("class.school.example", 8501)) == (["http://class.school.example:8501"], False)
