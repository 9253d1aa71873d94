"""R-GAP's climb from the outputs to the picture: what enters a layer, from what leaves it, for every explanation of the gradient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._logit import Top
from leakage.engine.core import Params
from leakage.engine.equations import Said, Solved, Sums, TooLargeError, solve_as_published, solve_together
from leakage.engine.link import Link
from leakage.engine.stretch import Search, Stretch, solve_stretch

BALANCED, PUBLISHED, TOGETHER = SYSTEMS = ("balanced", "as published", "together")
ALIKE = 10.0  # an explanation is kept while its equations hold at most so many times worse than the best one's
EXACT = 1e-6  # ... or as well as this
SURE = 1e-9  # ... and by this it is the one


@dataclass(frozen=True)
class Climb:
    """One explanation of the gradient, worked out down to the input x of one layer.

    slope      dL/dx
    solved     how that layer's equations were solved; None for a linear one
    residual   the largest of all layers so far
    short      the first layer whose equations did not determine its input, unless layers below it made up for that
    open       the layers that are solved together with the next one, since their own equations were too few
    """

    top: Top
    link: Link
    x: Tensor
    slope: Tensor
    solved: Solved | None = None
    residual: float = 0.0
    short: str = ""
    open: Stretch | None = None

    @property
    def tested(self) -> bool:
        """Whether every layer had equations enough: where they are too few they hold of anything."""
        return not self.open and not self.short

    @property
    def words(self) -> str:
        """Its name for the page."""
        return f"label {self.top.label}" + (f", mu = {self.top.mu:.3g}" if self.top.mu is not None else "")

    @property
    def note(self) -> dict[str, str | int | float]:
        """The layer in numbers."""
        told: dict[str, str | int | float] = {"layer": self.link.name}
        return told | ({name: value for name, value in vars(self.solved).items() if name != "x"} if self.solved else {})


@dataclass(frozen=True)
class Ladder:
    """The weights and what was sent, in float64, and how each layer is solved."""

    weights: Params
    gradient: Params
    system: str

    def all_down(self, climbs: Sequence[Climb], link: Link) -> Search[list[Climb]]:
        """All explanations one layer further down, without those that contradict themselves. Raises TooLargeError.

        Of those that the loss of several outputs allows the likelier comes first: where its equations hold, the others are not tried.
        """
        found = list[Climb]()
        for climb in climbs:
            found.append((yield from self.down(climb, link)))
            done = found[-1]
            if done.top.mu is None and done.solved and done.tested and done.residual <= SURE:
                break
        return agreeing(found)

    def down(self, climb: Climb, link: Link) -> Search[Climb]:
        """One layer further down: the input of `link`, whose output is the input that has been found. Raises TooLargeError."""
        out = climb.x.reshape(link.z)
        z = link.before(out)
        k = climb.slope.reshape(link.z) * link.slope(z)
        finite = bool((k.sum() + z.sum()).isfinite())
        if not finite or not bool(k.any()):  # noise; or nothing passes: a ReLU lets nothing through, or a wrong label says so
            return replace(climb, link=link, residual=math.inf)
        one = Stretch((link,), z, link.known(z), k)
        solved, x, slope = yield from self._alone(one)
        off = max(self._off(link, k), solved.residual if solved else self._outer(link, k, x))
        short = solved is not None and solved.rank < solved.unknowns
        if self.system == TOGETHER and (short or climb.open):
            return (yield from self._together(replace(climb, link=link, x=x, slope=slope, solved=solved), one))
        name = climb.short or (link.name if short else "")
        return replace(climb, link=link, x=x, slope=slope, solved=solved, residual=max(climb.residual, off), short=name)

    def _alone(self, one: Stretch) -> Search[tuple[Solved | None, Tensor, Tensor]]:
        """How a layer is solved by its own equations, its input x and dL/dx; of several solutions the shortest."""
        (link,), z, k = one.links, one.z, one.k
        if link.body:
            solved = yield from self._block(one)
            return solved, solved.x, one.slope(self.weights, solved.x)
        slope = link.pull(self.weights, k)
        if link.is_mean:
            x = link.shortest(z)
            return Solved(x, z.numel(), x.numel(), z.numel(), 1.0, 0.0), x, slope
        if not link.is_convolution:
            x = (k @ self.gradient[f"{link.name}.weight"] / k.square().sum()).view(link.x)
            return None, x, slope
        solved = self._solve([self._said(link, k, z, one.known)], link)
        return solved, solved.x, slope

    def _outer(self, link: Link, k: Tensor, x: Tensor) -> float:
        """Of a linear layer: by which share its gradient is not k x^T."""
        g = self.gradient[f"{link.name}.weight"]
        return float((torch.outer(k, x.flatten()) - g).norm() / g.norm())

    def _said(self, link: Link, k: Tensor, z: Tensor, known: Tensor) -> Said:
        """What a convolution says of its input, its norm folded into it."""
        scale, bias = link.scale(self.weights), link.bias(self.weights)
        z = z if bias is None else z - bias.view(-1, 1, 1)
        inner = k if scale is None else k * scale.view(-1, 1, 1)
        g, w = self.gradient[f"{link.name}.weight"], link.weight(self.weights)
        return Said(w, z, known, inner, g, link.stride, link.padding, self._sums(link, k))

    def _sums(self, link: Link, k: Tensor) -> Sums | None:
        """dL/dgamma = sum over positions of k (w * x + bias - mean) / deviation, where it was sent."""
        norm, name = link.norm, f"{link.norm.name}.weight" if link.norm else ""
        if norm is None or not bool(self.gradient[name].any()):
            return None
        factors = k / norm.deviation.view(-1, 1, 1)
        off = norm.mean - self.weights.get(f"{link.name}.bias", 0.0)
        return Sums(self.weights[f"{link.name}.weight"], factors, self.gradient[name] + off * factors.sum((1, 2)))

    def _solve(self, said: Sequence[Said], link: Link) -> Solved:
        """The input of a convolution, and of a skip beside it."""
        sides, one = (link.x[1], link.x[2]), said[0]
        try:
            if self.system != PUBLISHED or len(said) > 1 or one.k is None or one.g is None or not bool(one.known.any()):
                return solve_together(said, sides)
            return solve_as_published(one.k, one.g, one.w, one.z, one.known, stride=one.stride, padding=one.padding, sides=sides)
        except TooLargeError as error:
            raise TooLargeError(link.name) from error

    def _block(self, one: Stretch) -> Search[Solved]:
        """What enters a residual block f = W_n x_n + skip(x_1), x_n = bend(W_(n-1) x_(n-1)), and so on.

        Its output says nothing of x_n alone, so x_n follows from the gradient of W_n; the layers below as in a chain; x_1 from all that
        W_1 and the skip say, whose output is f - W_n x_n. Where the gradient of W_n is not enough, all equations are solved at once.
        """
        (link,), k = one.links, one.k
        first, last, left = link.body[0], link.body[-1], 0
        solved = self._solve([self._said(last, k, k.new_zeros(last.z), k.new_zeros(last.z).bool())], last)
        slope, over = last.pull(self.weights, k), one.z - last.map(self.weights, solved.x)
        for part in link.body[-2::-1]:
            left += solved.unknowns - solved.rank
            z = part.before(solved.x)
            inner = slope * part.slope(z)
            said = [self._said(part, inner, z, part.known(z))]
            if part is first:
                said.append(self._said(link.skip, k, over, one.known) if link.skip else Said(_identity(len(over)), over, one.known))
            solved, slope = self._solve(said, part), part.pull(self.weights, inner)
        if left and one.fits(self.gradient):
            return (yield from solve_stretch(one, self.weights, self.gradient, solved.x))
        rank = max(min(solved.rank, solved.unknowns - left), 0)
        off = one.off(self.weights, self.gradient, solved.x)
        return replace(solved, equations=one.equations(self.gradient), rank=rank, residual=off)

    def _together(self, climb: Climb, one: Stretch) -> Search[Climb]:
        """A layer whose own equations are too few is solved with those below it, one more at a time, until they suffice."""
        stretch = climb.open.under(climb.link) if climb.open else one
        if len(stretch.links) == 1:
            return replace(climb, open=stretch)
        if not stretch.fits(self.gradient):
            return replace(climb, open=None, short=climb.short or stretch.links[-1].name)
        solved = yield from solve_stretch(stretch, self.weights, self.gradient, climb.x)
        if not bool(solved.x.isfinite().all()):
            return replace(climb, residual=math.inf)
        found = replace(climb, x=solved.x, slope=stretch.slope(self.weights, solved.x), solved=solved)
        if solved.rank == solved.unknowns and solved.residual <= EXACT:
            return replace(found, residual=max(climb.residual, solved.residual), open=None)
        return replace(found, open=stretch)

    def _off(self, link: Link, k: Tensor) -> float:
        """By which share dL/dbeta, the sum of k, is missed; 0 without a norm, or where it was not sent."""
        sent = self.gradient.get(f"{link.norm.name}.bias") if link.norm else None
        return float((k.sum((1, 2)) - sent).norm() / sent.norm()) if sent is not None and bool(sent.any()) else 0.0


def agreeing(climbs: list[Climb]) -> list[Climb]:
    """Those whose equations hold about as well as the best one's, which comes first: a wrong label soon contradicts itself."""
    climbs = sorted((climb for climb in climbs if math.isfinite(climb.residual)), key=lambda climb: climb.residual)
    if any(climb.tested and climb.residual <= EXACT for climb in climbs):  # one that is open has not been held against its equations
        climbs = [climb for climb in climbs if not climb.open]
    return [climb for climb in climbs if climb.residual <= max(ALIKE * climbs[0].residual, EXACT)]


def _identity(channels: int) -> Tensor:
    """The filters of a skip without weights: (C, C, 1, 1)."""
    return torch.eye(channels, dtype=torch.float64).view(channels, channels, 1, 1)
