"""Adaptive strategies: what an attacker that knows a defense can do about it, declared by the defense."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from leakage.engine.observation import Client, ClientState, Params
from leakage.spec.declarations import StrategyDeclarations

ACCOMPLICE = "accomplice."  # in a state, before a parameter's name: the gradient of a client that works with the attacker


@dataclass(frozen=True)
class Received:
    """What an attacker knows when it computes the expected errors of a protection.

    Args:
        update: what the attacker works with, by parameter: an average gradient for a protection of each local step, else the update.
        weights: the weights of the attacked round, by parameter.
        state: the client's state before the round, as far as the server can compute that.
        pictures: the number of pictures in the local step, or of the client.
        number: the number of the round, from 1.
        step: the number of the local step in this round, from 0.
        single: whether the server received the output of the protection for one gradient, or one client's update, alone.
    """

    update: Params
    weights: Params
    state: ClientState
    pictures: int
    number: int = 1
    step: int = 0
    single: bool = True


Errors: TypeAlias = Callable[[Params, Received], Params | None]


@dataclass(frozen=True)
class AdaptiveStrategy(StrategyDeclarations):
    """What an attacker that knows a defense does about it; `StrategyDeclarations` adds what pages show.

    Args:
        surrogate: (client, received update) -> the best differentiable imitation of the defended client.
        invert_update: (received update, state) -> the update that the attacker works with; None: the received update.
        entry_weights: (received update, state) -> the weights of the entries when gradients are compared, by parameter, of its shape;
            parameters that are not named have weight 1.
        infer_state: (received update, state) -> the client's state after this round, as far as the server can compute that.
        latent_init: model -> the initial guess of random buffers that only the client knows, by the names of the buffers.
        errors: (variances of earlier errors, Received) -> the expected squared difference between what the attacker works with and its
            replay of the true pictures, by parameter, of its shape or (); None: the attacker does not know.

    Example:
        >>> import torch
        >>> halve = AdaptiveStrategy("known: it doubles what arrives", invert_update=lambda got, _: {n: 2 * g for n, g in got.items()})
        >>> halve.invert_update({"w": torch.tensor([1.0, 3.0])}, {})["w"].tolist()
        [2.0, 6.0]
    """

    surrogate: Callable[[Client, Params], Client] = lambda client, _received: client
    invert_update: Callable[[Params, ClientState], Params] | None = None
    entry_weights: Callable[[Params, ClientState], Params] = lambda _received, _state: {}
    infer_state: Callable[[Params, ClientState], ClientState] = lambda _received, state: state
    latent_init: Callable[[nn.Module], Params] = lambda _model: {}
    errors: Errors = lambda _incoming, _received: None

    @property
    def only_imitates(self) -> bool:
        """Whether the strategy only imitates the client, so that it has no effect on an attack that imitates no protection.

        >>> [AdaptiveStrategy("", surrogate=lambda client, _: client).only_imitates, AdaptiveStrategy("", averaging=True).only_imitates]
        [True, False]
        """
        same = all(getattr(self, name) is getattr(AdaptiveStrategy, name) for name in ("entry_weights", "latent_init"))
        return same and self.invert_update is None and not self.averaging

    @property
    def literal(self) -> bool:
        """Whether the strategy works with the numbers of the received update itself: it is `exact`, or has `invert_update`."""
        return self.exact or self.invert_update is not None
