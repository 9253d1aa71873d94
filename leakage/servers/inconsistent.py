"""Inconsistent models: all clients but one receive a network with dead features, so that the sum is the update of this one."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from leakage.engine.capabilities import capabilities_of
from leakage.engine.core import Observation, Params, Server, Simulator, param
from leakage.engine.logit_layer import LogitLayer
from leakage.servers._last_layer import check_last_layer, features_of, last_layer_of
from leakage.spec.words import counted

GREY = 0.5  # what the pictures of the other clients are replayed as: they have no influence
ALONE = "server: {} needs a sum over at least 2 phones, and here a single phone sends its update. Choose secure aggregation."
NO_VICTIM = "server: {} names phone {}, and there are {}. Choose one of them."
NOT_DEAD = (
    "server: {} needs a last layer behind ReLU or sigmoid, and a bias in the layer before it; no bias of this network silences what enters "
    "its last layer. Choose another activation or another model."
)
_DEAD: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True)
class Inconsistent(Server):
    """Give all clients but one a network in which the bias before the last activation is -b, so that all features are 0.

    If b is large, ReLU and sigmoid answer 0 and pass no gradient on. So the gradient of the body, and that of the last weight, which is
    (p - y) h^T with features h = 0, are 0 for these clients. The sum over all clients is the update of the remaining one, exactly, except
    for the last bias, whose gradient p - y does not depend on h. It holds for several local steps too.

    `isolate` returns the observation of this client alone: the other clients are imitated with grey pictures, which have no influence, and
    the last bias is left out. A search takes as long as on all pictures. Labels are read from the last weight.
    Source: Pasquini et al. 2022, section 4 (gradient suppression).
    """

    title = "Lets the update of one phone through (inconsistent models)"
    short = "Inconsistent models"
    plain = "The server sends the other phones a network that does not learn, so the sum of the updates is the update of one phone."
    hint = "Choose secure aggregation: the attack then works as on one phone alone. Phones that compare their models notice it."
    source = "https://arxiv.org/abs/2111.07380"
    last_layer = "linear"
    clients = 2
    client_field = "victim"

    victim: int = param(1, 1, 16, "The number of the phone that receives the network as it should be, counted from 1.")
    silence: float = param(1000, 1, 1e6, "How far below 0 the features of the other phones are pushed (b in the formula).")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        if members < 2:
            raise ValueError(ALONE.format(self.short))
        if self.victim > members:
            raise ValueError(NO_VICTIM.format(self.short, self.victim, members))
        layer = check_last_layer(self, model, image_shape)
        if not self._dead_bias(model, layer, dict(model.named_parameters()), image_shape):
            raise ValueError(NOT_DEAD.format(self.short))
        return model

    def single_out(self, model: nn.Module, weights: Params, member: int, members: int) -> Params:
        if member == self.victim - 1:
            return weights
        name = _DEAD.get(model)
        if name is None:
            name = self._dead_bias(model, last_layer_of(model), weights, capabilities_of(model).image_shape)
            _DEAD[model] = name
        return {**weights, name: torch.full_like(weights[name], -self.silence).requires_grad_()}

    def _dead_bias(self, model: nn.Module, layer: LogitLayer, weights: Params, image_shape: tuple[int, ...]) -> str:
        """Return the name of the last bias that, at -b, makes all features 0 on random pictures; "" if there is none."""
        names = [name for name in weights if name.endswith("bias") and name != layer.bias]
        for name in reversed(names):
            changed = {**weights, name: torch.full_like(weights[name], -self.silence)}
            if not bool(features_of(model, layer, changed, image_shape).any()):
                return name
        return ""

    def isolate(self, seen: Observation, members: int) -> Observation:
        bias, sizes = last_layer_of(seen.model).bias, [len(part) for part in torch.arange(seen.batch.size).tensor_split(members)]
        before, own = sum(sizes[: self.victim - 1]), sizes[self.victim - 1]
        places = (before, seen.batch.size - before - own)
        replay, simulator = seen.replay, seen.replay.simulator

        def known(update: Params) -> Params:
            return {name: value for name, value in update.items() if name != bias}

        def own_gradient(gradient: Params) -> Params:
            return {name: members * value for name, value in known(gradient).items()}

        def filled(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return _fill(x, -4, places, GREY), _fill(y, 0 if y.dim() == 1 else -2, places, 0)

        def sent_by_victim(send: Callable[[Tensor, Tensor], Params]) -> Callable[[Tensor, Tensor], Params]:
            """Return what one phone sends for a guess; a naive attacker imitates no phone whose network is dead."""
            if seen.knowledge.adaptive:
                return lambda x, y: known(send(*filled(x, y)))
            return lambda x, y: {name: value / members for name, value in known(send(x, y)).items()}

        def ended() -> Params:
            """Return the weights with which this phone ended: the average of all has moved by its part of the way."""
            weights = seen.received.weights
            return {
                name: weights[name].detach() + members * (value - weights[name].detach())
                for name, value in known(replay.client_weights()).items()
            }

        granted, errors = seen.granted.labels, seen.knowledge.errors
        return replace(
            seen,
            model=_without_bias(seen.model, bias) if bias else seen.model,
            batch=replace(seen.batch, size=own),
            received=replace(seen.received, weights=known(seen.received.weights), update=known(seen.received.update)),
            replay=replace(
                replay,
                single=sent_by_victim(replay.single),
                several=sent_by_victim(replay.several),
                to_gradient=lambda update: own_gradient(replay.to_gradient(update)),
                simulator=Simulator(
                    lambda x, y, state: simulator.send(*filled(x, y), state),
                    simulator.update,
                    simulator.state,
                    lambda update, state: own_gradient(simulator.to_gradient(update, state)),
                ),
                from_gradients=None,
                rehearse=None,
                client_weights=ended,
            ),
            granted=replace(seen.granted, labels=None if granted is None else granted[before : before + own]),
            knowledge=replace(seen.knowledge, errors=errors and {name: error * members**2 for name, error in known(errors).items()}),
            isolated=f"{counted(own, 'picture')} of phone {self.victim}; the updates of the {members - 1} other phones are 0",
        )


def _fill(value: Tensor, dim: int, places: tuple[int, int], constant: float) -> Tensor:
    """Return a tensor with so many constant entries before and after it along a dimension."""
    dim %= value.dim()
    around: Iterator[Tensor] = (value.new_full((*value.shape[:dim], number, *value.shape[dim + 1 :]), constant) for number in places)
    first, last = around
    return torch.cat([first, value, last], dim)


def _without_bias(model: nn.Module, name: str) -> nn.Module:
    """Return a copy of the network of which this bias is no parameter."""
    copy = deepcopy(model)
    layer = copy.get_submodule(name.rpartition(".")[0])
    value = layer._parameters.pop("bias")
    assert value is not None
    layer.register_buffer("bias", value.detach(), persistent=False)
    return copy
