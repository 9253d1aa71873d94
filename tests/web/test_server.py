"""The web server beside its dispatcher: after a kill of either, runs go on and links keep working."""

import os
import re
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from home_processes import LONG, QUICK, Place, Server, alive, another, place, until
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from leakage.runs.events import NoteEvent
from leakage.settings import ROOT
from leakage.web.dispatcher_watch import WATCH

pytestmark = pytest.mark.processes

Served = tuple[Place, Server]


def open_page(server: Server, query: str = "") -> list[ForwardMsg]:
    """What the server answers to a browser that opens the page, up to the end of the script."""
    hello = BackMsg()
    hello.rerun_script.query_string = query
    answers = []
    address = server.address.replace("http", "ws") + "/_stcore/stream"
    with connect(
        address, origin=server.address, subprotocols=["streamlit"], max_size=None, proxy=None, open_timeout=120, ping_timeout=None
    ) as socket:
        socket.send(hello.SerializeToString())
        while not (answers and answers[-1].WhichOneof("type") == "script_finished"):
            message = socket.recv(timeout=240)
            assert isinstance(message, bytes)
            answers.append(ForwardMsg.FromString(message))
    return answers


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


# ---------------------------------------------------------------- the process


def test_the_server_starts_a_dispatcher_which_writes_the_catalog(server: Served) -> None:
    home, _ = server
    dispatcher = until(home.dispatcher, what="a dispatcher is at work")
    assert os.getpgid(dispatcher) == dispatcher, "Ctrl-C for the server would end it too"
    assert until(home.service.catalog, what="the catalog is written")


def test_a_page_is_served_with_an_owner_cookie(server: Served) -> None:
    with server[1].get("/") as page:
        cookie = page.headers["Set-Cookie"]
    assert re.match(r"gle_owner=[\w-]{16,}; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax$", cookie)
    with server[1].get("/_stcore/health") as other, server[1].get("/", {"Cookie": cookie.split(";")[0]}) as returning:
        assert "gle_owner" not in str(other.headers)
        assert "gle_owner" not in str(returning.headers)


def test_an_opened_page_is_built_without_an_exception(server: Served) -> None:
    until(server[0].service.catalog, what="the catalog is written")
    answers = open_page(server[1])
    kinds = [answer.delta.new_element.WhichOneof("type") for answer in answers if answer.WhichOneof("type") == "delta"]
    assert "exception" not in kinds
    assert "selectbox" in kinds
    assert answers[-1].script_finished == ForwardMsg.FINISHED_SUCCESSFULLY


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_no_torch_in_the_web_process_nor_in_the_dispatcher(server: Served) -> None:
    open_page(server[1])
    for pid in (server[1].process.pid, until(server[0].dispatcher, what="a dispatcher is at work")):
        assert "torch" not in maps(pid)
        assert "sqlite" in maps(pid)  # so that would have been seen
    assert "pandas" not in maps(server[1].process.pid)  # 45 MB that the Lab does not need


# ---------------------------------------------------------------- killing


def first_lines(response: Any, count: int) -> list[str]:
    return [response.readline().decode().strip() for _ in range(count)]


def works(server: Server, run: str, frame: int) -> None:
    """Stream, frame and private picture of a run can be had."""
    with server.get(f"/api/runs/stream?ids={run}") as stream:
        assert stream.status == 200
        assert first_lines(stream, 2)[1].startswith("data: {")
    for name in (f"frames/{frame}.png", "private.png"):
        with server.get(f"/api/runs/{run}/{name}") as picture:
            assert (picture.status, picture.headers["Content-Type"]) == (200, "image/png")
            assert picture.read(4) == b"\x89PNG"


def test_runs_go_on_while_the_web_server_is_killed_and_started_again(server: Served) -> None:
    home, first = server
    dispatcher = until(home.dispatcher, what="a dispatcher is at work")
    run = home.submit(another(LONG, 1))
    worker = home.worker(run)
    before = home.frames(run)
    first.process.kill()
    first.process.wait()
    assert home.dispatcher() == dispatcher
    until(lambda: len(home.frames(run)) > len(before) + 2, what="the run goes on without a server")
    first.start()
    works(first, run, before[0]["seq"])
    assert home.worker(run) == worker
    assert home.dispatcher() == dispatcher
    home.service.cancel(run, "me")
    assert home.finished(run).status == "cancelled"


def test_a_killed_dispatcher_is_replaced_and_its_workers_finish_their_runs(server: Served) -> None:
    home, _ = server
    dispatcher = until(home.dispatcher, what="a dispatcher is at work")
    run = home.submit(another(LONG, 2).model_copy(update={"max_seconds": 30}))
    worker = home.worker(run)
    os.kill(dispatcher, signal.SIGKILL)
    assert until(lambda: home.dispatcher() not in (0, dispatcher) and home.dispatcher(), what="a new dispatcher") != dispatcher
    ended = home.finished(run)
    assert ended.status == "done"
    assert ended.worker is not None
    assert ended.worker.endswith(f":{worker}")
    assert home.finished(home.submit(another(QUICK, 3))).status == "done"
    until(lambda: not alive(worker), what="the old worker leaves after its run")


def test_a_change_of_the_plug_ins_replaces_the_dispatcher_once(tmp_path: Path) -> None:
    """Neither a server that knows only the plug-ins of its own start nor a broken plug-in makes dispatchers come and go."""
    for name in ("leakage", "pages", "assets", ".streamlit"):
        shutil.copytree(ROOT / name, tmp_path / name)  # with what was compiled
    shutil.copy(ROOT / "app.py", tmp_path)
    home, plugin = tmp_path / "home", tmp_path / "leakage/attacks/dlg.py"
    home.mkdir()
    with place(home, root=tmp_path) as made:
        made.serve()
        seen = [until(made.dispatcher, what="a dispatcher is at work")]
        until((home / "catalog.json").exists, what="the catalog is written")
        before, text = (home / "catalog.json").read_bytes(), plugin.read_text()
        for change in ("this is no Python", "# but this is"):
            plugin.write_text(f"{text}\n{change}\n")
            seen.append(until(lambda: made.dispatcher() not in (0, seen[-1]) and made.dispatcher(), what="another dispatcher"))
            time.sleep(2 * WATCH)
            assert made.dispatcher() == seen[-1]
        until(lambda: (home / "catalog.json").read_bytes() != before, what="the catalog is written anew")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_asked_to_leave_does_not_wait_for_open_pages(server: Served, number: signal.Signals) -> None:
    home, first = server
    run = home.finished(home.submit(QUICK))
    with first.get(f"/api/runs/stream?ids={run.id}") as stream:
        first_lines(stream, 2)
        asked = time.monotonic()
        first.process.send_signal(number)
        first.process.wait(120)
        assert time.monotonic() - asked < 60
        assert stream.read().endswith(b"\n\n"), "the stream was cut in the middle of an event"
    first.start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_asked_to_leave_does_not_wait_for_a_page_that_does_not_read(server: Served, number: signal.Signals) -> None:
    """A laptop that sleeps: its connection is open, nobody reads, and more waits to be sent than the system keeps for it."""
    home, first = server
    run = home.finished(home.submit(QUICK))
    for _ in range(300):
        home.store.add_event(run.id, NoteEvent(text="x" * 50_000))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.connect(("127.0.0.1", int(first.address.rpartition(":")[2])))
        listener.sendall(f"GET /api/runs/stream?ids={run.id} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert listener.recv(15) == b"HTTP/1.1 200 OK"
        time.sleep(1)  # the server fills what there is to fill
        asked = time.monotonic()
        first.process.send_signal(number)
        first.process.wait(120)
        assert time.monotonic() - asked < 60
    home.service.delete(run.id, "me")
    first.start()
