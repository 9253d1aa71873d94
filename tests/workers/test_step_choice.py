"""LEAKAGE_STEP chooses formula or autograd: a run says which, is repeated bit for bit in the same way, and is not shared with the other."""

from pathlib import Path

import pytest
import torch
from small_problems import CATALOG

from leakage.runs.events import FrameEvent
from leakage.runs.run_request import RunRequest
from leakage.runs.store import Store
from leakage.settings import AUTOGRAD, FORMULA, settings
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import Ranks
from leakage.workers import attack_job
from leakage.workers.recorder import perform_in

ASKED = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 12}), seed=5).resolve(CATALOG)


def answer(folder: Path, asked: Experiment = ASKED) -> tuple[bytes | None, str]:
    """The picture of the answer, and how gradients were differentiated."""
    folder.mkdir()
    store = Store(folder / "store.db")
    run = perform_in(store, asked)
    meta = store.meta(run.id)
    assert meta is not None
    assert run.result is not None
    return store.frame(run.id, run.result["answer"]), meta.environment.versions["derivatives by"]


@pytest.mark.long
@pytest.mark.parametrize("way", [FORMULA, AUTOGRAD])
def test_a_run_is_repeated_bit_for_bit_and_says_its_way(way: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(home))
    monkeypatch.setenv("LEAKAGE_STEP", way)
    threads = torch.get_num_threads()
    first, second = answer(tmp_path / "first"), answer(tmp_path / "second")
    torch.set_num_threads(threads)
    assert first == second
    assert first[1] == way


@pytest.mark.long
def test_a_search_for_the_picture_that_a_server_isolates_is_by_autograd(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(home))
    monkeypatch.setenv("LEAKAGE_STEP", FORMULA)
    threads = torch.get_num_threads()
    pictures = tuple(Picture(id=name) for name in ("astronaut", "coffee", "rocket"))
    fished = ASKED.model_copy(update={"server": Part(id="class_fishing", fields={"target": 2}), "pictures": pictures})
    _, way = answer(tmp_path / "fished", fished.resolve(CATALOG))
    torch.set_num_threads(threads)
    assert way == AUTOGRAD


@pytest.mark.long
def test_a_search_shows_a_picture_before_its_threads_are_chosen(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(home))
    store, shown = Store(tmp_path / "store.db"), list[int]()

    def choose(*_: object) -> int:
        shown.append(len(store.events_of(store.running()[0].id, FrameEvent)))
        return 1

    monkeypatch.setattr(attack_job, "fitting_threads", choose)
    perform_in(store, ASKED)
    assert shown == [1]


def test_runs_of_one_way_alone_share_a_result() -> None:
    attack, ranks = RunRequest(ASKED, "attack", also=" untrained"), RunRequest(Ranks(network="conv 3@4"), "rank")
    assert attack.version("5f03", "cuda", FORMULA) == "5f03 untrained on cuda"
    assert attack.version("5f03", "cuda", AUTOGRAD) == "5f03 untrained by autograd on cuda"
    assert ranks.version("5f03", "cuda", AUTOGRAD) == "5f03"  # a measurement, on the CPU in either way


def test_an_unknown_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_STEP", "guess")
    with pytest.raises(ValueError, match="LEAKAGE_STEP must be formula or autograd, got 'guess'"):
        settings()
