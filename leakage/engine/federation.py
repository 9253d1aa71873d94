"""The federated setting: protocol, protections and threat model, with the honest clients and the server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor, nn

from leakage.engine.client import gradient_client
from leakage.engine.client_protections import STAGES, Protection, change_model, defend_client, order_protections
from leakage.engine.core import Check, Client, ClientState, Defense, Params, Protocol, Round, Server, TrainedGenerator, Update, generator
from leakage.engine.loading import load
from leakage.engine.stopping import stoppable
from leakage.engine.tensor_names import OF
from leakage.engine.weights import drawing


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """What the attacker is granted beyond the update, the weights, the batch size and the shape of a picture.

    Args:
        adaptive: True: the attacker knows and imitates the protocol and the protections; False (naive): it replays plain FedSGD
        strategy: the name of the adaptive attacker's strategy against a protection; empty: the first strategy that can be used
        labels: whether the attacker receives the labels; otherwise it reads them from the update, or searches them with the pictures
        statistics: the BatchNorm statistics that the attacker receives: none, those that the model stores (running), or those of the
            private batch (exact)
        accomplice: pictures (A, C, H, W) and labels (A,) of another client that colludes with the attacker; None: no client colludes
        generator: a network that was trained beforehand to generate such pictures; None: the attacker has no generator

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

    The federation builds the honest clients and the server. `Imitation` is the attacker's side.

    Args:
        protocol: how a client trains
        aggregation: secure aggregation; a protocol with a single member where no updates are aggregated
        protections: the protections in the order in which they act
        threat: what the attacker is granted
        seed: the seed of all random numbers
        rounds: number of rounds that the server has watched this client, which trains on the same pictures each time
        attacked_round: the number of the attacked round, from 1
        server: the server that changes the model; None: an honest server, which follows the protocol
        checks: what each client checks of the model that it received, before it trains
        refuse: whether a client sends nothing if one of its checks trips; otherwise the checks are only reported
    """

    protocol: Protocol
    aggregation: Protocol
    protections: tuple[Protection, ...]
    threat: ThreatModel
    seed: int
    rounds: int = 1
    attacked_round: int = 1
    server: Server | None = None
    checks: tuple[Check, ...] = ()
    refuse: bool = True

    @staticmethod
    def of(
        protocol: Protocol, defenses: Sequence[Defense], threat: ThreatModel, *, seed: int, aggregation: Protocol | None = None
    ) -> "Federation":
        """Return a federation of one round, with a strategy chosen against each protection.

        Args:
            protocol: how a client trains.
            defenses: the experiment's defenses, in any order of their stages.
            threat: what the attacker is granted.
            seed: the seed of all random numbers.
            aggregation: how the clients' updates are merged; None: the server receives the update of one client.
        """
        aggregation = aggregation or load("protocol", "fedsgd")()
        assert aggregation is not None
        # Under aggregation, the server receives no exact numbers of a single client.
        stages = () if aggregation.members > 1 else STAGES if protocol.sends_gradient else STAGES[1:]
        protections = order_protections(defenses, threat.strategy, stages=stages, colluding=threat.accomplice is not None)
        return Federation(protocol, aggregation, protections, threat, seed)

    @property
    def adaptive(self) -> bool:
        """Whether the attacker knows the protections and uses a strategy against each."""
        return self.threat.adaptive

    @property
    def strategy_descriptions(self) -> tuple[str, ...]:
        """Descriptions of an adaptive attacker's strategies, in the order of the experiment's defenses."""
        return tuple(protection.strategy.description for protection in sorted(self.protections, key=lambda protection: protection.index))

    @property
    def sends_gradient(self) -> bool:
        """Whether an update is the gradient of one client's single step, behind the protections."""
        return self.protocol.sends_gradient and self.aggregation.members == 1

    @property
    def separates_pictures(self) -> bool:
        """Whether the update depends on the gradient of each picture, and not only on the batch's mean gradient."""
        return not self.sends_gradient or any(protection.defense.one_by_one for protection in self.protections)

    @property
    def changes_model(self) -> bool:
        """Whether the server or a protection changes the model."""
        return self.server is not None or any(type(protection.defense).change is not Defense.change for protection in self.protections)

    @property
    def attacks_initial_model(self) -> bool:
        """Whether the initial model is attacked, the same in all federations of a seed: in round 1, and unchanged by protections."""
        return self.attacked_round == 1 and not self.changes_model

    @property
    def sends_only_one_gradient(self) -> bool:
        """Whether the server receives only the gradient of one client's single step, in the first round, of an unchanged model."""
        return self.sends_gradient and self.rounds == 1 and not self.changes_model

    @property
    def singles_out(self) -> bool:
        """Whether the server may hand out other weights to one client than to another."""
        return self.server is not None and type(self.server).single_out is not Server.single_out

    def changed(self, model: nn.Module, image_shape: tuple[int, int, int]) -> nn.Module:
        """Return the model as the server and the protections change it; what they add is untrained.

        Args:
            model: the agreed model; may be altered in place.
            image_shape: (C, H, W) of one picture.

        Raises:
            ValueError: the server or a protection does not fit the model.
        """
        if self.server:
            with drawing(self.seed, "server", self.server.id, "weights"):
                model = self.server.rebuild(model, image_shape, self.aggregation.members)
        return change_model(model, self.protections, seed=self.seed)

    def handed_out(self, model: nn.Module, weights: Params, history: Sequence[Round]) -> Params:
        """Return the weights that the server hands out in the next round, by parameter.

        Args:
            model: the network that is handed out.
            weights: the weights of an honest server.
            history: the earlier rounds, as the server received them.
        """
        if self.server is None:
            return weights
        handed = self.server.hand_out(model, weights, tuple(history), generator(self.seed, "server", self.server.id))
        return {name: value.detach().requires_grad_() for name, value in handed.items()}

    def singled_out(self, client: Client, model: nn.Module, member: int) -> Client:
        """Return a client that computes with the weights that the server hands to this member in place of the given weights."""
        server, members = self.server, self.aggregation.members
        if server is None or not self.singles_out:
            return client

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            return client(server.single_out(model, weights, member, members), x, y, state)

        return send

    def received_weights(self, model: nn.Module, weights: Params) -> list[Params]:
        """Return the weights that each client receives, by parameter, where `handed_out` returned `weights`."""
        members = self.aggregation.members
        if self.server is None:
            return [weights] * members
        return [self.server.single_out(model, weights, member, members) for member in range(members)]

    def client(self, model: nn.Module, *, should_stop: Callable[[], bool] = lambda: False) -> Client:
        """Return the honest client, or the merged honest clients under aggregation; the random numbers of each client differ.

        Args:
            model: the model that the client receives, as `changed` returns it.
            should_stop: called before every local step; the client raises StoppedError when it returns True.
        """

        def member(number: int) -> Client:
            keys = () if number == 0 else (number,)
            client = stoppable(gradient_client(model), should_stop)
            for stage in STAGES:
                client = defend_client(client, stage, self.protections, model, seed=self.seed, number=number)
                if stage == "gradient":
                    client = self.protocol.client(client, partial(generator, self.seed, "client", *keys))
            return self.singled_out(client, model, number)

        return self.aggregation.merge_clients([member(number) for number in range(self.aggregation.members)])

    def server_update(self, seen: Round) -> Params:
        """Return the weights that an honest server sends in the next round, by parameter."""
        return {name: value.detach().requires_grad_() for name, value in self.protocol.server_update(self.average_client(seen)).items()}

    def average_client(self, seen: Round) -> Round:
        """Return a round of the merged clients as the round of an average client, with the mean update and its number of pictures."""
        mean = self.aggregation.to_gradient(seen.update, seen)
        mean = {name: value for name, value in mean.items() if OF not in name}
        return Round(seen.weights, mean, seen.state, -(-seen.count // self.aggregation.members))
