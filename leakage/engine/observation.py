"""What flows between the honest client, the server and an attack, as values. No mathematics of any attack lives here.

Pictures are float32 in [0, 1], shape (B, C, H, W). Labels are int64 (B,), or probabilities (B, K). Gradients are `Params`, by name.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from leakage.engine.normalise import normalisation_of

Params: TypeAlias = dict[str, Tensor]  # parameter name -> tensor
ClientState: TypeAlias = dict[str, Tensor]  # what one client carries from one call to the next
Update: TypeAlias = tuple[Params, ClientState]
Client: TypeAlias = Callable[[Params, Tensor, Tensor, ClientState], Update]  # (weights, x, y, state) -> what is sent; pure
Statistics: TypeAlias = dict[str, tuple[Tensor, Tensor]]  # layer -> mean and variance of each channel
StepRng: TypeAlias = Callable[[int], torch.Generator]  # local step -> the generator of that step's randomness

NO_GENERATOR = (
    "No trained generator was handed to this attack. Run it in the lab, or by `python -m leakage run`; "
    "in Python give one as `ThreatModel(generator=...)`."
)


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A CPU generator for one purpose, derived from the experiment's seed: adding a defense does not move the attack's start."""
    words = ":".join(str(word) for word in (seed, *purpose)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(words).digest()[:7], "big"))


@dataclass(frozen=True)
class Round:
    """One round of one client, as the server sees it.

    Args:
        weights: what the client received
        update: what it sent
        state: what it carried before this round, as far as the server can compute that (`Protocol.infer_state`); in a history it is
            kept of the attacked round alone
        count: pictures of the client
    """

    weights: Params
    update: Params
    state: ClientState
    count: int


@dataclass(frozen=True)
class Simulator:
    """The attacked round as the server itself can play it: for attacks that imitate the client in their own way.

    Args:
        send: (x, y, state) -> what the client would send, and what it would carry on
        update: what it did send
        state: what it carried before
        to_gradient: (update, state) -> the average gradient in an update of a client that carried `state`
    """

    send: Callable[[Tensor, Tensor, ClientState], Update]
    update: Params
    state: ClientState
    to_gradient: Callable[[Params, ClientState], Params]


@dataclass(frozen=True)
class TrainedGenerator:
    """Pictures as G(z) with z ~ N(0, 1), G trained beforehand on public pictures: what an attacker may know of them.

    Args:
        network: z (B, latent) -> pictures (B, C, H, W) in [0, 1], as stages; an attack works on a copy
        latent: entries of z
        image_shape: (C, H, W) of what it paints
        knowledge: what an attacker knows who has it, in words for the ledger
    """

    network: nn.Sequential
    latent: int
    image_shape: tuple[int, int, int]
    knowledge: str


@dataclass(frozen=True)
class Observation:
    """All the server holds. No tensor of the truth is reachable from here unless the experiment grants it.

    Args:
        model: the architecture, in eval mode (BatchNorm as the experiment says); its parameters are `weights`
        weights: by parameter, those of the attacked round
        update: what the client sent, as the attacker reads it; for a naive one: what it takes for the gradient
        replay: (x (B, C, H, W), y (B,) or (B, K)) -> what the attacker believes this client would have sent; differentiable in x and y
        replays: the same for S guesses at once: (S, B, C, H, W), (B,) or (S, B, K) -> an update with S in front of every shape
        batch_size: B
        image_shape: (C, H, W)
        num_classes: K
        imitate: gradients of S guesses -> what `replays` makes of them; None where that takes more than one gradient of each
        to_gradient: turns an update into an average gradient
        simulator: the protocol as the server knows it, whether or not the attacker makes use of that
        adaptive: False: the attacker takes what was sent for the gradient of FedSGD, and replays that
        history: every round that the server has watched
        labels: (B,) when the experiment grants them, else None
        statistics: BatchNorm layer -> mean and variance (C,) of what enters it, when the experiment grants them, else None
        entry_weights: how much each entry of the update counts when gradients are compared, by parameter; unnamed parameters count 1
        rehearse: (gradients of B pictures, B or 1 in front of every shape; seed) -> the average gradient as the attacker would read it, had
            a client with these been protected with other randomness; None: it knows of nothing that changes a gradient
        rehearses_each: whether `rehearse` looks at the pictures' gradients one by one, so that it needs all B; else their mean is enough
        errors: the expected squared error of each entry of `as_gradient()`, by parameter, of its shape or (): its difference from
            `gradient` of the true pictures. {} where that is exact; None where the attacker does not know
        client_weights: computes the weights with which the client ended the round, one client's on average, as the attacker reads it
        learned: a network trained beforehand to undo updates: update -> pictures (B, C, H, W); or why there is none, in a sentence
        generator: a network that was trained beforehand to paint such pictures; or why there is none, in a sentence
        examples: class -> pictures of it (N, C, H, W) in [0, 1], none of them private, when the experiment grants them; a class may lack
        latents: what an attack may look for too: buffers of `model` by name, leaves that `replay` follows; it leaves there what it found
    """

    model: nn.Module
    weights: Params
    update: Params
    replay: Callable[[Tensor, Tensor], Params]
    replays: Callable[[Tensor, Tensor], Params]
    to_gradient: Callable[[Params], Params]
    simulator: Simulator
    batch_size: int
    image_shape: tuple[int, int, int]
    num_classes: int
    imitate: Callable[[Params], Params] | None = None
    adaptive: bool = True
    history: tuple[Round, ...] = ()
    labels: Tensor | None = None
    statistics: Statistics | None = None
    entry_weights: Params = field(default_factory=dict)
    errors: Params | None = None
    latents: Params = field(default_factory=dict)
    examples: dict[int, Tensor] = field(default_factory=dict)
    rehearse: Callable[[Params, int], Params] | None = None
    rehearses_each: bool = True
    client_weights: Callable[[], Params] = dict
    learned: Callable[[Params], Tensor] | str = "No attacker was trained beforehand. Run it in the lab, or by `python -m leakage run`."
    generator: TrainedGenerator | str = NO_GENERATOR

    def as_gradient(self) -> Params:
        """The update as an average gradient over the batch."""
        return self.to_gradient(self.update)

    def gradient(self, x: Tensor, y: Tensor) -> Params:
        """The replay of a guess, in the units of `as_gradient`."""
        return self.to_gradient(self.replay(x, y))

    def gradients(self, x: Tensor, y: Tensor) -> Params:
        """The replays of S guesses (S, B, C, H, W), in the same units, S in front of every shape."""
        return self.to_gradient(self.replays(x, y))

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.weights.values())).dtype

    @property
    def scale(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, (1, C, 1, 1) each, of what the model does to pictures first; 0 and 1 when it takes raw pixels."""
        found = normalisation_of(self.model)
        if found:
            return found
        shape = (1, self.image_shape[0], 1, 1)
        return torch.zeros(shape, device=self.device), torch.ones(shape, device=self.device)


@dataclass(frozen=True)
class Snapshot:
    """One moment of an attack. Yielding one is free: `x` may be the live tensor (whoever keeps it copies it), `loss` stays a tensor.

    Args:
        step: optimiser steps so far over all starts
        x, y: the guess: pictures (B, C, H, W) in pixel space, not clamped; labels (B,) or probabilities (B, K)
        loss: the attack's own objective, never a distance to the truth
        note: words and numbers for the page: which start, which label rule; under "event" a sentence that the user must not miss
        views: what stands beside the guess, by name: pictures (B, C, H, W) in pixel space, maps of a layer (C, H, W) or a list (n,)
        proved: bool (B,), which pictures of the guess the attack has proved right without the truth; None: none of them
    """

    step: int
    x: Tensor
    y: Tensor
    loss: Tensor
    note: dict[str, str | int | float] = field(default_factory=dict)
    views: dict[str, Tensor] = field(default_factory=dict)
    proved: Tensor | None = None
