"""An attack that yields nothing, or values of a wrong shape, ends with a sentence for its author."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import nn

import leakage
from leakage.engine.core import Attack, Observation, Snapshot


@dataclass(frozen=True, kw_only=True)
class Forgetful(Attack):
    """An attack without a yield."""

    def run(self, seen: Observation, rng: torch.Generator) -> Any:
        return None


@dataclass(frozen=True, kw_only=True)
class Idle(Attack):
    """An attack that yields no Snapshot."""

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        yield from ()


def careless(**values: Any) -> Attack:
    """An attack on one picture (1, 1, 4, 4) of 3 classes, which yields a right Snapshot and then one with these values."""

    @dataclass(frozen=True, kw_only=True)
    class Careless(Attack):
        def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Any]:
            right = Snapshot(step=1, x=torch.zeros(seen.batch.shape), y=torch.tensor([2]), loss=torch.zeros(()))
            yield right
            yield replace(right, step=2, **values) if values else right.x

    return Careless()


def attacked(attack: Attack) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    leakage.attack(model, torch.rand(1, 1, 4, 4), torch.tensor([2]), attack=attack)


@pytest.mark.parametrize("attack", [Forgetful(), Idle()])
def test_an_attack_without_a_snapshot_has_no_answer(attack: Attack) -> None:
    with pytest.raises(ValueError, match="The attack yielded no Snapshot, so it has no answer: `run` must yield at least one"):
        attacked(attack)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"x": torch.zeros(1, 4, 4)}, "x is a tensor of shape (1, 4, 4); expected is a tensor of shape (1, 1, 4, 4)."),
        ({"loss": 0.5}, "loss is a value of type float; expected is a tensor of shape ()."),
        ({"loss": torch.zeros(1)}, "loss is a tensor of shape (1,); expected is a tensor of shape ()."),
        ({"y": torch.tensor([[2]])}, "y is a tensor of shape (1, 1); expected is a tensor of shape (1,) or (1, 3)."),
        ({}, "An attack must yield Snapshots; this attack yielded a value of type Tensor."),
    ],
)
def test_a_snapshot_of_a_wrong_shape_is_refused_with_the_right_shape(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (the sentence is compared whole)
        attacked(careless(**values))
    assert str(raised.value).endswith(sentence)
