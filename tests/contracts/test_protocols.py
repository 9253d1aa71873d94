"""Every protocol with every defense: the update is that of a computation by hand, repeatable, and what the attacker replays."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest
import torch
from small_problems import IDS, LABELS, TINY, light, observed, part, precision, smooth, using
from torch import nn

from leakage.engine.client import gradient_client, single_gradients, weights_of
from leakage.engine.core import Observation, Params
from leakage.engine.tensor_names import OF
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Assumptions, Part
from leakage.workers.adapter import plugin

MODELS = {"mlp": TINY, "lenet": Part(id="lenet")}


def one_gradient_step(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Params:
    """FedSGD: one step of torch.optim.SGD with step size 1 on a copy; what is sent is w0 - w1."""
    copy = deepcopy(model)
    optimiser = torch.optim.SGD(copy.parameters(), lr=1.0)
    nn.CrossEntropyLoss()(copy(x), y).backward()
    optimiser.step()
    after = dict(copy.named_parameters())
    return {name: (before - after[name]).detach() for name, before in model.named_parameters()}


def local_training(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, epochs: int, size: int, rate: float, momentum: float = 0, pull: float = 0
) -> Params:
    """torch.optim.SGD over mini-batches on a copy, pulled back towards where it began; what is sent is w_T - w_0."""
    copy = deepcopy(model)
    optimiser = torch.optim.SGD(copy.parameters(), lr=rate, momentum=momentum)
    for _ in range(epochs):
        for first in range(0, len(x), size):
            optimiser.zero_grad()
            loss = nn.CrossEntropyLoss()(copy(x[first : first + size]), y[first : first + size])
            proximal = sum((w - w0.detach()).square().sum() for w, w0 in zip(copy.parameters(), model.parameters(), strict=True))
            (loss + pull / 2 * proximal).backward()
            optimiser.step()
    after = dict(copy.named_parameters())
    return {name: (after[name] - before).detach() for name, before in model.named_parameters()}


LOCAL = {"epochs": 3, "mini_batch": 2, "rate": 0.1}  # of 3 pictures: two steps an epoch, the second of a single one
BY_HAND: dict[str, tuple[dict[str, float], Callable[[nn.Module, torch.Tensor, torch.Tensor], Params]]] = {
    "fedsgd": ({}, one_gradient_step),
    "fedavg": (LOCAL | {"momentum": 0.5}, partial(local_training, epochs=3, size=2, rate=0.1, momentum=0.5)),
    "fedprox": (LOCAL | {"proximal": 0.7}, partial(local_training, epochs=3, size=2, rate=0.1, pull=0.7)),
}


def relative(seen: Observation, other: Params) -> float:
    return gradient_distances(other, seen.received.update)["relative_l2"]


@pytest.mark.parametrize("protocol", BY_HAND)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_update_is_that_of_a_hand_written_loop(protocol: str, model: str, batch: int) -> None:
    with precision(torch.float64):
        x = smooth(batch)
        fields, by_hand_client = BY_HAND[protocol]
        seen = observed(x, model=MODELS[model], protocol=Part(id=protocol, fields=fields))
        by_hand = by_hand_client(seen.model, x, LABELS[:batch])
    assert list(seen.received.update) == [name for name, _ in seen.model.named_parameters()]
    assert relative(seen, by_hand) < 1e-12  # float64: w0 - w1 rounds at the size of the weights


@pytest.mark.parametrize("protocol", IDS["protocol"])
def test_the_average_is_a_gradient_like_the_clients(protocol: str) -> None:
    x = smooth(3)
    seen = observed(x, **using(protocol))
    plain, _ = gradient_client(seen.model)(seen.received.weights, x, LABELS, {})
    to_gradient = {name: g for name, g in seen.as_gradient().items() if OF not in name}  # without what a neighbour is handed beside it
    norms = [float(torch.cat([g.flatten() for g in update.values()]).norm()) for update in (to_gradient, plain)]
    assert norms[0] == pytest.approx(norms[1], rel=0.2)  # in its units: not times a step, a count or a number of phones
    assert {name: g.shape for name, g in to_gradient.items()} == {name: g.shape for name, g in plain.items()}
    assert gradient_distances(to_gradient, plain)["cosine"] < 0.5  # local steps turn it, but not away


@pytest.mark.parametrize("protocol", IDS["protocol"])
def test_a_client_asked_twice_sends_the_same_and_keeps_its_memory_apart(protocol: str) -> None:
    x = smooth(3)
    seen = observed(x, **using(protocol))
    client = plugin("protocol", part(protocol)).client(gradient_client(seen.model))
    state: dict[str, torch.Tensor] = {}
    first, _ = client(seen.received.weights, x, LABELS, state)
    client(seen.received.weights, smooth(3, seed=9), LABELS, {})  # somebody else's turn in between
    again, _ = client(seen.received.weights, x, LABELS, state)
    assert state == {}
    assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.pairwise
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
@pytest.mark.parametrize("model", IDS["model"])
@pytest.mark.parametrize("protocol", IDS["protocol"])
@pytest.mark.long
def test_replaying_the_truth_gives_the_update(protocol: str, model: str, dtype: torch.dtype, tolerance: float) -> None:
    with precision(dtype):
        x = smooth(2, channels=3, side=32)
        seen = observed(x, model=light(model), **using(protocol, clients=2))
        assert next(iter(seen.received.update.values())).dtype == dtype
        assert relative(seen, seen.replay.single(x, LABELS[:2])) < tolerance
        wrong = relative(seen, seen.replay.single(x, LABELS[1:]))
    assert wrong > 0.1  # other labels give another update


@pytest.mark.parametrize("protocol", IDS["protocol"])
def test_a_replay_of_probabilities_equals_that_of_labels_and_can_be_differentiated(protocol: str) -> None:
    x = smooth(3)
    seen = observed(x, **using(protocol))
    sure = torch.nn.functional.one_hot(LABELS, 10).float().requires_grad_()
    guess = x.clone().requires_grad_()
    replayed = seen.replay.single(guess, sure)
    assert relative(seen, replayed) < 1e-6
    total = sum((replayed[name] * torch.linspace(0, 1, g.numel()).view_as(g)).sum() for name, g in seen.received.update.items())
    gradients = torch.autograd.grad(total, [guess, sure])
    assert all(float(gradient.abs().max()) > 0 for gradient in gradients)
    assert not any(g.requires_grad for g in seen.replay.single(x, LABELS).values())  # nothing to follow, no graph


def test_the_gradient_of_a_batch_is_the_mean_of_single_gradients_by_hand() -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, model=MODELS["lenet"])
        singles = list(single_gradients(seen.model, weights_of(seen.model), x, LABELS))
        each = [one_gradient_step(seen.model, x[n : n + 1], LABELS[n : n + 1]) for n in range(3)]
    for name, sent in seen.received.update.items():
        for single, one in zip(singles, each, strict=True):
            torch.testing.assert_close(single[name], one[name], atol=1e-14, rtol=0)  # float64
        torch.testing.assert_close(sum(single[name] for single in singles) / 3, sent, atol=1e-14, rtol=0)


@pytest.mark.parametrize("model", MODELS)
def test_a_client_computes_at_the_weights_it_is_given_and_not_at_the_models_own(model: str) -> None:
    with precision(torch.float64):
        x = smooth(2)
        seen = observed(x, model=MODELS[model])
        moved = {name: (value.detach() + 0.01).requires_grad_() for name, value in seen.received.weights.items()}
        copy = deepcopy(seen.model)
        copy.load_state_dict(moved, strict=False)
        by_hand = one_gradient_step(copy, x, LABELS[:2])
        sent, _ = gradient_client(seen.model)(moved, x, LABELS[:2], {})
    assert gradient_distances(sent, by_hand)["relative_l2"] < 1e-12  # float64
    assert relative(seen, sent) > 0.001


@pytest.mark.parametrize("protocol", IDS["protocol"])
def test_a_naive_attacker_replays_a_plain_gradient_without_protocol_or_protection(protocol: str) -> None:
    x, pruned = smooth(3), (Part(id="pruning", fields={"fraction": 0.5}),)
    seen = observed(x, **using(protocol), defenses=pruned, assume=Assumptions(adaptive=False))
    assert relative(seen, seen.replay.single(x, LABELS)) > 0.01
    plain, _ = gradient_client(seen.model)(seen.received.weights, x, LABELS, {})
    assert all(torch.equal(value, plain[name]) for name, value in seen.replay.single(x, LABELS).items())
    assert all(torch.equal(value, plain[name]) for name, value in seen.gradient(x, LABELS).items())
