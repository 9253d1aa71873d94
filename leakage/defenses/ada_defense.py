"""AdaDefense: the client sends a step of Adam instead of the gradient; and the inversion of that step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import change_entries, exact_errors
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, choice, param
from leakage.engine.devices import double

PUBLISHED, CODE = "as published", "as in the code"
RULES = ("adam", "adagrad", "yogi")
STEP = 0.001  # the step size by which the code multiplies
FIRST, SECOND, ROUND = "ada_defense.m.", "ada_defense.v.", "ada_defense.round"  # keys of the client's state: moments by parameter, round
LAST = "ada_defense.g."  # key of the gradient that an attacker computed in the round before
FIRST_ERROR, SECOND_ERROR = "ada_defense.dm.", "ada_defense.dv."  # keys of the signed errors of the attacker's moments
REPEATS = 8  # how often a quadratic equation is solved, each time with the eps that follows from the last root
FITS = 1e-3  # the largest relative difference between what a root would send and what was sent
FLOOR, MOST = 1e-3, 100.0  # entry weights: the least error as a fraction of the gradient's root mean square, and the largest weight


@dataclass(frozen=True, kw_only=True)
class AdaDefense(Defense):
    """Send g~_r = m^ / (sqrt(v^) + eps); m, v are Adam's moments of the update g_r, which the client keeps over the rounds r = 1, 2, ...

    m_r = beta1 m_{r-1} + (1 - beta1) g_r and, by rule,
    adam     v_r = beta2 v_{r-1} + (1 - beta2) g_r^2
    adagrad  v_r = v_{r-1} + g_r^2
    yogi     v_r = v_{r-1} - (1 - beta2) sign(v_{r-1} - g_r^2) g_r^2, each from m_0 = v_0 = 0.
    Variant "as published": m^ = m_r / (1 - beta1^r), v^ = v_r / (1 - beta2^r) (adagrad: v^ = v_r). Every entry is about 1 or -1, and the
    server of the paper takes it as its step. Variant "as in the code": 0.001 sqrt(1 - beta2^r) / (1 - beta1^r) * m_r / (sqrt(v_r) + eps),
    for every rule. As in the paper, the defense acts once per round on the update: a gradient, or the change by local training.
    The first round sends g / (|g| + e). This contains all signs, the true zeros, and, with enough digits, also |g|.

    An adaptive attacker has three strategies. "stand-in of the guess" applies the defense to the guess. The derivative of the defense is
    almost 0 everywhere, so the attacker differentiates g / (|g| + e') instead, with e' = rms(g) over the tensor of the guess
    (straight-through); the value stays exact, because with a smooth value the true pictures no longer match (6 dB worse on LeNet). In
    later rounds the attacker applies the defense as in a first round, which fits while the gradient hardly changes its direction.
    "read it off" solves the formula for g, entry by entry (`invert_update`), and computes the client's moments from round to round. An
    entry that the rounding of the step has changed counts less (`weigh_entries`), also in later rounds, because the moments carry its
    error on. The attacker must have watched the client from its first round. "signs alone" compares tanh(g / rms(g)) of the guess.
    Unlike the code: the first two rounds do not have the same r, and no two clients have the same moments.
    Source: Hu et al. 2024 (equation 19: the server's step); adagrad and yogi as in their code.
    """

    title = "AdaDefense (sends an Adam-style step instead of the gradient)"
    short = "AdaDefense"
    plain = "The phone sends a stand-in that keeps little more of the gradient than the sign of each entry."
    hint = (
        "A naive attacker sees noise, but in the first round all signs are there. Compare a naive and an adaptive attacker. "
        "Compare shows the proof, under the precomputed results."
    )
    stage = "update"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    variant: str = choice(PUBLISHED, (PUBLISHED, CODE), "The formula of the paper, or that of its code, which contains a small step size.")
    rule: str = choice("adam", RULES, "The optimiser that defines the second moment, by which the first moment is divided.")
    beta1: float = param(0.9, 0, 0.999, "Fraction of the first moment (the mean) that is kept from round to round.")
    beta2: float = param(0.999, 0, 0.99999, "Fraction of the second moment (the mean square) that is kept from round to round.")
    eps: float = param(1e-8, 1e-12, 1, "Small number that avoids a division by zero. Entries far above it lose their size.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            return self.stand_in(update, state)

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        def send_first(g: Tensor, sizes: Sequence[int]) -> Tensor:
            exact, _ = self.stand_in({"": g.detach()}, {})
            return exact[""] + self._derivative(g, sizes)

        return change_entries(client, received, send_first)

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "stand-in of the guess": AdaptiveStrategy(
                "known: the guess is turned into a stand-in too, as in a first round",
                self.surrogate,
                errors=lambda incoming, received: exact_errors(incoming, received) if received.number == 1 else None,
            ),
            "read it off": AdaptiveStrategy(
                "known: the gradient is worked out from the stand-in, and the moments with it, round by round",
                invert_update=lambda received, state: self.invert_update(received, state)[0],
                entry_weights=self.weigh_entries,
                infer_state=self._infer_state,
                title="undone by its formula",
            ),
            "signs alone": AdaptiveStrategy("known: the signs of the guess's gradient are compared", self._signs),
        }

    def stand_in(self, update: Params, state: ClientState) -> Update:
        """Return what the client sends instead of `update`, and its state with the moments of this round.

        The derivatives are finite, also at 0.
        """
        number = _number(state)
        unit, eps = self.unit_and_eps(number)
        sent, carried = Params(), {**state, ROUND: torch.tensor(number)}
        for name, g in update.items():
            m = self.beta1 * state.get(FIRST + name, torch.zeros_like(g)) + (1 - self.beta1) * g
            v = self._second(state.get(SECOND + name, torch.zeros_like(g)), g)
            sent[name] = unit * m / (_root(v) + eps)
            carried |= {FIRST + name: m.detach(), SECOND + name: v.detach()}
        return sent, carried

    def unit_and_eps(self, number: int) -> tuple[float, float]:
        """Return the factor u and the constant e of round `number` (1 for the first), in which the client sends u * m / (sqrt(v) + e).

        m and v are Adam's first and second moment of the update.

        >>> unit, eps = AdaDefense(variant=CODE).unit_and_eps(1)
        >>> f"{unit * 0.1 / 0.001**0.5:.3g} {eps / 0.001**0.5:.3g}"  # sends 0.001 g / (|g| + 3.16e-7)
        '0.001 3.16e-07'
        """
        shrink, grow = 1 - self.beta1**number, (1 - self.beta2**number) ** 0.5
        if self.variant == CODE:
            return STEP * grow / shrink, self.eps
        return (1 / shrink, self.eps) if self.rule == "adagrad" else (grow / shrink, self.eps * grow)

    # ------------------------------------------------------------ the inversion

    def invert_update(self, sent: Params, state: ClientState) -> tuple[Params, Params]:
        """Compute the gradient from what the client sent, and the largest error of each entry.

        s = sent / u = (a + b g) / (sqrt(c + d g^2) + e), with u and e from `unit_and_eps`; a and c are the parts of the first and second
        moment from earlier rounds, b and d the weights of the new gradient g and of g^2. If the second moment was 0, |g| = e |s| / (b -
        sqrt(d) |s|); if |s| was rounded to b / sqrt(d), the entry is lost: it gets the nearest number below and an infinite error.
        Otherwise g is a root of (b^2 - s^2 d) g^2 + 2 a b g + a^2 - s^2 c = 0, solved repeatedly with s (1 + e / sqrt(c + d g^2)) to allow
        for e; of several roots that fit, the root nearest to the last gradient. Computed in float64.

        Args:
            sent: what arrived.
            state: the client's state before this round, as the attacker knows it.
        """
        gradient, errors = self._invert_with_errors(sent, state)
        return gradient, {name: error.abs() for name, error in errors.items()}

    def _invert_with_errors(self, sent: Params, state: ClientState) -> tuple[Params, Params]:
        """Return the gradient as in `invert_update`, and its signed errors.

        The errors follow from those of the moments by ratio_g dg + ratio_a da + ratio_v dv = 0, plus the rounding of what was sent.
        """
        unit, eps = self.unit_and_eps(_number(state))
        gradient, errors = Params(), Params()
        for name, value in sent.items():
            rounding = torch.finfo(value.dtype).eps
            s = double(value.detach()) / unit
            kept = (double(state.get(moment + name, torch.zeros_like(s))) for moment in (FIRST, SECOND, LAST, FIRST_ERROR, SECOND_ERROR))
            a, before, last, da, dv = kept
            a, da = self.beta1 * a, self.beta1 * da
            first, diverged = self._solve_first(s, eps, rounding)
            g = torch.where(before > 0, self._solve_later(s, a, before, eps, last), first)
            _, (derivative, by_a, by_v) = self._ratio(g, a, before, eps)
            gap, size = -(by_a * da + by_v * dv), derivative.abs().clamp(min=1e-300)
            gap = gap + torch.where(torch.where(gap == 0, g, gap) < 0, -1, 1) * rounding * s.abs()
            lost = (diverged & (before == 0)) | ~da.isfinite()
            gradient[name] = g.to(value)
            errors[name] = torch.where(lost, torch.inf, gap / size * torch.where(derivative < 0, -1, 1)).to(value)
        return gradient, errors

    def weigh_entries(self, sent: Params, state: ClientState) -> Params:
        """Return the weight of each computed entry in the attacker's distance: 1 / (error^2 + floor^2) over its median, at most MOST.

        The floor is FLOOR times the root mean square of the computed gradient.
        """
        gradient, errors = self.invert_update(sent, state)
        usual = torch.cat([g.flatten() for g in gradient.values()]).square().mean().sqrt()
        weight = {name: 1 / (error.square() + (FLOOR * usual).square()) for name, error in errors.items()}
        middle = torch.cat([part.flatten() for part in weight.values()]).median()
        return {name: (part / middle).clamp(max=MOST) for name, part in weight.items()}

    def _infer_state(self, sent: Params, state: ClientState) -> ClientState:
        gradient, errors = self._invert_with_errors(sent, state)
        _, carried = self.stand_in(gradient, state)
        for name, g in gradient.items():
            dg = errors[name].to(g)
            da, dv = (state.get(kind + name, torch.zeros(())).to(g) for kind in (FIRST_ERROR, SECOND_ERROR))
            _, (by_v, by_g) = _derivatives(self._second, state.get(SECOND + name, torch.zeros_like(g)), g)
            carried |= {
                LAST + name: g,
                FIRST_ERROR + name: self.beta1 * da + (1 - self.beta1) * dg,
                SECOND_ERROR + name: by_v * dv + by_g * dg,
            }
        return carried

    def _solve_first(self, s: Tensor, eps: float, rounding: float) -> tuple[Tensor, Tensor]:
        """Return the gradient of entries that had the second moment 0 before this round, and a mask of entries lost by rounding.

        s is what was sent, divided by u of `unit_and_eps`; `eps` is e, and `rounding` the relative precision of what was sent.
        """
        new = math.sqrt(self._new)
        fraction = s * new / (1 - self.beta1)
        gap = 1 - fraction.abs()
        return eps / new * fraction / gap.clamp(min=rounding / 2), gap <= 0

    def _solve_later(self, s: Tensor, a: Tensor, before: Tensor, eps: float, last: Tensor) -> Tensor:
        """Return the gradient of entries with a second moment `before` other than 0; of several roots that fit, the nearest to `last`.

        s is what was sent, divided by u of `unit_and_eps`, `eps` is e, a is beta1 times the first moment before this round, and `last` the
        gradient of the last round.
        """
        b = 1 - self.beta1
        c = before * self.beta2 if self.rule == "adam" else before
        fits = list[tuple[Tensor, Tensor]]()
        for d in (self._new, -self._new) if self.rule == "yogi" else (self._new,):
            for branch in (1, -1):
                t = s
                for _ in range(REPEATS):
                    root = t.abs() * (b * b * c + d * a * a - t * t * d * c).clamp(min=0).sqrt()
                    q = -b * a - torch.where(a >= 0, 1, -1) * root  # so that nothing cancels
                    g = q / (b * b - t * t * d) if branch == 1 else (a * a - t * t * c) / q
                    g = g.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
                    t = s * (1 + eps / _root(self._second(before, g)).clamp(min=eps))
                fits.append((g, (self._ratio(g, a, before, eps)[0] - s).abs().nan_to_num(nan=torch.inf)))
        closest = torch.stack([gap for _, gap in fits]).amin(0)
        enough = torch.maximum(closest, FITS * s.abs())
        far = torch.stack([torch.where(gap <= enough, (g - last).abs(), torch.inf) for g, gap in fits])
        return torch.stack([g for g, _ in fits]).gather(0, far.argmin(0, keepdim=True))[0]

    def _ratio(self, g: Tensor, a: Tensor, before: Tensor, eps: float) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return m / (sqrt(v) + e) for the gradient g, and its derivatives by g, by a and by `before`, for each entry.

        m = a + (1 - beta1) g is the first moment, v the second moment after this round, `before` the second moment before it.
        """
        return _derivatives(lambda g, a, v: (a + (1 - self.beta1) * g) / (_root(self._second(v, g)) + eps), g, a, before)

    # ------------------------------------------------------------ parts

    def _signs(self, client: Client, received: Params) -> Client:
        return change_entries(client, received, lambda g, sizes: self._unit * (g / self._usual(g, sizes)).tanh())

    def _second(self, v: Tensor, g: Tensor) -> Tensor:
        square = g.square()
        if self.rule == "adagrad":
            return v + square
        if self.rule == "yogi":
            return v - (1 - self.beta2) * (v - square).sign() * square
        return self.beta2 * v + (1 - self.beta2) * square

    def _derivative(self, g: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return zeros that have the derivative of _unit * g / (|g| + rms + eps), with the root mean square of each tensor as a constant.

        g are the entries (..., P) of tensors of `sizes` entries.
        """
        soft = self._unit * g / (g.abs() + self._usual(g, sizes))
        return soft - soft.detach()

    def _usual(self, g: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return, for each entry of g (..., P), the root mean square of its tensor plus eps; the tensors have `sizes` entries."""
        means = [part.mean(-1, keepdim=True) for part in g.detach().square().split(sizes, -1)]
        usual = [mean.expand(*mean.shape[:-1], size) for mean, size in zip(means, sizes, strict=True)]
        return torch.cat(usual, -1).sqrt() + self.eps

    @property
    def _unit(self) -> float:
        """The size that is sent for a large entry in the first round."""
        unit, _ = self.unit_and_eps(1)
        return unit * (1 - self.beta1) / math.sqrt(self._new)

    @property
    def _new(self) -> float:
        """The weight of the newest square in the second moment."""
        return 1.0 if self.rule == "adagrad" else 1 - self.beta2


def _number(state: ClientState) -> int:
    """Return the number of the round (1 for the first) that a client with this state is in."""
    return int(state.get(ROUND, torch.tensor(0))) + 1


def _derivatives(function: Callable[..., Tensor], *arguments: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the value of an elementwise function, and its derivative by each argument, for each entry."""
    with torch.enable_grad():
        leaves = [argument.detach().clone().requires_grad_() for argument in arguments]
        value = function(*leaves)
        return value.detach(), torch.autograd.grad(value.sum(), leaves)


def _root(v: Tensor) -> Tensor:
    """Return sqrt(v), with the derivative 0 where v = 0."""
    positive = v > 0
    return torch.where(positive, torch.where(positive, v, 1).sqrt(), 0)
