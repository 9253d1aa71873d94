"""The base class of protocols: what clients do with gradients, and what they send. Import it from `leakage.engine.core`."""

from collections.abc import Sequence

from leakage.engine.observation import Client, ClientState, Params, Round, StepRng
from leakage.engine.plugin import Plugin
from leakage.spec.declarations import ProtocolDeclarations


class Protocol(Plugin, ProtocolDeclarations):
    """What a client does with gradients, what it sends, and what the server can compute from that.

    Example:
        >>> import torch
        >>> from leakage.protocols.fedavg import FedAvg
        >>> protocol = FedAvg(epochs=1, rate=0.1)
        >>> def gradient(weights, x, y, state):
        ...     return {"w": torch.tensor([2.0])}, state
        >>> sent, _ = protocol.client(gradient)({"w": torch.tensor([1.0])}, torch.rand(1, 1, 4, 4), torch.tensor([0]), {})
        >>> round(float(sent["w"]), 6)  # one step of -0.1 * 2
        -0.2
    """

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        """Build the client of this protocol.

        Args:
            gradient: a client that computes a gradient.
            step_rng: epoch -> the generator of the client's random numbers; None: not known, as for an attacker.

        Returns:
            A client of the same signature; differentiable in x and y where `gradient` is.
        """
        raise NotImplementedError

    @property
    def members(self) -> int:
        """The number of clients that the server receives a single update from, such as the sum of their updates."""
        return 1

    def merge_clients(self, clients: Sequence[Client]) -> Client:
        """Combine `members` clients into one client, which takes all their pictures.

        Args:
            clients: the clients, each with its own randomness.

        Returns:
            A client of the same signature.
        """
        return clients[0]

    def broadcast_state(self, state: ClientState) -> ClientState:
        """Return the state of the merged client where every member has the same state.

        Args:
            state: the state of one member.

        Returns:
            The state that the client of `merge_clients` takes.
        """
        return state

    def member_state(self, state: ClientState, number: int) -> ClientState:
        """Return the state of one member, from the state of the merged client.

        Args:
            state: the state that the client of `merge_clients` takes.
            number: the number of the member, from 0.

        Returns:
            The state of that member.
        """
        return state

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Convert an update to the average gradient over the client's pictures.

        Args:
            update: what was sent, by parameter, of its shape.
            seen: the round in which it was sent.

        Returns:
            The gradient, of the same names and shapes.
        """
        raise NotImplementedError

    def naive(self, update: Params, seen: Round) -> Params:
        """Convert an update to a gradient as an attacker does that knows the size of the step, but not the client's state.

        Args:
            update: what was sent, by parameter.
            seen: the round in which it was sent.

        Returns:
            The gradient, of the same names and shapes; by default that of `to_gradient`.
        """
        return self.to_gradient(update, seen)

    def infer_state(self, seen: Round) -> ClientState:
        """Compute the client's state after a round, as far as the server can.

        Args:
            seen: the round.

        Returns:
            The state; by default the state before the round.
        """
        return seen.state

    def client_weights(self, seen: Round) -> Params:
        """Compute the weights with which the client ended a round, as far as the server can.

        Args:
            seen: the round.

        Returns:
            Weights by parameter; by default the weights that the server sends next.
        """
        return self.server_update(seen)

    def server_update(self, seen: Round) -> Params:
        """Compute the weights that the server sends next, if it received this client's update alone.

        Args:
            seen: the round.

        Returns:
            Weights by parameter; by default weights plus update, for an update that is a difference of weights.
        """
        return {name: weight + seen.update[name] for name, weight in seen.weights.items()}
