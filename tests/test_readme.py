"""The examples of the README and of the guides to the Python API and to audits run unchanged."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from leakage.auditing.config import NAMES
from leakage.settings import ROOT
from leakage.spec.words import VERDICTS


@pytest.mark.long
def test_a_model_is_attacked_in_ten_lines() -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(block.splitlines()) <= 10
    assert len(text.splitlines()) <= 150
    names: dict[str, object] = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        exec(block, names)
    seen = names["result"]
    assert seen.scores["psnr"] > seen.baselines["grey"]["psnr"] + 4
    assert seen.reconstruction.shape == (1, 3, 32, 32)
    assert set(re.findall(r'"([^"]+)"', block.splitlines()[-1].partition("#")[2])) == {*VERDICTS}
    assert seen.verdict["word"] in VERDICTS


@pytest.mark.long
def test_the_example_of_a_model_of_ones_own_finds_the_picture_and_the_label() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python_api.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    with torch.random.fork_rng():
        exec(blocks[0], names)
        seen = names["result"]
        assert seen.scores["psnr"] > seen.baselines["grey"]["psnr"] + 4
        assert (seen.labels, seen.threat_model.adaptive) == ([4], True)
        exec(blocks[1], names)
        alone = names["result"]
        exec(blocks[2], names)
        cheated, careful, pictures = names["result"], names["careful"], names["batch"]
        exec(blocks[3], names)
    assert (cheated.reconstruction - pictures).abs().max() < 1e-5
    assert cheated.labels == [4, 1, 0, 2]
    assert (careful.refused, careful.verdict, cheated.refused) == ("new_layers", None, "")
    several = names["result"]
    assert several.threat_model.labels
    assert several.scores["psnr"] > several.baselines["grey"]["psnr"]
    assert alone.update.labels == [4]
    assert alone.update.unknowns == 3 * 32 * 32
    assert alone.scores.keys() == {"cosine", "relative_l2"}
    assert alone.scores["relative_l2"] < 0.2


@pytest.mark.long
def test_the_examples_of_an_audit_find_the_pictures_and_pass_behind_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "audit.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        exec(blocks[0], names)
        exec(blocks[1], names)
        names["test_the_protected_update_shows_no_picture"]()
    assert names["audit"].word == "leaks"
    assert names["audit"].findings[0].attack == "linear_layer"
    files = {path.name for path in (tmp_path / "report").iterdir()}
    assert files == set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert not set(tomllib.loads(toml)) - set(NAMES)
