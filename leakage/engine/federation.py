"""The federated setting: the honest client it makes, and how the attacker imitates and reads what that sends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from torch import Tensor, nn

from leakage.engine.client import gradient_client
from leakage.engine.core import (
    AdaptiveStrategy,
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
from leakage.engine.weights import drawing

STAGES = ("gradient", "update")


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """What the attacker is granted beyond the update, the weights, the batch size and the shape of a picture.

    Args:
        adaptive: True: it knows protocol and protections and imitates them; False (naive): it replays plain FedSGD
        strategy: what the adaptive attacker does about a protection, by name; empty: the first strategy that can be used
        labels: whether the labels are given to it; else it reads them from the update, or searches them with the pictures
        statistics: of BatchNorm: none, those that the model stores (running), or those of the private batch itself (exact)
        accomplice: pictures (A, C, H, W) and labels (A,) of another client that works with the attacker; None: there is none
        generator: a network that was trained beforehand to generate such pictures; None: it has none

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
class Protection:
    """One of several defenses, the place at which it was named, and what the attacker does about it."""

    place: int
    defense: Defense
    strategy: AdaptiveStrategy


def stacked(
    defenses: Sequence[Defense], strategy: str = "", *, stages: Sequence[str] = STAGES, colluding: bool = False
) -> tuple[Protection, ...]:
    """The protections in the order in which they act: each stage's in the order in which they are named.

    Each is answered by the strategy of that name, or by its first that can be used: one that works with the very numbers received needs a
    defense that had the last word, in one of the stages whose numbers are `stages`; one that colludes, an accomplice (`colluding`).
    """
    ordered = [(place, defense) for stage in STAGES for place, defense in enumerate(defenses) if defense.stage == stage]

    def answer(defense: Defense, *, last: bool) -> AdaptiveStrategy:
        seen = last and defense.stage in stages
        usable = {
            own: strategy
            for own, strategy in defense.strategies().items()
            if (seen or not (strategy.exact or strategy.invert_update)) and (colluding or not strategy.colluding)
        }
        return usable.get(strategy) or next(iter(usable.values()))

    return tuple(
        Protection(place, defense, answer(defense, last=number == len(ordered))) for number, (place, defense) in enumerate(ordered, 1)
    )


def changed(model: nn.Module, protections: Sequence[Protection], *, seed: int) -> nn.Module:
    """The model with what the protections put into it, which is untrained; drawn apart, so that all else is as without them."""
    for own in protections:
        with drawing(seed, "defense", own.place, own.defense.id, "weights"):
            model = own.defense.change(model)
    return model


def defended(client: Client, stage: str, protections: Sequence[Protection], model: nn.Module, *, seed: int, who: int) -> Client:
    """The client number `who` behind the protections of that stage, in their order, each with random numbers of its own."""
    others = () if who == 0 else (who,)
    for own in protections:
        if own.defense.stage == stage:
            client = own.defense.defend(client, model, partial(generator, seed, "defense", own.place, own.defense.id, *others))
    return client


@dataclass(frozen=True)
class Federation:
    """A protocol, its aggregation, the protections before and after it in the order in which they act, and who attacks.

    aggregation      secure aggregation, or nothing: then a protocol of one member
    rounds           so many has the server watched this client, which trains on the same pictures ...
    attacked_round   ... and this one is attacked
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
        """One round of it. Inside a sum nobody can tell the numbers of one client."""
        aggregation = aggregation or load("protocol", "fedsgd")()
        assert aggregation is not None
        stages = () if aggregation.members > 1 else STAGES if protocol.sends_gradient else STAGES[1:]
        protections = stacked(defenses, threat.strategy, stages=stages, colluding=threat.accomplice is not None)
        return Federation(protocol, aggregation, protections, threat, seed)

    @property
    def adaptive(self) -> bool:
        """Whether the attacker knows the protections, and answers each by its strategy."""
        return self.threat.adaptive

    @property
    def answers(self) -> tuple[str, ...]:
        """What an adaptive attacker does about each protection, in words, in the order in which they were named."""
        return tuple(own.strategy.description for own in sorted(self.protections, key=lambda own: own.place))

    def changed(self, model: nn.Module) -> nn.Module:
        """The model with what the protections put into it."""
        return changed(model, self.protections, seed=self.seed)

    def client(self, model: nn.Module, *, should_stop: Callable[[], bool] = lambda: False) -> Client:
        """The honest client, or the honest clients whose updates are summed, each with random numbers of its own.

        `should_stop` is called before every local step. Raises StoppedError when it returns True.
        """

        def member(number: int) -> Client:
            who = () if number == 0 else (number,)
            client = stoppable(gradient_client(model), should_stop)
            for stage in STAGES:
                client = defended(client, stage, self.protections, model, seed=self.seed, who=number)
                if stage == "gradient":
                    client = self.protocol.client(client, partial(generator, self.seed, "client", *who))
            return client

        return self.aggregation.merge_clients([member(number) for number in range(self.aggregation.members)])

    def latent_init(self, model: nn.Module, pictures: int) -> Params:
        """Put into the model what an adaptive attacker guesses of what the client keeps to itself; return what is sought further.

        `pictures`: how many a client has, for what is different for each of them.
        """
        latents = Params()
        for own in self.protections if self.adaptive else ():
            for name, value in own.strategy.latent_init(model).items():
                layer, _, part = name.rpartition(".")
                value = value.expand(pictures, *value.shape).clone() if own.strategy.latent_per_picture else value
                held = value.to(model.get_buffer(name)).requires_grad_(own.strategy.optimize_latents)
                setattr(model.get_submodule(layer), part, held)
                if own.strategy.optimize_latents:
                    latents[name] = held
        return latents

    def imitation(self, gradient: Client, inverted: Params) -> Client:
        """The client as the attacker imitates it who works with `inverted`."""
        client = gradient
        for stage in STAGES:
            for own in self.protections if self.adaptive else ():
                if own.defense.stage == stage:
                    client = own.strategy.surrogate(client, inverted)
            if stage == "gradient":
                client = self.protocol.client(client)
        return self.aggregation.merge_clients([client] * self.aggregation.members)

    @property
    def elementwise(self) -> bool:
        """Whether several guesses can be replayed at once."""
        return self.protocol.elementwise and self.aggregation.elementwise and all(own.defense.elementwise for own in self.protections)

    @property
    def batchable(self) -> bool:
        """Whether the attacker imitates what is made of one gradient of each guess, so that those of several settings can be shared."""
        return not self.adaptive or (self.elementwise and self.protocol.sends_gradient and self.aggregation.members == 1)

    @property
    def tells_pictures_apart(self) -> bool:
        """Whether what arrives depends on the gradient of each picture, and not on their mean over the batch alone."""
        one_step = self.protocol.sends_gradient and self.aggregation.members == 1
        return not one_step or any(own.defense.one_by_one for own in self.protections)

    @property
    def same_model(self) -> bool:
        """Whether the attacked model is that of every federation of this seed: no protection changes it, and it is the first round."""
        return self.attacked_round == 1 and not self.changes

    @property
    def sends_one_gradient(self) -> bool:
        """Whether all that arrives is the gradient of one client's one step, in the first round, of a model that no protection changes."""
        return self.protocol.sends_gradient and self.aggregation.members == 1 and self.rounds == 1 and not self.changes

    @property
    def changes(self) -> bool:
        """Whether a protection changes the model."""
        return any(type(own.defense).change is not Defense.change for own in self.protections)

    def invert_update(self, received: Params, state: ClientState) -> Params:
        """What the attacker works with in place of what it received from a client that carried `state`."""
        reader = self.protections[-1].strategy.invert_update if self.adaptive and self.protections else None
        return reader(received, state) if reader else received

    def collusion(self, model: nn.Module, weights: Params) -> ClientState:
        """What an accomplice adds to the state before a round in which it received these weights: its gradient, if a strategy uses it."""
        if self.threat.accomplice is None or not any(own.strategy.colluding for own in self.protections):
            return {}
        some = next(iter(weights.values()))
        x, y = self.threat.accomplice
        gradient, _ = gradient_client(model)(weights, x.to(some), y.to(some.device), {})
        return {ACCOMPLICE + name: g.detach() for name, g in gradient.items()}

    def entry_weights(self, received: Params, state: ClientState) -> Params:
        """How much each entry counts when gradients are compared."""
        entry_weights = Params()
        for own in self.protections if self.adaptive else ():
            for name, weight in own.strategy.entry_weights(received, state).items():
                entry_weights[name] = entry_weights.get(name, 1) * weight
        return entry_weights

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """An update of the round as an average gradient; `seen.state` is what one client carried, on average.

        So is what arrived of one client alone, each tensor by itself.
        """
        one, shares = self._of_one(seen), self.aggregation.to_gradient(update, seen)
        found = self.protocol.to_gradient({name: value for name, value in shares.items() if OF not in name}, one)
        for name in (name for name in shares if OF in name):
            of = name_in_model(name)
            found[name] = self.protocol.to_gradient({of: shares[name]}, one)[of]
        return found

    def naive(self, seen: Round) -> Params:
        """What an attacker takes for the gradient who knows nothing of the protocol but its step."""
        one = self._of_one(seen)
        return self.protocol.naive(one.update, one)

    def infer_state(self, seen: Round) -> ClientState:
        """What one client carries after this round, on average, as far as the server can compute that."""
        one = self._of_one(seen)
        state = self.protocol.infer_state(replace(one, update=self.invert_update(one.update, one.state)))
        for own in self.protections if self.adaptive else ():
            state = own.strategy.infer_state(one.update, state)
        return state

    def client_weights(self, seen: Round) -> Params:
        """The weights with which one client ended the round, on average: for a naive attacker those that the server sends next."""
        one = self._of_one(seen)
        one = replace(one, update=self.invert_update(one.update, one.state))
        ended = self.protocol.client_weights(one) if self.adaptive else self.protocol.server_update(one)
        return {name: value.detach() for name, value in ended.items()}

    def server_update(self, seen: Round) -> Params:
        """The weights of the next round."""
        return {name: value.detach().requires_grad_() for name, value in self.protocol.server_update(self._of_one(seen)).items()}

    def one(self, state: ClientState) -> ClientState:
        """What the first client carries, out of the state of all."""
        return {name.removeprefix("0/"): value for name, value in state.items() if self.aggregation.members == 1 or name.startswith("0/")}

    def _of_one(self, seen: Round) -> Round:
        share = self.aggregation.to_gradient(seen.update, seen)
        share = {name: value for name, value in share.items() if OF not in name}
        return Round(seen.weights, share, seen.state, -(-seen.count // self.aggregation.members))
