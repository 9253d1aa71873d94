"""The computation of an undefended client: the gradient of a batch, the gradients of single pictures, and the statistics for BatchNorm."""

import operator
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import vmap

from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Client, ClientState, Params, Update
from leakage.engine.formula_replay import FormulaReplay
from leakage.engine.half_precision import loss_scale
from leakage.engine.losses import CustomLoss, batch_loss, client_loss
from leakage.engine.model_formula import FormulaAt, ModelFormula, needs_graph
from leakage.engine.stateless import StatelessModel
from leakage.spec.words import NO_STATISTICS

_LOSS_TERMS: ContextVar[list[Tensor] | None] = ContextVar("loss_terms", default=None)


def weights_of(model: nn.Module) -> Params:
    """Return the parameters of a model, by name."""
    return dict(model.named_parameters())


def join_loss(extra: Tensor) -> None:
    """Add a scalar to the loss of the batch that is being computed; do nothing where no loss is computed.

    A layer of a model calls this function in its forward pass.
    """
    terms = _LOSS_TERMS.get()
    if terms is not None:
        terms.append(extra)


@contextmanager
def _collect_loss_terms() -> Iterator[list[Tensor]]:
    """Collect the scalars that layers add to the loss (`join_loss`) within the block."""
    terms: list[Tensor] = []
    before = _LOSS_TERMS.set(terms)
    try:
        yield terms
    finally:
        _LOSS_TERMS.reset(before)


class Gradient:
    """A client that sends the gradient dL/dw of the batch's loss (`losses`), with the terms that layers add to the loss.

    The gradient is differentiable in the pictures x and in label probabilities y. Beside the weights, a caller may pass buffers of the
    model by name; the model computes with them, and their gradient is not sent. `vectorised` says whether `lanes` and `each` can be
    called.

    Args:
        model: the model that is trained.
        bfloat16: whether the model is computed in bfloat16.
        loss_log: a list to which each call appends the loss, summed over its pictures.
    """

    def __init__(self, model: nn.Module, *, bfloat16: bool = False, loss_log: list[Tensor] | None = None) -> None:
        self.model, self.bfloat16, self.loss_log = model, bfloat16, loss_log
        self._parameters, self.loss = weights_of(model), client_loss(model)
        self._stateless, self.vectorised = StatelessModel(model), capabilities_of(model).vectorised
        self._formula = ModelFormula(model, allowed=not bfloat16 and loss_log is None)

    def __call__(self, weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        return self._formula.gradient(weights, x, y, partial(self._by_autograd, weights)), state

    def _by_autograd(self, weights: Params, x: Tensor, y: Tensor) -> Params:
        # With the model's current weights no exchange is needed; an exchange costs 5 % of an iteration on a small network.
        current = len(weights) == len(self._parameters) and all(map(operator.is_, weights.values(), self._parameters.values()))
        with self._precision(x):
            with _collect_loss_terms() as extra:
                logits = rows_of(self._stateless.with_own_weights(x) if current else self._stateless(weights, x), x)  # (B, K)
            loss = sum(extra, batch_loss(self.loss, logits, y))
        return self._gradients(loss, weights, x, y)

    def lanes(self, weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
        """Return the gradients (S, ...) for S guesses at once, and the state.

        Args:
            weights: by parameter, (S, ...).
            x: pictures (B, S, C, H, W).
            y: labels (B, S), or probabilities (B, S, K).
            state: the client's state, returned as it is.
        """
        return self._formula.gradients(weights, x, y, partial(self._lanes_by_autograd, weights)), state

    def _lanes_by_autograd(self, weights: Params, x: Tensor, y: Tensor) -> Params:
        """Return the gradients by autograd: only the forward pass is vectorised, which is cheaper than vmap over the gradient."""

        def forward(lane_weights: Params, pictures: Tensor) -> tuple[Tensor, Tensor]:
            with _collect_loss_terms() as extra:
                logits = rows_of(self._stateless(lane_weights, pictures), pictures)
            return logits, sum(extra, logits.new_zeros(()))

        with self._precision(x):
            call = vmap(forward, in_dims=(0, 1), out_dims=(1, 0), randomness="different")
            logits, extra = call(weights, x)  # (B, S, K), (S,)
            guesses = x.shape[1]
            if isinstance(self.loss, CustomLoss):  # a custom loss may mix the pictures of a batch, and vmap may not support it
                loss = torch.stack([batch_loss(self.loss, logits[:, lane], y[:, lane]) for lane in range(guesses)]).sum()
            else:  # the sum over guesses of the mean over pictures
                loss = batch_loss(self.loss, logits.flatten(0, 1), y.flatten(0, 1)) * guesses
        return self._gradients(loss + extra.sum(), weights, x, y)

    def each(self, weights: Params, x: Tensor, y: Tensor) -> Params:
        """Return the gradient of each picture alone, with B in front of each parameter's shape; all are computed at once."""
        repeated = {name: value.expand(len(x), *value.shape) for name, value in weights.items()}
        return self.lanes(repeated, x.unsqueeze(0), y.unsqueeze(0), {})[0]

    def summed(self, weights: Params, x: Tensor, y: Tensor, clients: int) -> Params | None:
        """Return the sum of the gradients of clients that have equally many of these pictures each; None where it takes a pass for each.

        A formula's loss is a mean over pictures, so that the sum is the gradient for all pictures, times the number of clients.
        """
        if len(x) % clients or self._formula.formula_at(weights, x, y) is None:
            return None
        return {name: clients * value for name, value in self(weights, x, y, {})[0].items()}

    def formula(self, weights: Params, image_shape: tuple[int, int, int]) -> FormulaReplay:
        """Return the formula for guesses at given weights, which all guesses share, and for pictures (C, H, W)."""
        return FormulaAt(self._formula, weights, image_shape)

    def _gradients(self, loss: Tensor, weights: Params, x: Tensor, y: Tensor) -> Params:
        if self.loss_log is not None:
            self.loss_log.append(loss.detach() * len(x))
        parameters = [weights[name] for name in self._parameters]  # a parameter that these pictures do not use has a gradient of 0
        scale = loss_scale()
        if scale is not None:
            loss = loss * scale
        gradient = torch.autograd.grad(loss, parameters, create_graph=needs_graph(x, y), materialize_grads=True)
        return {name: g if scale is None else g / scale for name, g in zip(self._parameters, gradient, strict=True)}

    def _precision(self, x: Tensor) -> AbstractContextManager[object]:
        return torch.autocast(x.device.type, torch.bfloat16) if self.bfloat16 else nullcontext()


def rows_of(logits: Tensor, x: Tensor) -> Tensor:
    """Return the logits unchanged where they have the shape (B, K), a row for each picture x (B, C, H, W); raise ValueError where not."""
    if logits.dim() != 2 or len(logits) != len(x):
        raise ValueError(
            f"The model answers shape {tuple(logits.shape)} for pictures of shape {tuple(x.shape)}; expected are logits (B, K), a row for "
            "each picture, for any number of pictures. Name the axis in squeeze(), and keep the first one in view()."
        )
    return logits


def gradient_client(model: nn.Module) -> Client:
    """Return a client that sends the gradient of a batch (`Gradient`)."""
    return Gradient(model)


def lanes_client(model: nn.Module) -> Client:
    """Return a client that computes the gradients of several guesses at once (`Gradient.lanes`)."""
    return Gradient(model).lanes


def use_batch_statistics(model: nn.Module, x: Tensor) -> None:
    """Make BatchNorm take the statistics of each batch, as in training, and neither read nor change the stored statistics.

    All other layers stay in eval mode; dropout drops nothing. Raises ValueError where a BatchNorm would see one number per channel in `x`.
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
    """Yield the gradient of each picture alone, one after the other: the gradients that the client averages and never sends."""
    client = gradient_client(model)
    for index in range(len(x)):
        yield client(weights, x[index : index + 1], y[index : index + 1], {})[0]
