"""Tensors that stay on the phone, as exclude_vars of NVIDIA FLARE names them."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import nn

from leakage.defenses._each import changed
from leakage.engine.core import Client, Defense, Params, StepRng, text


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
    hint = "It stops attacks that need the layer withheld, and only those: keep the last layer, grant the labels, and search."
    imitation = "known: only the tensors that are sent are compared"
    stage = "update"
    elementwise = True
    source = "https://github.com/NVIDIA/NVFlare/blob/2.5/nvflare/app_common/filters/exclude_vars.py"
    presets = {"The first layer": {"names": "first"}, "All biases": {"names": "*.bias"}}

    names: str = text("last", "tensors", "Which tensors stay on the phone. Empty: none.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        every = [name for name, _ in model.named_parameters()]
        for word in self.names.split():
            if every and not withheld(word, every):
                raise ValueError(
                    f"exclude_vars.names: no tensor of this model is called {word!r}; it has {', '.join(every)}. "
                    "Name some of these, a pattern such as *.bias, or first or last."
                )
        return changed(client, self.emptied)

    def surrogate(self, client: Client, received: Params) -> Client:
        return changed(client, self.emptied)

    def emptied(self, update: Params) -> Params:
        """The update with zeros for the tensors that stay."""
        kept = {name for word in self.names.split() for name in withheld(word, list(update))}
        return {name: torch.zeros_like(g) if name in kept else g for name, g in update.items()}


def withheld(word: str, names: list[str]) -> list[str]:
    """Those of a model's tensors, in their order, that a word means.

    >>> withheld("last", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['linear.weight', 'linear.bias']
    >>> withheld("*.bias", ["conv.weight", "conv.bias", "linear.weight", "linear.bias"])
    ['conv.bias', 'linear.bias']
    """
    if word in ("first", "last") and names:
        layer, _, _ = names[0 if word == "first" else -1].rpartition(".")
        return [name for name in names if name.rpartition(".")[0] == layer]
    return [name for name in names if fnmatchcase(name, word)]
