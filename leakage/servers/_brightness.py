"""What servers share that sort pictures by brightness into bins: their fields, and the layers around the bins."""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from leakage.engine.core import Server, param
from leakage.servers._block import normal_edges


@dataclass(frozen=True, kw_only=True)
class SortsByBrightness(Server):
    """Base class of servers that sort pictures by brightness into bins, which are equally likely if brightness is normally distributed."""

    changes = "architecture"
    reading = ("bins",)
    widths = ("bins",)
    granted = "How bright such pictures are", "a normal distribution with mean {mean:g} and standard deviation {deviation:g}"
    presets = {"Handwritten digits: their brightness": {"mean": 0.1307, "deviation": 0.0435}}

    bins: int = param(256, 2, 1024, "Bins into which pictures are sorted; with more bins, more pictures are alone in theirs.")
    mean: float = param(0.4747, 0, 1, "The average brightness of pictures of this kind, from 0 (black) to 1, as the server assumes it.")
    deviation: float = param(0.1258, 0.001, 1, "How far their brightness varies (its standard deviation), as the server assumes it.")
    gain: float = param(1.0, 1e-6, 1000, "How strongly the added layer acts on the network; this number is divided by the number of bins.")

    def around(self, sort: nn.Linear, on: nn.Module, image_shape: tuple[int, int, int]) -> dict[str, nn.Module]:
        """Return the layers from flattening to a picture of one color, which is gain / bins times the sum of all units.

        Args:
            sort: a layer with a unit for each bin.
            on: the activation of its units.
            image_shape: (C, H, W) of the picture.
        """
        mix = nn.Linear(self.bins, prod(image_shape))
        with torch.no_grad():
            mix.weight.fill_(self.gain / self.bins)
            mix.bias.zero_()
        return {"flat": nn.Flatten(), "sort": sort, "on": on, "mix": mix, "picture": nn.Unflatten(1, image_shape)}

    def one_bin_each(self) -> tuple[Tensor, Tensor]:
        """Return factors a (K,) and biases b (K,), so that a_i v + b_i is between 0 and 1 for a brightness v in bin i.

        a_i v + b_i = (v - c_i) / (c_(i+1) - c_i), where c_i is the (i + 1)/(K + 2) quantile, i = 0, ..., K. A picture is below the first
        bin or above the last with a probability of 1/(K + 2) each.
        """
        edges = torch.tensor(normal_edges(self.bins + 2, self.mean, self.deviation)[1:], dtype=torch.float64)  # (K + 1,)
        return 1 / edges.diff(), -edges[:-1] / edges.diff()
