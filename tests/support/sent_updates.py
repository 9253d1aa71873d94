"""The update of a defense for a gradient that a test writes down, an adaptive attacker's replay, and the privacy budget of a run."""

import math
from functools import partial

import torch
from small_problems import CATALOG, TINY

from leakage.engine.core import Client, ClientState, Params, generator
from leakage.runs.event_parts import PrivacyBound
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import plugin, prepare
from leakage.workers.attack_job import guarantee

DRAWS = 2000


def sends(gradient: Params) -> Client:
    """Return a client with a known gradient."""
    return lambda _weights, _x, _y, state: (gradient, state)


def defended(name: str, gradient: Params, *, seed: int = 1, **fields: float | str | bool) -> Client:
    """Return a client with a known gradient behind a defense."""
    return plugin("defense", Part(id=name, fields=fields)).defend(sends(gradient), torch.nn.Identity(), partial(generator, seed, name))


def ask(client: Client, state: ClientState | None = None) -> tuple[Params, ClientState]:
    """Return the update and the new state of a client."""
    return client({}, torch.zeros(1), torch.zeros(1), state or {})


def sent(name: str, g: torch.Tensor, *, seed: int = 1, **fields: float | str | bool) -> torch.Tensor:
    """Return the update of a gradient of one tensor."""
    return ask(defended(name, {"w": g}, seed=seed, **fields))[0]["w"]


def draws(name: str, g: torch.Tensor, **fields: float | str) -> torch.Tensor:
    """Return the updates of the same gradient in DRAWS steps, one after the other: (DRAWS, n)."""
    client, state, rows = defended(name, {"w": g}, **fields), ClientState(), []
    for _ in range(DRAWS):
        update, state = ask(client, state)
        rows.append(update["w"])
    return torch.stack(rows)


def in_standard_errors(samples: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Return the distance of each column's mean from `mean`, in standard errors."""
    error = samples.double().std(0) / math.sqrt(len(samples))
    return (samples.double().mean(0) - mean.double()).abs() / error


def ramp(*shape: int) -> torch.Tensor:
    """Return different entries of both signs, none of them 0."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def flat(update: Params) -> torch.Tensor:
    return torch.cat([value.flatten() for value in update.values()])


def layers() -> Params:
    """Return two layers of norms 3 and 4, together 5."""
    return {"a": 3 * torch.nn.functional.normalize(ramp(6, 5).flatten(), dim=0).view(6, 5), "b": torch.tensor([0.0, -4.0])}


def two(step: int = 0) -> Params:
    """Return a gradient of two tensors, one a hundred times as large, without ties: 40 + 60 entries."""
    g = torch.randn(100, generator=torch.Generator().manual_seed(step))
    return {"small": 0.01 * g[:40].view(5, 8), "large": g[40:]}


def replayed(name: str, received: Params, gradient: Params, **fields: float | str) -> Params:
    """Return an adaptive attacker's imitation of the update of `gradient`, given `received`."""
    return ask(plugin("defense", Part(id=name, fields=fields)).surrogate(sends(gradient), received))[0]


def promised(defense: Part, **settings: object) -> PrivacyBound | None:
    experiment = Experiment(model=TINY, defenses=(defense,), **settings).resolve(CATALOG)
    return guarantee(prepare(experiment, device=torch.device("cpu")))
