"""LPIPS: how alike two pictures look to a network trained on photographs. Ready, or off with the sentence that says why."""

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage import backbones
from leakage.engine.features import Weights, layers

SMALLEST = 32  # pixels; below 31 AlexNet's last layers see nothing
ENLARGED = f"pictures below {SMALLEST} px are enlarged to {SMALLEST} px (bilinear) for LPIPS"
CHUNK = 16  # pictures looked at together, so that memory stays small with VGG too
SHIFT, SCALE = torch.tensor([-0.030, -0.088, -0.188]).view(1, 3, 1, 1), torch.tensor([0.458, 0.448, 0.450]).view(1, 3, 1, 1)


class Model(NamedTuple):
    """What LPIPS computes with: the backbone's weights, and per layer how much each channel counts, (1, C, 1, 1), none negative."""

    weights: Weights
    heads: list[Tensor]


@dataclass(frozen=True)
class Perceptual:
    """One way to measure LPIPS, or none: then `model` is None, every distance is unknown, and `words` says what to do."""

    net: str
    words: str  # for the page: which backbone, or why it is off
    model: Model | None = None

    def distance(self, guess: Tensor, truth: Tensor) -> Tensor:
        """LPIPS of each pair, lower is closer, 0 for equal pictures: (B, C, H, W) twice -> (B,); not a number when it is off."""
        if self.model is None:
            return torch.full((len(guess),), math.nan, dtype=torch.double)
        pairs = zip(torch.split(guess, CHUNK), torch.split(truth, CHUNK), strict=True)
        return torch.cat([(self._look(a) - self._look(b)).square().sum(1) for a, b in pairs]).double()

    def table(self, guess: Tensor, others: Tensor) -> Tensor:
        """LPIPS of every guess to every other picture: (B, C, H, W), (P, C, H, W) -> (B, P); not a number when it is off."""
        if self.model is None:
            return torch.full((len(guess), len(others)), math.nan, dtype=torch.double)
        seen = torch.cat([self._look(chunk) for chunk in torch.split(guess, CHUNK)])  # (B, N)
        exact = "donot_use_mm_for_euclid_dist"  # the other way loses small distances
        tables = [torch.cdist(seen, self._look(chunk), compute_mode=exact).square() for chunk in torch.split(others, CHUNK)]
        return torch.cat(tables, 1).double()  # (B, P)

    @torch.no_grad()
    def _look(self, x: Tensor) -> Tensor:
        """Pictures in [0, 1] as vectors whose squared distance is LPIPS: (B, C, H, W) -> (B, N).

        LPIPS = sum over layers l of the mean over places of sum_c w_lc (u_lc - v_lc)^2, u and v the features of unit length per
        place. Source: Zhang et al. 2018, equation 1; weights w of version 0.1.
        """
        assert self.model is not None
        x = x.detach().to("cpu", torch.float32).clamp(0, 1)
        x = x.expand(-1, 3, -1, -1)  # (B, 3, H, W), grey three times
        if min(x.shape[2:]) < SMALLEST:
            size = [max(side, SMALLEST) for side in x.shape[2:]]
            x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
        seen = layers(self.net, self.model.weights, (2 * x - 1 - SHIFT) / SCALE)  # LPIPS is defined on [-1, 1]
        parts = []
        for layer, head in zip(seen, self.model.heads, strict=True):  # (B, C, h, w) each
            unit = layer / (layer.square().sum(1, keepdim=True).sqrt() + 1e-10)
            parts.append((unit * (head / (layer.shape[2] * layer.shape[3])).sqrt()).flatten(1))
        return torch.cat(parts, 1)  # (B, N)


def perceptual() -> Perceptual:
    """The best backbone on this machine, looked at on the CPU. Nothing is ever downloaded here."""
    backbone, path, wrong = backbones.choose(Path(torch.hub.get_dir()) / "checkpoints")
    if backbone is None or path is None:
        command = backbones.BACKBONES[-1].command
        if wrong:
            return Perceptual("", f"LPIPS off: {wrong}")
        return Perceptual("", f"LPIPS off: backbone not on this machine. Run `{command}` to get it (5 MB), or lpips-alex, lpips-vgg.")
    heads = _heads(backbone)
    if isinstance(heads, str):
        return Perceptual("", f"LPIPS off: {heads}")
    words = f"LPIPS 0.1 through {backbone.title} ({backbone.net}); {ENLARGED}"
    return Perceptual(backbone.net, f"{words}. {wrong}" if wrong else words, Model(_weights(path, path.stat().st_mtime_ns), heads))


@lru_cache(maxsize=1)
def _weights(path: Path, _stamp: int) -> Weights:
    """The features of a file that is known to be genuine."""
    stored: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return {name: value for name, value in stored.items() if name.startswith("features.")}


@lru_cache(maxsize=1)
def _heads(backbone: backbones.Backbone) -> list[Tensor] | str:
    """The trained heads of the package lpips, which is not imported (it takes seconds), or one sentence saying why there are none."""
    spec = find_spec("lpips")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "weights" / "v0.1" / f"{backbone.net}.pth"
        if backbones.complaint(path, backbone.heads, "pip install --force-reinstall lpips==0.1.4") is None:
            stored: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
            return [stored[f"lin{number}.model.1.weight"] for number in range(len(stored))]
    return "the package lpips 0.1.4 with its heads is missing: run `pip install -r requirements.txt`."
