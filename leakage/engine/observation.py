"""What flows between the honest client, the server and an attack, as values. No mathematics of any attack lives here.

Pictures are float32 in [0, 1], shape (B, C, H, W). Labels are int64 (B,), or probabilities (B, K). Gradients are `Params`, by name.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor, nn

from leakage.engine.arranged import Bins
from leakage.engine.formula_replay import FormulaReplay
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
NO_INVERTER = "No attacker was trained beforehand. Run it in the lab, or by `python -m leakage run`."


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a CPU generator of random numbers for one purpose, derived from the experiment's seed.

    Different purposes have independent generators, so adding a defense does not change the initial pictures of the attack.
    """
    key = ":".join(str(part) for part in (seed, *purpose)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:7], "big"))


@dataclass(frozen=True)
class Round:
    """One round of one client, as the server sees it.

    Args:
        weights: what the client received
        update: what it sent
        state: the client's state before this round, as far as the server can compute that (`Protocol.infer_state`); in
            `Transcript.history` only the attacked round has a state
        count: number of the client's pictures
    """

    weights: Params
    update: Params
    state: ClientState
    count: int


@dataclass(frozen=True)
class Simulator:
    """The attacked round as the server can compute it: for attacks that imitate the client in another way than `Replay`.

    Args:
        send: (x, y, state) -> the update that the client would send, and the state that it would have afterwards
        update: the update that the client sent; for an adaptive attacker: what its strategy computes from that update
        state: the state that the client had before
        to_gradient: (update, state) -> the average gradient in an update of a client that had `state`
    """

    send: Callable[[Tensor, Tensor, ClientState], Update]
    update: Params
    state: ClientState
    to_gradient: Callable[[Params, ClientState], Params]


@dataclass(frozen=True)
class TrainedGenerator:
    """A generator G of pictures G(z), z ~ N(0, 1), that was trained beforehand on public pictures.

    Args:
        network: z (B, latent) -> pictures (B, C, H, W) in [0, 1], as a sequence of blocks; an attack works on a copy
        latent: number of entries of a latent code z
        image_shape: (C, H, W) of a generated picture
        knowledge: what the attacker knows by this generator, a sentence for the threat model table
    """

    network: nn.Sequential
    latent: int
    image_shape: tuple[int, int, int]
    knowledge: str


@dataclass(frozen=True)
class Batch:
    """What every attacker knows of the private batch.

    Args:
        size: B, pictures in the batch
        image_shape: (C, H, W) of each
        num_classes: K, classes that a label may have
    """

    size: int
    image_shape: tuple[int, int, int]
    num_classes: int

    @staticmethod
    def of(x: Tensor, num_classes: int) -> "Batch":
        """Return the Batch of pictures x (B, C, H, W) with `num_classes` possible classes."""
        return Batch(len(x), (x.shape[1], x.shape[2], x.shape[3]), num_classes)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the pictures: (B, C, H, W)."""
        return (self.size, *self.image_shape)


@dataclass(frozen=True)
class Transcript:
    """The messages between the server and the client: what the server sent, and what it received.

    Args:
        weights: the weights that the client received in the attacked round, by parameter
        update: what the client sent in that round, as the attacker reads it; for a naive attacker: what this attacker takes for the
            gradient
        history: every round that the server has watched, as it arrived
    """

    weights: Params
    update: Params
    history: tuple[Round, ...] = ()


@dataclass(frozen=True)
class Granted:
    """What the experiment grants the attacker beyond what it received.

    Args:
        labels: the labels (B,) of the private batch; None where they are not granted
        statistics: BatchNorm layer -> mean and variance (C,) of what enters it; None where they are not granted
        examples: class -> public pictures of that class (N, C, H, W) in [0, 1]; a class may be missing
        learned: a network trained beforehand to undo updates: update -> pictures (B, C, H, W); or a sentence that says why there is none
        generator: a network trained beforehand to generate such pictures; or a sentence that says why there is none
    """

    labels: Tensor | None = None
    statistics: Statistics | None = None
    examples: dict[int, Tensor] = field(default_factory=dict)
    learned: Callable[[Params], Tensor] | str = NO_INVERTER
    generator: TrainedGenerator | str = NO_GENERATOR


@dataclass(frozen=True)
class ProtectionKnowledge:
    """What the attacker knows of the protections between the pictures and the update.

    Args:
        adaptive: True: the attacker knows protocol and protections and imitates them; False: the attacker takes the update for the gradient
            of FedSGD
        entry_weights: how much each entry of the update counts when gradients are compared, by parameter; unnamed parameters count 1
        errors: the expected squared difference between `Observation.as_gradient()` and `Observation.gradient` of the true pictures, for
            each entry, by parameter, of its shape or (). {} where the replay is exact; None where the attacker does not know
        latents: random numbers of the client that an attack may search along with the pictures: buffers of the model by name. The replay
            differentiates in them, and the attack writes what it found into them
    """

    adaptive: bool = True
    entry_weights: Params = field(default_factory=dict)
    errors: Params | None = None
    latents: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Replay:
    """How the attacker computes what the client would have sent for a guess; differentiable in pictures and labels.

    Args:
        single: (x (B, C, H, W), y (B,) or (B, K)) -> the update for one guess
        several: (x (S, B, C, H, W), y (B,) or (S, B, K)) -> the updates for S guesses at once, with S in front of every shape
        to_gradient: turns an update into the average gradient over the batch
        simulator: the protocol as the server knows it, for an adaptive and a naive attacker alike
        from_gradients: gradients of S guesses, S in front of every shape -> what `several` makes of them; None where `several` needs more
            than one gradient of each guess
        formula: the gradients that `from_gradients` takes, and their derivatives, by formula; None: autograd computes everything
        rehearse: (gradients of B pictures, B or 1 in front of every shape; seed) -> the average gradient that the attacker would read of a
            client with these gradients and other randomness; None where it knows of nothing that changes a gradient
        rehearses_each: whether `rehearse` needs the gradient of each picture; else their mean is enough
        client_weights: computes the weights with which the client ended the round, as the attacker reads them; one client's on average
    """

    single: Callable[[Tensor, Tensor], Params]
    several: Callable[[Tensor, Tensor], Params]
    to_gradient: Callable[[Params], Params]
    simulator: Simulator
    from_gradients: Callable[[Params], Params] | None = None
    formula: FormulaReplay | None = None
    rehearse: Callable[[Params, int], Params] | None = None
    rehearses_each: bool = True
    client_weights: Callable[[], Params] = dict


@dataclass(frozen=True, eq=False)
class Observation:
    """Everything that an attack may use: the model and five groups. No tensor of the truth is reachable unless the experiment grants it.

    Two observations are equal if they are the same object.

    Args:
        model: the architecture, in eval mode (BatchNorm as the experiment says); its parameters are `received.weights`
        batch: how many pictures, of which shape and how many classes
        received: what arrived at the server
        replay: how to compute what the client would have sent
        granted: what the experiment gives to the attacker beyond that
        knowledge: what the attacker knows of the protections
        secret: what a server that changes the model has built into it; None for an honest server
        isolated: in words which pictures of the batch these are, where a server has separated them from the others; empty: all pictures
    """

    model: nn.Module
    batch: Batch
    received: Transcript
    replay: Replay
    granted: Granted = field(default_factory=Granted)
    knowledge: ProtectionKnowledge = field(default_factory=ProtectionKnowledge)
    secret: Bins | None = None
    isolated: str = ""

    @property
    def update(self) -> Params:
        """What the client sent, as the attacker reads it: `received.update`, in short."""
        return self.received.update

    def as_gradient(self) -> Params:
        """Return the update as an average gradient over the batch, by parameter; the same tensors at each call."""
        return self._average_gradient

    @cached_property
    def _average_gradient(self) -> Params:
        return self.replay.to_gradient(self.received.update)

    def gradient(self, x: Tensor, y: Tensor) -> Params:
        """Return the average gradient that the client would have sent for a guess; comparable with `as_gradient`.

        Args:
            x: pictures (B, C, H, W) in [0, 1].
            y: labels (B,) or probabilities (B, K).
        """
        return self.replay.to_gradient(self.replay.single(x, y))

    def gradients(self, x: Tensor, y: Tensor) -> Params:
        """Return what `gradient` returns for each of S guesses, with S in front of every shape.

        Args:
            x: pictures (S, B, C, H, W) in [0, 1].
            y: labels (B,) for all guesses, or probabilities (S, B, K).
        """
        return self.replay.to_gradient(self.replay.several(x, y))

    @property
    def device(self) -> torch.device:
        return next(iter(self.received.weights.values())).device

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.received.weights.values())).dtype

    @property
    def scale(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, (1, C, 1, 1) each, with which the model normalises pictures; 0 and 1 where it takes raw pixels."""
        shape = (1, self.batch.image_shape[0], 1, 1)
        return normalisation_of(self.model) or (torch.zeros(shape, device=self.device), torch.ones(shape, device=self.device))


@dataclass(frozen=True)
class Snapshot:
    """The state of an attack after a step. To yield a snapshot costs nothing: `x` may be the live tensor, and `loss` stays a tensor.

    Code that keeps a snapshot copies `x`, because the attack may go on changing it.

    Args:
        step: optimiser steps so far, over all restarts
        x: the guessed pictures (B, C, H, W) in pixel space, not clamped
        y: the guessed labels (B,) or probabilities (B, K)
        loss: the objective that the attack minimises, (); never a distance to the truth
        note: words and numbers for the page, such as the restart or the label rule; under "event" a sentence that the user must not miss
        views: what the page draws beside the guess, by name: pictures (B, C, H, W) in pixel space, maps of a layer (C, H, W), a list (n,)
        proved: bool (B,), which pictures of the guess the attack has proved right without the truth; None: none of them
        filled: bool (B,), which places hold a guess; the others are grey, because their pictures were not looked for; None: all places
    """

    step: int
    x: Tensor
    y: Tensor
    loss: Tensor
    note: dict[str, str | int | float] = field(default_factory=dict)
    views: dict[str, Tensor] = field(default_factory=dict)
    proved: Tensor | None = None
    filled: Tensor | None = None
