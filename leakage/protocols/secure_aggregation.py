"""Secure aggregation: the server learns the sum of several clients' updates, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Protocol, Round, StepRng, Update, param


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Protocol):
    """m clients share the pictures evenly, each sends an update of its own by any protocol, and the server sees the sum alone.

    The masks of the cryptographic protocol cancel in the sum, so they are left out. An attacker can only treat the sum as one large batch.
    What the clients carry it knows on average only: exactly in the first round, roughly later.
    Source: Bonawitz et al. 2017 (section 4: masking with one-time pads).
    """

    title = "Added up with other phones (secure aggregation)"
    short = "Secure aggregation"
    plain = "Several phones encrypt their updates so that the server learns their sum alone, never a single one."
    hint = "It acts like a larger batch: harder, not impossible. Raise the number of phones and watch the pictures fade."
    source = "https://eprint.iacr.org/2017/281"
    is_aggregation = True
    elementwise = True

    clients: int = param(2, 2, 16, "How many phones are added up; the pictures are shared evenly among them.")

    @property
    def members(self) -> int:
        return self.clients

    def merge_clients(self, clients: Sequence[Client]) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            updates, carried = list[Params](), ClientState()
            shares = zip(clients, x.tensor_split(self.clients), y.tensor_split(self.clients), strict=True)
            for number, (client, mine, labels) in enumerate(shares):
                prefix = f"{number}/"
                own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
                update, own = client(weights, mine, labels, own)
                updates.append(update)
                carried |= {prefix + name: value for name, value in own.items()}
            return self.received(updates), carried

        return send

    def received(self, updates: Sequence[Params]) -> Params:
        """What the server learns of the clients' updates: their sum."""
        return {name: reduce(add, [update[name] for update in updates]) for name in updates[0]}

    def broadcast_state(self, state: ClientState) -> ClientState:
        return {f"{number}/{name}": value for number in range(self.clients) for name, value in state.items()}

    def client(self, gradient: Client, step_rng: StepRng | None = None) -> Client:
        return self.merge_clients([gradient] * self.clients)

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """One client's share of the sum."""
        return {name: value / self.clients for name, value in update.items()}
