"""Attacks on an update alone: wrong declarations get a warning and a better suggestion; right or noisy ones get none."""

import re
from typing import Any

import pytest
import torch
from small_problems import smooth
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.api import declared
from leakage.engine.core import Params

X, Y = smooth(2, 3, 12), torch.tensor([3, 7])
SHAPE = (3, 12, 12)
SEARCH = leakage.plugin("inverting_gradients", steps=50)
LOCAL = {"epochs": 3, "rate": 0.01}


def net() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = (nn.Conv2d(3, 8, 5, padding=2, stride=2), nn.Sigmoid(), nn.Conv2d(8, 8, 5, padding=2, stride=2), nn.Sigmoid())
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(72, 10))


def sent(**setting: Any) -> Params:
    return leakage.observe(net(), X[:1], Y[:1], **setting).received.history[0].update


def attacked(update: Params, protocol: object = "fedsgd", **setting: Any) -> leakage.Result:
    asked = {"image_shape": SHAPE, "batch_size": 1, "attack": SEARCH, "protocol": protocol} | setting
    return leakage.attack(net(), update=update, **asked)


def minus(update: Params) -> Params:
    return {name: -value for name, value in update.items()}


def local(**other: Any) -> Any:
    return leakage.plugin("fedavg", **(LOCAL | other))


WRONG: dict[str, tuple[dict[str, Any], bool, dict[str, Any], str]] = {  # protocol that sent, sign turned, protocol declared, words
    "sign": ({}, True, {}, r"9 of 10 entries of the last bias's gradient are negative, where 1 picture allows 1 .* Turn its sign"),
    "rate": ({}, False, {"rate": 0.001}, r"9.8 times as long .*for example rate=0.0098 in place of 0.001"),
    "steps": ({}, False, {"epochs": 1}, r"2.9 times as long"),
    "more steps": ({}, False, {"epochs": 6}, r"0.52 times as long .*for example rate=0.0052 in place of 0.01"),
    "momentum": ({"momentum": 0.9}, False, {}, r"1.9 times as long .* momentum"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_of_local_steps_is_said(name: str) -> None:
    true, turned, wrong, words = WRONG[name]
    update = sent(protocol=local(**true))
    result = attacked(minus(update) if turned else update, local(**wrong))
    assert result.fit is not None
    assert result.fit.distance > 0.4
    said = " ".join(result.fit.warnings)
    assert ("What you declared cannot have made this update" in said) == (name != "more steps")  # whose gradients are within all bounds
    assert re.search(words, said), said
    assert min(result.fit.better.values()) < 0.1
    assert all(words in repr(result) for words in result.fit.warnings)
    assert (result.update.certainty, bool(result.update.unsure)) == (None, True)


def test_a_gradient_and_a_difference_of_weights_are_told_apart() -> None:
    gradient = attacked(sent(), local())
    assert gradient.fit is not None
    assert 'It may be a gradient: declare protocol="fedsgd".' in gradient.fit.warnings[0]
    difference = attacked(sent(protocol=local()))
    assert difference.fit is not None
    assert 'It may be a difference of weights: declare protocol="fedavg"' in difference.fit.warnings[0]
    assert difference.fit.better["with the sign turned"] < 0.1


@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg"])
def test_what_is_declared_rightly_is_not_accused(protocol: str) -> None:
    own = local() if protocol == "fedavg" else protocol
    result = attacked(sent(protocol=own), own)
    assert result.fit is not None
    assert result.fit.warnings == ()
    assert result.fit.better == {}
    assert result.fit.distance < 0.05
    assert result.fit.length == pytest.approx(1, abs=0.05)
    assert (result.update.certainty, result.update.unsure) == (1, "")


def test_a_declared_protection_explains_a_distance() -> None:
    noise = [leakage.plugin("gaussian_noise", scale=0.05)]
    result = attacked(sent(defenses=noise), defenses=noise)
    assert result.fit is not None
    assert result.fit.distance > 0.3
    assert result.fit.warnings == ()


# ---------------------------------------------------------------- another loss, another batch


@pytest.fixture
def dense() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.Sigmoid(), nn.Linear(12, 5))


def test_a_search_that_was_too_short_is_not_called_a_wrong_declaration(dense: nn.Sequential) -> None:
    x, y = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)), torch.tensor([1, 3])
    short = leakage.plugin("inverting_gradients", steps=2)
    result = leakage.attack(dense, update=leakage.observe(dense, x, y).received.update, image_shape=(3, 8, 8), batch_size=2, attack=short)
    assert result.fit is not None
    assert result.fit.distance > 0.1
    assert "Either the search was too short, or" in result.fit.warnings[0]
    assert len(result.fit.warnings) == 1
    assert result.fit.better == {}


def weighted(z: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(z, y, weight=torch.tensor([10.0, 1, 1, 0.1, 1]))


LOSSES = {
    "class weights": (weighted, 2, "Either the search was too short, or the client did something else"),
    "a sum": (lambda z, y: F.cross_entropy(z, y, reduction="sum"), 2, r"sum to 2\.\d+ in size, and the mean cross-entropy allows 2"),
    "squared error": (lambda z, y: F.mse_loss(z, F.one_hot(y, 5).to(z)), 2, "would sum to 0 over the classes"),
    "another batch size": (F.cross_entropy, 1, "the gradient of layer 1 has rank 2 at least, and 1 picture allows 1 at most"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_labels_read_under_a_wrong_loss_or_batch_size_are_called_unsure(name: str, dense: nn.Sequential) -> None:
    loss, count, words = LOSSES[name]
    x, y = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)), torch.tensor([1, 3])
    update = list(torch.autograd.grad(loss(dense(x), y), list(dense.parameters())))
    result = leakage.attack(dense, update=update, image_shape=(3, 8, 8), batch_size=count, attack="linear_layer")
    assert result.fit is not None
    assert re.search(words, " ".join(result.fit.warnings)), result.fit.warnings
    assert result.update.labels is not None
    assert result.update.certainty is None
    assert "nothing confirms them" in result.update.unsure


def test_the_rows_that_enter_a_layer_bound_the_rank_of_its_gradient() -> None:
    """A layer that is applied to four parts of each picture sees eight rows of two pictures."""

    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.head = nn.Linear(36, 9), nn.Linear(36, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.part(x.view(len(x), 4, 36)).flatten(1))

    assert declared._inputs_of(Parts(), smooth(2, 1, 12)) == {"part": 8, "head": 2}


# ---------------------------------------------------------------- batch normalisation


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 5, stride=2, padding=2), nn.BatchNorm2d(8), nn.Linear(8 * 36, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x)).sigmoid().flatten(1))


@pytest.fixture
def normed() -> Normed:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return Normed()


@pytest.mark.parametrize("mode", ["eval", "batch"])
def test_the_statistics_that_a_client_used_are_found_from_its_update(mode: Any, normed: Normed) -> None:
    update = leakage.observe(normed, X, torch.tensor([1, 4]), batch_norm=mode).received.update
    asked: dict[str, Any] = {"update": update, "image_shape": SHAPE, "batch_size": 2, "attack": SEARCH}
    found = leakage.attack(normed, **asked)
    assert found.fit is not None
    assert found.fit.batch_norm == mode
    assert found == leakage.attack(normed, batch_norm=mode, **asked)
    other = "eval" if mode == "batch" else "batch"
    wrong = leakage.attack(normed, batch_norm=other, **asked)
    assert wrong.fit is not None
    assert found.fit.distance < 0.5 * wrong.fit.distance


def test_beside_pictures_the_stored_statistics_stay_the_default(normed: Normed) -> None:
    auto, stored = (leakage.observe(normed, X, torch.tensor([1, 4]), **how).received.update for how in ({}, {"batch_norm": "eval"}))
    assert all(torch.equal(auto[name], stored[name]) for name in stored)
    with pytest.raises(ValueError, match="batch_norm must be auto, eval or batch; got 'train'"):
        leakage.observe(normed, X, Y, batch_norm="train")
