"""A check of the names and shapes of the received tensors."""

from dataclasses import dataclass

from leakage.engine.core import Check, Handed, param


@dataclass(frozen=True, kw_only=True)
class NewLayers(Check):
    """The number of parameters and buffers of which name or shape is not that of the agreed network, in either of the two networks.

    A server that adds layers, such as an imprint or LOKI, or that removes some, trips it. A server that changes values alone does not,
    nor does one that adds a layer without numbers, such as a sum over the picture.
    Source: designed here, against the added layers of Fowl et al. 2022 and Zhao et al. 2024 (LOKI).
    """

    title = "Compares the layers with those of the agreed network (new layers)"
    short = "New layers"
    plain = "The phone compares the names and shapes of the received layers with those of the network on which the phones agreed."
    hint = "It sees servers that add a layer, and misses servers that merely change values."
    source = "https://arxiv.org/abs/2303.12233"
    measures = "how many sets of weights or biases are not those of the agreed network"

    threshold: float = param(0, 0, 1000, "The check trips if more tensors than this are new, missing or of another shape.")

    def measure(self, handed: Handed) -> float:
        received, agreed = ({(name, value.shape) for name, value in model.state_dict().items()} for model in (handed.model, handed.agreed))
        return float(len({name for name, _ in received ^ agreed}))
