"""LPIPS: how alike two pictures look to a network trained on photographs. Ready, or off with the sentence that says why."""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.data import lpips_weights

SMALLEST = 32  # pixels; below 31 AlexNet's last layers see nothing
ENLARGED = f"pictures below {SMALLEST} px are enlarged to {SMALLEST} px (bilinear) for LPIPS"
KEPT = 2**26  # numbers that guesses to be compared may take: 256 MiB
CHUNK = 16  # pictures looked at together, so that memory stays small with VGG too


@dataclass(frozen=True)
class Perceptual:
    """One way to measure LPIPS, or none: then `model` is None, every distance is unknown, and `words` says what to do."""

    net: str
    words: str  # for the page: which backbone, or why it is off
    model: Any = None  # lpips.LPIPS, a package without types

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
        exact = "donot_use_mm_for_euclid_dist"  # the other way loses small distances
        rows, held = [], max(CHUNK, KEPT // self._look(guess[:1]).numel())
        for part in torch.split(guess, held):  # the others are looked at once for each
            seen = torch.cat([self._look(chunk) for chunk in torch.split(part, CHUNK)])  # (<= held, N)
            tables = [torch.cdist(seen, self._look(chunk), compute_mode=exact).square() for chunk in torch.split(others, CHUNK)]
            rows.append(torch.cat(tables, 1))
        return torch.cat(rows).double()  # (B, P)

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
        layers = self.model.net(self.model.scaling_layer(2 * x - 1))
        parts = []
        for layer, head in zip(layers, self.model.lins, strict=True):  # (B, C, h, w) each
            unit = layer / (layer.square().sum(1, keepdim=True).sqrt() + 1e-10)
            weight = head.model[-1].weight / (layer.shape[2] * layer.shape[3])  # (1, C, 1, 1), none negative
            parts.append((unit * weight.sqrt()).flatten(1))
        return torch.cat(parts, 1)  # (B, N)


def perceptual(channels: int = 3) -> Perceptual:
    """The best backbone on this machine for pictures of so many channels, looked at on the CPU. Nothing is ever downloaded here."""
    if channels not in (1, 3):
        return Perceptual("", f"LPIPS off: it looks at grey or colour pictures, and these have {channels} channels.")
    backbone, path, wrong = lpips_weights.choose(lpips_weights.hub())
    if backbone is None or path is None:
        smallest = lpips_weights.BACKBONES[-1]
        if wrong:
            return Perceptual("", f"LPIPS off: {wrong}")
        get = f"Run `{smallest.command}` to get it ({smallest.megabytes} MB), or lpips-alex, lpips-vgg."
        return Perceptual("", f"LPIPS off: backbone not on this machine. {get}")
    loaded = _load(backbone.net, path, path.stat().st_mtime_ns)
    if isinstance(loaded, str):
        return Perceptual("", f"LPIPS off: {loaded}")
    words = f"LPIPS 0.1 through {backbone.title} ({backbone.net}); {ENLARGED}"
    return Perceptual(backbone.net, f"{words}. {wrong}" if wrong else words, loaded)


@lru_cache(maxsize=1)
def _load(net: str, path: Path, _stamp: int) -> Any:
    """LPIPS with the trained heads of the package and the backbone's features from a file that is known to be genuine."""
    try:
        import lpips  # a second (torchvision), once per worker, and only where there is a backbone
    except ImportError as error:
        return f'the package lpips is missing ({error}). Run `pip install "gradient-leakage-explorer[lpips]"`.'
    weights = torch.load(path, map_location="cpu", weights_only=True)
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # lpips 0.1.4 calls torchvision in a way of 2022
        model = lpips.LPIPS(net=net, pnet_rand=True, verbose=False)
    features = {name: weights[f"features.{name.split('.', 1)[1]}"] for name in model.net.state_dict()}  # sliceN.rest from features.rest
    model.net.load_state_dict(features)
    return model.requires_grad_(False)  # a torch module, or the sentence that says why not
