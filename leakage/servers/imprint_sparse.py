"""Robbing the Fed, sparse: each row of a layer in front of the network answers to the pictures of a single bin of brightness."""

from dataclasses import dataclass
from math import prod

import torch
from torch import nn

from leakage.engine.arranged import Bins
from leakage.servers._block import put_in_front, refuse_large_block
from leakage.servers._brightness import SortsByBrightness

NAME = "imprint_sparse"  # of the block in the network


@dataclass(frozen=True, kw_only=True)
class ImprintSparse(SortsByBrightness):
    """Put hardtanh(W x + b) between 0 and 1 in front of the network: W_i averages the n pixels of x, divided by the width w_i of bin i.

    With b_i = -c_i / w_i and w_i = c_(i+1) - c_i, unit i is 0 for a brightness below bin i and 1 above it, and its gradient is 0 there. So
    row i belongs to the pictures in bin i, and dL/dW_i / dL/db_i is the picture if a single one falls into the bin. As rows are not
    subtracted, local steps do not mix bins as long as the layer hardly moves. Each of the K bins has the probability 1/(K + 2), and the
    pictures below the first bin and above the last are lost.
    A second layer gives the network a picture of one colour: `gain` times the mean of all units. It must leave the network a gradient: a
    gain that is too large drives sigmoids to saturation, and every gradient is 0. Weights and biases are large here, because bins are
    narrow. A client that subtracts float32 weights loses what is below 6e-8 of them, which is all of the biases at a local learning rate
    of 1e-4; a larger gain helps. The protocols here add displacements up apart, so that they lose nothing.
    Source: Fowl et al. 2022, the sparse variant for several local steps, with the average of the pixels.
    """

    title = "Gives each bin of brightness a row of its own (sparse imprint)"
    short = "Sparse imprint"
    plain = "The server adds a layer in which each row answers to pictures of one brightness; a row with a single picture gives it away."
    hint = "Let the phone train for several steps before it sends: the bins survive. Compare with the imprint."
    source = "https://arxiv.org/abs/2110.13057"

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        pixels = prod(image_shape)
        refuse_large_block(self.short, pixels, self.bins)
        sort, (factors, biases) = nn.Linear(pixels, self.bins), self.one_bin_each()
        with torch.no_grad():
            sort.weight.copy_((factors / pixels).unsqueeze(1).expand(-1, pixels))
            sort.bias.copy_(biases)
        return put_in_front(NAME, self.around(sort, nn.Hardtanh(0, 1), image_shape), model)

    def secret(self, model: nn.Module, members: int) -> Bins:
        return Bins(f"{NAME}.sort", cumulative=False)
