"""Shared parts of the benchmark of cheating servers: LOKI as its published demo builds it and counts what leaks."""

from typing import Any

import torch
from _bins import are_alone, come_first_alone, mean_psnr, stretched
from _cheating import drawn, law, sparse_bins
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, hardtanh, relu

from leakage.servers._block import normal_edges
from leakage.spec.experiment import Part
from leakage.workers.adapter import untrained

CLIENTS, EACH, BINS, MINI = 10, 64, 256, 8
SIDE, CHANNELS = 32, 3
PIXELS = CHANNELS * SIDE * SIDE
BODY = Part(id="resnet", fields={"kind": "resnet50", "width": 8, "normalise": "none"})  # the demo's is 64 wide
KERNEL, MIX = 500.0, 1000.0  # the demo's gains, in the convolution and in the second fully connected layer
TOO_FEW = 18.0  # dB: a worse picture is not the private one


class Demo(nn.Module):
    """The network that one client receives: its own maps, the layer that sorts, the layer that mixes, and the body.

    Args:
        body: what follows, for pictures (B, 3, 32, 32).
        client: the number of the client.
    """

    def __init__(self, body: nn.Module, client: int) -> None:
        super().__init__()
        edges = torch.tensor(normal_edges(BINS + 2, **law("cifar10"))[1:], dtype=torch.float64)
        widths = edges.diff()
        self.maps = nn.Conv2d(CHANNELS, CHANNELS * CLIENTS, 3, padding=1)
        self.sort, self.mix, self.body = nn.Linear(PIXELS * CLIENTS, BINS), nn.Linear(BINS, PIXELS), body
        self.own_maps = slice(CHANNELS * client, CHANNELS * (client + 1))
        self.own_columns = slice(PIXELS * client, PIXELS * (client + 1))
        with torch.no_grad():
            for layer in (self.maps, self.mix):
                layer.weight.zero_()
                layer.bias.zero_()  # type: ignore[union-attr]
            for channel, kernel in enumerate(self.maps.weight[self.own_maps]):
                kernel[channel, 1, 1] = KERNEL
            self.sort.weight.copy_((1 / (KERNEL * PIXELS * widths)).unsqueeze(1).expand_as(self.sort.weight))
            self.sort.bias.copy_(-edges[:-1] / widths)
            self.mix.weight.fill_(MIX)

    def forward(self, x: Tensor) -> Tensor:
        sorted_into = hardtanh(self.sort(relu(self.maps(x)).flatten(1)), 0, 1)
        logits: Tensor = self.body(self.mix(sorted_into).view(-1, CHANNELS, SIDE, SIDE))
        return logits

    def switched_on(self, x: Tensor) -> Tensor:
        """Return which rows (B, K) pictures switch on, by the client's own columns alone, as the demo counts."""
        with torch.no_grad():
            value = relu(self.maps(x))[:, self.own_maps].flatten(1) @ self.sort.weight[:, self.own_columns].T + self.sort.bias
        return (value > 0) & (value < 1)


def demo_count(rate: float, draw: int) -> dict[str, Any]:
    """Return the demo's count: rows that one picture alone switches on over 8 local steps, each with the weights of its step.

    Beside it: the pictures alone in their bins, those that come first in their bins, by their brightness; and of the counted rows the
    pictures above 18 dB and the mean PSNR of all that are finite, each stretched from 0 to 1 as in the demo.
    """
    x, y = drawn("cifar10", draw, CLIENTS * EACH)
    counts, guesses, truths = {"counted": 0, "alone": 0, "first_in_their_bin": 0}, list[Tensor](), list[Tensor]()
    for client, (own, labels) in enumerate(zip(x.split(EACH), y.split(EACH), strict=True)):
        net = Demo(untrained(BODY, (CHANNELS, SIDE, SIDE), 10, seed=100 * draw + client).train(), client)
        descent, before = torch.optim.SGD(net.parameters(), lr=rate), net.sort.weight.detach()[:, net.own_columns].clone()
        on = list[Tensor]()
        for pictures, classes in zip(own.split(MINI), labels.split(MINI), strict=True):
            on.append(net.switched_on(pictures))
            descent.zero_grad()
            cross_entropy(net(pictures), classes).backward()
            descent.step()
        answered = torch.cat(on)  # (B, K)
        single = (answered.sum(0) == 1).nonzero().flatten()
        of = sparse_bins(own, BINS)
        counts["counted"] += len(single)
        counts["alone"] += int(are_alone(of, BINS).sum())
        counts["first_in_their_bin"] += int(come_first_alone(of, BINS, MINI).sum())
        moved = (net.sort.weight.detach()[:, net.own_columns] - before)[single].double()
        kept = (moved.amax(1) > moved.amin(1)) & moved.isfinite().all(1)
        guesses.append(stretched(moved[kept]).float())
        truths.append(own[answered[:, single].int().argmax(0)][kept])
    guess, truth = torch.cat(guesses), torch.cat(truths)
    good = sum(mean_psnr(one, picture.unsqueeze(0)) > TOO_FEW for one, picture in zip(guess, truth, strict=True))
    return {**counts, "above_18_dB": good, "psnr_stretched": mean_psnr(guess, truth)}
