"""ExcludeVars of NVIDIA FLARE: the client does not send certain tensors."""

from dataclasses import dataclass

import torch
from torch import nn

from leakage.defenses._each import change_update
from leakage.engine.core import Client, Defense, Params, Received, StepRng, text
from leakage.engine.tensor_names import tensors_named


@dataclass(frozen=True, kw_only=True)
class ExcludeVars(Defense):
    """Do not send the named tensors; an update has zeros in their place here, and every attacker knows that these zeros are no values.

    "last" alone is what FedPer does (personal layers), "*norm*" is what FedBN does.
    An adaptive attacker compares the other tensors. Attacks in closed form that need a withheld tensor fail: without the last layer, no
    label rule works and R-GAP cannot start; without the first layer, the bias attack has nothing to divide.
    Unlike FLARE: patterns with * and ? instead of regular expressions; a name that matches no tensor is refused.
    Source: NVIDIA FLARE 2.x; Arivazhagan et al. 2019 (FedPer); Li et al. 2021 (FedBN).
    """

    title = "Some tensors stay on the phone (exclude_vars of NVFlare)"
    short = "exclude_vars"
    plain = "The phone keeps the changes of some layers to itself, for example those of the last one, and sends all others as they are."
    hint = "Attacks that need the withheld layer stop, others go on. Keep the last layer on the phone, grant the labels, and run a search."
    imitation = "known: only the tensors that are sent are compared"
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/exclude_vars.py"
    presets = {"The first layer": {"names": "first"}, "All biases": {"names": "*.bias"}}

    names: str = text("last", "tensors", "Which tensors stay on the phone. Empty: none.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        tensors_named(self.names, dict(model.named_parameters()), "exclude_vars.names")
        return change_update(client, self.zero_excluded)

    def surrogate(self, client: Client, received: Params) -> Client:
        return change_update(client, self.zero_excluded)

    def errors(self, incoming: Params, received: Received) -> Params:
        """Return the incoming error variances of the tensors that are sent; the defense adds no errors."""
        excluded = tensors_named(self.names, received.update)
        return {name: variance for name, variance in incoming.items() if name not in excluded}

    def zero_excluded(self, update: Params) -> Params:
        """Return the update with zeros in the tensors that are not sent."""
        excluded = tensors_named(self.names, update)
        return {name: torch.zeros_like(g) if name in excluded else g for name, g in update.items()}
