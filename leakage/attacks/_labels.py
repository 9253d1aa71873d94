"""The labels that an attack works with: granted, or read from the update."""

import torch
from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.labels import Recovered, recover
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import client_loss


def labels_of(seen: Observation, rule: str) -> tuple[Tensor, dict[str, str | int | float]]:
    """Return the labels (B,), granted or recovered by `rule`, and a note for the page that says how, and how certain they are."""
    found = Recovered(seen.granted.labels, "granted") if seen.granted.labels is not None else recover(seen, rule)
    return found.labels, found.note


def readable(seen: Observation) -> bool:
    """Return whether a linear layer computes the logits, so that labels can be read from its gradient."""
    try:
        last_layer(seen)
    except ValueError:
        return False
    return True


def class_scores(seen: Observation, x: Tensor) -> Tensor:
    """Estimate the class of each reconstructed picture from the last layer's gradient.

    For cross-entropy B dL/dW = sum_b (p_b - e_(y_b)) h_b^T. The model gives the predictions p and the inputs h of its last layer; least
    squares then gives all e_(y_b). For another loss, with p = 0, least squares gives -dL/dz_b, which is positive at the class too.

    Args:
        seen: what the attacker observed.
        x: reconstructed pictures, (P, C, H, W).

    Returns:
        A score for each class, (P, K), the largest (1 for cross-entropy) at the picture's class.
    """
    name = last_layer(seen)[0]
    entered: list[Tensor] = []
    layer = seen.model.get_submodule(name.rpartition(".")[0])
    with layer.register_forward_pre_hook(lambda _, given: entered.append(given[0])), torch.no_grad():
        p = seen.model(x).cpu().double().softmax(1)  # (P, K)
    if client_loss(seen.model) != "cross-entropy":
        p = torch.zeros_like(p)
    h = entered[0].detach().cpu().double()  # (P, D)
    weight_gradient = seen.as_gradient()[name].detach().cpu().double()  # (K, D), or (1, D) of two classes
    if len(weight_gradient) < p.shape[1]:
        weight_gradient = torch.cat([-weight_gradient, weight_gradient])
    found: Tensor = torch.linalg.pinv(h.T) @ (h.T @ p - seen.batch.size * weight_gradient.T)
    return found
