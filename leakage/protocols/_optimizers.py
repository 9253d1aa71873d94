"""The steps of torch.optim as functions that are differentiable by the gradient, so that an attacker can replay local training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.engine.core import Client, ClientState, Params, Update
from leakage.engine.devices import double
from leakage.engine.half_precision import half_precision

SGD, NESTEROV, ADAM, ADAMW = "SGD", "SGD with Nesterov momentum", "Adam", "AdamW"
OPTIMIZERS = (SGD, NESTEROV, ADAM, ADAMW)
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # the defaults of torch.optim.Adam
FLOAT32 = "float32"
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
SCALED = "float16"  # the precision in which the loss is scaled
FIRST_SCALE = 2.0**16  # of the loss, the default of torch.amp.GradScaler
FIRST, SECOND, STEPS, SCALE = "first.", "second.", "steps", "scale"  # keys of the optimizer's state
NORM_EPS = 1e-6  # torch.nn.utils.clip_grad_norm_ adds this to the norm


@dataclass(frozen=True)
class Momentum:
    """SGD with momentum, as torch.optim.SGD: v_{t+1} = momentum v_t + g_t is the direction of a step; v_0 = 0."""

    momentum: float = 0.0

    def gradient(self, client: Client, weights: Params, x: Tensor, y: Tensor, state: ClientState, kept: Params) -> Update:
        """Return the gradient of a mini-batch x (B, C, H, W) with labels y (B,), and the client's state.

        Args:
            client: computes the gradient.
            weights: the weights before the step.
            x: the pictures.
            y: the labels.
            state: the client's state.
            kept: what the optimizer keeps from step to step, by name; {} before the first.
        """
        return client(weights, x, y, state)

    def direction(self, gradient: Params, weights: Params, moved: Params, kept: Params) -> tuple[Params, Params]:
        """Return what is subtracted from the weights, divided by the step size, and what the optimizer keeps.

        Args:
            gradient: of the step.
            weights: the received weights.
            moved: how far the weights have moved before the step; {} for not at all.
            kept: what the optimizer keeps from step to step, by name; {} before the first.
        """
        if not self.momentum:
            return gradient, kept
        speed = {name: g + self.momentum * kept[FIRST + name] if kept else g for name, g in gradient.items()}
        return speed, {FIRST + name: v for name, v in speed.items()}


@dataclass(frozen=True)
class Optimizer(Momentum):
    """SGD with and without Nesterov momentum, Adam and AdamW, as torch.optim, with its defaults for what is not named here.

    The gradient g of a step is first clipped to the norm `max_grad_norm` over all parameters (0: not at all), as
    torch.nn.utils.clip_grad_norm_. Then `weight_decay` times the weights is added to g; AdamW adds it to the direction.
    SGD       v <- momentum v + g; the direction is v
    Nesterov  v as above; the direction is g + momentum v
    Adam      m <- 0.9 m + 0.1 g, v <- 0.999 v + 0.001 g^2; in step t the direction is m' / (sqrt(v') + 1e-8) with m' = m / (1 - 0.9^t)
              and v' = v / (1 - 0.999^t)

    Adam's direction is about 1 or -1 in each entry, so its derivative by the gradient is almost 0. Differentiated, it is m' / (sqrt(v') +
    1e-8 + r) instead, with r the root mean square of sqrt(v') over the tensor (straight-through); its value is exact. AdaDefense is
    replayed likewise (`defenses/ada_defense.py`).

    In float16 the loss is scaled by 2^16. A step whose gradient is not finite is left out, and halves the scale, as in
    torch.amp.GradScaler.
    Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2; torch.optim.
    """

    name: str = SGD
    weight_decay: float = 0.0
    max_grad_norm: float = 0.0
    precision: str = FLOAT32

    def gradient(self, client: Client, weights: Params, x: Tensor, y: Tensor, state: ClientState, kept: Params) -> Update:
        if self.precision == FLOAT32:
            return client(weights, x, y, state)
        with half_precision(x.device, HALF[self.precision], kept.get(SCALE, self._first_scale(x))):
            return client(weights, x, y, state)

    def direction(self, gradient: Params, weights: Params, moved: Params, kept: Params) -> tuple[Params, Params]:
        kept = kept or self._begin(gradient)
        finite = torch.stack([g.isfinite().all() for g in gradient.values()]).all()
        directions, after = Params(), {**kept, STEPS: kept[STEPS] + 1}
        if self.precision == SCALED:
            gradient = {name: torch.where(finite, g, 0) for name, g in gradient.items()}
        for name, g in self._clip(gradient).items():
            decay = self.weight_decay * (weights[name].detach() + moved.get(name, 0))
            if self.name == ADAMW:
                directions[name], moments = self._adam(g, kept, name)
                directions[name] = directions[name] + decay
            else:
                directions[name], moments = (self._adam if self.name == ADAM else self._sgd)(g + decay, kept, name)
            after |= moments
        if self.precision != SCALED:
            return directions, after
        left_out = {**kept, SCALE: kept[SCALE] / 2}
        return (
            {name: torch.where(finite, value, 0) for name, value in directions.items()},
            {name: torch.where(finite, value, left_out[name]) for name, value in after.items()},
        )

    def _begin(self, gradient: Params) -> Params:
        """Return what is kept before the first step."""
        some, moments = next(iter(gradient.values())), (FIRST, SECOND) if self.name in (ADAM, ADAMW) else (FIRST,)
        zeros = {moment + name: torch.zeros_like(g) for moment in moments for name, g in gradient.items()}
        scale = self._first_scale(some)
        return zeros | {STEPS: some.new_zeros(())} | ({} if scale is None else {SCALE: scale})

    def _first_scale(self, some: Tensor) -> Tensor | None:
        return some.new_tensor(FIRST_SCALE) if self.precision == SCALED else None

    def _clip(self, gradient: Params) -> Params:
        if not self.max_grad_norm:
            return gradient
        squares = torch.stack([g.square().sum() for g in gradient.values()]).sum()
        factor = (self.max_grad_norm / (_root(squares) + NORM_EPS)).clamp(max=1)
        return {name: g * factor for name, g in gradient.items()}

    def _sgd(self, g: Tensor, kept: Params, name: str) -> tuple[Tensor, Params]:
        v = self.momentum * kept[FIRST + name] + g
        return g + self.momentum * v if self.name == NESTEROV else v, {FIRST + name: v}

    def _adam(self, g: Tensor, kept: Params, name: str) -> tuple[Tensor, Params]:
        m = BETA1 * kept[FIRST + name] + (1 - BETA1) * g
        v = BETA2 * kept[SECOND + name] + (1 - BETA2) * g.square()
        number = double(kept[STEPS]) + 1
        mean, root = m / (1 - BETA1**number), _root(v / (1 - BETA2**number))
        usual = root.detach().square().mean().sqrt()
        soft = mean / (root + EPS + usual)
        exact = (mean / (root + EPS)).detach()
        return exact + (soft - soft.detach()), {FIRST + name: m, SECOND + name: v}


def _root(v: Tensor) -> Tensor:
    """Return sqrt(v), with the derivative 0 where v = 0."""
    positive = v > 0
    return torch.where(positive, torch.where(positive, v, 1).sqrt(), 0)
