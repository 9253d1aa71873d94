"""The linear maps of a network's layers, z = W x + b, for several guesses at once: z, the derivatives by W, b and x, and R of these.

Pictures are N = S B: S guesses (lanes) of B pictures, those of one guess side by side. All guesses share W and b. R is the derivative along
a direction in the weights: V = R W (S, m, ...) and R b (S, m), which each guess has for itself. Each map keeps its input x in the form
that `entered` gives it, and takes W and V in the forms that `matrix` and `direction` give them.

    forward    z = W x + b                                        along            R z = W R x + V x + R b
    backward   dL/dW and dL/db of each guess, (S, ...), and,      backward_along   R dL/dx = W^T R d + V^T d
               where it is needed, dL/dx = W^T d
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

aten = torch.ops.aten


@dataclass(frozen=True)
class FullyConnected:
    """A linear layer: x (N, n), W (m, n), z (N, m)."""

    lanes: int

    def matrix(self, weight: Tensor) -> Tensor:
        return weight

    def direction(self, weight: Tensor, v: Tensor) -> Tensor:
        return v

    def entered(self, x: Tensor) -> Tensor:
        return x

    def forward(self, weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
        return F.linear(x, weight, bias)

    def backward(self, weight: Tensor, x: Tensor, d: Tensor, *, needed: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        each = d.view(self.lanes, -1, d.shape[1])
        return each.mT.bmm(x.view(self.lanes, -1, x.shape[1])), each.sum(1), d.mm(weight) if needed else None

    def along(self, weight: Tensor, x: Tensor, r: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
        x = x.view(self.lanes, -1, x.shape[1])
        z = (x.bmm(v.mT) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, v.mT)).flatten(0, 1)
        return z if r is None else torch.addmm(z, r, weight.t())

    def backward_along(self, weight: Tensor, d: Tensor, rd: Tensor, v: Tensor) -> Tensor:
        own = d.view(self.lanes, -1, d.shape[1]).bmm(v).flatten(0, 1)
        return torch.addmm(own, rd, weight)


@dataclass(frozen=True)
class Geometry:
    """The kernel's side, the stride, the padding of a convolution, and height and width of its input and output."""

    side: int
    stride: int
    padding: int
    x: tuple[int, int]
    z: tuple[int, int]


@dataclass(frozen=True)
class Columns:
    """A convolution as a matrix product over columns (N, I, P), the I numbers under the kernel at each of P positions."""

    lanes: int
    at: Geometry

    def matrix(self, weight: Tensor) -> Tensor:
        return weight.flatten(1)

    def direction(self, weight: Tensor, v: Tensor) -> Tensor:
        return v.flatten(2)

    def entered(self, x: Tensor) -> Tensor:
        at = self.at
        x = F.pad(x, (at.padding,) * 4) if at.padding else x
        picture, channel, down, across = x.stride()
        steps = (picture, channel, down, across, down * at.stride, across * at.stride)
        windows = x.as_strided((*x.shape[:2], at.side, at.side, *at.z), steps, x.storage_offset())
        return windows.reshape(len(x), -1, at.z[0] * at.z[1])  # a copy that takes half of the time of aten.im2col

    def forward(self, matrix: Tensor, bias: Tensor | None, columns: Tensor) -> Tensor:
        every = matrix.expand(len(columns), -1, -1)
        z = every.bmm(columns) if bias is None else torch.baddbmm(bias.view(1, -1, 1), every, columns)
        return z.view(len(columns), -1, *self.at.z)

    def backward(self, matrix: Tensor, columns: Tensor, d: Tensor, *, needed: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        d = d.flatten(2)
        each = self._by_lane(d)
        back = self._folded(matrix.t().expand(len(d), -1, -1).bmm(d)) if needed else None
        return each.bmm(self._by_lane(columns).mT), each.sum(2), back

    def along(self, matrix: Tensor, columns: Tensor, r: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
        own = self._by_picture(v, len(columns))
        biases = None if bias is None else self._by_picture(bias, len(columns)).unsqueeze(2)
        z = own.bmm(columns) if biases is None else torch.baddbmm(biases, own, columns)
        if r is not None:
            z = torch.baddbmm(z, matrix.expand(len(columns), -1, -1), self.entered(r))
        return z.view(len(columns), -1, *self.at.z)

    def backward_along(self, matrix: Tensor, d: Tensor, rd: Tensor, v: Tensor) -> Tensor:
        back = matrix.t().expand(len(d), -1, -1).bmm(rd.flatten(2))
        return self._folded(torch.baddbmm(back, self._by_picture(v, len(d)).mT, d.flatten(2)))

    def _folded(self, columns: Tensor) -> Tensor:
        at = self.at
        if torch.compiler.is_compiling():
            return self._gathered(columns)
        x: Tensor = aten.col2im(columns, at.x, (at.side, at.side), (1, 1), (at.padding, at.padding), (at.stride, at.stride))
        return x

    def _gathered(self, columns: Tensor) -> Tensor:
        """Return what `_folded` returns, as sums that a compiler fuses; it would scatter the columns one by one, which takes longer.

        A kernel of A s rows reaches row s (i + a) + b from position i, where a < A and b < s: for each a, the rows are shifted by a.
        """
        at, s = self.at, self.at.stride
        reach = -(-at.side // s)
        windows = F.pad(columns.view(len(columns), -1, at.side, at.side, *at.z), (0, 0, 0, 0, *(0, reach * s - at.side) * 2))
        windows = windows.view(*windows.shape[:2], reach, s, reach, s, *at.z)
        shifted = [F.pad(windows[:, :, a, :, b], (b, reach - 1 - b, a, reach - 1 - a)) for a in range(reach) for b in range(reach)]
        x = sum(shifted[1:], shifted[0]).permute(0, 1, 4, 2, 5, 3).flatten(4, 5).flatten(2, 3)
        beyond = [max(0, side + at.padding - length) for side, length in zip(at.x, x.shape[2:], strict=True)]
        x = F.pad(x, (0, beyond[1], 0, beyond[0])) if any(beyond) else x
        return x[..., at.padding : at.padding + at.x[0], at.padding : at.padding + at.x[1]]

    def _by_lane(self, values: Tensor) -> Tensor:
        """Return values (N, I, P) as (S, I, B P), with the positions of a guess's pictures in a row."""
        each = values.shape[0] // self.lanes
        return values if each == 1 else values.view(self.lanes, each, *values.shape[1:]).transpose(1, 2).flatten(2)

    def _by_picture(self, values: Tensor, pictures: int) -> Tensor:
        """Return what each guess has, (S, ...), for each of its pictures, (N, ...)."""
        return values if pictures == self.lanes else values.repeat_interleave(pictures // self.lanes, 0)


@dataclass(frozen=True)
class Convolution:
    """A convolution of x (N, C, H, W) by the library."""

    lanes: int
    at: Geometry

    def matrix(self, weight: Tensor) -> Tensor:
        return weight

    def direction(self, weight: Tensor, v: Tensor) -> Tensor:
        side_by_side = self.lanes == 1 and weight.is_contiguous(memory_format=torch.channels_last)  # the channels of a pixel
        return v[0].contiguous(memory_format=torch.channels_last).unsqueeze(0) if side_by_side else v

    def entered(self, x: Tensor) -> Tensor:
        return x

    def forward(self, weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
        return F.conv2d(x, weight, bias, self.at.stride, self.at.padding)

    def backward(self, weight: Tensor, x: Tensor, d: Tensor, *, needed: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        if self.lanes == 1:
            back, by_weight, by_bias = self._backward(d, x, weight, (needed, True, True))
            return by_weight.unsqueeze(0), by_bias.unsqueeze(0), back
        each = len(x) // self.lanes
        lanes = zip(d.split(each), x.split(each), strict=True)
        parts = [self._backward(d_lane, x_lane, weight, (False, True, True)) for d_lane, x_lane in lanes]
        back = self._transposed(weight, d) if needed else None
        return torch.stack([part[1] for part in parts]), torch.stack([part[2] for part in parts]), back

    def along(self, weight: Tensor, x: Tensor, r: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
        if self.lanes == 1:  # both sums by one call, with the channels side by side
            if r is None:
                return self.forward(v[0], None if bias is None else bias[0], x)
            return self.forward(torch.cat([weight, v[0]], 1), None if bias is None else bias[0], torch.cat([r, x], 1))
        parts = enumerate(x.split(len(x) // self.lanes))
        z = torch.cat([self.forward(v[lane], None if bias is None else bias[lane], part) for lane, part in parts])
        return z if r is None else z + self.forward(weight, None, r)

    def backward_along(self, weight: Tensor, d: Tensor, rd: Tensor, v: Tensor) -> Tensor:
        if self.lanes == 1:
            return self._transposed(torch.cat([weight, v[0]], 0), torch.cat([rd, d], 1))
        parts = enumerate(d.split(len(d) // self.lanes))
        return self._transposed(weight, rd) + torch.cat([self._transposed(v[lane], part) for lane, part in parts])

    def _transposed(self, weight: Tensor, d: Tensor) -> Tensor:
        x = d.new_empty(()).expand(len(d), weight.shape[1], *self.at.x)  # only its shape is read
        back: Tensor = self._backward(d, x, weight, (True, False, False))[0]
        return back

    def _backward(self, d: Tensor, x: Tensor, weight: Tensor, wanted: tuple[bool, bool, bool]) -> Any:
        at = self.at
        stride, padding = (at.stride, at.stride), (at.padding, at.padding)
        return aten.convolution_backward(d, x, weight, [d.shape[1]], stride, padding, (1, 1), False, (0, 0), 1, wanted)


Map = FullyConnected | Columns | Convolution
