"""Trained models on the whole test sets: ours reach their cards' accuracy, and a foreign ResNet-20 the published one."""

import os
from pathlib import Path

import pytest
import torch

from leakage.data.checkpoints import SHIPPED, cards
from leakage.data.datasets import datasets
from leakage.engine.federated_training import Pictures, accuracy
from leakage.engine.loading import load
from leakage.workers.training_adapter import accuracy_of

THEIRS = Path(os.environ["LEAKAGE_DATA"]) / "resnet20_cifar10" / "resnet20-12fca82f.th"
CPU = torch.device("cpu")
OURS = sorted(folder.name for folder in SHIPPED.iterdir())
SMALL = [name for name in OURS if name.startswith("lenet")]


def as_on_the_card(id: str) -> None:
    card = cards()[id]
    for stage in card.stages:
        # Another processor may round differently: a handful of the 10,000 pictures lies on the edge.
        assert accuracy_of(card, stage, CPU) == pytest.approx(stage.accuracy, abs=0.001)


@pytest.mark.parametrize("id", SMALL)
@pytest.mark.long
def test_a_small_model_scores_what_its_card_says(id: str) -> None:
    as_on_the_card(id)


@pytest.mark.slow
@pytest.mark.parametrize("id", [id for id in OURS if id not in SMALL])
def test_a_large_model_scores_what_its_card_says(id: str) -> None:
    as_on_the_card(id)


@pytest.mark.slow
@pytest.mark.skipif(not THEIRS.exists(), reason="resnet20-12fca82f.th is not in the data folder")
def test_a_published_resnet_20_fits_ours_tensor_by_tensor_and_scores_91_7_percent() -> None:
    """Its names differ (layer1.0.conv1 is our block1-1.body.0), its order does not: every tensor meets one of its own shape."""
    model = load("model", "he_resnet")(normalise="imagenet").build((3, 32, 32), 10)
    theirs = list(torch.load(THEIRS, map_location="cpu", weights_only=True)["state_dict"].values())
    ours = {name: value for name, value in model.state_dict().items() if not name.startswith("normalise.") and "num_batches" not in name}
    theirs = [value for value in theirs if value.dim()]  # without the counters of batches
    assert [value.shape for value in theirs] == [value.shape for value in ours.values()]
    model.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
    rows = datasets()["cifar10"].rows()
    test = Pictures(torch.from_numpy(rows.pixels.copy()).permute(0, 3, 1, 2), torch.from_numpy(rows.labels.copy()))
    assert accuracy(model, test) == pytest.approx(0.9173, abs=0.0005)
