"""The honest client's arithmetic: one gradient, the gradients of single pictures, and which statistics BatchNorm takes."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.func import vmap

from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Client, ClientState, Params, Update
from leakage.engine.losses import CustomLoss, batch_loss, client_loss
from leakage.engine.stateless import StatelessModel
from leakage.spec.words import NO_STATISTICS

_HEARD: ContextVar[list[Tensor] | None] = ContextVar("heard", default=None)


def weights_of(model: nn.Module) -> Params:
    """The model's own parameters by name."""
    return dict(model.named_parameters())


def join_loss(extra: Tensor) -> None:
    """To be called by a layer of a model while it computes: `extra`, a scalar, is added to the loss of this batch, if there is one."""
    loss_log = _HEARD.get()
    if loss_log is not None:
        loss_log.append(extra)


@contextmanager
def _hearing() -> Iterator[list[Tensor]]:
    """What the layers add to the loss meanwhile."""
    loss_log: list[Tensor] = []
    before = _HEARD.set(loss_log)
    try:
        yield loss_log
    finally:
        _HEARD.reset(before)


class Gradient:
    """A client that sends dL/dw of the batch's loss (`losses`) and what layers add to it; differentiable in x and in probabilities y.

    Beside the weights it may be given buffers of the model, by name: it computes with them and does not send their gradient.

    bfloat16   the model itself is computed in bfloat16
    loss_log   gets the summed loss of every call, of what pictures ever

    vectorised: whether `lanes` and `each` can be called.
    """

    def __init__(self, model: nn.Module, *, bfloat16: bool = False, loss_log: list[Tensor] | None = None) -> None:
        self.model, self.bfloat16, self.loss_log = model, bfloat16, loss_log
        self._own, self.loss = weights_of(model), client_loss(model)
        self._stateless, self.vectorised = StatelessModel(model), capabilities_of(model).vectorised

    def __call__(self, weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        # At its own weights the model can be called as it is: exchanging them first costs 5 % of an iteration on a small net.
        at_home = len(weights) == len(self._own) and all(map(operator.is_, weights.values(), self._own.values()))
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bfloat16):
            with _hearing() as extra:
                logits = rows_of(self._stateless.at_home(x) if at_home else self._stateless(weights, x), x)  # (B, K)
            loss = sum(extra, batch_loss(self.loss, logits, y))
        return self._gradients(loss, weights, x, y), state

    def lanes(self, weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        """The same for S guesses at once: weights (S, ...), x (B, S, C, H, W), y (B, S) or (B, S, K) -> gradients (S, ...).

        Cheaper than vmap over the gradient: only the forward pass is vectorised, one ordinary derivative serves all.
        """

        def forward(held: Params, pictures: Tensor) -> tuple[Tensor, Tensor]:
            with _hearing() as extra:
                logits = rows_of(self._stateless(held, pictures), pictures)
            return logits, sum(extra, logits.new_zeros(()))

        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bfloat16):
            call = vmap(forward, in_dims=(0, 1), out_dims=(1, 0), randomness="different")
            logits, extra = call(weights, x)  # (B, S, K), (S,)
            if isinstance(self.loss, CustomLoss):  # it may treat its pictures together, and vmap may not know what it computes
                loss = torch.stack([batch_loss(self.loss, logits[:, lane], y[:, lane]) for lane in range(x.shape[1])]).sum()
            else:
                loss = batch_loss(self.loss, logits.flatten(0, 1), y.flatten(0, 1)) * x.shape[1]  # of every lane the mean over its pictures
        return self._gradients(loss + extra.sum(), weights, x, y), state

    def each(self, weights: Params, x: Tensor, y: Tensor) -> Params:
        """The gradient of every picture alone, all at once, B in front of every shape."""
        own = {name: value.expand(len(x), *value.shape) for name, value in weights.items()}
        return self.lanes(own, x.unsqueeze(0), y.unsqueeze(0), {})[0]

    def _gradients(self, loss: Tensor, weights: Params, x: Tensor, y: Tensor) -> Params:
        if self.loss_log is not None:
            self.loss_log.append(loss.detach() * len(x))
        follow = torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)
        held = [weights[name] for name in self._own]  # which of them are used may depend on the pictures: the others have a gradient of 0
        gradient = torch.autograd.grad(loss, held, create_graph=follow, materialize_grads=True)
        return dict(zip(self._own, gradient, strict=True))


def rows_of(logits: Tensor, x: Tensor) -> Tensor:
    """The logits (B, K). Raises ValueError where the model does not answer a row for each picture x (B, C, H, W)."""
    if logits.dim() != 2 or len(logits) != len(x):
        raise ValueError(
            f"The model answers shape {tuple(logits.shape)} for pictures of shape {tuple(x.shape)}; expected are logits (B, K), a row for "
            "each picture, for any number of pictures. Name the axis in squeeze(), and keep the first one in view()."
        )
    return logits


def gradient_client(model: nn.Module) -> Client:
    """A client that sends the gradient, see `Gradient`."""
    return Gradient(model)


def lanes_client(model: nn.Module) -> Client:
    """The same for several guesses at once, see `Gradient.lanes`."""
    return Gradient(model).lanes


def use_batch_statistics(model: nn.Module, x: Tensor) -> None:
    """From now on BatchNorm takes the statistics of the batch it is given, as in training, and neither reads nor changes the stored ones.

    All else stays in eval mode: nothing is dropped out. Raises ValueError when a BatchNorm would see one number per channel in `x`.
    """
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.train()
            layer.track_running_stats = False
    try:
        with torch.no_grad():
            model(x)
    except ValueError as error:
        raise ValueError(NO_STATISTICS.format(len(x), *x.shape[2:])) from error


def single_gradients(model: nn.Module, weights: Params, x: Tensor, y: Tensor) -> Iterator[Params]:
    """The gradient of every picture alone, one after the other: what the client averages and never sends."""
    client = gradient_client(model)
    for place in range(len(x)):
        yield client(weights, x[place : place + 1], y[place : place + 1], {})[0]
