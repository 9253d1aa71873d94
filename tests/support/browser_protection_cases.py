"""What the program's protections make of a gradient, and what an adaptive attacker knows of it, for tests/js/attack_cases.json."""

from typing import Any

import torch
from torch import nn

from leakage.defenses.clipping import Clipping
from leakage.defenses.gaussian_noise import GaussianNoise
from leakage.defenses.low_precision import LowPrecision
from leakage.defenses.pruning import Pruning
from leakage.engine.client_protections import STAGES, Protection, defend_client, order_protections
from leakage.engine.core import Client, Defense, Params, Received, generator
from tests.support.browser_network_cases import numbers_of

SIZES = {"first.weight": 40, "first.bias": 7, "last.weight": 33}
SEED, ROUNDS = 3, 3
DEFENSES: tuple[Defense, ...] = (
    GaussianNoise(scale=0.1),
    Pruning(fraction=0.9),
    Pruning(fraction=0.6, scope="whole gradient"),
    Pruning(fraction=0.5, scope="random"),
    LowPrecision(number="int8"),
    LowPrecision(number="int8", rounding="stochastic"),
    LowPrecision(number="fp16"),
    LowPrecision(number="bf16"),
    Clipping(bound=2.0),
    Clipping(bound=1.5, scope="each layer"),
    Clipping(bound=100.0),
)


def compute_protections() -> list[dict[str, Any]]:
    """Compute the case of each protection."""
    return [compute_protection(defense) for defense in DEFENSES]


def compute_protection(defense: Defense) -> dict[str, Any]:
    """Compute what is sent in several rounds in float32, and in float64 the attacker's imitation of a guess for the first round.

    `collected` is what the attacker makes of all rounds, where they tell more than one.
    """
    protections = order_protections([defense], stages=STAGES)
    sent = send_rounds(protections, gradient_of(1))
    received = {name: value.double() for name, value in sent[0].items()}
    strategy = protections[0].strategy
    guess = {name: (value.double() + 0.05 * numbers_of(len(value), 5)).requires_grad_() for name, value in gradient_of(1).items()}
    imitated, _ = strategy.surrogate(client_of(guess), received)({}, torch.empty(0), torch.empty(0), {})
    direction = numbers_of(sum(SIZES.values()), 2)
    pulled_back = torch.autograd.grad(flat(imitated) @ direction, list(guess.values()), allow_unused=True)
    fields = {
        name: getattr(defense, name) for name in ("scale", "fraction", "scope", "number", "rounding", "bound") if hasattr(defense, name)
    }
    return {
        "protection": {"id": defense.id, **fields},
        "sent": [flat(update).tolist() for update in sent],
        "noise": flat({name: noise for name, noise in draws(defense).items()}).tolist() if isinstance(defense, GaussianNoise) else None,
        "imitated": flat(imitated).tolist(),
        "pulled_back": torch.cat([g.flatten() for g in pulled_back]).tolist(),
        "errors": errors(protections[0], received),
        "collected": collected(defense, sent),
    }


def gradient_of(seed: int) -> Params:
    """Return a gradient in float32, whose tensors differ in size by a factor of 100."""
    numbers = numbers_of(sum(SIZES.values()), seed).float().split(list(SIZES.values()))
    return {name: scale * value for (name, value), scale in zip(zip(SIZES, numbers, strict=True), (1.0, 0.1, 0.01), strict=True)}


def client_of(gradient: Params) -> Client:
    """Return a client with this gradient."""
    return lambda _weights, _x, _y, state: (gradient, state)


def send_rounds(protections: tuple[Protection, ...], gradient: Params) -> list[Params]:
    """Return what the client sends in each round."""
    client = defend_client(client_of(gradient), "gradient", protections, nn.Identity(), seed=SEED, number=0)
    client = defend_client(client, "update", protections, nn.Identity(), seed=SEED, number=0)
    updates, state = list[Params](), dict[str, torch.Tensor]()
    for _ in range(ROUNDS):
        update, state = client({}, torch.empty(0), torch.empty(0), state)
        updates.append(update)
    return updates


def draws(defense: Defense) -> Params:
    """Return the random numbers of the first round."""
    rng = generator(SEED, "defense", 0, defense.id, 0)
    return {name: torch.randn(count, generator=rng) for name, count in SIZES.items()}


def errors(protection: Protection, received: Params, state: dict[str, torch.Tensor] | None = None) -> list[float] | None:
    """Return the expected squared error of each entry, 0 where the update is exact; None where the attacker does not know."""
    variances = protection.strategy.errors({}, Received(received, {}, state or {}, 1))
    if variances is None:
        return None
    return torch.cat([(variances.get(name, torch.zeros(())) + torch.zeros(count)).double() for name, count in SIZES.items()]).tolist()


def collected(defense: Defense, sent: list[Params]) -> dict[str, Any] | None:
    """Return what the attacker makes of all rounds, and its expected squared errors; None where it takes the last round alone."""
    name = "collect the rounds" if isinstance(defense, Pruning) and defense.scope == "random" else "average the rounds"
    if name not in defense.strategies() or (isinstance(defense, LowPrecision) and defense.rounding != "stochastic"):
        return None
    protection = order_protections([defense], name, stages=STAGES)[0]
    strategy, state = protection.strategy, dict[str, torch.Tensor]()
    assert strategy.invert_update
    rounds = [{name: value.double() for name, value in update.items()} for update in sent]
    for update in rounds[:-1]:
        state = strategy.infer_state(update, state)
    inverted = strategy.invert_update(rounds[-1], state)
    return {"update": flat(inverted).tolist(), "errors": errors(protection, inverted, state)}


def flat(update: Params) -> torch.Tensor:
    """Return all entries of an update, detached from nothing, in one vector."""
    return torch.cat([value.flatten() for value in update.values()])
