"""The vocabulary: what flows between the honest client, the attack and the referee. No mathematics of any attack lives here.

Pictures are float32 in [0, 1], shape (B, C, H, W). Labels are int64 (B,), or probabilities (B, K). Gradients are `Params`, by name.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from leakage.engine.normalise import Normalise as Normalise
from leakage.engine.plugin import Plugin as Plugin
from leakage.engine.plugin import choice as choice
from leakage.engine.plugin import flag as flag
from leakage.engine.plugin import param as param
from leakage.engine.plugin import text as text
from leakage.spec.fields import Published as Published
from leakage.spec.fields import Travels as Travels

Params: TypeAlias = dict[str, Tensor]  # parameter name -> tensor
ClientState: TypeAlias = dict[str, Tensor]  # what one client carries from one call to the next
Update: TypeAlias = tuple[Params, ClientState]
Client: TypeAlias = Callable[[Params, Tensor, Tensor, ClientState], Update]  # (weights, x, y, state) -> what is sent; pure
Statistics: TypeAlias = dict[str, tuple[Tensor, Tensor]]  # layer -> mean and variance of each channel
StepRng: TypeAlias = Callable[[int], torch.Generator]  # local step -> the generator of that step's randomness


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A CPU generator for one purpose, derived from the experiment's seed: adding a defense does not move the attack's start."""
    words = ":".join(str(word) for word in (seed, *purpose)).encode()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(words).digest()[:7], "big"))


# ---------------------------------------------------------------- what the server holds, what an attack says


@dataclass(frozen=True)
class Round:
    """One round of one client, as the server sees it.

    weights    what the client received
    update     what it sent
    state      what it carried before this round, as far as the server can compute that (`Protocol.infer_state`)
    count      pictures of the client
    """

    weights: Params
    update: Params
    state: ClientState
    count: int


@dataclass(frozen=True)
class Simulator:
    """The attacked round as the server itself can play it: for attacks that imitate the client in their own way.

    send       (x, y, state) -> what the client would send, and what it would carry on
    update     what it did send
    state      what it carried before
    to_gradient  (update, state) -> the average gradient in an update of a client that carried `state`
    """

    send: Callable[[Tensor, Tensor, ClientState], Update]
    update: Params
    state: ClientState
    to_gradient: Callable[[Params, ClientState], Params]


@dataclass(frozen=True)
class Observation:
    """All the server holds. No tensor of the truth is reachable from here unless the experiment grants it.

    model          the architecture, in eval mode (BatchNorm as the experiment says); its parameters are `weights`
    update         what the client sent, as the attacker reads it; for a naive one: what it takes for the gradient
    replay         (x (B, C, H, W), y (B,) or (B, K)) -> what the attacker believes this client would have sent; differentiable in x and y
    replays        the same for S guesses at once: (S, B, C, H, W), (B,) or (S, B, K) -> an update with S in front of every shape
    imitate        gradients of S guesses -> what `replays` makes of them; None where that takes more than one gradient of each
    to_gradient    turns an update into an average gradient
    simulator      the protocol as the server knows it, whether or not the attacker makes use of that
    adaptive       False: the attacker takes what was sent for the gradient of FedSGD, and replays that
    history        every round that the server has watched
    labels         (B,) when the experiment grants them, else None
    statistics     BatchNorm layer -> mean and variance (C,) of what enters it, when the experiment grants them, else None
    entry_weights  how much each entry of the update counts when gradients are compared, by parameter; unnamed parameters count 1
    latents        what an attack may look for too: buffers of `model` by name, leaves that `replay` follows; it leaves there what it found
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
    latents: Params = field(default_factory=dict)

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
        """Mean and standard deviation, (1, C, 1, 1) each, of the model's first layer; 0 and 1 when the model takes raw pixels."""
        for layer in self.model.modules():
            if isinstance(layer, Normalise):
                return layer.mean, layer.std
        shape = (1, self.image_shape[0], 1, 1)
        return torch.zeros(shape, device=self.device), torch.ones(shape, device=self.device)


@dataclass(frozen=True)
class Snapshot:
    """One moment of an attack. Yielding one is free: `x` may be the live tensor (whoever keeps it copies it), `loss` stays a tensor.

    step       optimiser steps so far over all starts
    x, y       the guess: pictures (B, C, H, W) in pixel space, not clamped; labels (B,) or probabilities (B, K)
    loss       the attack's own objective, never a distance to the truth
    note       words and numbers for the page: which start, which label rule; under "event" a sentence that the user must not miss
    views      what stands beside the guess, by name: pictures (B, C, H, W) in pixel space, maps of a layer (C, H, W) or a list (n,)
    """

    step: int
    x: Tensor
    y: Tensor
    loss: Tensor
    note: dict[str, str | int | float] = field(default_factory=dict)
    views: dict[str, Tensor] = field(default_factory=dict)


# ---------------------------------------------------------------- the four kinds of plug-in


class Attack(Plugin):
    """Reconstructs pictures from an Observation alone.

    A field `steps`, and `starts` where several are played at once, tell the page how long it takes; without `steps` it answers at once.
    """

    way: ClassVar[str] = "Guess, compare, improve."  # how it works, below its guess
    evaluations_per_step: ClassVar[float] = 1  # replays of the client that one step usually costs
    loss_name: ClassVar[str] = "gradient distance"  # what `Snapshot.loss` is
    mistakes: ClassVar[Mapping[str, str]] = {}  # of a naive attacker who imitates the client: switch that repairs it -> in words

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        """Yield Snapshots; the last one is the answer."""
        raise NotImplementedError

    @property
    def batchable(self) -> bool:
        """Whether it can play several observations at once (`run_batched`)."""
        return False

    def run_batched(self, seen: Sequence[Observation], rngs: Sequence[torch.Generator]) -> Iterator[tuple[int, Snapshot]]:
        """Play observations of one model, each with an `imitate`, in one vectorised loop; yield Snapshots with their places."""
        raise NotImplementedError


@dataclass(frozen=True)
class AdaptiveStrategy:
    """One thing that an attacker can do who knows a defense.

    words    what it does, for the page
    surrogate  (client, received) -> the best differentiable imitation of the defended client
    invert_update  (received, state) -> what the attacker works with in place of what it received; None: that itself
    entry_weights  (received, state) -> how much each entry counts when gradients are compared, by parameter; unnamed parameters count 1
    infer_state  (received, state) -> what the client carries after this round, as far as the server can compute that
    latent_init  model -> what the client keeps to itself of it, as far as that can be guessed, by the names of buffers
    optimize_latents  that is only where attacks start that look for it together with the pictures; others keep to it
    exact    it works with the very numbers received, so nothing may have changed them after the defense; `invert_update` does too
    """

    words: str
    surrogate: Callable[[Client, Params], Client] = lambda client, _received: client
    invert_update: Callable[[Params, ClientState], Params] | None = None
    entry_weights: Callable[[Params, ClientState], Params] = lambda _received, _state: {}
    infer_state: Callable[[Params, ClientState], ClientState] = lambda _received, state: state
    latent_init: Callable[[nn.Module], Params] = lambda _model: {}
    optimize_latents: bool = False
    exact: bool = False


class Defense(Plugin):
    """Changes what leaves the client, or the model itself. stage "gradient" acts in each local step, "update" on what is sent."""

    stage: ClassVar[str] = "gradient"
    imitation: ClassVar[str] = "known and imitated"  # what `surrogate` does, in words
    elementwise: ClassVar[bool] = False  # whether imitations treat every entry alike, so that several guesses can be replayed at once
    needs: ClassVar[dict[str, str]] = {}  # fields of the model without which it has no place there, and their values
    published: ClassVar[Published | None] = None  # from which strength on it was reported to stop DLG
    backfires: ClassVar[str] = ""  # why an attacker does worse for knowing it, where that was measured

    def change(self, model: nn.Module) -> nn.Module:
        """The model that is trained with this defense, `model` itself as a rule; it may be altered in place.

        New weights come from torch's global generator, which `observe` forks and seeds; what a client keeps to itself are buffers there,
        which `defend` replaces and the server never sees. Raises ValueError when the model has no place for it.
        """
        return model

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        """The client, defended. Pure: called twice with the same state it sends the same."""
        raise NotImplementedError

    def surrogate(self, client: Client, received: Params) -> Client:  # noqa: ARG002
        """The best differentiable imitation of the defense for an attacker who knows it and holds `received`; identity if none."""
        return client

    def multiplier(self, tensors: int) -> float | None:  # noqa: ARG002
        """The noise multiplier of one picture's part in one gradient of so many tensors, if the defense promises differential privacy."""
        return None

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        """What attackers can do who know it, by name, whatever the fields; the first is done unless the experiment names another."""
        return {"imitate": AdaptiveStrategy(self.imitation, self.surrogate)}


class Protocol(Plugin):
    """What a client does with gradients, what it sends, and what the server can compute from that."""

    is_aggregation: ClassVar[bool] = False  # laid over another protocol, as secure aggregation is
    sends_gradient: ClassVar[bool] = False  # the very gradient of one step, and nothing else
    travels: ClassVar[Travels] = Travels()  # what is sent, what is kept, and what attackers make of it, in words
    elementwise: ClassVar[bool] = False  # whether weights may have a dimension in front: several guesses, each with weights of its own

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        """The client of this protocol, built from one that computes a gradient; `step_rng`: its chances by epoch, None: not known."""
        raise NotImplementedError

    @property
    def members(self) -> int:
        """How many clients stand behind one update."""
        return 1

    def merge_clients(self, clients: Sequence[Client]) -> Client:
        """The `members` clients as one, which holds all their pictures."""
        return clients[0]

    def broadcast_state(self, state: ClientState) -> ClientState:
        """The state of all members, when each carries `state`."""
        return state

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """An update sent in the round `seen` as an average gradient."""
        raise NotImplementedError

    def naive(self, update: Params, seen: Round) -> Params:
        """What somebody takes for the gradient who knows the step, and nothing that the client carries."""
        return self.to_gradient(update, seen)

    def infer_state(self, seen: Round) -> ClientState:
        """What the client carries after this round, as far as the server can compute that."""
        return seen.state

    def server_update(self, seen: Round) -> Params:
        """The weights that the server sends next, if it heard this client alone; here for an update that is a difference of weights."""
        return {name: weight + seen.update[name] for name, weight in seen.weights.items()}


class Model(Plugin):
    """A network to be trained."""

    smallest: ClassVar[int] = 1  # the shortest side of a picture that it can take, in pixels

    def build(self, image_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
        """The untrained network for pictures (C, H, W) in [0, 1].

        Its weights come from torch's global generator, which `play` forks and seeds.
        """
        raise NotImplementedError
