"""How a model can be computed: what it stands without a change of its numbers, found by trying."""

import warnings

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional as F

from leakage.api.model_copy import again
from leakage.api.model_errors import MODEL_ERRORS
from leakage.api.second_derivative import twice
from leakage.engine.capabilities import Capabilities, set_capabilities
from leakage.engine.stateless import StatelessModel, TwiceDifferentiable

CLOSE = 1e-3  # what counts as the same numbers, as a share: float32 rounds sums in another order


def probed(model: nn.Module, x: Tensor) -> Capabilities:
    """What holds of a model that is given pictures of the shape of x."""
    rewriting = TwiceDifferentiable()
    with torch.no_grad(), rewriting:
        model(x)
    found = Capabilities(vectorised=False, channels_last=False, rewritten=rewriting.met)
    set_capabilities(model, found)
    return Capabilities(vectorises(model, x), keeps_channels_last(model, x), found.rewritten)


def vectorises(model: nn.Module, x: Tensor) -> bool:
    """Whether several guesses can be played at once: `torch.func.vmap` knows every operation of the model, and gives the same numbers."""
    stateless = StatelessModel(model)
    own = {name: value.detach() for name, value in model.named_parameters()}
    weights = {name: torch.stack([value, 0.9 * value]) for name, value in own.items()}
    pictures = torch.stack([x.detach(), 1 - x.detach()])
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("error", "There is a performance drop")  # it would go one after the other, and say so each time
            both = vmap(stateless)(weights, pictures)
            alone = [stateless({name: value[lane] for name, value in weights.items()}, pictures[lane]) for lane in range(2)]
    except (*MODEL_ERRORS, UserWarning):
        return False
    return all(_close(one, other) for one, other in zip(both, alone, strict=True))


def keeps_channels_last(model: nn.Module, x: Tensor) -> bool:
    """Whether its forward and both derivatives run where the colors of a pixel lie side by side in memory, and give the same numbers."""
    try:
        moved = again(model).to(memory_format=torch.channels_last)
        plain, other = _gradient(model, x), _gradient(moved, x)
    except MODEL_ERRORS:
        return False
    if any(not _close(one, other[name]) for name, one in plain.items()):
        return False
    return _twice(moved, x) is None or _twice(model, x) is not None


def _twice(model: nn.Module, x: Tensor) -> str | None:
    stateless = StatelessModel(model)
    return twice(lambda picture: stateless.at_home(picture).square().sum(), x, list(model.parameters()))


def _gradient(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    logits = StatelessModel(model).at_home(x.detach().clone())
    y = torch.arange(len(x), device=x.device) % logits.shape[1]
    values = list(model.parameters())
    found = torch.autograd.grad(F.cross_entropy(logits, y), values)
    return dict(zip([name for name, _ in model.named_parameters()], found, strict=True)) | {"the logits": logits.detach()}


def _close(one: Tensor, other: Tensor) -> bool:
    return float((one - other).norm()) <= CLOSE * float(other.norm()) + torch.finfo(other.dtype).tiny
