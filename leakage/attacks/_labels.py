"""The labels that an attack works with: granted, or read from the update."""

import torch
from torch import Tensor

from leakage.engine.core import Observation
from leakage.engine.labels import Recovered, recover
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import client_loss


def labels_of(seen: Observation, rule: str) -> tuple[Tensor, dict[str, str | int | float]]:
    """Labels (B,), and for the page how they were found and how sure that is."""
    found = Recovered(seen.granted.labels, "granted") if seen.granted.labels is not None else recover(seen, rule)
    return found.labels, found.note


def readable(seen: Observation) -> bool:
    """Whether a linear layer makes the logits, so that its gradient speaks of labels."""
    try:
        last_layer(seen)
    except ValueError:
        return False
    return True


def said_of(seen: Observation, x: Tensor) -> Tensor:
    """Of pictures x (P, C, H, W) that were read off, what the last layer's gradient says of the class of each: (P, K), 1 at its class.

    B dL/dW = sum_b (p_b - e_(y_b)) h_b^T; with predictions p and inputs h of the last layer by the model, least squares finds all e_(y_b).
    Of another loss it finds -dL/dz_b, which is positive at its class too.
    """
    name = last_layer(seen)[0]
    entered: list[Tensor] = []
    hook = seen.model.get_submodule(name.rpartition(".")[0]).register_forward_pre_hook(lambda _, given: entered.append(given[0]))
    try:
        with torch.no_grad():
            p = seen.model(x).cpu().double().softmax(1)  # (P, K)
    finally:
        hook.remove()
    if client_loss(seen.model) != "cross-entropy":
        p = torch.zeros_like(p)
    h = entered[0].detach().cpu().double()  # (P, D)
    weight_gradient = seen.as_gradient()[name].detach().cpu().double()  # (K, D), or (1, D) of two classes
    if len(weight_gradient) < p.shape[1]:
        weight_gradient = torch.cat([-weight_gradient, weight_gradient])
    found: Tensor = torch.linalg.pinv(h.T) @ (h.T @ p - seen.batch.size * weight_gradient.T)
    return found
