"""What an attacker can do who knows a defense, as a value that the defense offers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from leakage.engine.observation import Client, ClientState, Params

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
class AdaptiveStrategy:
    """One thing that an attacker can do who knows a defense.

    Args:
        words: what it does, for the page.
        title: its name on the page; empty: the one by which it is asked for.
        surrogate: (client, received) -> the best differentiable imitation of the defended client.
        invert_update: (received, state) -> what the attacker works with in place of what it received; None: that itself.
        entry_weights: (received, state) -> how much each entry counts when gradients are compared, by parameter and of its shape;
            unnamed parameters count 1.
        infer_state: (received, state) -> what the client carries after this round, as far as the server can compute that.
        latent_init: model -> what the client keeps to itself of it, as far as that can be guessed, by the names of buffers.
        optimize_latents: that is only where attacks start that look for it together with the pictures; others keep to it.
        latent_per_picture: each picture has a value of its own of these buffers, so that they get a dimension for the pictures in front.
        averaging: it puts together what arrived in the rounds up to the attacked one, so it needs more than one.
        exact: it works with the very numbers received, so nothing may have changed them after the defense; `invert_update` does too.
        colluding: it needs a client that works with the attacker: `state` holds that one's gradient, by ACCOMPLICE and parameter.
        errors: (variances that come in, Received) -> the expected squared difference between what the attacker works with and its
            replay of the true pictures: a tensor for each parameter that has one, of its shape or (); None: it does not know.

    Example:
        >>> import torch
        >>> halve = AdaptiveStrategy("known: it doubles what arrives", invert_update=lambda got, _: {n: 2 * g for n, g in got.items()})
        >>> halve.invert_update({"w": torch.tensor([1.0, 3.0])}, {})["w"].tolist()
        [2.0, 6.0]
    """

    words: str
    surrogate: Callable[[Client, Params], Client] = lambda client, _received: client
    invert_update: Callable[[Params, ClientState], Params] | None = None
    entry_weights: Callable[[Params, ClientState], Params] = lambda _received, _state: {}
    infer_state: Callable[[Params, ClientState], ClientState] = lambda _received, state: state
    latent_init: Callable[[nn.Module], Params] = lambda _model: {}
    optimize_latents: bool = False
    latent_per_picture: bool = False
    averaging: bool = False
    exact: bool = False
    title: str = ""
    colluding: bool = False
    errors: Errors = lambda _incoming, _received: None

    @property
    def only_imitates(self) -> bool:
        """Whether it is nothing but another imitation of the client: an attack that imitates no protection does nothing of it.

        >>> [AdaptiveStrategy("", surrogate=lambda client, _: client).only_imitates, AdaptiveStrategy("", averaging=True).only_imitates]
        [True, False]
        """
        same = all(getattr(self, name) is getattr(AdaptiveStrategy, name) for name in ("entry_weights", "latent_init"))
        return same and self.invert_update is None and not self.averaging
