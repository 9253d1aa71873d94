"""What an attacker can do who knows a defense, as a value that the defense offers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from leakage.engine.observation import Client, ClientState, Params
from leakage.spec.declarations import StrategyDeclarations

ACCOMPLICE = "accomplice."  # in a state: the gradient of a client that works with the attacker, by parameter


@dataclass(frozen=True)
class Received:
    """What an attacker knows when it works out how large a protection's errors are.

    Args:
        update: what it works with, by parameter: in each local step an average gradient, else what was sent.
        weights: those of the attacked round, by parameter.
        state: what the client carried, as far as the server can compute that.
        pictures: of the local step, or of the client.
        number: of the round, from 1 on.
        step: the local step of this round, from 0 on.
        single: whether all that arrived is what the protection made of one gradient, or of one client's update.
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
    """One thing that an attacker can do about a defense that it knows; what pages need of it is in `StrategyDeclarations`.

    Args:
        surrogate: (client, received) -> the best differentiable imitation of the defended client.
        invert_update: (received, state) -> what the attacker works with in place of what it received; None: that itself.
        entry_weights: (received, state) -> how much each entry counts when gradients are compared, by parameter and of its shape;
            unnamed parameters count 1.
        infer_state: (received, state) -> what the client carries after this round, as far as the server can compute that.
        latent_init: model -> what the client keeps to itself of it, as far as that can be guessed, by the names of buffers.
        errors: (variances that come in, Received) -> the expected squared difference between what the attacker works with and its
            replay of the true pictures: a tensor for each parameter that has one, of its shape or (); None: it does not know.

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
        """Whether it is nothing but another imitation of the client: an attack that imitates no protection does nothing of it.

        >>> [AdaptiveStrategy("", surrogate=lambda client, _: client).only_imitates, AdaptiveStrategy("", averaging=True).only_imitates]
        [True, False]
        """
        same = all(getattr(self, name) is getattr(AdaptiveStrategy, name) for name in ("entry_weights", "latent_init"))
        return same and self.invert_update is None and not self.averaging

    @property
    def literal(self) -> bool:
        """Whether it works with the very numbers that the defense made: `exact`, or by `invert_update`."""
        return self.exact or self.invert_update is not None
