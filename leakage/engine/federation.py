"""The federated setting: the honest client, and how an attacker imitates the client and reads its update."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from torch import Tensor, nn

from leakage.engine.client import gradient_client
from leakage.engine.client_protections import STAGES, Protection, change_model, defend_client, order_protections
from leakage.engine.core import (
    Client,
    ClientState,
    Defense,
    Params,
    Protocol,
    Round,
    TrainedGenerator,
    generator,
)
from leakage.engine.loading import load
from leakage.engine.stopping import stoppable
from leakage.engine.strategy import ACCOMPLICE
from leakage.engine.tensor_names import OF, name_in_model


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """What the attacker is granted beyond the update, the weights, the batch size and the shape of a picture.

    Args:
        adaptive: True: the attacker knows and imitates the protocol and the protections; False (naive): it replays plain FedSGD
        strategy: name of the adaptive attacker's strategy against a protection; empty: the first strategy that can be used
        labels: whether the attacker receives the labels; otherwise it reads them from the update, or searches them with the pictures
        statistics: of BatchNorm: none, those that the model stores (running), or those of the private batch itself (exact)
        accomplice: pictures (A, C, H, W) and labels (A,) of another client that colludes with the attacker; None: there is none
        generator: a network that was trained beforehand to generate such pictures; None: there is none

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> granted = leakage.ThreatModel(adaptive=False, labels=True)
        >>> leakage.observe(model, torch.rand(1, 3, 4, 4), torch.tensor([2]), threat_model=granted).granted.labels
        tensor([2])
    """

    adaptive: bool = True
    strategy: str = ""
    labels: bool = False
    statistics: Literal["none", "running", "exact"] = "none"
    accomplice: tuple[Tensor, Tensor] | None = None
    generator: TrainedGenerator | None = None


@dataclass(frozen=True)
class Federation:
    """A protocol with its aggregation and protections, and the attacker's threat model.

    Args:
        protocol: how a client trains
        aggregation: secure aggregation; a protocol with a single member where nothing is aggregated
        protections: in the order in which they act
        threat: what the attacker knows
        seed: of all random numbers
        rounds: number of rounds that the server has watched this client, which trains on the same pictures each time
        attacked_round: the round that is attacked, from 1
    """

    protocol: Protocol
    aggregation: Protocol
    protections: tuple[Protection, ...]
    threat: ThreatModel
    seed: int
    rounds: int = 1
    attacked_round: int = 1

    @staticmethod
    def of(
        protocol: Protocol, defenses: Sequence[Defense], threat: ThreatModel, *, seed: int, aggregation: Protocol | None = None
    ) -> "Federation":
        """Return a federation of one round, with each protection's strategy chosen.

        Under aggregation, the server receives no exact numbers of a single client.
        """
        aggregation = aggregation or load("protocol", "fedsgd")()
        assert aggregation is not None
        stages = () if aggregation.members > 1 else STAGES if protocol.sends_gradient else STAGES[1:]
        protections = order_protections(defenses, threat.strategy, stages=stages, colluding=threat.accomplice is not None)
        return Federation(protocol, aggregation, protections, threat, seed)

    @property
    def adaptive(self) -> bool:
        """Whether the attacker knows the protections and uses a strategy against each."""
        return self.threat.adaptive

    @property
    def answers(self) -> tuple[str, ...]:
        """Descriptions of an adaptive attacker's strategies, in the order of the experiment's defenses."""
        return tuple(protection.strategy.description for protection in sorted(self.protections, key=lambda protection: protection.index))

    def changed(self, model: nn.Module) -> nn.Module:
        """Return the model as the protections change it, untrained."""
        return change_model(model, self.protections, seed=self.seed)

    def client(self, model: nn.Module, *, should_stop: Callable[[], bool] = lambda: False) -> Client:
        """Return the honest client, or the sum of the honest clients under aggregation; each client has random numbers of its own.

        `should_stop` is called before every local step. Raises StoppedError when it returns True.
        """

        def member(number: int) -> Client:
            keys = () if number == 0 else (number,)
            client = stoppable(gradient_client(model), should_stop)
            for stage in STAGES:
                client = defend_client(client, stage, self.protections, model, seed=self.seed, number=number)
                if stage == "gradient":
                    client = self.protocol.client(client, partial(generator, self.seed, "client", *keys))
            return client

        return self.aggregation.merge_clients([member(number) for number in range(self.aggregation.members)])

    def latent_init(self, model: nn.Module, pictures: int) -> Params:
        """Put an adaptive attacker's guess of the client's secret buffers into the model; return the buffers that the attack optimizes.

        Args:
            model: altered in place.
            pictures: number of a client's pictures, for buffers that differ from picture to picture.
        """
        latents = Params()
        for protection in self.protections if self.adaptive else ():
            for name, value in protection.strategy.latent_init(model).items():
                layer, _, part = name.rpartition(".")
                value = value.expand(pictures, *value.shape).clone() if protection.strategy.latent_per_picture else value
                guess = value.to(model.get_buffer(name)).requires_grad_(protection.strategy.optimize_latents)
                setattr(model.get_submodule(layer), part, guess)
                if protection.strategy.optimize_latents:
                    latents[name] = guess
        return latents

    def imitation(self, gradient: Client, inverted: Params) -> Client:
        """Return the attacker's imitation of the client, given the update `inverted` that the attacker works with (`invert_update`)."""
        client = gradient
        for stage in STAGES:
            for protection in self.protections if self.adaptive else ():
                if protection.defense.stage == stage:
                    client = protection.strategy.surrogate(client, inverted)
            if stage == "gradient":
                client = self.protocol.client(client)
        return self.aggregation.merge_clients([client] * self.aggregation.members)

    @property
    def elementwise(self) -> bool:
        """Whether several guesses can be replayed at once."""
        return (
            self.protocol.elementwise
            and self.aggregation.elementwise
            and all(protection.defense.elementwise for protection in self.protections)
        )

    @property
    def batchable(self) -> bool:
        """Whether settings can share the gradients of guesses: the attacker's imitation is computed from one gradient of each guess."""
        return not self.adaptive or (self.elementwise and self.protocol.sends_gradient and self.aggregation.members == 1)

    @property
    def tells_pictures_apart(self) -> bool:
        """Whether the update depends on the gradient of each picture, and not only on the batch's mean gradient."""
        one_step = self.protocol.sends_gradient and self.aggregation.members == 1
        return not one_step or any(protection.defense.one_by_one for protection in self.protections)

    @property
    def same_model(self) -> bool:
        """Whether the attacked model is the same for every federation of this seed: no protection changes it, and round 1 is attacked."""
        return self.attacked_round == 1 and not self.changes

    @property
    def sends_one_gradient(self) -> bool:
        """Whether the server receives only the gradient of one client's single step, in the first round, of a model without changes."""
        return self.protocol.sends_gradient and self.aggregation.members == 1 and self.rounds == 1 and not self.changes

    @property
    def changes(self) -> bool:
        """Whether a protection changes the model."""
        return any(type(protection.defense).change is not Defense.change for protection in self.protections)

    def invert_update(self, received: Params, state: ClientState) -> Params:
        """Return the update that the attacker works with, given the update `received` from a client with `state`."""
        reader = self.protections[-1].strategy.invert_update if self.adaptive and self.protections else None
        return reader(received, state) if reader else received

    def collusion(self, model: nn.Module, weights: Params) -> ClientState:
        """Return the accomplice's addition to the attacker's state: its gradient at these weights.

        The result is empty without an accomplice, and where no strategy colludes.
        """
        if self.threat.accomplice is None or not any(protection.strategy.colluding for protection in self.protections):
            return {}
        some = next(iter(weights.values()))
        x, y = self.threat.accomplice
        gradient, _ = gradient_client(model)(weights, x.to(some), y.to(some.device), {})
        return {ACCOMPLICE + name: g.detach() for name, g in gradient.items()}

    def entry_weights(self, received: Params, state: ClientState) -> Params:
        """Return the weight of each entry in a comparison of gradients, by parameter; a parameter that is missing counts fully."""
        entry_weights = Params()
        for protection in self.protections if self.adaptive else ():
            for name, weight in protection.strategy.entry_weights(received, state).items():
                entry_weights[name] = entry_weights.get(name, 1) * weight
        return entry_weights

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return an update of the round as an average gradient.

        Args:
            update: what the server received; tensors of a single client are converted each by itself.
            seen: the round; `seen.state` is the state of one client, on average.
        """
        single, means = self._single_client(seen), self.aggregation.to_gradient(update, seen)
        gradient = self.protocol.to_gradient({name: value for name, value in means.items() if OF not in name}, single)
        for name in (name for name in means if OF in name):
            of = name_in_model(name)
            gradient[name] = self.protocol.to_gradient({of: means[name]}, single)[of]
        return gradient

    def naive(self, seen: Round) -> Params:
        """Return what a naive attacker takes for the gradient; it knows nothing of the protocol but its step size."""
        single = self._single_client(seen)
        return self.protocol.naive(single.update, single)

    def infer_state(self, seen: Round) -> ClientState:
        """Return the state of one client after this round, on average, as far as the server can compute it."""
        single = self._single_client(seen)
        state = self.protocol.infer_state(replace(single, update=self.invert_update(single.update, single.state)))
        for protection in self.protections if self.adaptive else ():
            state = protection.strategy.infer_state(single.update, state)
        return state

    def client_weights(self, seen: Round) -> Params:
        """Return the weights with which one client ended the round, on average; a naive attacker takes the weights of the next round."""
        single = self._single_client(seen)
        single = replace(single, update=self.invert_update(single.update, single.state))
        ended = self.protocol.client_weights(single) if self.adaptive else self.protocol.server_update(single)
        return {name: value.detach() for name, value in ended.items()}

    def server_update(self, seen: Round) -> Params:
        """Return the server's weights for the next round."""
        return {name: value.detach().requires_grad_() for name, value in self.protocol.server_update(self._single_client(seen)).items()}

    def client_state(self, state: ClientState) -> ClientState:
        """Return the state of the first client, taken from the states of all clients."""
        return {name.removeprefix("0/"): value for name, value in state.items() if self.aggregation.members == 1 or name.startswith("0/")}

    def _single_client(self, seen: Round) -> Round:
        mean = self.aggregation.to_gradient(seen.update, seen)
        mean = {name: value for name, value in mean.items() if OF not in name}
        return Round(seen.weights, mean, seen.state, -(-seen.count // self.aggregation.members))
