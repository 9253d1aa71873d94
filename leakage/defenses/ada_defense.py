"""AdaDefense: what leaves the phone is Adam's step, not the gradient; and how to read the gradient off it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import changed, none_added
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Defense, Params, StepRng, Update, choice, param
from leakage.engine.devices import double

PUBLISHED, CODE = "as published", "as in the code"
RULES = ("adam", "adagrad", "yogi")
STEP = 0.001  # the step size that the code multiplies in
FIRST, SECOND, ROUND = "ada_defense.m.", "ada_defense.v.", "ada_defense.round"  # what the client carries; the moments by parameter
LAST = "ada_defense.g."  # the gradient that an attacker read in the round before
FIRST_ERROR, SECOND_ERROR = "ada_defense.dm.", "ada_defense.dv."  # by how much the moments that it carries may be wrong, with signs
REPEATS = 8  # of solving a quadratic equation, each with the eps that the last root suggests
FITS = 1e-3  # a root is one when the stand-in it gives differs by no more than this share
FLOOR, MOST = 1e-3, 100.0  # of trust: errors below this share of the gradient's rms count as that; no entry counts more than so many usual


@dataclass(frozen=True, kw_only=True)
class AdaDefense(Defense):
    """g~_r = m^ / (sqrt(v^) + eps) with Adam's moments of what the client would have sent, kept by it over the rounds r = 1, 2, ...

    m_r = beta1 m_{r-1} + (1 - beta1) g_r and, by rule,
    adam     v_r = beta2 v_{r-1} + (1 - beta2) g_r^2
    adagrad  v_r = v_{r-1} + g_r^2
    yogi     v_r = v_{r-1} - (1 - beta2) sign(v_{r-1} - g_r^2) g_r^2, each from m_0 = v_0 = 0.
    As published: m^ = m_r / (1 - beta1^r), v^ = v_r / (1 - beta2^r) (adagrad forgets nothing: v^ = v_r); every entry is about 1 or -1, and
    their server steps along it as it is. As in the code: 0.001 sqrt(1 - beta2^r) / (1 - beta1^r) * m_r / (sqrt(v_r) + eps), for every rule.
    It acts once per round on what is sent, a gradient or what local training changed, as in the paper.
    The first round sends g / (|g| + e): all signs, the true zeros, and with enough digits |g| too.

    An attacker who knows it has three ways. "stand-in of the guess": makes the same stand-in of its guess. That is flat almost everywhere,
    so for the derivative alone it takes g / (|g| + e') with e' = rms(g) of the guess's tensor, which has a derivative wherever entries are
    of usual size (straight-through). Were the value softened too, the true pictures would no longer match: on LeNet the answers were 6 dB
    worse. In later rounds it plays a first one, which fits while the gradient hardly turns. "read it off": solves the formula for g, entry
    by entry (`invert_update`), and keeps the client's moments from round to round; what the rounding of the stand-in has lost counts less
    (`trusted`), in later rounds too: an error of the first is in the moments from then on, and is carried along. It needs to have watched
    the client from its first round. "signs alone": compares tanh(g / rms(g)) of its guess. Unlike the code: the first two rounds do not
    share one r, and no two clients share their moments.
    Source: Hu et al. 2024 (equation 19: what the server does); adagrad and yogi as in their code.
    """

    title = "AdaDefense (sends an Adam-style step instead of the gradient)"
    short = "AdaDefense"
    plain = "The phone sends a stand-in: of the gradient little more than the direction of each entry is left."
    hint = (
        "It looks like noise to a naive attacker, but in the first round all signs are there. Compare a naive and an adaptive attacker. "
        "Its proof is computed in Compare, under the precomputed results."
    )
    stage = "update"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    variant: str = choice(PUBLISHED, (PUBLISHED, CODE), "The paper's formula, or its code's, with a small step size in it.")
    rule: str = choice("adam", RULES, "Which optimiser's second moment divides the first.")
    beta1: float = param(0.9, 0, 0.999, "How much of the first moment (the mean) stays from round to round.")
    beta2: float = param(0.999, 0, 0.99999, "How much of the second moment (the mean square) stays from round to round.")
    eps: float = param(1e-8, 1e-12, 1, "What keeps the division from failing at zero. Entries far above it lose their size.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            return self.stand_in(update, state)

        return send

    def surrogate(self, client: Client, received: Params) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            exact, state = self.stand_in({name: g.detach() for name, g in update.items()}, state)
            return {name: exact[name] + self._derivative(g, received[name].dim()) for name, g in update.items()}, state

        return send

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        return {
            "stand-in of the guess": AdaptiveStrategy(
                "known: the guess is turned into a stand-in too, as in a first round",
                self.surrogate,
                errors=lambda incoming, received: none_added(incoming, received) if received.number == 1 else None,
            ),
            "read it off": AdaptiveStrategy(
                "known: the gradient is worked out from the stand-in, and the moments with it, round by round",
                invert_update=lambda received, state: self.invert_update(received, state)[0],
                entry_weights=self.trusted,
                infer_state=self._track,
                title="undone by its formula",
            ),
            "signs alone": AdaptiveStrategy("known: the signs of the guess's gradient are compared", self._signs),
        }

    def stand_in(self, update: Params, state: ClientState) -> Update:
        """What is sent instead of `update`, and the state with the moments of this round. Finite derivatives, also at 0."""
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
        """(u, e) of round `number`, which sends u * m / (sqrt(v) + e).

        >>> unit, eps = AdaDefense(variant=CODE).unit_and_eps(1)
        >>> f"{unit * 0.1 / 0.001**0.5:.3g} {eps / 0.001**0.5:.3g}"  # sends 0.001 g / (|g| + 3.16e-7)
        '0.001 3.16e-07'
        """
        shrink, grow = 1 - self.beta1**number, (1 - self.beta2**number) ** 0.5
        if self.variant == CODE:
            return STEP * grow / shrink, self.eps
        return (1 / shrink, self.eps) if self.rule == "adagrad" else (grow / shrink, self.eps * grow)

    # ------------------------------------------------------------ the attacker who reads it off

    def invert_update(self, sent: Params, state: ClientState) -> tuple[Params, Params]:
        """The gradient behind a stand-in of a client that carried `state`, and by how much each entry may be wrong.

        s = sent / u = (a + b g) / (sqrt(c + d g^2) + e), with what the moments are without this round (a, c) and the weights of the new
        gradient (b, d). Where nothing was before, |g| = e |s| / (b - sqrt(d) |s|); an entry is lost where |s| has been rounded to
        b / sqrt(d): it counts as the nearest number below, and its error as infinite. Else g is a root of
        (b^2 - s^2 d) g^2 + 2 a b g + a^2 - s^2 c = 0, solved again for s (1 + e / sqrt(c + d g^2)) to make up for e; of two that fit, the
        one nearer the last gradient. Computed in float64.
        """
        found, errors = self._read(sent, state)
        return found, {name: error.abs() for name, error in errors.items()}

    def _read(self, sent: Params, state: ClientState) -> tuple[Params, Params]:
        """The same with signed errors: those of the moments, by ratio_g dg + ratio_a da + ratio_v dv = 0, and beyond these the rounding."""
        unit, eps = self.unit_and_eps(_number(state))
        found, wrong = Params(), Params()
        for name, value in sent.items():
            rounding = torch.finfo(value.dtype).eps
            s = double(value.detach()) / unit
            kept = (double(state.get(moment + name, torch.zeros_like(s))) for moment in (FIRST, SECOND, LAST, FIRST_ERROR, SECOND_ERROR))
            a, before, last, da, dv = kept
            a, da = self.beta1 * a, self.beta1 * da
            first, diverged = self._first(s, eps, rounding)
            g = torch.where(before > 0, self._later(s, a, before, eps, last), first)
            _, (derivative, by_a, by_v) = self._ratio(g, a, before, eps)
            gap, size = -(by_a * da + by_v * dv), derivative.abs().clamp(min=1e-300)
            gap = gap + torch.where(torch.where(gap == 0, g, gap) < 0, -1, 1) * rounding * s.abs()
            lost = (diverged & (before == 0)) | ~da.isfinite()
            found[name], wrong[name] = g.to(value), torch.where(lost, torch.inf, gap / size * torch.where(derivative < 0, -1, 1)).to(value)
        return found, wrong

    def trusted(self, sent: Params, state: ClientState) -> Params:
        """How much each entry that was read counts: 1 / (error^2 + floor^2), divided by the median, at most MOST."""
        found, wrong = self.invert_update(sent, state)
        usual = torch.cat([g.flatten() for g in found.values()]).square().mean().sqrt()
        weight = {name: 1 / (error.square() + (FLOOR * usual).square()) for name, error in wrong.items()}
        middle = torch.cat([part.flatten() for part in weight.values()]).median()
        return {name: (part / middle).clamp(max=MOST) for name, part in weight.items()}

    def _track(self, sent: Params, state: ClientState) -> ClientState:
        found, errors = self._read(sent, state)
        _, carried = self.stand_in(found, state)
        for name, g in found.items():
            dg, da, dv = (
                value.to(g) for value in (errors[name], *(state.get(kind + name, torch.zeros(())) for kind in (FIRST_ERROR, SECOND_ERROR)))
            )
            _, (by_v, by_g) = _derivatives(self._second, state.get(SECOND + name, torch.zeros_like(g)), g)
            carried |= {
                LAST + name: g,
                FIRST_ERROR + name: self.beta1 * da + (1 - self.beta1) * dg,
                SECOND_ERROR + name: by_v * dv + by_g * dg,
            }
        return carried

    def _first(self, s: Tensor, eps: float, rounding: float) -> tuple[Tensor, Tensor]:
        """g of an entry without a history, and whether its size was lost."""
        new = math.sqrt(self._new)
        share = s * new / (1 - self.beta1)
        gap = 1 - share.abs()
        return eps / new * share / gap.clamp(min=rounding / 2), gap <= 0

    def _later(self, s: Tensor, a: Tensor, before: Tensor, eps: float, last: Tensor) -> Tensor:
        """g of an entry with a history."""
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
        """(a + b g) / (sqrt(v) + e), and its derivatives by g, by a and by v before this round, entry by entry."""
        return _derivatives(lambda g, a, v: (a + (1 - self.beta1) * g) / (_root(self._second(v, g)) + eps), g, a, before)

    # ------------------------------------------------------------ parts

    def _signs(self, client: Client, received: Params) -> Client:
        def soft(name: str, g: Tensor) -> Tensor:
            return self._unit * (g / self._usual(g, received[name].dim())).tanh()

        return changed(client, lambda update: {name: soft(name, g) for name, g in update.items()})

    def _second(self, v: Tensor, g: Tensor) -> Tensor:
        square = g.square()
        if self.rule == "adagrad":
            return v + square
        if self.rule == "yogi":
            return v - (1 - self.beta2) * (v - square).sign() * square
        return self.beta2 * v + (1 - self.beta2) * square

    def _derivative(self, g: Tensor, dimensions: int) -> Tensor:
        """0, with the derivative of scale * g / (|g| + rms(g)); the tensor is the last `dimensions` of g, guesses stand in front."""
        soft = self._unit * g / (g.abs() + self._usual(g, dimensions))
        return soft - soft.detach()

    def _usual(self, g: Tensor, dimensions: int) -> Tensor:
        return g.detach().square().mean(tuple(range(-dimensions, 0)), keepdim=True).sqrt() + self.eps

    @property
    def _unit(self) -> float:
        """What a large entry sends in the first round."""
        unit, _ = self.unit_and_eps(1)
        return unit * (1 - self.beta1) / math.sqrt(self._new)

    @property
    def _new(self) -> float:
        """What the newest square counts for in the second moment."""
        return 1.0 if self.rule == "adagrad" else 1 - self.beta2


def _number(state: ClientState) -> int:
    """Which round it is for a client with this state."""
    return int(state.get(ROUND, torch.tensor(0))) + 1


def _derivatives(value: Callable[..., Tensor], *at: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A function of entries, and its derivatives by each of its arguments, entry by entry."""
    with torch.enable_grad():
        leaves = [one.detach().clone().requires_grad_() for one in at]
        found = value(*leaves)
        return found.detach(), torch.autograd.grad(found.sum(), leaves)


def _root(v: Tensor) -> Tensor:
    """sqrt(v), with derivative 0 where v = 0."""
    positive = v > 0
    return torch.where(positive, torch.where(positive, v, 1).sqrt(), 0)
