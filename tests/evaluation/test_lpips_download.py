"""The download of LPIPS's network from a local server: once, complete, checked, and reported."""

import hashlib
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from event_loop import run_async

from leakage.data import fetch, lpips_download, lpips_weights
from leakage.data.images import PictureError
from leakage.data.lpips_download import LpipsDownload
from leakage.evaluation.perceptual import perceptual

SQUEEZE = lpips_weights.BACKBONES[-1]


class Host:
    """A web server on this machine: what it is asked for, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.content = b""
        host = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(host.content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server.server_port}/models"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a SqueezeNet that was never trained."""
    import torchvision  # takes seconds, so not while tests are only listed

    path = tmp_path_factory.mktemp("weights") / "squeeze.pth"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.save(torchvision.models.squeezenet1_1(weights=None).state_dict(), path)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that is not made yet, and an empty one for torch's own downloads."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return tmp_path / "data"


@pytest.fixture
def host(folder: Path, weights: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """The server has that network, and its hash counts as the published hash."""
    made = Host()
    made.content = weights
    published = (replace(SQUEEZE, sha256=hashlib.sha256(weights).hexdigest()),)
    for module in (lpips_weights, lpips_download, fetch):
        monkeypatch.setattr(module, "BACKBONES", published)
    monkeypatch.setenv("LEAKAGE_LPIPS_FROM", made.address)
    yield made
    made.server.shutdown()
    made.server.server_close()


def ended(one: LpipsDownload) -> LpipsDownload:
    """After its thread has done what it does."""
    for thread in threading.enumerate():
        if thread.name == "lpips":
            thread.join(240)
    return one


def test_after_the_first_start_lpips_is_there_and_a_second_start_asks_nobody(host: Host, folder: Path) -> None:
    assert perceptual().model is None
    first = LpipsDownload()
    first.begin()
    assert ended(first).state == "fetched"
    assert host.asked == [f"/models/{SQUEEZE.file}"]
    assert [file.name for file in (folder / "lpips").iterdir()] == [SQUEEZE.file]
    assert perceptual().net == "squeeze"
    assert first.words.startswith(f"The network that LPIPS needs (5 MB) was downloaded from 127.0.0.1:{host.server.server_port}; ")
    assert first.words.endswith("New runs have LPIPS.")
    second = LpipsDownload()
    second.begin()
    assert ended(second).words == ""
    assert len(host.asked) == 1


@pytest.mark.parametrize(("content", "why"), [(b"another file", "SHA-256 that begins with"), (bytes(11 * 2**20), "larger than the 5 MB")])
def test_a_file_with_another_hash_or_far_too_large_is_not_kept(host: Host, folder: Path, content: bytes, why: str) -> None:
    host.content = content
    one = LpipsDownload()
    one.begin()
    assert ended(one).state == "failed"
    assert why in one.reason
    assert list((folder / "lpips").iterdir()) == []
    assert perceptual().words.startswith("LPIPS off: backbone not on this machine.")


def test_switched_off_nobody_is_asked_and_nothing_is_said(host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_LPIPS_FROM", "off")
    one = LpipsDownload()
    one.begin()
    assert ended(one).words == ""
    assert host.asked == []
    assert not folder.exists()


def test_without_a_network_it_stays_off_and_the_page_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:  # a port that nobody listens to
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("LEAKAGE_LPIPS_FROM", f"http://127.0.0.1:{free.getsockname()[1]}")
        one = LpipsDownload()
        one.begin()
        ended(one)
    assert one.state == "failed"
    assert "could not be downloaded from 127.0.0.1:" in one.words
    assert one.reason not in one.words  # that is for the log
    assert "Connection refused" in one.reason
    assert perceptual().words.startswith("LPIPS off: backbone not on this machine.")


def test_a_host_that_never_answers_holds_up_neither_the_start_nor_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:  # it takes the connection and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("LEAKAGE_LPIPS_FROM", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(lpips_download, "PATIENCE", 20)
        begun = time.monotonic()
        one = LpipsDownload()

        async def serve() -> None:
            one.begin()

        run_async(serve())
        assert time.monotonic() - begun < lpips_download.PATIENCE / 2
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "lpips")  # the process need not wait for it
        deadline = time.monotonic() + 60
        while one.state == "idle" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "is being downloaded from 127.0.0.1:" in one.words
        assert ended(one).state == "failed"
        assert "timed out" in one.reason


def test_a_damaged_file_is_left_for_its_owner_to_look_at(host: Host, folder: Path) -> None:
    (folder / "lpips").mkdir(parents=True)
    (folder / "lpips" / SQUEEZE.file).write_bytes(b"half of it")
    one = LpipsDownload()
    one.begin()
    assert ended(one).state == "idle"
    assert host.asked == []
    assert "is not the file that its name says" in perceptual().words


# ---------------------------------------------------------------- by hand: python -m leakage fetch


def test_fetch_downloads_a_backbone_once_and_has_its_hash_checked(host: Host, folder: Path) -> None:
    for _ in range(2):
        assert fetch.fetch("lpips-squeeze", folder) == folder / "lpips" / SQUEEZE.file
    assert len(host.asked) == 1
    (folder / "lpips" / SQUEEZE.file).unlink()
    host.content = b"another file"
    with pytest.raises(PictureError, match=r"is not the file that its name says .* By hand: get"):
        fetch.fetch("lpips-squeeze", folder)
    assert list(folder.iterdir()) == []


def test_without_a_network_fetch_says_where_to_put_which_backbone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("LEAKAGE_LPIPS_FROM", f"http://127.0.0.1:{free.getsockname()[1]}")
        with pytest.raises(PictureError, match=f"refused.* By hand: get http://127.0.0.1:.*/vgg16-397923af.pth .*{folder}/lpips"):
            fetch.fetch("lpips-vgg", folder)


def test_it_comes_from_the_host_of_torchvision_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_LPIPS_FROM", "off")
    assert lpips_download.source() == "https://download.pytorch.org/models/"  # by hand it can be had all the same
    monkeypatch.setenv("LEAKAGE_LPIPS_FROM", "https://mirror.example/torch")
    assert lpips_download.source() == "https://mirror.example/torch/"
    assert SQUEEZE.sha256 == "b8a52dc049b60e4b6ab68ad0df457362afab8b6304b2febdc1650a5dab4d7e7b"
