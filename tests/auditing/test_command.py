"""The command `audit`: its file, its thresholds and its exit status; and the assertion for tests of one's own."""

import json
from pathlib import Path

import pytest
import torch
from small_problems import smooth
from torch import nn

import leakage
from leakage.__main__ import main
from leakage.auditing.saving import PRIVATE, PUBLIC, RECORD
from leakage.auditing.thresholds import Threshold
from leakage.models.lenet import LeNet
from leakage.models.mlp import MLP
from leakage.testing import assert_not_shown

OURS = """
import torch
from leakage.models.mlp import MLP


def make():
    torch.manual_seed(0)
    return MLP(width=64).build((3, 8, 8), 5)


def pictures():
    return torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([1, 3])


def blocked():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), Once(), torch.nn.Flatten(), torch.nn.Linear(144, 5))


class Once(torch.nn.Module):
    def forward(self, x):
        return Identity.apply(x.tanh())


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad
"""
FILE = """
model = "ours_to_audit:{model}"
data = "ours_to_audit:pictures"
minutes = 2
attacks = ["linear_layer"]
batch_sizes = [1, 2]
protections = false
defenses = [{{ id = "gaussian_noise", scale = {scale} }}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours_to_audit.py").write_text(OURS)
    return tmp_path


def run(folder: Path, *more: str, model: str = "make", scale: float = 1e-6, out: str = "report") -> int:
    (folder / "audit.toml").write_text(FILE.format(model=model, scale=scale))
    return main(["audit", str(folder / "audit.toml"), "--out", str(folder / out), *more])


def test_a_build_fails_if_a_picture_is_recognizable(folder: Path) -> None:
    assert run(folder) == 0
    assert {path.name for path in (folder / "report").iterdir()} == {PRIVATE, PUBLIC, RECORD}
    assert run(folder, "--fail-if", "recognizable > 0", out="second") == 3
    assert run(folder, "--fail-if", "recognizable > 0", "--fail-if", "psnr >= 90", scale=10.0, out="third") == 0
    record = json.loads((folder / "report" / RECORD).read_text())
    assert record["settings"]["model"] == "ours_to_audit:make"
    assert main(["audit", str(folder / "report" / RECORD), "--out", str(folder / "again")]) == 0
    again = json.loads((folder / "again" / RECORD).read_text())
    assert [each["psnr"] for each in again["findings"]] == [each["psnr"] for each in record["findings"] if each["ending"] == "answer"]


def test_thresholds_on_an_audit_in_which_nothing_was_tried_are_an_error(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run(folder, "--fail-if", "recognizable > 0", model="blocked") == 1
    assert "No attack came to an answer, so the thresholds say nothing" in caplog.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "model is missing, or no text"),
        ("model = 3", "model is missing, or no text"),
        ("model = ", "is no audit file"),
        ('model = "ours_to_audit:make"\ndata = "nowhere"', "nowhere is no folder"),
        ('model = "ours_to_audit:none"\ndata = "."', "ours_to_audit:none cannot be imported"),
        ('model = "no_such_module:make"\ndata = "."', "no_such_module:make cannot be imported"),
        ('model = "make"\ndata = "."', "'make' names no function"),
        ('model = "ours_to_audit:make"\ndata = "."\nminuts = 3', "there is no setting 'minuts'"),
        ('model = "ours_to_audit:make"\ndata = "."\nminutes = "a"', "minutes must be above 0"),
        ('model = "ours_to_audit:make"\ndata = "."\ndefenses = "pruning"', "defenses must be a list"),
        ('model = "ours_to_audit:make"\ndata = "."\ndefenses = ["prunning"]', "There is no plug-in 'prunning'"),
        ('model = "ours_to_audit:make"\ndata = "."\nprotocol = 3', "protocol must be the id of a plug-in"),
    ],
)
def test_a_file_that_is_not_allowed_gets_a_sentence(folder: Path, caplog: pytest.LogCaptureFixture, text: str, sentence: str) -> None:
    (folder / "audit.toml").write_text(text)
    assert main(["audit", str(folder / "audit.toml"), "--out", str(folder / "report")]) == 1
    assert sentence in caplog.text


def test_a_folder_that_holds_something_is_not_written_into(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run(folder, out=".") == 1
    assert "is not empty. Name a new folder for the report." in caplog.text


@pytest.mark.parametrize("text", ["", "recognizable", "recognised > 0", "recognizable = 0", "recognizable > many", "recognizable > -1"])
def test_a_threshold_that_is_none_gets_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is no threshold"):
        Threshold.parse(text)


def test_the_assertion_fails_on_lenet() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LeNet().build((3, 32, 32), 10)
    attack = leakage.plugin("idlg", steps=100, restarts=2)
    with pytest.raises(AssertionError, match="Of 1 picture: 1 "):
        assert_not_shown(model, (smooth(1, 3, 32), torch.tensor([3])), minutes=20, protections=False, attacks=[attack])


def test_the_assertion_errs_where_no_attack_applies_and_passes_where_none_shows_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    import ours_to_audit  # type: ignore[import-not-found]

    data = ours_to_audit.pictures()
    with pytest.raises(RuntimeError, match="No attack came to an answer, so nothing is known"):
        assert_not_shown(ours_to_audit.blocked(), data, minutes=0.05)
    model: nn.Module = MLP(width=16).build((3, 8, 8), 5)
    noise = leakage.plugin("gaussian_noise", scale=10.0)
    passed = assert_not_shown(model, data, minutes=2, attacks=["linear_layer"], protections=False, defenses=[noise])
    assert passed.headline.startswith("No picture was recognized, and that proves nothing.")
