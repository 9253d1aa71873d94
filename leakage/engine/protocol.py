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
        """The client of this protocol.

        Args:
            gradient: a client that computes a gradient.
            step_rng: the client's own randomness by epoch; None: not known, as for an attacker.

        Returns:
            A client of the same signature; differentiable in x and y where `gradient` is.
        """
        raise NotImplementedError

    @property
    def members(self) -> int:
        """How many clients stand behind one update."""
        return 1

    def merge_clients(self, clients: Sequence[Client]) -> Client:
        """The `members` clients as one, which holds all their pictures.

        Args:
            clients: each with its own randomness.

        Returns:
            A client of the same signature.
        """
        return clients[0]

    def broadcast_state(self, state: ClientState) -> ClientState:
        """The state of all members, when each carries the same.

        Args:
            state: what one of them carries.

        Returns:
            What the client of `merge_clients` takes.
        """
        return state

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """An update as an average gradient over the client's pictures.

        Args:
            update: what was sent, by parameter and of its shape.
            seen: the round in which it was sent.

        Returns:
            The gradient, of the same names and shapes.
        """
        raise NotImplementedError

    def naive(self, update: Params, seen: Round) -> Params:
        """What somebody takes for the gradient who knows the step, and nothing that the client carries.

        Args:
            update: what was sent, by parameter.
            seen: the round in which it was sent.

        Returns:
            That gradient, of the same names and shapes.
        """
        return self.to_gradient(update, seen)

    def infer_state(self, seen: Round) -> ClientState:
        """What the client carries after a round, as far as the server can compute that.

        Args:
            seen: the round.

        Returns:
            That state; here as before it.
        """
        return seen.state

    def client_weights(self, seen: Round) -> Params:
        """The weights with which the client ended, as far as the server can compute that.

        Args:
            seen: the round.

        Returns:
            Weights by parameter; here those that the server sends next.
        """
        return self.server_update(seen)

    def server_update(self, seen: Round) -> Params:
        """The weights that the server sends next, if it heard this client alone.

        Args:
            seen: the round.

        Returns:
            Weights by parameter; here for an update that is a difference of weights.
        """
        return {name: weight + seen.update[name] for name, weight in seen.weights.items()}
