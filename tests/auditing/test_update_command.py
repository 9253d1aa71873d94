"""The command `audit` on the folder of a recorded update, and what it writes."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from leakage.__main__ import main
from leakage.adapters.plain_torch import saved

OURS = """
import torch
from torch import nn

def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Sigmoid(), nn.Linear(16, 5))
"""


@pytest.fixture
def update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The update of a client with one picture, beside the module that makes its network."""
    (tmp_path / "ours_recorded.py").write_text(OURS)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Sigmoid(), nn.Linear(16, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.linspace(0, 1, 192).view(1, 3, 8, 8)
    with saved(model, tmp_path / "update", optimizer=optimizer, pictures=1):
        nn.functional.cross_entropy(model(x), torch.tensor([2])).backward()
        optimizer.step()
    return tmp_path / "update"


def test_a_recorded_update_is_audited_and_its_answers_are_written_for_their_owner_alone(
    update: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert main(["audit", str(update), "--model", "ours_recorded:make_model", "--minutes", "0.05", "--out", "found"]) == 0
    record = json.loads(Path("found/update-audit.json").read_text())
    best = next(finding for finding in record["findings"] if finding["attack"] == "linear_layer")
    assert best["labels"] == [2]
    assert best["distance"] < 0.01 < best["random_distance"]
    picture = Path("found", best["picture"])
    with Image.open(picture) as image:
        levels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float()
    assert int((levels - torch.linspace(0, 255, 192).view(3, 8, 8)).abs().max()) <= 1  # of 255: the picture itself
    assert {path.stat().st_mode & 0o777 for path in Path("found").iterdir()} == {0o600}
    assert "Nobody here knows the true pictures" in caplog.text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "A recorded update needs --model"),
        (["--model", "ours_recorded:make_model", "--fail-if", "leaks > 0"], "--fail-if counts pictures that are known"),
        (["--model", "ours_recorded:other"], "cannot be imported"),
    ],
)
def test_an_option_that_does_not_fit_says_what_to_do(update: Path, more: list[str], words: str, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["audit", str(update), *more, "--out", "found"]) == 1
    assert words in caplog.text


def test_an_update_that_cannot_be_read_ends_in_a_sentence(update: Path, caplog: pytest.LogCaptureFixture) -> None:
    (update / "after.npz").write_bytes(b"\x80\x04K\x01.")
    assert main(["audit", str(update), "--model", "ours_recorded:make_model", "--out", "found"]) == 1
    assert "after.npz is a pickle, which would run code when it is read" in caplog.text
