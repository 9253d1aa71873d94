"""Networks as people have them are attacked: torchvision's, timm's and MONAI's, and networks that are built in other ways."""

import sys
from types import ModuleType

import pytest
import torch

import leakage
from leakage.auditing.protection_effects import planted
from leakage.settings import ROOT

NAMES = (
    *("mobilenet_v3_small", "resnet18", "vit_tiny", "convnext_atto", "densenet121"),
    *("groupnorm", "spectral_norm", "lora", "half_frozen", "sequential"),
)
STEPS = 20


@pytest.fixture(scope="module")
def audits() -> ModuleType:
    """The benchmark, which builds the networks."""
    folders = [str(ROOT / "benchmarks" / "published"), str(ROOT / "benchmarks")]
    sys.path[:0] = folders
    try:
        import audits
    finally:
        for folder in folders:
            sys.path.remove(folder)
    return audits


def test_the_networks_are_those_of_the_benchmark(audits: ModuleType) -> None:
    assert tuple(audits.MODELS) == NAMES


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_search_descends_on_every_network(audits: ModuleType, name: str) -> None:
    if name in ("vit_tiny", "convnext_atto"):
        pytest.importorskip("timm")
    if name == "densenet121":
        pytest.importorskip("monai.networks.nets")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = audits.MODELS[name]()
    x = planted(1, (1 if name == "densenet121" else 3, 64, 64))
    search = leakage.plugin("inverting_gradients", steps=STEPS)
    granted = leakage.ThreatModel(labels=name == "lora")  # whose head is no single linear layer
    losses = list[float]()
    result = leakage.attack(
        *(model, x, torch.tensor([3])),
        attack=search,
        batch_norm="batch",
        threat_model=granted,
        progress=lambda _step, _steps, loss: losses.append(loss),
    )
    assert result.steps == STEPS
    assert torch.isfinite(result.reconstruction).all()
    assert min(losses) < losses[0]


@pytest.mark.long
def test_the_position_embedding_gives_a_picture_away() -> None:
    """Timm's and torchvision's vision transformers: exactly for one picture; each limit has its sentence."""
    timm = pytest.importorskip("timm")
    from torchvision.models import VisionTransformer

    def attacked(model: torch.nn.Module, count: int = 1, side: int = 64) -> leakage.Result:
        return leakage.attack(model, planted(count, (3, side, side)), torch.arange(count) + 3, attack="position_embedding")

    def why(result: leakage.Result) -> str:
        assert result.verdict
        assert result.verdict["word"] == "does not apply"
        return result.verdict["why"]

    with torch.random.fork_rng():
        torch.manual_seed(0)
        small = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=10)
        large = timm.create_model("vit_tiny_patch16_224", num_classes=10)
        zeros = VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=3, hidden_dim=192, mlp_dim=384, num_classes=10)
    assert attacked(small).scores["mse"] < 1e-8  # float32
    assert "a sum over the 2 pictures" in why(attacked(small, 2))
    assert "There are 196 patches and only 192 units for each" in why(attacked(large, side=224))
    assert "No gradient reaches conv_proj" in why(attacked(zeros))
    torch.nn.init.normal_(zeros.heads.head.weight, std=0.02)  # as after a step of training
    assert attacked(zeros).scores["mse"] < 1e-8
