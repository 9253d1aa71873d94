"""What a process remembers is bounded, and equal only for equal tensors."""

import torch

from leakage.evaluation.recent import Recent, digest


def test_the_oldest_value_is_forgotten_first() -> None:
    recent, asked = Recent[torch.Tensor](8, torch.Tensor.numel), list[int]()

    def compute(value: int) -> torch.Tensor:
        asked.append(value)
        return torch.full((4,), value)

    for value in (1, 2, 1, 3, 1, 2):  # 3 takes the place of 2, and 2 that of 3
        assert recent.recall(value, lambda value=value: compute(value)).tolist() == [value] * 4
    assert asked == [1, 2, 3, 2]
    assert list(recent.values) == [1, 2]


def test_a_value_that_is_too_large_is_not_kept() -> None:
    recent = Recent[list[int]](2, len)
    assert recent.recall("a", lambda: [1, 2, 3]) == [1, 2, 3]
    assert not recent.values


def test_equal_tensors_have_one_key() -> None:
    x = torch.arange(4.0)
    assert digest(x) == digest(x.clone()) == digest(torch.arange(8.0)[:4])
    assert len({digest(x), digest(x + 1), digest(x.view(2, 2)), digest(x.double())}) == 4
