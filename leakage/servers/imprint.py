"""Robbing the Fed: a layer in front of the network sorts pictures by brightness, and its gradient gives single pictures."""

from dataclasses import dataclass
from math import prod

import torch
from torch import nn

from leakage.engine.arranged import Bins
from leakage.servers._block import normal_edges, put_in_front, refuse_large_block
from leakage.servers._brightness import SortsByBrightness

NAME = "imprint"  # of the block in the network
BELOW = -10.0  # lower edge of the first bin: darker than any picture


@dataclass(frozen=True, kw_only=True)
class Imprint(SortsByBrightness):
    """Put relu(W x + b) in front of the network: K equal rows that average the n pixels of x, and biases -c_1 < ... < -c_K.

    Unit i is on for all pictures with a brightness above c_i, where c_i is the i/K quantile of the assumed law of brightness. So the
    difference of the gradients of rows i and i + 1 belongs to the pictures with a brightness between c_i and c_(i+1) (bin i). If a single
    picture falls into the bin, the difference of the weight's rows divided by that of the bias's entries is this picture. If all bins are
    equally likely, a fraction (1 - 1/K)^(B-1) of B pictures is alone in its bin on average.
    A second layer gives the network a picture of one colour: `gain` times the sum of all units. It must leave the network a gradient: a
    gain that is too large drives sigmoids to saturation, and every gradient is 0. A client that sends a displacement of float32 weights
    loses what is below 6e-8 of a weight.
    Source: Fowl et al. 2022, section 4.1 and algorithm 1, with the average of the pixels.
    """

    title = "Sorts pictures by brightness in a layer of its own (imprint)"
    short = "Imprint"
    plain = "The server adds a layer that sorts pictures by brightness; the layer's gradient gives single pictures away."
    hint = "Choose many pictures, or a sum over phones: the attack finds pictures alone in their bins. Then halve the number of bins."
    source = "https://arxiv.org/abs/2110.13057"

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        pixels = prod(image_shape)
        refuse_large_block(self.short, pixels, self.bins)
        sort = nn.Linear(pixels, self.bins)
        edges = [max(edge, BELOW) for edge in normal_edges(self.bins, self.mean, self.deviation)]
        with torch.no_grad():
            sort.weight.fill_(1 / pixels)
            sort.bias.copy_(-torch.tensor(edges))
        return put_in_front(NAME, self.around(sort, nn.ReLU(), image_shape), model)

    def secret(self, model: nn.Module, members: int) -> Bins:
        return Bins(f"{NAME}.sort", cumulative=True)
