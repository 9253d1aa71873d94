"""LPIPS: the distance of two pictures in the features of a network trained on photographs; off, with a reason, without its weights."""

import math
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.data import lpips_weights
from leakage.evaluation.recent import Recent, digest

SMALLEST = 32  # pixels; below 31 AlexNet's last layers have no output
ENLARGED = f"pictures below {SMALLEST} px are enlarged to {SMALLEST} px (bilinear) for LPIPS"
KEPT = 2**26  # entries of the features of guesses that are kept at once: 256 MiB
REMEMBERED = 2**24  # entries of the features of line-ups that a process remembers: 64 MiB
CHUNK = 16  # pictures in one forward pass, so that memory stays small with VGG too


def recent_features() -> Recent[Tensor]:
    """Return where the features of line-ups are remembered."""
    return Recent(REMEMBERED, Tensor.numel)


@dataclass(frozen=True)
class Perceptual:
    """LPIPS with one backbone; or off: then `model` is None and every distance is NaN."""

    net: str
    """The backbone's name in the package lpips; empty where LPIPS is off."""
    words: str
    """A sentence for the page: which backbone is used, or why LPIPS is off and what to do."""
    model: Any = None
    """An lpips.LPIPS, of a package without types."""
    recent: Recent[Tensor] = field(default_factory=recent_features)
    """The features by this model of the pictures in recent line-ups."""

    def distance(self, guess: Tensor, truth: Tensor) -> Tensor:
        """Compute LPIPS (B,) of each pair of pictures (B, C, H, W): 0 for equal pictures, lower is closer; NaN where LPIPS is off."""
        if self.model is None:
            return torch.full((len(guess),), math.nan, dtype=torch.double)
        pairs = zip(torch.split(guess, CHUNK), torch.split(truth, CHUNK), strict=True)
        return torch.cat([(self._features(a) - self._features(b)).square().sum(1) for a, b in pairs]).double()

    def table(self, guess: Tensor, others: Tensor, *, remember: bool = False) -> Tensor:
        """Compute LPIPS (B, P) of every guess (B, C, H, W) and every other picture (P, C, H, W); NaN where LPIPS is off.

        `remember`: whether this process may remember the features of the others, for the next table with them.
        """
        if self.model is None:
            return torch.full((len(guess), len(others)), math.nan, dtype=torch.double)
        exact = "donot_use_mm_for_euclid_dist"  # a matrix product would lose small distances
        rows, size = [], max(CHUNK, KEPT // self._features(guess[:1]).numel())
        for part in torch.split(guess, size):  # the features of the others are computed once for each part
            features = torch.cat([self._features(chunk) for chunk in torch.split(part, CHUNK)])  # (<= size, N)
            chunks = torch.split(others, CHUNK)
            compared = (self._recalled(chunk) if remember else self._features(chunk) for chunk in chunks)
            tables = [torch.cdist(features, chunk, compute_mode=exact).square() for chunk in compared]
            rows.append(torch.cat(tables, 1))
        return torch.cat(rows).double()  # (B, P)

    def _recalled(self, x: Tensor) -> Tensor:
        return self.recent.recall(digest(x), lambda: self._features(x))

    @torch.no_grad()
    def _features(self, x: Tensor) -> Tensor:
        """Convert pictures (B, C, H, W) in [0, 1] to vectors (B, N); the squared distance of two vectors is their LPIPS.

        LPIPS = sum over layers l of the mean over positions of sum_c w_lc (u_lc - v_lc)^2; u and v are the features, of unit length at
        each position. Source: Zhang et al. 2018, equation 1; weights w of version 0.1.
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
    """Load LPIPS with the best backbone on this machine, on the CPU, for pictures of 1 or 3 channels; it downloads nothing."""
    if channels not in (1, 3):
        return Perceptual("", f"LPIPS off: it looks at grey or colour pictures, and these have {channels} channels.")
    backbone, path, wrong = lpips_weights.choose(lpips_weights.hub())
    if backbone is None or path is None:
        smallest = lpips_weights.BACKBONES[-1]
        if wrong:
            return Perceptual("", f"LPIPS off: {wrong}")
        get = f"To get it, run {smallest.command} ({smallest.megabytes} MB), or lpips-alex, lpips-vgg."
        return Perceptual("", f"LPIPS off: backbone not on this machine. {get}")
    loaded = _load(backbone.net, path, path.stat().st_mtime_ns)
    if isinstance(loaded, str):
        return Perceptual("", f"LPIPS off: {loaded}")
    words = f"LPIPS 0.1 through {backbone.title} ({backbone.net}); {ENLARGED}"
    return Perceptual(backbone.net, f"{words}. {wrong}" if wrong else words, *loaded)


@lru_cache(maxsize=1)
def _load(net: str, path: Path, _stamp: int) -> tuple[Any, Recent[Tensor]] | str:
    """Load LPIPS with the lpips package's trained weights and a backbone's weights from `path`; return a sentence if lpips is missing.

    Args:
        net: the backbone, as lpips names it.
        path: the file of its weights.
        _stamp: the file's modification time, so that a changed file is loaded again.
    """
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
    return model.requires_grad_(False), recent_features()
