"""Tensors that stay on the phone, as exclude_vars of NVIDIA FLARE names them."""

from dataclasses import dataclass

import torch
from torch import nn

from leakage.defenses._each import changed
from leakage.engine.core import Client, Defense, Params, Received, StepRng, text
from leakage.engine.tensor_names import tensors_named


@dataclass(frozen=True, kw_only=True)
class ExcludeVars(Defense):
    """The tensors named are not sent. In an update here zeros stand in their place, which everybody knows to be no numbers.

    "last" by itself is what FedPer does (its personal layers), "*norm*" what FedBN does; a split of the phone's own head.
    An attacker who knows it compares the other tensors. What it loses are the closed forms that need the one withheld: without the last
    layer no label is read and R-GAP has no beginning; without the first one the bias attack has nothing to divide.
    Unlike FLARE: patterns with * and ? in place of regular expressions; a name that fits nothing is refused.
    Source: NVIDIA FLARE 2.x; Arivazhagan et al. 2019 (FedPer); Li et al. 2021 (FedBN).
    """

    title = "Some tensors stay on the phone (exclude_vars of NVFlare)"
    short = "exclude_vars"
    plain = "The phone keeps the changes of some layers to itself, for example those of the last one, and sends all others as they are."
    hint = "Attacks that need the layer withheld end, others go on: keep the last layer to the phone, grant the labels, and search."
    imitation = "known: only the tensors that are sent are compared"
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/exclude_vars.py"
    presets = {"The first layer": {"names": "first"}, "All biases": {"names": "*.bias"}}

    names: str = text("last", "tensors", "Which tensors stay on the phone. Empty: none.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        tensors_named(self.names, dict(model.named_parameters()), "exclude_vars.names")
        return changed(client, self.emptied)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, self.emptied)

    def errors(self, incoming: Params, received: Received) -> Params:
        """None of its own, and none in the tensors that stay."""
        kept = tensors_named(self.names, received.update)
        return {name: variance for name, variance in incoming.items() if name not in kept}

    def emptied(self, update: Params) -> Params:
        """The update with zeros for the tensors that stay."""
        kept = tensors_named(self.names, update)
        return {name: torch.zeros_like(g) if name in kept else g for name, g in update.items()}
