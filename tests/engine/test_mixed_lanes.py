"""Searches that share a loop, some of which imitate a protection: each has the distance and the derivative that autograd finds."""

import pytest
import torch
from small_problems import precision, smooth

from leakage.engine.core import Observation
from leakage.engine.lanes import MatchedUpdate, join_gradients
from leakage.engine.matching import DISTANCES, distance
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.part import SpecError
from leakage.workers.adapter import batchable, observe
from leakage.workers.plugin_catalog import describe

LENET, ATTACK = Part(id="lenet"), Part(id="inverting_gradients")
X, LABEL = smooth(channels=3, side=16).double(), torch.zeros(1, dtype=torch.long)
LAYERS = [f"{layer}.{part}" for layer in ("conv1", "conv2", "conv3", "linear") for part in ("weight", "bias")]
IMPORTANCE = {
    "all tensors": None,
    "two tensors": {"linear.bias": 0.5, "conv1.weight": 2.0},
    "another order": dict.fromkeys(reversed(LAYERS), 1.0),
}
IMITATED = [("ada_defense", "stand-in of the guess"), ("ada_defense", "signs alone"), ("pruning", "what arrived")]


def observations() -> dict[tuple[str, str], Observation]:
    """Return one without protection, and for each protection one of a naive attacker and one for each strategy that can share a loop."""
    known, found = describe(), dict[tuple[str, str], Observation]()
    chosen = [(defense.id, strategy) for defense in known.defenses for strategy in ("", *defense.strategies)]
    for defense, strategy in [("", ""), *chosen]:
        stack = (Part(id=defense),) if defense else ()
        assume = Assumptions(labels=True, adaptive=bool(strategy), strategy=strategy)
        try:
            asked = Experiment(model=LENET, attack=ATTACK, defenses=stack, assume=assume).resolve(known)
        except SpecError:  # the protection needs another model
            continue
        if batchable(asked):
            found[defense, strategy] = observe(asked, X, LABEL)
    return found


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, str], Observation]:
    with precision(torch.float64):
        return observations()


def check(seen: list[Observation], kind: str, importance: dict[str, float] | None, guesses: int) -> list[bool]:
    """Compare formula and autograd on random guesses; return for each observation whether gradients are compared as they are."""
    match = [distance(kind, one.as_gradient(), importance, one.knowledge.entry_weights) for one in seen]
    x = torch.rand((guesses, *X.shape), dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    labels = torch.zeros((guesses, 1), dtype=torch.long)
    several = seen[0].replay.several
    matched = MatchedUpdate(seen, match, labels, join_gradients(seen, labels.T) if len(seen) > 1 else lambda x: [several(x, labels[0])])
    found = matched.derivative_by_formula(x.detach())
    assert found is not None
    distances = matched(x)
    (derivatives,) = torch.autograd.grad(distances.sum(), x)
    assert torch.allclose(found[0], distances.detach(), rtol=1e-10, atol=0)
    gaps, sizes = (found[1] - derivatives).flatten(1).norm(dim=1), derivatives.flatten(1).norm(dim=1)
    assert bool((gaps <= 1e-10 * sizes).all())
    assert (sizes > 0).sum() > 0.9 * len(sizes)
    return matched._direct


@pytest.mark.parametrize("importance", IMPORTANCE)
@pytest.mark.parametrize("kind", DISTANCES)
def test_every_search_has_its_distance_and_derivative(seen: dict[tuple[str, str], Observation], kind: str, importance: str) -> None:
    direct = check(list(seen.values()), kind, IMPORTANCE[importance], len(seen))
    assert {("", ""), ("pruning", ""), *IMITATED} <= seen.keys()
    assert {name for name, as_they_are in zip(seen, direct, strict=True) if not as_they_are} >= set(IMITATED)


@pytest.mark.parametrize("imitated", IMITATED, ids=str)
def test_several_guesses_for_one_imitated_update_have_theirs(seen: dict[tuple[str, str], Observation], imitated: tuple[str, str]) -> None:
    assert check([seen[imitated]], "cosine", None, 3) == [False]
