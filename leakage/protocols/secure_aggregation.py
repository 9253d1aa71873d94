"""Secure aggregation: the server learns the sum of several clients' updates, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from leakage.engine.client import Gradient
from leakage.engine.core import Client, ClientState, Params, Protocol, Round, StepRng, Update, param


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Protocol):
    """Send the sum of the updates of m clients, which have equally many pictures and use any protocol; the server sees only the sum.

    The masks of the cryptographic protocol cancel in the sum, so they are left out. An attacker can only treat the sum as one large batch.
    The attacker knows only the mean of the clients' states: exactly in the first round, approximately later.
    Source: Bonawitz et al. 2017 (section 4: masking with one-time pads).
    """

    title = "Added up with other phones (secure aggregation)"
    short = "Secure aggregation"
    plain = "Several phones encrypt their updates so that the server learns their sum alone, never a single update."
    hint = "It acts like a larger batch: harder, not impossible. Raise the number of phones and watch the pictures fade."
    source = "https://eprint.iacr.org/2017/281"
    is_aggregation = True
    elementwise = True

    clients: int = param(2, 2, 16, "How many phones are added up; the pictures are shared evenly among them.")

    @property
    def members(self) -> int:
        return self.clients

    @property
    def receives_sum_alone(self) -> bool:
        """Whether the sum of all updates is all that is received."""
        return True

    def merge_clients(self, clients: Sequence[Client]) -> Client:
        first = clients[0]
        alike = self.receives_sum_alone and all(client is first for client in clients)
        gradient = first if alike and isinstance(first, Gradient) else None

        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            if gradient and (total := gradient.summed(weights, x, y, self.clients)):
                return total, state
            updates, carried = list[Params](), ClientState()
            parts = zip(clients, x.tensor_split(self.clients), y.tensor_split(self.clients), strict=True)
            for number, (client, pictures, labels) in enumerate(parts):
                update, member_state = client(weights, pictures, labels, self.member_state(state, number))
                updates.append(update)
                carried |= {f"{number}/{name}": value for name, value in member_state.items()}
            return self.received(updates), carried

        return send

    def received(self, updates: Sequence[Params]) -> Params:
        """Return what the server receives: the sum of the clients' updates."""
        total = {name: first + updates[1][name] for name, first in updates[0].items()}
        for update in updates[2:]:
            for name, value in total.items():
                value.add_(update[name])  # in place: for a large layer a new tensor takes several times as long
        return total

    def broadcast_state(self, state: ClientState) -> ClientState:
        return {f"{number}/{name}": value for number in range(self.clients) for name, value in state.items()}

    def member_state(self, state: ClientState, number: int) -> ClientState:
        prefix = f"{number}/"
        return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        return self.merge_clients([gradient] * self.clients)

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return the sum, divided by the number of clients."""
        return {name: value / self.clients for name, value in update.items()}
