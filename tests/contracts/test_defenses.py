"""Every defense under every protocol: pure, neutral where declared, replayed by an adaptive attacker; and its own mathematics."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from small_problems import (
    FITTING,
    IDS,
    LABELS,
    NEUTRAL,
    SUMMED,
    TINY,
    baselines_of,
    observed,
    precision,
    protected,
    relative,
    short,
    smooth,
    using,
)
from torch import nn

from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Defense, Params, generator
from leakage.evaluation.play import PreparedAttack
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import federation, play, plugin

CHANGING = ("precode", "fedkl")  # the model itself: they have no neutral setting
EVERY = pytest.mark.parametrize("name", IDS["defense"])
UNDER_EVERY_PROTOCOL = pytest.mark.parametrize("protocol", IDS["protocol"])


def pristine(name: str, x: torch.Tensor) -> tuple[Defense, nn.Module]:
    """A defense with its default fields, and a model that it has changed as it must."""
    defense = plugin("defense", Part(id=name))
    return defense, defense.change(observed(x, model=FITTING.get(name, TINY)).model)


def entries(update: Params) -> torch.Tensor:
    return torch.cat([value.flatten() for value in update.values()])


def pruned_by_hand(gradient: Params, share: float) -> dict[str, np.ndarray]:
    """Per tensor, the floor(share * n) entries of smallest magnitude set to zero; no ties assumed."""
    result = {}
    for name, value in gradient.items():
        flat = value.numpy().copy().ravel()
        flat[np.argsort(np.abs(flat))[: int(np.floor(share * flat.size))]] = 0
        result[name] = flat.reshape(value.shape)
    return result


# ---------------------------------------------------------------- every defense


@EVERY
@UNDER_EVERY_PROTOCOL
@pytest.mark.long
def test_an_honest_client_called_again_sends_the_same(name: str, protocol: str) -> None:
    x, settings = smooth(3), {**using(protocol), **protected(Part(id=name))}
    assert relative(observed(x, **settings).received.update, observed(x, **settings).received.update) < 1e-6


@EVERY
def test_a_defended_client_is_pure_and_differentiable(name: str) -> None:
    x = smooth(3)
    defense, model = pristine(name, x)
    client, weights = defense.defend(gradient_client(model), model, partial(generator, 1, "defense")), weights_of(model)
    state: dict[str, torch.Tensor] = {}
    first, _ = client(weights, x, LABELS, state)
    again, _ = client(weights, x, LABELS, state)
    assert state == {}
    assert all(torch.equal(first[layer], again[layer]) for layer in first)
    guess = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(entries(client(weights, guess, LABELS, state)[0]).square().sum(), guess)
    assert torch.isfinite(gradient).all()


@cache
def draws_noise(name: str) -> bool:
    """Whether the same client with other draws sends something else; then nobody can replay it exactly."""
    x = smooth(3)
    defense, model = pristine(name, x)
    clients = [defense.defend(gradient_client(model), model, partial(generator, seed)) for seed in (1, 2)]
    one, other = (entries(client(weights_of(model), x, LABELS, {})[0]) for client in clients)
    return not torch.equal(one, other)


def test_drawing_is_seen_where_the_noise_is_and_nowhere_else() -> None:
    names = ("gaussian_noise", "precode", "ats", "clipping", "pruning", "low_precision")
    assert [draws_noise(name) for name in names] == [True, True, True, False, False, False]


SOFT = ("signs alone", "as it is")  # compare something smoother than what arrived, or of another length
ONCE = ("fedsgd", "fedadmm")  # one defended gradient is sent; of several, in turn or in a sum, the attacker sees what they leave together


STRATEGIES = [(name, strategy) for name in IDS["defense"] for strategy in plugin("defense", Part(id=name)).strategies()]


@pytest.mark.pairwise
@UNDER_EVERY_PROTOCOL
@pytest.mark.parametrize(("name", "strategy"), STRATEGIES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
def test_an_attacker_that_knows_the_protection_replays_the_truth_to_the_update(
    name: str, strategy: str, protocol: str, dtype: torch.dtype, tolerance: float
) -> None:
    if draws_noise(name):
        pytest.skip("it draws from step_rng: nobody replays that exactly")
    with precision(dtype):
        x = smooth(3)
        seen = observed(x, **using(protocol), defenses=(Part(id=name),), assume=Assumptions(strategy=strategy))
        own = plugin("defense", Part(id=name)).strategies()[strategy]
        if own.invert_update is not None:  # some digits are lost for ever, and more of them in a mean of one round alone
            tolerance = 0.5 if own.averaging or dtype == torch.float32 else 1e-6
        if strategy in SOFT:
            assert torch.cosine_similarity(entries(seen.replay.single(x, LABELS)), entries(seen.received.update), dim=0) > 0.5
        else:
            counted = {layer: g * seen.knowledge.entry_weights.get(layer, 1) for layer, g in seen.received.update.items()}
            told = {layer: g * seen.knowledge.entry_weights.get(layer, 1) for layer, g in seen.replay.single(x, LABELS).items()}
            assert relative(told, counted) < (tolerance if protocol in ONCE else 0.5)


@pytest.mark.parametrize("name", NEUTRAL)
@UNDER_EVERY_PROTOCOL
@pytest.mark.long
def test_the_neutral_setting_changes_nothing(name: str, protocol: str) -> None:
    x = smooth(3)
    plain = observed(x, **using(protocol))
    neutral = observed(x, **using(protocol), defenses=(Part(id=name, fields=NEUTRAL[name]),))
    for seen in (neutral.received.update, neutral.replay.single(x, LABELS)):
        if name in SUMMED:
            assert relative(seen, plain.received.update) < 1e-6
        else:
            assert all(torch.equal(value, plain.received.update[layer]) for layer, value in seen.items())


@EVERY
@pytest.mark.long
def test_adding_a_defense_moves_neither_the_weights_nor_the_attackers_start(name: str) -> None:
    x = smooth()
    starts = []
    for defenses in ((), (Part(id=name),)):
        seen = observed(x, **protected(Part(id=name)) | {"defenses": defenses})
        experiment = Experiment(attack=short("inverting_gradients", steps=1, starts=1), defenses=defenses, assume=Assumptions(labels=True))
        prepared = PreparedAttack(
            attack=plugin("attack", experiment.attack),
            federation=federation(experiment),
            x=x,
            y=LABELS[:1],
            seen=seen,
            compute_baselines=partial(baselines_of, experiment, x, LABELS[:1]),
        )
        starts.append((next(iter(play(experiment, prepared=prepared))), seen.received.weights))
    (one, weights), (other, same) = starts
    assert torch.equal(one.x, other.x)
    assert all(torch.equal(weights[layer], same[layer]) for layer in weights.keys() & same.keys())
    if name not in CHANGING:
        assert weights.keys() == same.keys()


# ---------------------------------------------------------------- Gaussian noise


def noise_of(step: int, *, scale: float = 0.5, number: int = 0) -> torch.Tensor:
    """What a client in this local step adds to a gradient of zeros."""
    zeros = {"w": torch.zeros(40, 50)}
    client = plugin("defense", Part(id="gaussian_noise", fields={"scale": scale})).defend(
        lambda _weights, _x, _y, state: (zeros, state), torch.nn.Identity(), partial(generator, 1, "defense", number, "gaussian_noise")
    )
    state: dict[str, torch.Tensor] = {}
    for _ in range(step + 1):
        update, state = client({}, torch.zeros(1), torch.zeros(1), state)
    return update["w"]


def test_noise_has_the_deviation_it_was_asked_for_and_is_fresh_in_every_step_and_in_every_defense() -> None:
    first, second = noise_of(0), noise_of(1)
    for noise in (first, second):
        assert float(noise.std()) == pytest.approx(0.5, rel=0.1)  # 2000 entries: known to 1.6 %
        assert float(noise.mean()) == pytest.approx(0, abs=0.05)
    assert torch.equal(noise_of(1), second)  # the same step draws the same
    assert abs(float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1])) < 0.1  # 1 / sqrt(2000) = 0.02
    assert abs(float(torch.corrcoef(torch.stack([first.flatten(), noise_of(0, number=1).flatten()]))[0, 1])) < 0.1


def test_the_attackers_replay_differs_from_a_noisy_update_by_just_that_noise() -> None:
    x = smooth(3)
    seen = observed(x, defenses=(Part(id="gaussian_noise", fields={"scale": 0.03}),))
    noise = entries(seen.received.update) - entries(seen.replay.single(x, LABELS))
    assert float(noise.std()) == pytest.approx(0.03, rel=0.1)  # 2410 entries: known to 1.4 %
    assert float(noise.mean()) == pytest.approx(0, abs=0.003)


def test_another_seed_adds_other_noise() -> None:
    x, noise = smooth(), (Part(id="gaussian_noise", fields={"scale": 1.0}),)  # the gradient itself is far below 1
    assert relative(observed(x, defenses=noise, seed=2).received.update, observed(x, defenses=noise).received.update) > 0.5


def test_two_tensors_of_one_update_get_different_noise() -> None:
    seen = observed(smooth(), defenses=(Part(id="gaussian_noise", fields={"scale": 10.0}),))
    one, other = (seen.received.update[layer].flatten()[:32] for layer in ("linear1.weight", "linear.weight"))
    assert not torch.allclose(one, other, atol=1)  # the gradient itself is far below 1


# ---------------------------------------------------------------- pruning


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_pruning_keeps_what_a_sort_by_hand_keeps(share: float) -> None:
    x = smooth(3)
    gradient = observed(x).received.update
    seen = observed(x, defenses=(Part(id="pruning", fields={"fraction": share}),))
    for layer, value in pruned_by_hand(gradient, share).items():
        np.testing.assert_array_equal(seen.received.update[layer].numpy(), value)
        assert int((seen.received.update[layer] == 0).sum()) == int(share * value.size)


def test_noise_after_pruning_and_pruning_after_noise_are_two_different_protections() -> None:
    x, prune, noise = smooth(3), Part(id="pruning", fields={"fraction": 0.5}), Part(id="gaussian_noise", fields={"scale": 0.001})
    gradient = observed(x).received.update
    pruned_last = observed(x, defenses=(noise, prune)).received.update
    noise_last = observed(x, defenses=(prune, noise)).received.update
    for layer, value in pruned_by_hand(gradient, 0.5).items():
        assert int((pruned_last[layer] == 0).sum()) == value.size // 2
        assert int((noise_last[layer] == 0).sum()) == 0
        assert float((noise_last[layer] - torch.from_numpy(value)).abs().max()) < 0.005  # within 5 deviations of the pruned gradient


def adapted(received: Params, share: float, sent: Params) -> Params:
    """Return an adaptive attacker's imitation of the update of a client with the gradient `sent`, after it has received `received`."""
    client = plugin("defense", Part(id="pruning", fields={"fraction": share})).surrogate(lambda _w, _x, _y, state: (sent, state), received)
    return client({}, torch.zeros(1), torch.zeros(1), {})[0]


def test_the_attackers_mask_is_what_survived() -> None:
    received = {"w": torch.tensor([0.0, 3.0, 0.0, -4.0])}  # half of it pruned
    assert adapted(received, 0.5, {"w": torch.tensor([1.0, 2.0, 3.0, 4.0])})["w"].tolist() == [0, 2, 0, 4]


def test_a_tensor_with_more_zeros_than_pruning_makes_is_kept_whole() -> None:
    received = {"w": torch.tensor([0.0, 3.0, 0.0, 0.0])}  # pruning takes two: the third zero is real, and so may be the others
    assert adapted(received, 0.5, {"w": torch.tensor([1.0, 2.0, 3.0, 4.0])})["w"].tolist() == [1, 2, 3, 4]


def test_pruning_a_tensor_of_mostly_true_zeros_sends_it_unchanged() -> None:
    seen = observed(smooth())
    gradient = {"w": torch.tensor([0.0, 3.0, 0.0, 0.0, -1.0, 0.0])}
    defense = plugin("defense", Part(id="pruning", fields={"fraction": 0.5}))
    client = defense.defend(lambda _w, _x, _y, state: (gradient, state), seen.model, partial(generator, 1))
    assert client({}, torch.zeros(1), torch.zeros(1), {})[0]["w"].tolist() == gradient["w"].tolist()


def test_black_pixels_are_not_taken_for_pruned_entries() -> None:
    x = smooth(side=8)
    x[:, :, :, 2:] = 0  # three quarters black: their columns of the first layer's gradient are exactly zero
    seen = observed(x, defenses=(Part(id="pruning", fields={"fraction": 0.5}),))
    first = seen.received.update["linear1.weight"].view(32, 8, 8)
    assert int((first[:, :, 2:] == 0).sum()) == 32 * 8 * 6
    grey = seen.replay.single(torch.full_like(x, 0.5), LABELS[:1])["linear1.weight"].view(32, 8, 8)
    assert float(grey[:, :, 2:].abs().min()) > 0  # a guess that is not black there is told so
    assert relative(seen.replay.single(x, LABELS[:1]), seen.received.update) < 1e-6
