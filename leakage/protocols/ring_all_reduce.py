"""A ring without a server: each client adds its update to the sum of the clients before it, and one client attacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from leakage.engine.core import Params, Round, Travels, flag, param
from leakage.engine.tensor_names import OF
from leakage.protocols.secure_aggregation import SecureAggregation

BEFORE, NEIGHBOUR = f"before{OF}", f"neighbour{OF}"  # prefixes of the tensors of the two other sums that reach the attacker


@dataclass(frozen=True, kw_only=True)
class RingAllReduce(SecureAggregation):
    """Pass s_i = s_(i-1) + u_i from client i to the next client in the ring; the last sum s_m goes to all clients (all-reduce).

    There is no server to trust. The attacker is a client in the ring, without pictures here: it receives s_k, the sum of the
    k = `clients_before` clients before it, and at the end s_m. For k = 1, s_k is the update of a single client. For k = m the attacker
    receives s_m alone. The sum of the clients after the attacker is s_m - s_k; no attack here uses that sum by itself.
    With `colluding`, the client before the last of the k clients works with the attacker: s_k - s_(k-1) is the update of that last client.
    In an update, the tensors of s_m have the model's names, those of s_k "before/name", those of the single update "neighbour/name".
    An adaptive attacker compares all sums at once: the guess of a client's pictures has to fit each sum that contains the client's update.
    The update of a single client with one picture reveals the picture through a fully connected first layer (bias attack).
    A naive attacker takes s_m, divided by the number of clients, for a gradient.
    Unlike the bandwidth-optimal ring, the update is not cut into chunks that start at different clients. There, every client receives
    1/m of a single update.
    Source: Zhu et al. 2019, figure 1 (decentralised training); Patarasuk and Yuan 2009 (ring all-reduce).
    """

    title = "Handed on from phone to phone (ring)"
    short = "Ring"
    plain = "There is no server: each phone adds its update to the sum of the phones before it, and passes the sum on. One phone attacks."
    hint = "Right after the first phone, the attacker receives its update. Two attackers around a phone can compute that phone's update."
    source = "https://arxiv.org/abs/1906.08935"
    travels = Travels(
        other_sums={
            "clients_before": "the sum of {clients_before} before the attacker",
            "colluding": "the update of the last phone before it by itself",
        },
        receiver="another phone",
    )
    presets = {
        "behind the first": {"clients_before": 1},
        "behind three": {"clients": 4, "clients_before": 3},
        "on both sides of the third": {"clients": 4, "clients_before": 3, "colluding": True},
    }

    clients_before: int = param(
        1, 1, 16, "How many phones stand before the attacker, which receives their sum. If all do, it receives the whole sum alone."
    )
    colluding: bool = flag(False, "A second phone works with the attacker, so that they know what the phone between them added.")

    @property
    def receives_sum_alone(self) -> bool:
        return self.clients_before >= self.clients and not self.colluding

    def received(self, updates: Sequence[Params]) -> Params:
        """Return what the attacker receives: the sum of all updates, and further sums as `clients_before` and `colluding` say."""
        sums = super().received(updates)
        if self.clients_before < len(updates):
            sums |= {BEFORE + name: reduce(add, [update[name] for update in updates[: self.clients_before]]) for name in updates[0]}
        if self.colluding and self.clients_before > 1:
            sums |= {NEIGHBOUR + name: value for name, value in updates[min(self.clients_before, len(updates)) - 1].items()}
        return sums

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return each sum, divided by the number of clients in it."""

        def clients(name: str) -> int:
            return self.clients_before if name.startswith(BEFORE) else 1 if name.startswith(NEIGHBOUR) else self.clients

        return {name: value / clients(name) for name, value in update.items()}
