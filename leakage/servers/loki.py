"""LOKI: each client receives a convolution of its own, so that a sum of updates keeps the pictures of the clients apart."""

from dataclasses import dataclass
from math import prod

import torch
from torch import nn

from leakage.engine.arranged import Bins
from leakage.engine.core import Params, param
from leakage.servers._block import put_in_front, refuse_large_block
from leakage.servers._brightness import SortsByBrightness
from leakage.spec.words import inputs_of_maps

NAME = "loki"  # of the block in the network


@dataclass(frozen=True, kw_only=True)
class Loki(SortsByBrightness):
    """Put a convolution and the layers of the sparse imprint in front of the network; the convolution differs from client to client.

    The convolution has C + 1 maps for each of m clients. In the model of client z its own maps are scale * x (C of them) and 1; the maps of
    the other clients are 0. Row i of the next layer has the weight 1 / (scale n w_i) for all maps of pictures and 0 for the maps of ones,
    and the bias -c_i / w_i: for each client it is the row of the sparse imprint. In the gradient's sum over the clients, the columns of
    client z hold d_i * scale * x and d_i of its pictures alone, where d_i = dL/dz_i. Their quotient is scale * x if one of the client's
    pictures falls into bin i. So a client's pictures are found as often as without the sum.
    Several local steps move bins and mix maps. A step moves the bin of row i by about rate * scale^2 * d_i ||x||^2 of its widths, and lets
    the other clients' maps grow to rate / scale^2 * v sum_i d_i / w_i of this client's, where v is the brightness. With a scale of 500
    some pictures move into another bin; with the preset for local steps both effects are small.
    Unlike the paper: the map of ones. Without it only the sum of all clients' d_i is known, and the paper's code stretches each picture
    until its darkest pixel is 0 and its brightest 1, which is right for pictures that span 0 to 1. Kernels have one nonzero entry, and
    no ReLU follows the convolution, as pixels are not negative.
    The paper's code has larger gains, because a client that subtracts float32 weights loses what is below 6e-8 of a weight, and so the
    biases; but they drive sigmoids to saturation, and every gradient is 0. The protocols here add displacements up apart.
    Source: Zhao et al. 2024, section 4.
    """

    title = "Gives each phone a first layer of its own (LOKI)"
    short = "LOKI"
    plain = "Each phone receives a first layer of its own, so that a sum over phones still keeps their pictures apart."
    hint = "Add phones to the sum: the attack finds each phone's pictures as if the phone were alone. Then let the phones compare models."
    source = "https://arxiv.org/abs/2303.12233"
    own_maps = True
    presets = {**SortsByBrightness.presets, "Several local steps": {"scale": 50.0, "gain": 0.001}}

    scale: float = param(500.0, 1, 10000, "The factor by which a phone's own first layer multiplies its pictures.")

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        channels, inputs = image_shape[0], inputs_of_maps(image_shape, members)
        refuse_large_block(self.short, prod(image_shape), self.bins, inputs=inputs)
        maps, sort = nn.Conv2d(channels, members * (channels + 1), 3, padding=1), nn.Linear(inputs, self.bins)
        factors, biases = self.one_bin_each()
        with torch.no_grad():
            maps.weight.zero_()
            for channel in range(channels):  # the maps of the first client, which `single_out` moves
                maps.weight[channel, channel, 1, 1] = self.scale
            maps.bias = nn.Parameter(torch.zeros(maps.out_channels).index_fill_(0, torch.tensor(channels), 1))
            sort.weight.zero_()
            of_maps = sort.weight.view(self.bins, members, channels + 1, -1)  # (K, m, C + 1, H W)
            of_maps[:, :, :channels] = (factors / (self.scale * prod(image_shape))).to(of_maps).view(-1, 1, 1, 1)
            sort.bias.copy_(biases)
        return put_in_front(NAME, {"maps": maps, **self.around(sort, nn.Hardtanh(0, 1), image_shape)}, model)

    def single_out(self, model: nn.Module, weights: Params, member: int, members: int) -> Params:
        if member == 0:
            return weights
        names = (f"{NAME}.maps.weight", f"{NAME}.maps.bias")
        own = len(weights[names[0]]) // members  # maps of one client
        return {**weights, **{name: weights[name].roll(member * own, 0) for name in names}}

    def secret(self, model: nn.Module, members: int) -> Bins:
        return Bins(f"{NAME}.sort", cumulative=False, clients=members, scale=self.scale)
