"""LPIPS without trained weights: its computation, when it is off, and that a wrong backbone gives no number."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_problems import baselines_of, smooth
from torch.nn import functional as F

from leakage.data import lpips_weights
from leakage.evaluation import perceptual as module
from leakage.evaluation.lineup import Lineup, lpips_ranks
from leakage.evaluation.perceptual import Perceptual, perceptual
from leakage.spec.experiment import Experiment

SQUEEZE = lpips_weights.BACKBONES[-1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and an empty one for torch's own downloads."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def stored(path: Path) -> str:
    """Put a SqueezeNet that was never trained into a file; its SHA-256."""
    import torchvision  # takes seconds, so not while tests are only listed

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights = torchvision.models.squeezenet1_1(weights=None).state_dict()
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(weights, path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def ready(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Perceptual:
    """LPIPS through that network, as if its hash were the published one."""
    digest = stored(folder / "lpips" / SQUEEZE.file)
    monkeypatch.setattr(lpips_weights, "BACKBONES", (replace(SQUEEZE, sha256=digest),))
    return perceptual()


# ---------------------------------------------------------------- what it computes


def test_it_is_the_packages_own_number(ready: Perceptual) -> None:
    import lpips

    a, b = smooth(3, 3, 40), smooth(3, 3, 40, seed=1)
    own = lpips.LPIPS.forward(ready.model, 2 * a - 1, 2 * b - 1).flatten()  # with its range, [-1, 1]
    assert ready.net == "squeeze"
    assert torch.allclose(ready.distance(a, b).float(), own, rtol=1e-4, atol=1e-6)
    assert float(own.min()) > 0.01


def test_a_picture_is_at_distance_0_from_itself_and_the_table_holds_every_pair(ready: Perceptual) -> None:
    a, b = smooth(20, 3, 32), smooth(3, 3, 32, seed=1)  # 20: more than are looked at together
    assert ready.distance(a, a).tolist() == [0] * 20
    table = ready.table(b, a)
    assert table.shape == (3, 20)
    for number in range(3):
        assert torch.allclose(table[number], ready.distance(b[number : number + 1].expand_as(a).contiguous(), a), rtol=1e-3, atol=1e-6)


def test_small_pictures_are_enlarged_to_32_pixels_and_others_left_as_they_are(ready: Perceptual) -> None:
    a, b = smooth(2, 3, 28), smooth(2, 3, 28, seed=1)
    large = [F.interpolate(x, size=(32, 32), mode="bilinear", align_corners=False) for x in (a, b)]
    assert torch.allclose(ready.distance(a, b), ready.distance(*large))
    assert "pictures below 32 px are enlarged to 32 px (bilinear)" in ready.words


def test_grey_pictures_are_taken_three_times_and_guesses_are_clamped(ready: Perceptual) -> None:
    a, b = smooth(2, 1, 32), smooth(2, 1, 32, seed=1)
    assert torch.equal(ready.distance(a, b), ready.distance(a.repeat(1, 3, 1, 1), b.repeat(1, 3, 1, 1)))
    assert torch.equal(ready.distance(9 * a - 4, b), ready.distance((9 * a - 4).clamp(0, 1), b))


def test_loading_leaves_the_global_generator_alone_and_happens_once(ready: Perceptual) -> None:
    module._load.cache_clear()
    state = torch.get_rng_state()
    assert perceptual().model is perceptual().model
    assert torch.equal(state, torch.get_rng_state())
    assert not ready.model.training


# ---------------------------------------------------------------- what a process remembers


def test_a_line_up_is_looked_at_once_and_gives_the_same_numbers_again(ready: Perceptual, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, features = list[int](), Perceptual._features

    def counted(self: Perceptual, x: torch.Tensor) -> torch.Tensor:
        looked.append(len(x))
        return features(self, x)

    monkeypatch.setattr(Perceptual, "_features", counted)
    guess, others = smooth(1, 3, 32), smooth(20, 3, 32, seed=1)
    expected = ready.table(guess, others)
    assert looked == [1, 1, 16, 4]  # the guess for its size, the guess, the others
    first = ready.table(guess, others, remember=True)
    del looked[:]
    assert torch.equal(ready.table(guess, others.clone(), remember=True), expected)
    assert torch.equal(first, expected)
    assert looked == [1, 1]
    others[0, 0, 0, 0] += 0.5  # another picture among the first 16
    assert not torch.equal(ready.table(guess, others, remember=True), expected)
    assert looked == [1, 1, 1, 1, 16]


@pytest.mark.parametrize("uploaded", [False, True])
def test_of_a_line_up_with_uploads_nothing_is_remembered(ready: Perceptual, *, uploaded: bool) -> None:
    x, others = smooth(1, 3, 32), smooth(3, 3, 32, seed=1)
    held = Lineup(others, torch.ones(1, 3, dtype=torch.bool), x, "", uploaded=uploaded)
    lpips_ranks(x, torch.zeros(1), held, ready)
    assert bool(ready.recent.values) is not uploaded


# ---------------------------------------------------------------- off


def test_without_a_backbone_it_is_off_says_what_fetches_one_and_every_number_is_unknown(folder: Path) -> None:
    off = perceptual()
    assert off.model is None
    assert off.words.startswith("LPIPS off: backbone not on this machine. To get it, run python -m leakage fetch lpips-squeeze")
    assert off.distance(smooth(2), smooth(2)).isnan().tolist() == [True, True]
    assert off.table(smooth(2), smooth(3)).isnan().all()
    assert list(folder.iterdir()) == []  # nothing was downloaded


@pytest.mark.parametrize(
    "place", ["lpips/squeezenet1_1-b8a52dc0.pth", "lpips_squeeze/squeezenet1_1_features.pth", "lpips/vgg16-397923af.pth"]
)
def test_a_file_of_the_right_name_and_wrong_content_gives_no_number_but_a_sentence(folder: Path, place: str) -> None:
    stored(folder / place)  # a network, even, but not the one that was trained
    off = perceptual()
    assert off.model is None
    assert f"{Path(place).name} is not the file that its name says" in off.words
    assert f"delete it and run `python -m leakage fetch lpips-{'vgg' if 'vgg' in place else 'squeeze'}`" in off.words
    held = baselines_of(Experiment(), smooth(1, 3, 32), torch.tensor([0]))  # the rest works
    assert math.isnan(held.scores["grey"]["lpips"])
    assert held.scores["grey"]["ssim"] < 1


def test_a_wrong_file_does_not_hide_a_genuine_one_and_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = stored(folder / "lpips" / SQUEEZE.file)
    (folder / "lpips" / "alexnet-owt-7be5be79.pth").write_bytes(b"nothing")
    monkeypatch.setattr(lpips_weights, "BACKBONES", (lpips_weights.BACKBONES[0], replace(SQUEEZE, sha256=digest)))
    found = perceptual()
    assert found.net == "squeeze"
    assert "alexnet-owt-7be5be79.pth is not the file that its name says" in found.words


def test_a_file_that_changes_is_looked_at_again(ready: Perceptual, folder: Path) -> None:
    assert ready.model is not None
    (folder / "lpips" / SQUEEZE.file).write_bytes(b"overwritten")
    assert perceptual().model is None


def test_torchs_own_folder_of_downloads_is_looked_into(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = stored(folder.parent / "torch" / "hub" / "checkpoints" / SQUEEZE.file)
    monkeypatch.setattr(lpips_weights, "BACKBONES", (replace(SQUEEZE, sha256=digest),))
    assert perceptual().net == "squeeze"


def test_the_net_its_authors_recommend_comes_first() -> None:
    assert [backbone.net for backbone in lpips_weights.BACKBONES] == ["alex", "vgg", "squeeze"]
    assert all(f"-{backbone.sha256[:8]}." in backbone.file for backbone in lpips_weights.BACKBONES)
