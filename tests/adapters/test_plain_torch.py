"""A training loop in PyTorch is recorded: the state_dicts at its ends, and what its optimizer says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from leakage.adapters.plain_torch import saved

ROUNDING = {"rtol": 1e-5, "atol": 1e-6}  # float32


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Sigmoid(), nn.Linear(6, 3))


def batch(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(5, 4, generator=generator), torch.randint(3, (5,), generator=generator)


def step(model: nn.Module, optimizer: Optimizer, seed: int) -> None:
    x, y = batch(seed)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the card, and the arrays before and after."""
    before, after = (dict(np.load(folder / f"{name}.npz", allow_pickle=False)) for name in ("before", "after"))
    return json.loads((folder / "card.json").read_text()), before, after


def equal(arrays: dict[str, Any], state: dict[str, Tensor]) -> bool:
    return list(arrays) == list(state) and all(np.array_equal(arrays[name], value.numpy()) for name, value in state.items())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: SGD(p, lr=0.1), {"optimizer": "SGD", "rate": 0.1, "momentum": 0, "weight_decay": 0}),
        (
            lambda p: SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4),
            {"optimizer": "SGD", "rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
        ),
        (
            lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
            {"optimizer": "SGD with Nesterov momentum", "rate": 0.1, "momentum": 0.9, "weight_decay": 0},
        ),
        (lambda p: Adam(p, lr=torch.tensor(0.25)), {"optimizer": "Adam", "rate": 0.25, "weight_decay": 0}),
        (lambda p: AdamW(p), {"optimizer": "AdamW", "rate": 1e-3, "weight_decay": 0.01}),
        (lambda p: Adam(p, betas=(0.5, 0.9)), {"optimizer": {"guess": "Adam"}, "rate": 1e-3, "weight_decay": 0}),
        (
            lambda p: SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
            {"optimizer": {"guess": "SGD"}, "rate": 0.1, "momentum": 0.9, "weight_decay": 0},
        ),
        (lambda p: RMSprop(p, lr=0.1), {"rate": 0.1, "weight_decay": 0, "momentum": 0}),
    ],
    ids=["sgd", "momentum", "nesterov", "adam", "adamw", "betas", "dampening", "rmsprop"],
)
def test_a_loop_is_recorded_with_its_optimizer(tmp_path: Path, make: Callable[[Any], Optimizer], said: dict[str, Any]) -> None:
    model = network()
    optimizer = make(model.parameters())
    begin = {name: value.clone() for name, value in model.state_dict().items()}
    with saved(model, tmp_path / "update", optimizer=optimizer, pictures=15, epochs=1, mini_batch=5) as folder:
        for seed in range(3):
            step(model, optimizer, seed)
        assert not folder.exists()  # it appears when it is complete
    card, before, after = read(folder)
    assert equal(before, begin)
    assert equal(after, model.state_dict())
    assert after["1.num_batches_tracked"] - before["1.num_batches_tracked"] == 3
    framework = f"torch {torch.__version__.partition('+')[0]}"
    assert card.pop("framework").partition("+")[0] == framework
    assert card == {"format": 1, "steps": 3, "pictures": 15, "epochs": 1, "mini_batch": 5, "batch_norm": "batch"} | said


def test_the_difference_of_a_step_is_the_gradient_times_the_recorded_rate(tmp_path: Path) -> None:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.5)
    with saved(model, tmp_path / "update", optimizer=optimizer):
        step(model, optimizer, 0)
    card, before, after = read(tmp_path / "update")
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        np.testing.assert_allclose((before[name] - after[name]) / card["rate"], parameter.grad.numpy(), **ROUNDING)


def test_a_rate_that_changes_is_a_guess_and_one_that_differs_between_groups_is_unknown(tmp_path: Path) -> None:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.4)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with saved(model, tmp_path / "falling", optimizer=optimizer):
        for seed in range(2):
            step(model, optimizer, seed)
            schedule.step()
    assert read(tmp_path / "falling")[0]["rate"] == {"guess": pytest.approx(0.3)}
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[3].parameters(), "weight_decay": 0.1}]
    optimizer = SGD(groups, lr=0.2)
    with saved(model, tmp_path / "groups", optimizer=optimizer):
        step(model, optimizer, 0)
    card = read(tmp_path / "groups")[0]
    assert (card["steps"], card["momentum"], card["optimizer"]) == (1, 0, "SGD")
    assert {"rate", "weight_decay"} & set(card) == set()


def test_steps_outside_of_the_loop_are_not_counted(tmp_path: Path) -> None:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.1)
    step(model, optimizer, 0)
    for number in (1, 2):
        with saved(model, tmp_path / f"update-{number}", optimizer=optimizer):
            for seed in range(number):
                step(model, optimizer, seed)
        step(model, optimizer, 9)
        assert read(tmp_path / f"update-{number}")[0]["steps"] == number
    assert not optimizer._optimizer_step_post_hooks


def test_layers_in_evaluation_mode_are_recorded_and_a_mixture_stays_unknown(tmp_path: Path) -> None:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.1)
    for name, modes in {"frozen": (False, False), "mixed": (True, False)}.items():
        with saved(model, tmp_path / name, optimizer=optimizer):
            for mode in modes:
                step(model.train(mode), optimizer, 0)
    assert read(tmp_path / "frozen")[0]["batch_norm"] == "eval"
    assert "batch_norm" not in read(tmp_path / "mixed")[0]


def test_without_an_optimizer_the_weights_are_recorded_and_its_settings_unknown(tmp_path: Path) -> None:
    model = nn.Linear(2, 2).to(torch.bfloat16)
    with saved(model, tmp_path / "update"), torch.no_grad():
        model.weight.add_(1)
    card, before, after = read(tmp_path / "update")
    assert set(card) == {"format", "framework"}
    assert before["weight"].dtype == np.float32
    np.testing.assert_array_equal(after["weight"], model.weight.detach().float().numpy())
    assert not np.array_equal(before["weight"], after["weight"])


def test_a_loop_that_fails_writes_nothing(tmp_path: Path) -> None:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="no more data"), saved(model, tmp_path / "update", optimizer=optimizer):
        raise RuntimeError("no more data")
    assert list(tmp_path.iterdir()) == []
    assert not optimizer._optimizer_step_post_hooks


def test_mistakes_are_named_before_the_loop(tmp_path: Path) -> None:
    model, other = network(), network()
    with (
        pytest.raises(ValueError, match=r"The optimizer has none of the model's parameters\. Give the optimizer that trains this model"),
        saved(model, tmp_path / "update", optimizer=SGD(other.parameters())),
    ):
        pytest.fail("the loop ran")
    for given in ({"pictures": 0}, {"epochs": 1.5}, {"mini_batch": True}):
        name, value = next(iter(given.items()))
        sentence = f"{name} must be a whole number from 1 to 1000000, or None for unknown, got {value}."
        with pytest.raises(ValueError, match=sentence), saved(model, tmp_path / "update", **given):  # type: ignore[arg-type]
            pytest.fail("the loop ran")
    (tmp_path / "update").write_text("mine")
    with pytest.raises(FileExistsError, match="exists and is not empty"), saved(model, tmp_path / "update"):
        pytest.fail("the loop ran")
