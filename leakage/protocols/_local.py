"""Local training of FedAvg, FedProx and FedADMM, differentiable by the pictures over any number of steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from leakage.engine.core import Client, ClientState, Params, Protocol, StepRng, Update, param
from leakage.engine.vjp import vjp
from leakage.protocols._optimizers import Momentum

FOLLOWED = 20  # up to this number of steps, intermediate results are kept for the derivative; otherwise they are computed again

EPOCHS = "How often the phone goes through its pictures before it sends its update."
SHUFFLED = "The phone takes its pictures in a new random order in each epoch, which the server does not know."


def local_rate(default: float = 0.0001) -> Any:
    """Return the field of a protocol plug-in for the local learning rate, with this default."""
    return param(default, 1e-6, 1, "The size of one local step (the local learning rate).")


def geometric(ratio: float, terms: int) -> float:
    """Return the sum 1 + ratio + ratio^2 + ... of this number of terms."""
    return float(sum(ratio**power for power in range(terms)))


@dataclass(frozen=True, kw_only=True)
class LocalTraining(Protocol):
    """Base class of protocols with local training: the client takes several steps over mini-batches, then sends its update."""

    epochs: int = param(5, 1, 100, EPOCHS)
    mini_batch: int = param(0, 0, 128, "Pictures in one local step; 0: all of them.")
    rate: float = local_rate()

    def count_steps(self, count: int) -> int:
        """Return the number of local steps of a client that has `count` pictures."""
        return self.epochs * -(-count // self._pictures_of_step(count))

    def _pictures_of_step(self, count: int) -> int:
        """Return the largest number of pictures in one local step of a client that has `count` pictures."""
        return self.mini_batch or count

    def descend(  # noqa: PLR0913  (the symbols of its formula)
        self,
        gradient: Client,
        weights: Params,
        x: Tensor,
        y: Tensor,
        state: ClientState,
        *,
        optimizer: Momentum | None = None,
        start: Params | None = None,
        pull: Callable[[Params], Params] | None = None,
        step_rng: StepRng | None = None,
    ) -> Update:
        """Train locally and return the displacement d_T of the weights after T = epochs * ceil(n / mini_batch) steps, and the state.

        d_{t+1} = d_t - rate v_{t+1}; v_{t+1} is the optimizer's direction for the gradient g(w + d_t; batch t) + pull(d_t). A step that
        takes several mini-batches has the mean of their gradients. The displacement is summed separately from the weights, because adding
        it to the weights and subtracting them again would round small changes away.

        Args:
            gradient: computes the gradient g of a mini-batch.
            weights: the received weights w.
            x: the pictures (B, C, H, W).
            y: the labels (B,).
            state: the client's state, which counts the epochs.
            optimizer: computes the direction of a step; None: the direction is the gradient.
            start: the displacement d_0 before the first step; None: 0.
            pull: returns a term that is added to the gradient, from the displacement.
            step_rng: draws a new order of the pictures for each epoch; None: their order stays.
        """
        moved = start or {}  # if empty, the gradient client is called with the received weight objects, which it can reuse
        kept: Params = {}
        optimizer, size, mini_batch = optimizer or Momentum(), self._pictures_of_step(len(x)), self.mini_batch or len(x)
        epoch = int(state.get("epoch", torch.tensor(0)))
        batches = [
            part
            for number in range(epoch, epoch + self.epochs)
            for part in (torch.arange(len(x)) if step_rng is None else torch.randperm(len(x), generator=step_rng(number))).split(size)
        ]
        whole = len(batches) == self.epochs and step_rng is None
        long = len(batches) > FOLLOWED and torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)

        def step(moved: Params, kept: Params, x: Tensor, y: Tensor, state: ClientState) -> tuple[Params, Params, ClientState]:
            here = {name: weight + moved[name] for name, weight in weights.items()} if moved else weights
            parts, gradients = (
                [(x, y)] if len(x) <= mini_batch else zip(x.split(mini_batch), y.split(mini_batch), strict=True),
                list[Params](),
            )
            for pictures, labels in parts:
                g, state = optimizer.gradient(gradient, here, pictures, labels, state, kept)
                gradients.append(g)
            g = gradients[0] if len(gradients) == 1 else _mean(gradients)
            if pull:
                term = pull(moved or {name: torch.zeros_like(weight) for name, weight in weights.items()})
                g = {name: value + term[name] for name, value in g.items()}
            direction, kept = optimizer.direction(g, weights, moved, kept)
            moved = {name: moved[name] - self.rate * v if moved else -self.rate * v for name, v in direction.items()}
            return moved, kept, state

        for part in batches:
            here = (x, y) if whole else (x[part.to(x.device)], y[part.to(y.device)])
            if long:
                moved, kept, state = _checkpointed(step, moved, kept, *here, state)
            else:
                moved, kept, state = step(moved, kept, *here, state)
        return moved, {**state, "epoch": torch.tensor(epoch + self.epochs)}


def _mean(gradients: Sequence[Params]) -> Params:
    """Return the mean of gradients, by parameter."""
    return {name: torch.stack([gradient[name] for gradient in gradients]).mean(0) for name in gradients[0]}


def _checkpointed(step: Callable[..., Any], moved: Params, kept: Params, x: Tensor, y: Tensor, state: ClientState) -> Any:
    """Compute one local step without keeping its intermediate results, which the derivative computes again.

    `step` returns the displacement of the weights (`moved`), what the optimizer keeps (`kept`) and the client's state after a step.

    Source: Chen et al. 2016 (checkpointing).
    """
    names, after = (list(moved), list(kept)), list[Any]()

    def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(names[0])
        first = dict(zip(names[0], tensors[:count], strict=True))
        second = dict(zip(names[1], tensors[count:-2], strict=True))
        moved, kept, carried = step(first, second, tensors[-2], tensors[-1], state)
        after[:] = [list(moved), list(kept), carried]
        return (*moved.values(), *kept.values())

    tensors = _Checkpoint.apply(flat, *moved.values(), *kept.values(), x, y)
    keys, others, carried = after
    return dict(zip(keys, tensors[: len(keys)], strict=True)), dict(zip(others, tensors[len(keys) :], strict=True)), carried


class _Checkpoint(torch.autograd.Function):
    """A function of tensors that is differentiable once; the derivative computes the function a second time.

    torch.utils.checkpoint does not work here, because the function computes a gradient itself.
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
            pairs = [pair for pair in zip(ctx.function(*inputs), grad_outputs, strict=True) if pair[0].requires_grad]  # not a counter
            wanted = [value for value, need in zip(inputs, needed, strict=True) if need]
            found = iter(vjp([output for output, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True))
        return None, *(next(found) if need else None for need in needed)
