"""Local training, as FedAvg, FedProx and FedADMM share it: differentiable in the pictures, over any number of steps."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from leakage.engine.core import Client, ClientState, Params, StepRng, Update, param

FOLLOWED = 20  # steps whose intermediate results are kept for the derivative; of more steps they are computed again instead

EPOCHS = "How often the phone goes through its pictures before it sends."
MINI_BATCH = "Pictures in one local step; 0: all of them."
RATE = "How far one local step goes (the local learning rate)."
SHUFFLED = "The phone takes its pictures in a new random order each time, which the server does not know."


def local_rate(default: float = 0.0001) -> Any:
    """The field of the local learning rate."""
    return param(default, 1e-6, 1, RATE)


def steps_of(count: int, *, epochs: int, mini_batch: int) -> int:
    """Local steps of a client that holds `count` pictures."""
    return epochs * -(-count // (mini_batch or count))


def geometric(ratio: float, terms: int) -> float:
    """1 + ratio + ratio^2 + ... of so many terms."""
    return float(sum(ratio**power for power in range(terms)))


def descend(  # noqa: PLR0913  (the symbols of its formula)
    gradient: Client,
    weights: Params,
    x: Tensor,
    y: Tensor,
    state: ClientState,
    *,
    epochs: int,
    mini_batch: int,
    rate: float,
    momentum: float = 0.0,
    start: Params | None = None,
    pull: Callable[[Params], Params] | None = None,
    step_rng: StepRng | None = None,
) -> Update:
    """How far the weights are from those received after T = epochs * ceil(n / mini_batch) steps: d_T, from d_0 = `start` (or 0).

    v_{t+1} = momentum v_t + g(w + d_t; batch t) + pull(d_t), d_{t+1} = d_t - rate v_{t+1}, as torch.optim.SGD does it. The displacement is
    summed up by itself: adding it to the weights and subtracting them again would round away what small steps change.
    The pictures are taken in their order, in every epoch the same, or in a new one from `step_rng`.
    """
    moved = start or {}  # nothing yet: the weights received are the very same objects, which the gradient client can make use of
    speed: Params = {}
    size = mini_batch or len(x)
    epoch = int(state.get("epoch", torch.tensor(0)))
    batches = [
        part
        for number in range(epoch, epoch + epochs)
        for part in (torch.arange(len(x)) if step_rng is None else torch.randperm(len(x), generator=step_rng(number))).split(size)
    ]
    whole = len(batches) == epochs and step_rng is None
    long = len(batches) > FOLLOWED and torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)

    def step(moved: Params, speed: Params, x: Tensor, y: Tensor, state: ClientState) -> tuple[Params, Params, ClientState]:
        here = {name: weight + moved[name] for name, weight in weights.items()} if moved else weights
        step_gradient, state = gradient(here, x, y, state)
        if pull:
            drawn = pull(moved or {name: torch.zeros_like(weight) for name, weight in weights.items()})
            step_gradient = {name: g + drawn[name] for name, g in step_gradient.items()}
        if momentum:
            step_gradient = {name: g + momentum * speed[name] if speed else g for name, g in step_gradient.items()}
        moved = {name: moved[name] - rate * g if moved else -rate * g for name, g in step_gradient.items()}
        return moved, step_gradient if momentum else speed, state

    for part in batches:
        here = (x, y) if whole else (x[part.to(x.device)], y[part.to(y.device)])
        if long:
            moved, speed, state = _again(step, moved, speed, *here, state)
        else:
            moved, speed, state = step(moved, speed, *here, state)
    return moved, {**state, "epoch": torch.tensor(epoch + epochs)}


def _again(step: Callable[..., Any], moved: Params, speed: Params, x: Tensor, y: Tensor, state: ClientState) -> Any:
    """One step whose inner results are not kept but computed again for the derivative (Chen et al. 2016, checkpointing)."""
    names, after = (list(moved), list(speed)), list[Any]()

    def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(names[0])
        first = dict(zip(names[0], tensors[:count], strict=True))
        second = dict(zip(names[1], tensors[count:-2], strict=True))
        moved, speed, carried = step(first, second, tensors[-2], tensors[-1], state)
        after[:] = [list(moved), list(speed), carried]
        return (*moved.values(), *speed.values())

    tensors = _Checkpoint.apply(flat, *moved.values(), *speed.values(), x, y)
    keys, fast, carried = after
    return dict(zip(keys, tensors[: len(keys)], strict=True)), dict(zip(fast, tensors[len(keys) :], strict=True)), carried


class _Checkpoint(torch.autograd.Function):
    """outputs = function(*inputs); the derivative computes the function a second time. Differentiable once.

    torch.utils.checkpoint cannot be used: the function computes a gradient itself.
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        with torch.enable_grad():
            return tuple(value.detach() for value in function(*(value.detach() for value in inputs)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        with torch.enable_grad():
            inputs = [value.detach().requires_grad_(need) for value, need in zip(ctx.saved_tensors, needed, strict=True)]
            outputs = ctx.function(*inputs)
            wanted = [value for value, need in zip(inputs, needed, strict=True) if need]
            found = iter(torch.autograd.grad(outputs, wanted, grad_outputs, allow_unused=True))
        return None, *(next(found) if need else None for need in needed)
