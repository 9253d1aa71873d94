"""A ring without a server: phones add their update to what their neighbour handed on, and one of the neighbours attacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from leakage.engine.core import Params, Round, Travels, flag, param
from leakage.engine.tensor_names import OF
from leakage.protocols.secure_aggregation import SecureAggregation

BEFORE, NEIGHBOUR = f"before{OF}", f"neighbour{OF}"  # in front of the names of tensors of the two other sums that reach the attacker


@dataclass(frozen=True, kw_only=True)
class RingAllReduce(SecureAggregation):
    """Phone i hands on s_i = s_(i-1) + u_i, its update on top of what it was handed; the last one's s_m goes round to all (all-reduce).

    There is no server to trust. The attacker is a phone in the ring, with no picture of its own here: behind `place` phones it is handed
    s_place, and at the end s_m. Behind the first phone alone s_place is one phone's update. What those behind the attacker sent is the
    difference of both; it is compared through them, but no attack here takes it by itself.
    With `colluding` the phone on the other side of the attacker's neighbour works with it: s_place - s_(place-1) is the neighbour's update.
    In an update s_m has the model's names, s_place "before/name", the neighbour's "neighbour/name". Behind all it is handed s_m alone.
    An attacker who knows the ring compares all of them at once: its guess of a phone's pictures has to fit each sum that the phone is in.
    One phone's update alone, of one picture, gives that away by its fully connected first layer (bias attack).
    A naive one takes s_m, divided by the number of phones, for a gradient.
    Unlike the bandwidth-optimal ring, the update is not cut into chunks that begin at different phones: there every neighbour is handed
    1/m of a single update.
    Source: Zhu et al. 2019, figure 1 (decentralised training); Patarasuk and Yuan 2009 (ring all-reduce).
    """

    title = "Handed on from phone to phone (ring)"
    short = "Ring"
    plain = "There is no server: each phone adds its update to the sum that its neighbour handed on. One of the neighbours attacks."
    hint = "Behind the first phone the attacker holds one phone's update. Two who stand on both sides of a phone hold that phone's."
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
        1, 1, 16, "Behind how many phones the attacker stands, whose sum it is handed; behind all: the whole sum alone."
    )
    colluding: bool = flag(False, "The phone before the attacker's neighbour works with it: so they know what the neighbour added.")

    def received(self, updates: Sequence[Params]) -> Params:
        """What the attacker learns of the clients' updates: their sum; and, unless it stands last, that of those before it."""
        found = super().received(updates)
        if self.clients_before < len(updates):
            found |= {BEFORE + name: reduce(add, [update[name] for update in updates[: self.clients_before]]) for name in updates[0]}
        if self.colluding and self.clients_before > 1:
            found |= {NEIGHBOUR + name: value for name, value in updates[min(self.clients_before, len(updates)) - 1].items()}
        return found

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """One client's share of each sum."""

        def clients(name: str) -> int:
            return self.clients_before if name.startswith(BEFORE) else 1 if name.startswith(NEIGHBOUR) else self.clients

        return {name: value / clients(name) for name, value in update.items()}
