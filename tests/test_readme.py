"""The examples of the README and of the guide to the Python API run unchanged."""

import re

import pytest
import torch

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
