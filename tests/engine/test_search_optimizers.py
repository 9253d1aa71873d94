"""Our Adam, L-BFGS and vector-Jacobian products have the digits of torch's, and a search loads neither torch's compiler nor sympy."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from leakage.engine.core import generator
from leakage.engine.optimizers import Adam, lbfgs
from leakage.engine.vjp import vjp

ROOT = Path(__file__).resolve().parents[2]
STEPS = 20


def two_leaves(dtype: torch.dtype) -> list[Tensor]:
    rng = generator(1, "leaves")
    return [torch.randn(shape, generator=rng).to(dtype).requires_grad_() for shape in ((2, 3, 5), (7,))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam_moves_leaves_of_two_step_sizes_as_torch_does(dtype: torch.dtype) -> None:
    ours, theirs = two_leaves(dtype), two_leaves(dtype)
    sizes = (0.1, 0.003)
    adam = Adam(list(zip(ours, sizes, strict=True)))
    groups = [{"params": [leaf], "lr": size} for leaf, size in zip(theirs, sizes, strict=True)]
    peer, rng = torch.optim.Adam(groups, fused=True), generator(1, "gradients")
    for step in range(STEPS):
        gradients = [torch.randn(leaf.shape, generator=rng).to(dtype) for leaf in ours]
        fraction = 1.0 if step < STEPS // 2 else 0.1
        adam.step(gradients, fraction)
        for leaf, group, size, gradient in zip(theirs, peer.param_groups, sizes, gradients, strict=True):
            leaf.grad, group["lr"] = gradient, size * fraction
        peer.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_moves_leaves_as_torch_does(line_search: str | None) -> None:
    def minimized(optimizer: Callable[..., torch.optim.LBFGS]) -> Tensor:
        x = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        moving = optimizer([x], lr=1, line_search_fn=line_search)

        def closure() -> Tensor:
            value = (1 - x[0]) ** 2 + (x[1] - x[0] ** 2) ** 2
            (x.grad,) = torch.autograd.grad(value, x)
            return value.detach()

        moving.step(closure)
        return x.detach()

    assert torch.equal(minimized(lbfgs), minimized(torch.optim.LBFGS))


def test_vector_jacobian_products_have_torch_s_digits() -> None:
    (x, y), rng = two_leaves(torch.float32), generator(1, "vectors")
    hidden = (x.sigmoid() @ torch.randn((5, 4), generator=rng)).tanh()
    outputs = [hidden, hidden.sum() * y, y.exp().sum()]  # the second depends on the first
    vectors = [hidden.sin(), *(torch.randn(output.shape, generator=rng) for output in outputs[1:])]  # the first depends on the inputs
    expected = torch.autograd.grad(outputs, (x, y), vectors, retain_graph=True)
    assert all(torch.equal(one, other) for one, other in zip(vjp(outputs, (x, y), vectors), expected, strict=True))


def test_a_vector_of_another_shape_is_refused() -> None:
    x, _ = two_leaves(torch.float32)
    with pytest.raises(ValueError, match="shape of its output"):
        vjp([x.exp()], [x], [torch.ones(5)])


SEARCH = """
import sys
from itertools import islice
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import play
from leakage.workers.plugin_catalog import describe

for _ in islice(play(Experiment(attack=Part(id="{attack}"), defenses=[Part(id=id) for id in {defenses}]).resolve(describe())), 8):
    pass
print(*sorted({{"torch._dynamo", "sympy"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("attack", "defenses"), [("idlg", []), ("inverting_gradients", []), ("gradinversion", []), ("inverting_gradients", ["ada_defense"])]
)
def test_a_search_loads_neither_the_compiler_nor_sympy(attack: str, defenses: list[str], tmp_path: Path) -> None:
    """They took 4 s of the first search in each process. LPIPS, where its weights are, loads them with torchvision."""
    command = [sys.executable, "-c", SEARCH.format(attack=attack, defenses=defenses)]
    environment = {**os.environ, "TORCH_HOME": str(tmp_path), "LEAKAGE_DATA": ""}
    printed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=True).stdout
    assert printed.split() == []
