"""Closed forms on random networks that break an assumption of theirs: nothing false is proved, and what does not apply says so.

Each network draws, by its seed, how pixels enter, the layers, the nonlinearity and how it is written, and what stands between the layers.
"""

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.engine.core import DoesNotApplyError

COUNT = 200
SIDE, CLASSES = 5, 4
EXACT, FALSE = 60.0, 40.0  # dB
CLOSED = ("linear_layer", "exact_batches", "r_gap", "h_gap", "r_gap_dlg", "twin_data")
SEARCHES = ("h_gap", "r_gap_dlg")  # of these a search is part
Way = Callable[[Tensor], Tensor]

ENTERING: dict[str, Way] = {
    "as they are": lambda x: x,
    "2 x - 1": lambda x: 2 * x - 1,
    "normalised": lambda x: (x - x.new_tensor([0.4, 0.5, 0.6]).view(3, 1, 1)) / 0.25,
    "mirrored": lambda x: x.flip(3),
    "transposed": lambda x: x.transpose(2, 3),
    "channels last": lambda x: x.permute(0, 2, 3, 1),
    "padded": lambda x: F.pad(x, (1, 1, 1, 1)),
    "blue, green, red, from -1 to 1": lambda x: x.flip(1) * 2 - 1,
    "squared": lambda x: x.square(),
    "by its own mean": lambda x: x - x.mean((1, 2, 3), keepdim=True),
    "pooled": lambda x: F.avg_pool2d(x, 2),
    "cropped": lambda x: x[:, :, 1:, 1:],
    "grey": lambda x: x.mean(1, keepdim=True),
    "clipped": lambda x: x.clamp(0.2, 0.8),
    "beside its square": lambda x: torch.cat([x, x.square()], 1),
}
BENDS: dict[str, Way] = {
    "F.relu": F.relu,
    "in place": lambda z: F.relu(z, inplace=True),
    "clamp": lambda z: z.clamp(min=0),
    "maximum": lambda z: torch.maximum(z, torch.zeros_like(z)),
    "where": lambda z: torch.where(z > 0, z, torch.zeros_like(z)),
    "leaky": lambda z: F.leaky_relu(z, 0.2),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "relu6": F.relu6,
    "absolute": torch.abs,
    "shifted": lambda z: F.relu(z - 0.1),
}
BETWEEN: dict[str, Way] = {
    "nothing": lambda z: z,
    "dropout": lambda z: F.dropout(z, 0.5, training=False),
    "scaled": lambda z: 3 * z,
    "normalised": lambda z: F.layer_norm(z, z.shape[1:]),
    "pooled": lambda z: F.max_pool1d(z.unsqueeze(1), 2).squeeze(1),
    "turned round": lambda z: z.flip(1),
}


class Drawn(nn.Module):
    """A network of fully connected layers, or a convolution before them, whose forward breaks what its seed draws."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(seed)

        def pick(of: dict[str, Way], plain: float) -> tuple[str, Way]:
            names = list(of)
            name = names[0] if float(torch.rand((), generator=rng)) < plain else names[int(torch.randint(len(names), (), generator=rng))]
            return name, of[name]

        def chance(share: float) -> bool:
            return float(torch.rand((), generator=rng)) < share

        (entering, self.enter), (bend, self.bend), (between, self.between) = pick(ENTERING, 0.3), pick(BENDS, 0.3), pick(BETWEEN, 0.5)
        self.convolved, self.shared, self.residual, bias, deep = chance(0.15), chance(0.1), chance(0.15), chance(0.8), chance(0.5)
        self.last_first = chance(0.3)  # the layers are defined in another order than they are called in
        probe = self.enter(torch.rand(1, 3, SIDE, SIDE)).flatten(1)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            width = 36
            if self.convolved:
                self.conv = nn.Conv2d(self.enter(torch.rand(1, 3, SIDE, SIDE)).shape[1], 4, 3, padding=1)
                probe = self.conv(self.enter(torch.rand(1, 3, SIDE, SIDE))).flatten(1)
            shapes = {"first": (probe.shape[1], width), "middle": (width, width), "skip": (probe.shape[1], width)}
            out = self.between(torch.rand(1, width)).shape[1]
            shapes["last"] = (out, CLASSES)
            used = ["first", *["middle"] * (deep or self.shared), *["skip"] * self.residual, "last"]
            for name in reversed(used) if self.last_first else used:
                self.add_module(name, nn.Linear(*shapes[name], bias=bias or name == "last"))
        self.deep = deep or self.shared
        self.drawn = f"{entering}; {bend}; {between}" + "".join(
            f"; {what}" for what, there in {"convolution": self.convolved, "shared": self.shared, "residual": self.residual}.items() if there
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.enter(x)
        h = self.bend(self.conv(h)) if self.convolved else h
        h = h.flatten(1)
        z = self.bend(self.first(h))
        z = z + self.skip(h) if self.residual else z
        if self.deep:
            z = self.bend(self.middle(z))
        if self.shared:
            z = self.bend(self.middle(z))
        out: Tensor = self.last(self.between(z))
        return out


def outcome(seed: int, attack: str) -> tuple[str, float, str]:
    """What an attack came to on the network of a seed: a word, PSNR in dB, and why or what it said of itself."""
    net, batch = Drawn(seed), 1 if attack in SEARCHES or seed % 2 else 2
    x = torch.rand((batch, 3, SIDE, SIDE), generator=torch.Generator().manual_seed(seed))
    made = leakage.plugin(attack, steps=2, tries=1) if attack == "h_gap" else leakage.plugin(attack, steps=2) if attack == "r_gap_dlg" else attack
    try:
        result = leakage.attack(net, x, torch.arange(batch) % CLASSES, attack=made)
    except DoesNotApplyError as error:
        return "does not apply", 0.0, str(error)
    psnr = min(result.scores["psnr_each"])
    said = str(result.note.get("event", ""))
    return "proved" if any(result.proved) or said.startswith("Proved") else "answered", psnr, said
