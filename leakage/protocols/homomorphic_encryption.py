"""Homomorphic encryption: the server adds up what it cannot read, and learns the sum; tensors left out of it arrive plain."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.engine.core import Params, Round, text
from leakage.engine.tensor_names import OF, tensors_named
from leakage.protocols.secure_aggregation import SecureAggregation


@dataclass(frozen=True, kw_only=True)
class HomomorphicEncryption(SecureAggregation):
    """As secure aggregation: what the server can use is the sum. Tensors named in `unencrypted` are left out: of these it has each phone's.

    In an update those stand beside the sum, "1/name" for the second phone; all phones hold one key, which the server has not.
    Encryption costs time and bandwidth, so frameworks let it be limited to some layers (NVIDIA FLARE: encrypt_layers); the rest is this.
    The small error of the scheme (CKKS) is left out.
    An attacker who knows it compares the sum and, phone by phone, what arrived plain, which also tells whose pictures are whose. What is
    plain of a fully connected first layer gives the picture of a phone that has one (bias attack).
    Source: Cheon et al. 2017 (CKKS); Zhang et al. 2020 (BatchCrypt); NVIDIA FLARE 2.x (app_opt/he).
    """

    title = "Encrypted and added up (homomorphic encryption)"
    short = "Homomorphic encryption"
    plain = "Several phones encrypt their updates so that the server can add them up without reading any, and learns the sum alone."
    hint = "It acts like a larger batch, as secure aggregation does. Leave some layers out of the encryption and see what they give away."
    source = "https://eprint.iacr.org/2016/421"

    unencrypted: str = text("", "tensors", "Which tensors arrive plain, from each phone. Empty: none, all are encrypted.")

    def received(self, updates: Sequence[Params]) -> Params:
        names = tensors_named(self.unencrypted, updates[0], "homomorphic_encryption.unencrypted")
        each = {f"{number}{OF}{name}": update[name] for number, update in enumerate(updates) for name in names}
        return super().received(updates) | each

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """One client's share of the sum; and what arrived plain, as each client sent it."""
        return {name: value if OF in name else value / self.clients for name, value in update.items()}
