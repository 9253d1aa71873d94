"""Homomorphic encryption: the server adds up updates that it cannot read, and learns the sum; some tensors may arrive unencrypted."""

from collections.abc import Sequence
from dataclasses import dataclass

from leakage.engine.core import Params, Round, text
from leakage.engine.tensor_names import OF, tensors_named
from leakage.protocols.secure_aggregation import SecureAggregation


@dataclass(frozen=True, kw_only=True)
class HomomorphicEncryption(SecureAggregation):
    """Send the sum of the clients' updates to the server, as secure aggregation does; tensors in `unencrypted` arrive from each client.

    In an update these tensors stand beside the sum, for example as "1/name" for the second client. All clients have the same key, and the
    server does not have it. Encryption costs time and bandwidth, so frameworks can limit it to some layers (NVIDIA FLARE:
    encrypt_layers); `unencrypted` are the other layers. The small error of the scheme (CKKS) is left out.
    An adaptive attacker compares the sum and the unencrypted tensors of each client, which also show which picture belongs to which
    client. An unencrypted fully connected first layer reveals the picture of a client that has only one (bias attack).
    Source: Cheon et al. 2017 (CKKS); Zhang et al. 2020 (BatchCrypt); NVIDIA FLARE 2.x (app_opt/he).
    """

    title = "Encrypted and added up (homomorphic encryption)"
    short = "Homomorphic encryption"
    plain = "Several phones encrypt their updates. The server can add them up without reading any, and learns the sum alone."
    hint = "It acts like a larger batch, as secure aggregation does. Leave some layers unencrypted and see what they give away."
    source = "https://eprint.iacr.org/2016/421"

    unencrypted: str = text("", "tensors", "The tensors that arrive unencrypted from each phone. Empty: all are encrypted.")

    def received(self, updates: Sequence[Params]) -> Params:
        names = tensors_named(self.unencrypted, updates[0], "homomorphic_encryption.unencrypted")
        each = {f"{number}{OF}{name}": update[name] for number, update in enumerate(updates) for name in names}
        return super().received(updates) | each

    def to_gradient(self, update: Params, seen: Round) -> Params:
        """Return the mean of the clients' updates, and the unencrypted tensors of each client unchanged."""
        return {name: value if OF in name else value / self.clients for name, value in update.items()}
