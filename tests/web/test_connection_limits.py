"""Connections without requests: how many a real server keeps, for how long, and what it logs."""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from home_processes import Place, Server, place, until

from leakage.web.connection_limits import HEAD_WITHIN, SILENT, ConnectionLimits, raise_descriptor_limit

pytestmark = pytest.mark.processes
MANY = 1100


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Server]]:
    with place(tmp_path_factory.mktemp("limited"), LEAKAGE_PASSWORD="four words", LEAKAGE_CONNECTIONS="400") as made:
        yield made, made.serve(alone=True)


def knock(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.address.rsplit(":", 1)[1])), timeout=60)


def health(server: Server) -> float:
    """Seconds until it answers that it is well."""
    began = time.monotonic()
    with server.get("/_stcore/health") as answer:
        assert answer.status == 200
    return time.monotonic() - began


def has_ended(connection: socket.socket) -> bool:
    """Whether the server has closed it."""
    connection.settimeout(0.0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def is_socket(descriptor: Path) -> bool:
    """Whether a descriptor below /proc is a socket; one that the server has closed meanwhile is none."""
    try:
        return "socket" in str(descriptor.readlink())
    except FileNotFoundError:
        return False


def sockets_of(server: Server) -> int:
    """Count the open sockets of the server's process."""
    return sum(map(is_socket, Path(f"/proc/{server.process.pid}/fd").iterdir()))


def test_silent_connections_do_not_stop_the_server(served: tuple[Place, Server]) -> None:
    """With 1,024 descriptors they did: each one more wrote thousands of tracebacks, and the health page did not answer."""
    made, server = served
    before = sockets_of(server)
    raise_descriptor_limit()
    with ExitStack() as stack:
        silent = [stack.enter_context(knock(server)) for _ in range(MANY)]
        assert health(server) < 60.0
        until(
            lambda: sockets_of(server) - before <= SILENT, within=120, what="those that are too many are closed"
        )  # the log says below why they were
        open_still = [number for number, one in enumerate(silent) if not has_ended(one)]
        assert set(open_still) <= set(range(MANY - SILENT, MANY)), "the oldest make room"
        assert health(server) < 60.0
        until(lambda: all(has_ended(one) for one in silent), within=120, what="the deadline closes the others")
    log = (made.home / "server.log").read_bytes()
    assert len(log) < 2**20
    assert log.count(b"connections that have sent no request") == 1, "it is said once"


def test_the_head_of_a_request_has_a_deadline_and_its_answer_has_none(served: tuple[Place, Server]) -> None:
    _, server = served
    began = time.monotonic()
    with knock(server) as slow, knock(server) as quick:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        quick.sendall(b"GET /_stcore/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert quick.recv(15) == b"HTTP/1.1 200 OK"
        until(lambda: has_ended(slow), within=120, what="the deadline closes it")
        assert time.monotonic() - began >= HEAD_WITHIN


def test_one_address_has_no_more_connections_than_were_set(served: tuple[Place, Server]) -> None:
    """Each has asked for something and says nothing more: the 401st is closed, the 400 go on."""
    _, server = served
    with ExitStack() as stack:
        busy = []
        for number in range(401):
            time.sleep(10.0 if number == 400 else 0.001)  # those before have been read
            busy.append(one := stack.enter_context(knock(server)))
            one.sendall(b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")  # its body never comes
        until(lambda: has_ended(busy[-1]), within=120, what="one too many is closed")
        assert not any(has_ended(one) for one in busy[:-1])
    assert health(server) < 60.0


def test_a_named_proxy_may_have_any_number() -> None:
    limits = ConnectionLimits(per_address=2, proxies=("10.0.0.0/8",))
    assert [limits.proxies.trusts((address, 0)) for address in ("10.1.2.3", "127.0.0.1", "")] == [True, False, False]


def test_that_there_is_no_descriptor_left_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    limits, loop = ConnectionLimits(per_address=2, proxies=()), asyncio.new_event_loop()
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            limits.handle_exception(
                loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
            )
    assert [record.message for record in caplog.records] == ["no connection can be taken now: Too many open files"]
    caplog.clear()
    limits.handle_exception(loop, {"message": "something else"})
    assert [record.message for record in caplog.records] == ["something else"]
    loop.close()
