"""AdaDefense: what leaves the phone is Adam's step, not the gradient; and how to read the gradient off the first one."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.engine.core import Client, Defense, Draws, Memory, Params, Update, choice, param

PUBLISHED, CODE = "as published", "as in the code"
RULES = ("adam", "adagrad", "yogi")
STEP = 0.001  # the step size that the code multiplies in
FIRST, SECOND, ROUND = "ada_defense.m.", "ada_defense.v.", "ada_defense.round"  # what the client carries; the moments by parameter


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
    The first round sends g / (|g| + e): all signs, the true zeros, and with enough digits |g| too (`invert`).

    An attacker who knows it makes the same stand-in of its guess. That is flat almost everywhere, so for the derivative alone it takes
    g / (|g| + e') with e' = rms(g) of the guess's tensor, which has a slope wherever entries are of usual size (straight-through). Were
    the value softened too, the true pictures would no longer match: on LeNet the answers were 6 dB worse.
    What the client carries is private: in later rounds the attacker plays a first one, which fits while the gradient hardly turns.
    Unlike the code: the first two rounds do not share one r, and no two clients share their moments.
    Source: Hu et al. 2024 (equation 19: what the server does); adagrad and yogi as in their code.
    """

    title = "AdaDefense: a stand-in"
    plain = "The phone sends a stand-in: of the gradient little more than the direction of each entry is left."
    hint = "It looks like noise to a naive attacker, but all signs are there. Compare a naive and an adaptive attacker in the first round."
    stage = "update"
    imitation = "known: the guess is turned into a stand-in too, as in a first round"
    elementwise = True
    source = "https://arxiv.org/abs/2410.08734"

    variant: str = choice(PUBLISHED, (PUBLISHED, CODE), "The paper's formula, or its code's, with a small step size in it.")
    rule: str = choice("adam", RULES, "Which optimiser's second moment divides the first.")
    beta1: float = param(0.9, 0, 0.999, "How much of the first moment (the mean) stays from round to round.")
    beta2: float = param(0.999, 0, 0.99999, "How much of the second moment (the mean square) stays from round to round.")
    eps: float = param(1e-8, 1e-12, 1, "What keeps the division from failing at zero. Entries far above it lose their size.")

    def guard(self, client: Client, model: nn.Module, draws: Draws) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
            update, memory = client(weights, x, y, memory)
            return self.stand_in(update, memory)

        return send

    def adapt(self, client: Client, received: Params) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, memory: Memory) -> Update:
            update, memory = client(weights, x, y, memory)
            exact, memory = self.stand_in({name: g.detach() for name, g in update.items()}, memory)
            return {name: exact[name] + self._slope(g, received[name].dim()) for name, g in update.items()}, memory

        return send

    def stand_in(self, update: Params, memory: Memory) -> Update:
        """What is sent instead of `update`, and the memory with the moments of this round. Finite derivatives, also at 0."""
        number = int(memory.get(ROUND, torch.tensor(0))) + 1
        shrink, grow = 1 - self.beta1**number, 1 - self.beta2**number
        sent, carried = Params(), {**memory, ROUND: torch.tensor(number)}
        for name, g in update.items():
            m = self.beta1 * memory.get(FIRST + name, torch.zeros_like(g)) + (1 - self.beta1) * g
            v = self._second(memory.get(SECOND + name, torch.zeros_like(g)), g)
            if self.variant == CODE:
                sent[name] = STEP * grow**0.5 / shrink * m / (_root(v) + self.eps)
            else:
                sent[name] = m / shrink / (_root(v if self.rule == "adagrad" else v / grow) + self.eps)
            carried |= {FIRST + name: m.detach(), SECOND + name: v.detach()}
        return sent, carried

    def _second(self, v: Tensor, g: Tensor) -> Tensor:
        square = g.square()
        if self.rule == "adagrad":
            return v + square
        if self.rule == "yogi":
            return v - (1 - self.beta2) * (v - square).sign() * square
        return self.beta2 * v + (1 - self.beta2) * square

    def _slope(self, g: Tensor, dimensions: int) -> Tensor:
        """0, with the derivative of scale * g / (|g| + rms(g)); the tensor is the last `dimensions` of g, guesses stand in front."""
        own = g.detach()
        usual = own.square().mean(tuple(range(-dimensions, 0)), keepdim=True).sqrt() + self.eps
        soft = scale_and_eps(self.variant, self.rule, eps=self.eps, beta2=self.beta2)[0] * g / (g.abs() + usual)
        return soft - soft.detach()


def scale_and_eps(variant: str, rule: str, *, eps: float, beta2: float) -> tuple[float, float]:
    """(s, e) of the first round, which sends s * g / (|g| + e); beta1 cancels.

    >>> scale_and_eps(PUBLISHED, "adam", eps=1e-8, beta2=0.999)
    (1.0, 1e-08)
    >>> scale, small = scale_and_eps(CODE, "adam", eps=1e-8, beta2=0.999)
    >>> f"{scale:.3f} {small:.3g}"
    '0.001 3.16e-07'
    """
    if variant == PUBLISHED:
        return 1.0, eps
    share = (1 - beta2) ** 0.5
    return (STEP * share, eps) if rule == "adagrad" else (STEP, eps / share)


def invert(update: Params, variant: str, *, rule: str = "adam", eps: float = 1e-8, beta2: float = 0.999) -> tuple[Params, Params]:
    """The gradient behind a stand-in of the first round, and how wrong each entry may be, relative to itself.

    With s = g~ / scale: |g| = e |s| / (1 - |s|), and an error of one rounding u of s is u / (1 - |s|) of |g|. So an entry is lost where
    |g| is above e / u: there |s| has been rounded to 1; it counts as the nearest number below, and its error as infinite.
    """
    scale, small = scale_and_eps(variant, rule, eps=eps, beta2=beta2)
    found, errors = Params(), Params()
    for name, sent in update.items():
        rounding = torch.finfo(sent.dtype).eps
        share = sent.detach().double() / scale
        gap = 1 - share.abs()
        found[name] = (small * share / gap.clamp(min=rounding / 2)).to(sent)
        errors[name] = torch.where(gap > 0, rounding / gap.clamp(min=rounding / 2), torch.inf).to(sent)
    return found, errors


def _root(v: Tensor) -> Tensor:
    """sqrt(v), with derivative 0 where v = 0."""
    positive = v > 0
    return torch.where(positive, torch.where(positive, v, 1).sqrt(), 0)
