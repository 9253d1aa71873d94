"""Three hundred hostile requests to a real server: each is answered, and never by an error of ours."""

import random
import socket
import time
from collections.abc import Iterator

import pytest
from home_processes import Place, Server, until

pytestmark = pytest.mark.processes
COUNT = 300
PATIENCE = 60.0  # seconds until an answer begins, on a busy machine
REST = 2.0  # seconds for what follows: some requests are never answered in full
READ = 1 << 16  # bytes of an answer that are looked at

PLACES = """
/ /compare /learn /learn/{} /learn/worksheets/{}.html /login /join /_stcore/health /_stcore/host-config /_stcore/metrics /_stcore/stream
/_stcore/upload_file/{}/{} /_stcore/bidi-components/{} /static/{} /media/{} /component/{} /api/runs/stream /api/runs/{}/private.png
/api/runs/{}/frames/{}.png /api/runs/{}/{} /api/compare/{} /api/ask/{} /api/plotly.min.js /api/scripts/{}/{} /api/learn/{}/lessons/{}.json
/api/learn/{}/thumbnails/{}.webp /api/learn/{}/slides/{}.{} /api/learn/{}/stories/{}.webp /api/learn/{}/{}/{}.webp
"""
KNOWN = """
lab r01 runs grids final.png run.webp run.gif slide.png strip.png curves.csv experiment.json metrics.json comparison.json comparison.csv
comparison.html answer.html answer.json 01-gradient plan
"""
ODD = f"""
.. ../../../../etc/passwd %2e%2e%2f%2e%2e%2fetc%2fpasswd ..%5c..%5cwindows %00 a%00b %ff%fe %c0%ae%c0%ae % %zz %F0%9F%94%8E %C2%B2 %ED%A0%80
%0d%0aSet-Cookie:%20x=1 x%0d%0a%0d%0a<script> %22;filename=%22x '%20OR%201=1-- {{{{7*7}}}} %7B0.__class__%7D %2F%2Fevil.example.org
-1 0 1e9 99999999999999999999999999 999999999999999999 NaN null ~ con . * {"x" * 3000} a{",b" * 500}
"""
NAMES = ("ids", "steps", "since", "next", "key", "question", "minutes", "lang", "run", "v", "a%00", "")
METHODS = (*["GET"] * 12, "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "get")
HOSTS = (
    *["{}"] * 8,
    "localhost",
    "evil.example.org",
    "",
    "a b",
    "127.0.0.1:99999999",
    "[::1",
    "\xe4\xf6",
    "x" * 2000,
    "{}, evil.example.org",
)
ORIGINS = (*[""] * 4, "http://{}", "null", "http://evil.example.org", "http://", "://", "\xff", "http://{}/path", "x" * 5000)
MORE = f"""
Last-Event-ID: -1
Last-Event-ID: \xb2
Last-Event-ID: {"9" * 400}
Cookie: ;;;===\xff
Cookie: gle_owner={"x" * 6000}
Range: bytes=9-1
Range: bytes=-99999999999999
If-None-Match: *
If-Modified-Since: yesterday
Accept-Encoding: {"gzip," * 300}
X-Forwarded-Proto: https, \xff
X-Forwarded-For: not-an-address
Content-Length: 0
Content-Type: multipart/form-data
Upgrade: websocket
Sec-WebSocket-Key: x
Transfer-Encoding: gzip
Expect: 100-continue
"""


def requests(host: str, seed: int = 22) -> Iterator[bytes]:
    """The bytes of each request, the same ones for the same seed."""
    pick = random.Random(seed)
    places, known, odd, more = PLACES.split(), KNOWN.split(), ODD.split(), MORE.strip().split("\n")
    for number in range(COUNT):
        path, *parts = places[number % len(places)].split("{}")
        for part in parts:
            path += pick.choice(known if pick.random() < 0.4 else odd) + part
        pairs = [f"{pick.choice(NAMES)}={pick.choice(known + odd)}" for _ in range(pick.choice((0, 0, 1, 2, 40)))]
        if pick.random() < 0.05:
            pairs.append("x=" + "y" * 40000)
        method = pick.choice(METHODS)
        lines = [f"{method} {path}{'?' if pairs else ''}{'&'.join(pairs)} HTTP/1.1", f"Host: {pick.choice(HOSTS).format(host)}"]
        if origin := pick.choice(ORIGINS):
            lines.append(f"Origin: {origin.format(host)}")
        lines += pick.sample(more, pick.choice((0, 0, 1, 2)))
        yield "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def answer(port: int, request: bytes) -> tuple[bytes, float]:
    """The answer, as far as it comes within the time, and the seconds until its first line."""
    begun, got, first = time.monotonic(), b"", float("inf")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as there:
        there.sendall(request)
        try:
            while len(got) < READ and (part := there.recv(READ)):
                got += part
                first = min(first, time.monotonic() - begun)
                there.settimeout(REST)
                if b"text/event-stream" in got or b" 101 " in got[:20]:  # goes on for ever
                    break
        except (TimeoutError, ConnectionResetError):
            pass
    return got, first


@pytest.fixture
def target(server: tuple[Place, Server]) -> Server:
    """A server with a catalog and the recorded runs."""
    until(server[0].service.catalog, what="the catalog is written")
    return server[1]


def test_three_hundred_hostile_requests_are_answered_without_an_error_of_ours(target: Server) -> None:
    host = target.address.removeprefix("http://")
    port = int(host.rsplit(":", 1)[1])
    found, statuses = [], []
    for request in requests(host):
        got, seconds = answer(port, request)
        final = got.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        status = int(final[9:12]) if final.startswith(b"HTTP/1.1 ") else 0
        statuses.append(status)
        if (not 200 <= status < 500 and status != 101) or seconds > PATIENCE or b"Traceback" in got or b"site-packages" in got:
            found.append((request[:300], got[:300], round(seconds, 2)))
        head = got.partition(b"\r\n\r\n")[0].lower()
        assert b"set-cookie: x=1" not in head, request
        assert b"root:x:0" not in got, request
    assert found == []
    assert len(statuses) == COUNT
    assert {200, 400, 403, 404, 421} <= set(statuses), "they ask for too few different things"


def test_the_server_goes_on_afterwards_and_wrote_no_traceback(target: Server) -> None:
    assert target.healthy()
    assert "Traceback" not in (target.place.home / "server.log").read_text()
