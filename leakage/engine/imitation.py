"""The attacker's side of a federation: how an attacker imitates the clients, and what it computes from an update."""

from dataclasses import dataclass, replace

from torch import nn

from leakage.engine.client import gradient_client
from leakage.engine.client_protections import STAGES, Protection
from leakage.engine.core import Client, ClientState, Params, Round
from leakage.engine.federation import Federation
from leakage.engine.strategy import ACCOMPLICE
from leakage.engine.tensor_names import OF, name_in_model


@dataclass(frozen=True)
class Imitation:
    """An attacker's imitation of the clients of a federation, and its reading of their updates.

    An adaptive attacker uses its strategy against each protection. A naive attacker leaves the protections out.

    Args:
        federation: the federation, with the threat model
    """

    federation: Federation

    @property
    def adaptive(self) -> bool:
        """Whether the attacker knows the protections and uses a strategy against each."""
        return self.federation.adaptive

    @property
    def protections(self) -> tuple[Protection, ...]:
        """The protections that the attacker imitates: all of them for an adaptive attacker, none for a naive attacker."""
        return self.federation.protections if self.adaptive else ()

    @property
    def elementwise(self) -> bool:
        """Whether the imitation computes the updates of several guesses at once; a naive attacker's replay always does."""
        federation = self.federation
        return not self.adaptive or (
            not federation.singles_out
            and federation.protocol.elementwise
            and federation.aggregation.elementwise
            and all(protection.defense.elementwise for protection in self.protections)
        )

    @property
    def batchable(self) -> bool:
        """Whether runs can share the gradients of guesses: the imitation is computed from one gradient of each guess."""
        return not self.adaptive or (self.elementwise and self.federation.sends_gradient)

    def client(self, gradient: Client, model: nn.Module, inverted: Params) -> Client:
        """Return the imitation of the client, or of the merged clients under aggregation.

        Args:
            gradient: a client that computes a gradient.
            model: the model that was handed out.
            inverted: the update that the attacker works with, as `invert_update` returns it.
        """
        client = gradient
        for stage in STAGES:
            for protection in self.protections:
                if protection.defense.stage == stage:
                    client = protection.strategy.surrogate(client, inverted)
            if stage == "gradient":
                client = self.federation.protocol.client(client)
        federation = self.federation
        return federation.aggregation.merge_clients(
            [federation.singled_out(client, model, n) for n in range(federation.aggregation.members)]
        )

    def initialize_latents(self, model: nn.Module, pictures: int) -> Params:
        """Write the attacker's initial guess of the client's secret buffers into the model; return the buffers that the attack optimizes.

        Args:
            model: altered in place.
            pictures: the number of a client's pictures, for buffers that differ from picture to picture.

        Returns:
            The buffers that the attack optimizes, by name; {} for a naive attacker.
        """
        latents = Params()
        for protection in self.protections:
            for name, value in protection.strategy.latent_init(model).items():
                layer, _, part = name.rpartition(".")
                value = value.expand(pictures, *value.shape).clone() if protection.strategy.latent_per_picture else value
                guess = value.to(model.get_buffer(name)).requires_grad_(protection.strategy.optimize_latents)
                setattr(model.get_submodule(layer), part, guess)
                if protection.strategy.optimize_latents:
                    latents[name] = guess
        return latents

    def invert_update(self, received: Params, state: ClientState) -> Params:
        """Return the update that the attacker works with, by parameter: what the strategy against the last protection computes.

        Args:
            received: the update that arrived, by parameter.
            state: the client's state before the round, as far as the server can compute it.
        """
        invert = self.protections[-1].strategy.invert_update if self.protections else None
        return invert(received, state) if invert else received

    def entry_weights(self, received: Params, state: ClientState) -> Params:
        """Return the weight of each entry in a comparison of gradients, by parameter; a parameter that is missing has weight 1.

        Args:
            received: the update that arrived, by parameter.
            state: the client's state before the round, as far as the server can compute it.
        """
        entry_weights = Params()
        for protection in self.protections:
            for name, weight in protection.strategy.entry_weights(received, state).items():
                entry_weights[name] = entry_weights.get(name, 1) * weight
        return entry_weights

    def accomplice_state(self, model: nn.Module, weights: Params) -> ClientState:
        """Return the gradient of an accomplice (another client that colludes with the attacker) at these weights, as a client's state.

        The state is {} where no strategy uses an accomplice.

        Args:
            model: the model of the attacked round.
            weights: the weights that the accomplice received, by parameter.
        """
        federation = self.federation
        if federation.threat.accomplice is None or not any(protection.strategy.colluding for protection in federation.protections):
            return {}
        some = next(iter(weights.values()))
        x, y = federation.threat.accomplice
        gradient, _ = gradient_client(model)(weights, x.to(some), y.to(some.device), {})
        return {ACCOMPLICE + name: g.detach() for name, g in gradient.items()}

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return an update of the round as an average gradient.

        Args:
            update: an update by tensor name; tensors of a single client are converted each by itself.
            seen: the round; `seen.state` is the state of an average client.

        Returns:
            The gradient, of the same names and shapes.
        """
        protocol = self.federation.protocol
        single, means = self.federation.average_client(seen), self.federation.aggregation.to_gradient(update, seen)
        gradient = protocol.to_gradient({name: value for name, value in means.items() if OF not in name}, single)
        for name in (name for name in means if OF in name):
            of = name_in_model(name)
            gradient[name] = protocol.to_gradient({of: means[name]}, single)[of]
        return gradient

    def naive_gradient(self, seen: Round) -> Params:
        """Return what a naive attacker takes for the gradient, by parameter; it knows only the step size of the protocol."""
        single = self.federation.average_client(seen)
        return self.federation.protocol.naive(single.update, single)

    def infer_state(self, seen: Round) -> ClientState:
        """Return the state of an average client after this round, as far as the server can compute it."""
        single = self.federation.average_client(seen)
        state = self.federation.protocol.infer_state(replace(single, update=self.invert_update(single.update, single.state)))
        for protection in self.protections:
            state = protection.strategy.infer_state(single.update, state)
        return state

    def client_weights(self, seen: Round) -> Params:
        """Return the weights with which an average client ended the round, by parameter.

        A naive attacker takes the weights of the next round for those of the client.
        """
        protocol, single = self.federation.protocol, self.federation.average_client(seen)
        single = replace(single, update=self.invert_update(single.update, single.state))
        ended = protocol.client_weights(single) if self.adaptive else protocol.server_update(single)
        return {name: value.detach() for name, value in ended.items()}
