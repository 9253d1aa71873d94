"""The command `run`: versions and privacy budget in metrics.json, folders with results, and wrong files."""

import json
import math
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

import leakage
from leakage.__main__ import INTERRUPTED, main
from leakage.engine import accounting
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, parse
from leakage.workers import run_command, timing
from leakage.workers.worker import perform

ASKED: dict[str, Any] = {
    "pictures": [{"id": "digit-3"}],
    "size": 28,
    "channels": 1,
    "attack": {"id": "dlg", "fields": {"steps": 3, "restarts": 1}},
}


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(ASKED))
    return file


def said(caplog: pytest.LogCaptureFixture, *words: object) -> str:
    """What a command that fails says."""
    caplog.clear()
    assert main([*map(str, words)]) == 1
    (message,) = caplog.messages
    assert message.endswith(".")
    assert "Errno" not in message
    return message


def ran(file: Path, out: Path, **more: Any) -> dict[str, Any]:
    file.write_text(json.dumps(ASKED | more))
    assert main(["run", str(file), "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads((out / "metrics.json").read_text())
    return found


def lists(told: object) -> Iterator[list[object]]:
    """Yield every list in what a JSON file holds."""
    if isinstance(told, list):
        yield told
    for part in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from lists(part)


# ---------------------------------------------------------------- what it writes


def test_metrics_say_which_program_and_which_machine(asked: Path, tmp_path: Path) -> None:
    found = ran(asked, tmp_path / "out")
    assert found["program"]["version"] == leakage.__version__
    assert found["packages"]["python"] == platform.python_version()
    assert {name: version(name) for name in ("torch", "numpy")}.items() <= found["packages"].items()
    assert found["machine"]["threads"] == torch.get_num_threads()
    assert found["machine"]["device"].split(",")[0] in ("cpu", "cuda", "mps")
    assert len(found["program"]["commit"].removesuffix("-dirty")) in (len("unknown"), 12)
    assert found["privacy"] is None


@pytest.mark.parametrize(("worth", "threads"), [(0.0, 2), (math.inf, 1)])
def test_a_search_has_as_many_threads_as_make_it_fast(
    worth: float, threads: int, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread is worth it whatever it brings, and whatever it brings is too little."""
    before = torch.get_num_threads()
    monkeypatch.setattr(timing, "WORTH", worth)
    torch.set_num_threads(2)
    try:
        assert ran(asked, tmp_path / "out")["machine"]["threads"] == threads
    finally:
        torch.set_num_threads(before)


def test_metrics_and_output_state_the_privacy_budget(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    found = ran(asked, tmp_path / "out", defenses=[{"id": "dp_sgd", "fields": {"noise_multiplier": 2.0}}], rounds=4, attacked_round=4)[
        "privacy"
    ]
    assert found["epsilon"] == accounting.epsilon(2.0, 4)
    assert (found["delta"], found["uses"], found["unit"]) == (1e-5, 4, "one picture, present or absent")
    assert "none is left out at random" in found["assumption"]
    assert f"epsilon {found['epsilon']:.2f} at delta 1e-05, for one picture" in caplog.messages[-1]
    pure = ran(asked, tmp_path / "pure", defenses=[{"id": "svt_privacy", "fields": {}}])["privacy"]
    assert pure["delta"] == 0
    without = ran(asked, tmp_path / "none", defenses=[{"id": "dp_sgd", "fields": {"noise_multiplier": 0.0}}])["privacy"]
    assert without["epsilon"] is None
    assert "above 200, which bounds nothing" in without["words"]


CHEATED: dict[str, Any] = {  # two pictures of each of two phones, behind an imprint
    "pictures": [{"id": f"digit-{number}"} for number in (0, 3, 4, 6)],
    "aggregation": {"id": "secure_aggregation", "fields": {"clients": 2}},
    "server": {"id": "imprint", "fields": {"bins": 64, "mean": 0.1307, "deviation": 0.0435}},
    "checks": [{"id": "new_layers"}],
    "refuse": False,
    "attack": {"id": "bins"},
}


@pytest.mark.long
def test_a_run_with_a_server_that_cheats_is_the_same_from_a_file_and_in_a_worker(asked: Path, tmp_path: Path, door: Service) -> None:
    written = ran(asked, tmp_path / "out", **CHEATED)
    submitted = parse(asked.read_bytes())
    run = door.submit(submitted, "me")
    perform(door.store, door.store.claim("0:1"), torch.device("cpu"))
    finished = door.look(run)
    (answer,) = [event for event in door.store.events([run], 0) if event["seq"] == finished.result["answer"]]
    assert (finished.status, finished.message) == ("done", "")
    assert finished.experiment_as(Experiment) == parse(json.dumps(written["experiment"])) == submitted.resolve(door.ready())
    same = ("step", "loss", "labels")
    assert {name: answer[name] for name in same} == {name: written["answer"][name] for name in same}
    assert answer["scores"] == written["answer"]["scores"]
    assert door.store.frame(run, answer["seq"]) == (tmp_path / "out" / "final.png").read_bytes()


@pytest.mark.long
def test_no_file_of_a_run_with_a_server_that_cheats_holds_the_changed_model(asked: Path, tmp_path: Path) -> None:
    """A row of the imprint has 784 weights; the longest list that is written has a number for each of the four pictures."""
    written = ran(asked, tmp_path / "out", **CHEATED)
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {"metrics.json", "final.png", "frames/000001.png"}
    assert max(map(len, lists(written))) == 4


def test_a_server_that_does_not_fit_is_refused_before_the_run(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked.write_text(json.dumps({"server": {"id": "imprint", "fields": {"bins": 1024}}, "size": 64, "pictures": [{"id": "cat"}]}))
    assert "Imprint would have 25.2 million weights" in said(caplog, "run", asked, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- where it writes


def test_a_folder_with_results_of_another_run_is_refused_or_emptied(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "out"
    ran(asked, out, attack={"id": "dlg", "fields": {"steps": 3, "restarts": 1}})
    (out / "frames" / "000777.png").write_bytes(b"of another run")
    (out / "mine.txt").write_text("not a result")
    before = sorted(out.rglob("*"))
    held = f"{out} holds results of another run (final.png, frames, metrics.json)."
    assert said(caplog, "run", asked, "--out", out) == f"{held} Name another folder, or add --overwrite, which removes them."
    assert sorted(out.rglob("*")) == before
    assert main(["run", str(asked), "--out", str(out), "--overwrite", "--seeds", "2"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "seed-1", "seed-2", "success.json"]
    assert "seed-1" in said(caplog, "run", asked, "--out", out)
    assert main(["run", str(asked), "--out", str(out), "--overwrite"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["final.png", "frames", "metrics.json", "mine.txt"]
    assert not (out / "frames" / "000777.png").exists()


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize("seeds", [0, -3])
def test_no_seed_at_all_is_no_number_of_seeds(seeds: int, asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, "run", asked, "--out", tmp_path / "out", "--seeds", seeds) == (
        f"--seeds must be a whole number from 1 on; got {seeds}."
    )
    assert not (tmp_path / "out").exists()


def test_more_seeds_than_there_are_is_said(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked.write_text(json.dumps(ASKED | {"seed": 2**31 - 2}))
    assert "there are 2 seeds; got 3" in said(caplog, "run", asked, "--out", tmp_path / "out", "--seeds", 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"seed": 1, "seed": 2}', "'seed' stands twice in one object"),
        ('{"attack": {"id": "dlg", "id": "idlg"}}', "'id' stands twice in one object"),
        ('{"seed": 1,}', "expected JSON"),
        ("", "expected JSON"),
        ("[]", "expected an object {...}, given was a list"),
        ('{"sede": 1}', "sede: this version has no such field, given was 1"),
        ('{"seed": "one"}', "seed: input should be a valid integer"),
        ('{"size": NaN}', "size: input should be 28, 32, 64, 224 or 256"),
        ('{"defenses": [{"id": "pruning", "fields": {"fraction": NaN}}]}', "fraction: allowed is a number from 0"),
        ('{"attack": {"id": "dlgg"}}', "'dlgg' is not known here; allowed are"),
        ('{"version": 2}', "version: allowed is 1, given was 2"),
        ("\xff\xfe\xfa", "expected JSON"),
    ],
)
def test_a_file_that_is_no_experiment_is_answered_with_a_sentence(
    text: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "asked.json").write_bytes(text.encode("latin-1"))
    assert words in said(caplog, "run", tmp_path / "asked.json", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_and_folders_that_are_not_what_they_should_be(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gone, folder = tmp_path / "gone.json", tmp_path / "folder"
    folder.mkdir()
    assert said(caplog, "run", gone, "--out", tmp_path / "out") == f"{gone}: there is no such file or folder. Check its name."
    assert said(caplog, "run", folder, "--out", tmp_path / "out") == f"{folder}: this is a folder, and expected is a file. Name a file."
    assert said(caplog, "run", asked, "--out", asked) == f"{asked}: this is a file, and expected is a folder. Name another folder."
    below = asked / "out"
    assert said(caplog, "run", asked, "--out", below) == (
        f"{below}: a part of this path is a file, and expected is a folder. Name another folder."
    )
    assert (
        said(caplog, "train", "--rounds", "1", "--out", asked) == f"{asked}: this is a file, and expected is a folder. Name another folder."
    )
    assert said(caplog, "admin", "export", "--out", asked).startswith(str(asked))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(asked: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "may not read or write it" in said(caplog, "run", asked, "--out", closed / "out")


def test_a_full_disk_and_a_stop_by_hand_are_said(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(error: BaseException) -> None:
        def instead(*_args: object) -> None:
            raise error

        monkeypatch.setattr(run_command, "run_file", instead)

    fails(OSError(28, "No space left on device", str(tmp_path / "out" / "final.png")))
    assert "the disk is full" in said(caplog, "run", asked, "--out", tmp_path / "one")
    fails(PermissionError(13, "Permission denied", "/root/x"))
    assert said(caplog, "run", asked, "--out", tmp_path / "two") == (
        "/root/x: this user may not read or write it. Change its permissions, or name another place."
    )
    fails(KeyboardInterrupt())
    caplog.clear()
    assert main(["run", str(asked), "--out", str(tmp_path / "three")]) == INTERRUPTED
    assert caplog.messages == ["Stopped by hand."]
