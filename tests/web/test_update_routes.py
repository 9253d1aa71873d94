"""Files of recorded updates sent to a real server: to disk piece by piece, within limits, and nothing is left of an aborted transfer."""

import http.client
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn
from home_processes import until
from recorded_updates import audit_of
from starlette.applications import Starlette
from starlette.middleware import Middleware

from leakage.runs import update_sets
from leakage.runs.owners import COOKIE, owner_of
from leakage.runs.service import Service
from leakage.runs.update_sets import ALL_FULL, IN_USE, MB, NO_LENGTH, OWN_FULL, UNASKED
from leakage.web import update_routes
from leakage.web.hosts import Hosts
from leakage.web.request_filter import FOREIGN_ORIGIN, RequestFilter
from leakage.web.update_routes import NO_COOKIE, ROUTE, UpdateRoutes

VISITOR, OTHER = "visitor-visitor-visitor", "other-other-other-other"
Answer = tuple[int, str]


class Site:
    """The route on a server in a thread, behind the filter of requests."""

    def __init__(self, service: Service, prefix: str) -> None:
        self.service, self.sets, self.prefix = service, service.store.updates, prefix
        app = Starlette(routes=UpdateRoutes(service).below(prefix), middleware=[Middleware(RequestFilter, hosts=Hosts(()))])
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        until(lambda: self.server.started, what="the server has started")
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.name = self.sets.open(owner_of(VISITOR))

    def head(self, file: str, size: object, *, method: str = "PUT", name: str = "", **headers: str) -> tuple[str, dict[str, str]]:
        """The address and the headers of a request."""
        given = {"Origin": f"http://127.0.0.1:{self.port}", "Cookie": f"{COOKIE}={VISITOR}", "Content-Length": str(size), **headers}
        return f"{self.prefix}{ROUTE}/{name or self.name}/{file}", {key: value for key, value in given.items() if value}

    def send(self, file: str, size: int, *, method: str = "PUT", name: str = "", body: bytes | None = None, **headers: str) -> Answer:
        """Status and words of the answer to a file of so many zeros, or to `body`."""
        there = http.client.HTTPConnection("127.0.0.1", self.port, timeout=240)
        path, given = self.head(file, size, method=method, name=name, **headers)
        pieces = (bytes(min(MB, size - start)) for start in range(0, size, MB)) if body is None else [body]
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was read
            there.request(method, path, pieces if method == "PUT" else None, given)
        answer = there.getresponse()
        words = answer.read().decode()
        there.close()
        return answer.status, words

    def end(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture
def site(bare: Service, prefix: str) -> Iterator[Site]:
    made = Site(bare, prefix)
    yield made
    made.end()


def left(site: Site) -> list[Path]:
    """All files and folders of updates in the home; a folder may vanish while it is read."""
    return [Path(folder, name) for folder, folders, files in os.walk(site.sets.folder) for name in (*folders, *files)]


def memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) / 1024


def test_a_file_arrives_as_it_was_sent_readable_by_its_owner_alone(site: Site) -> None:
    assert site.send("gradient.npz", 9, body=b"123456789") == (204, "")
    folder = site.sets.path(site.name)
    assert (folder / "gradient.npz").read_bytes() == b"123456789"
    assert {path.stat().st_mode & 0o777 for path in (folder, folder / "gradient.npz")} == {0o700, 0o600}
    assert site.send("gradient.npz", 3, body=b"abc") == (204, ""), "chosen again"
    assert site.sets.files(site.name) == {"gradient.npz": 3}
    assert site.send("gradient.npz", 0, method="DELETE") == (204, "")
    assert site.sets.files(site.name) == {}


def test_a_large_file_never_lies_in_memory(site: Site) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # the largest size so far begins anew
    before = memory_mb("VmRSS")
    assert site.send("before.npz", 190 * MB) == (204, "")
    assert memory_mb("VmHWM") - before < 40
    assert site.sets.files(site.name) == {"before.npz": 190 * MB}


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ({"Origin": "http://evil.example"}, (403, FOREIGN_ORIGIN)),
        ({"Origin": ""}, (403, FOREIGN_ORIGIN)),
        ({"Cookie": ""}, (403, NO_COOKIE)),
        ({"Cookie": f"{COOKIE}=me"}, (403, NO_COOKIE)),
        ({"Cookie": f"{COOKIE}={OTHER}"}, (403, UNASKED)),
        ({"name": "0123456789abcdef/AAAAAAAAAAAAAAAA"}, (403, UNASKED)),
        ({"file": "passwd"}, (403, UNASKED)),
        ({"file": "..%2f..%2fstore.db"}, (404, "Not Found")),
        ({"file": "gradient.pt"}, (403, UNASKED)),
        ({"Content-Length": "", "Transfer-Encoding": "chunked"}, (411, NO_LENGTH)),
    ],
)
def test_what_no_page_of_this_browser_asked_for_is_refused(site: Site, how: dict[str, str], answer: Answer) -> None:
    how = dict(how)
    file, body = how.pop("file", "gradient.npz"), None if "Content-Length" in how else b"a"
    assert site.send(file, 0 if body is None else 1, body=body, **how) == answer
    assert left(site) == []


def test_files_have_a_largest_size_and_owners_a_quota(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.send("gradient.npz", 201 * MB) == (413, "A file may have 200 MB. This one has 201.0 MB.")
    assert site.send("card.json", 2 * MB)[0] == 413
    monkeypatch.setattr(update_sets, "OWN_MB", 3)
    assert site.send("before.npz", 2 * MB) == (204, "")
    assert site.send("before.npz", 3 * MB) == (204, ""), "it replaces the first"
    assert site.send("after.npz", 1) == (413, OWN_FULL)
    monkeypatch.setattr(update_sets, "OWN_MB", 800)
    monkeypatch.setattr(update_sets, "ALL_MB", 3)
    assert site.send("after.npz", 1) == (503, ALL_FULL)
    monkeypatch.setattr(update_sets, "ALL_MB", 4000)
    monkeypatch.setattr(update_sets, "SPARE_MB", 10**9)
    assert site.send("after.npz", 1) == (503, ALL_FULL)
    assert site.sets.files(site.name) == {"before.npz": 3 * MB}


def begin(site: Site, sent: int, size: int) -> socket.socket:
    """Begin to send a file, and return the open connection."""
    path, headers = site.head("after.npz", size)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connection = socket.create_connection(("127.0.0.1", site.port))
    connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{lines}\r\n".encode() + bytes(sent))
    until(lambda: site.sets.coming, what="the transfer has begun")
    return connection


def test_of_an_aborted_transfer_nothing_is_left(site: Site) -> None:
    connection = begin(site, 3 * MB, 50 * MB)
    until(lambda: any(path.suffix == ".part" for path in left(site)), what="a draft is there")
    assert site.sets.size_of() == 50 * MB, "what is on its way counts"
    connection.close()
    until(lambda: not left(site), what="the draft is gone")
    assert site.sets.size_of() == 0


def test_a_transfer_in_which_nothing_comes_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_routes, "SILENT", 0.2)
    connection = begin(site, 10, MB)
    assert b"408" in connection.recv(1000)
    connection.close()
    assert left(site) == []


def test_files_that_a_run_uses_stay_as_they_are_until_the_run_is_deleted(site: Site, written: Path) -> None:
    site.service.config.catalog.write_bytes(written.read_bytes())
    site.send("gradient.npz", 1, body=b"a")
    run = site.service.audit(audit_of(site.name), owner_of(VISITOR))
    assert site.send("gradient.npz", 1, body=b"b") == (409, IN_USE)
    assert site.send("gradient.npz", 0, method="DELETE") == (409, IN_USE)
    site.service.delete(run, owner_of(VISITOR))
    assert left(site) == []
