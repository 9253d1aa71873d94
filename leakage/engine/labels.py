"""Which classes were in the batch? Read from the gradient of the last layer, without any optimisation."""

import torch
from torch import Tensor, nn

from leakage.engine.core import Observation


def last_layer(model: nn.Module) -> tuple[str, str | None]:
    """Names of the weight and the bias (or None) of the model's last linear layer. Raises ValueError when there is none."""
    names = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    if not names:
        raise ValueError("Reading labels needs a linear last layer; this model has none. Grant the labels instead.")
    prefix = f"{names[-1]}." if names[-1] else ""
    return f"{prefix}weight", f"{prefix}bias" if model.get_submodule(names[-1]).bias is not None else None


def recover(seen: Observation) -> tuple[Tensor, str]:
    """Labels (B,) sorted, and the name of the rule that read them.

    One picture: iDLG (Zhao et al. 2020): dL/dlogit_c = p_c - [c = y] is negative for the true class alone, so it is the smallest entry
    of the bias gradient. Without a bias: the smallest row sum of the weight gradient (features that are not negative).
    A batch: see `counts`.
    """
    weight, bias = last_layer(seen.model)
    gradient = seen.as_gradient()
    rows = gradient[bias] if bias else gradient[weight].sum(1)  # (K,)
    if seen.batch_size == 1:
        return rows.argmin().view(1), "iDLG: the most negative row"
    return counts(rows, seen.batch_size), "bias-corrected counts of the negative rows"


def counts(rows: Tensor, batch_size: int) -> Tensor:
    """Labels (B,) by greedy subtraction (after Wainakh et al. 2022; `rows` is the bias gradient (K,) or the weight gradient's row sums).

    Every class with a negative row is in the batch once; each occurrence adds about m = (sum of the negative rows) / B < 0. Take those
    classes, subtract m, then take the smallest row and subtract m until B labels are found.
    """
    left = rows.detach().cpu().double().clone()
    impact = left[left < 0].sum() / batch_size
    found: list[int] = left.argsort()[: int((left < 0).sum())].tolist()[:batch_size]
    left[found] -= impact
    while len(found) < batch_size:
        smallest = int(left.argmin())
        found.append(smallest)
        left[smallest] -= impact
    return torch.tensor(sorted(found), device=rows.device)
