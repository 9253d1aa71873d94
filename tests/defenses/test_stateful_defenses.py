"""AdaDefense compared with a loop by hand, and inverted; Soteria with a whole Jacobian; Outpost with a sort by hand."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from small_problems import LABELS, TINY, observed, precision, smooth
from torch import Tensor, nn
from torch.func import functional_call

from leakage.defenses import soteria
from leakage.defenses.ada_defense import CODE, PUBLISHED, RULES, AdaDefense
from leakage.defenses.outpost import Outpost, risk
from leakage.defenses.soteria import Soteria
from leakage.engine.client import gradient_client
from leakage.engine.core import Client, ClientState, Defense, Params, generator
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Assumptions, Part

LENET = Part(id="lenet")
NOWHERE = torch.zeros(1)  # pictures and labels of a client that sends what it is told to


def sends(update: Params) -> Client:
    return lambda _weights, _x, _y, state: (update, state)


def rounds(defense: Defense, updates: list[Params], weights: Params | None = None, seed: int = 1) -> list[Params]:
    """What a client with these gradients, one per round, sends."""
    state, sent = ClientState(), []
    for update in updates:
        client = defense.defend(sends(update), nn.Identity(), partial(generator, seed, "defense"))
        defended, state = client(weights or {}, NOWHERE, NOWHERE, state)
        sent.append(defended)
    return sent


def some(seed: int, *shape: int) -> Tensor:
    """Numbers of many sizes, from 1e-12 to about 1, and some zeros."""
    rng = torch.Generator().manual_seed(seed)
    size = 10 ** (-12 * torch.rand(shape, generator=rng, dtype=torch.float64))
    return torch.randn(shape, generator=rng, dtype=torch.float64) * size * (torch.rand(shape, generator=rng) > 0.1)


def entries(update: Params) -> Tensor:
    return torch.cat([value.flatten() for value in update.values()])


def lenet_gradient(dtype: torch.dtype) -> Params:
    with precision(dtype):
        return observed(smooth(1, 3, 32), model=LENET).received.update


# ---------------------------------------------------------------- AdaDefense


@pytest.mark.parametrize("rule", RULES)
def test_the_first_round_sends_the_gradient_over_its_size(rule: str) -> None:
    g, eps = some(0, 40, 5), 1e-8
    (sent,) = rounds(AdaDefense(rule=rule), [{"w": g}])
    torch.testing.assert_close(sent["w"], g / (g.abs() + eps), rtol=1e-12, atol=0)
    assert int((sent["w"] == 0).sum()) == int((g == 0).sum()) > 0


@pytest.mark.parametrize("variant", [PUBLISHED, CODE])
@pytest.mark.parametrize("rule", RULES)
def test_three_rounds_are_those_of_a_loop_by_hand(rule: str, variant: str) -> None:
    gradients = [some(seed, 30, 4).numpy() for seed in range(3)]
    b1, b2, eps = 0.8, 0.99, 1e-7
    defense = AdaDefense(variant=variant, rule=rule, beta1=b1, beta2=b2, eps=eps)
    sent = rounds(defense, [{"w": torch.from_numpy(g)} for g in gradients])
    m, v = np.zeros((30, 4)), np.zeros((30, 4))
    for t, g in enumerate(gradients):
        m = b1 * m + (1 - b1) * g
        v = {"adam": b2 * v + (1 - b2) * g**2, "adagrad": v + g**2, "yogi": v - (1 - b2) * g**2 * np.sign(v - g**2)}[rule]
        if variant == CODE:
            expected = 0.001 * math.sqrt(1 - b2 ** (t + 1)) / (1 - b1 ** (t + 1)) * m / (np.sqrt(v) + eps)
        else:
            expected = m / (1 - b1 ** (t + 1)) / (np.sqrt(v if rule == "adagrad" else v / (1 - b2 ** (t + 1))) + eps)
        np.testing.assert_allclose(sent[t]["w"].numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_a_stand_in_has_the_right_derivative_also_at_zero(rule: str) -> None:
    g, eps = torch.tensor([0.0, 1e-30, -1e-9, 3e-8, -2.0], dtype=torch.float64, requires_grad=True), 1e-8
    (sent,) = rounds(AdaDefense(rule=rule, eps=eps), [{"w": g}])
    (sent_gradient,) = torch.autograd.grad(sent["w"].sum(), g)
    torch.testing.assert_close(sent_gradient, eps / (g.detach().abs() + eps) ** 2, rtol=1e-6, atol=1e-6)  # at 2 all but 2.5e-9 cancels
    client = AdaDefense(rule=rule).defend(sends({"w": g}), nn.Identity(), partial(generator, 1))
    _, state = client({}, NOWHERE, NOWHERE, {})
    again, _ = client({}, NOWHERE, NOWHERE, state)
    assert torch.isfinite(torch.autograd.grad(again["w"].sum(), g)[0]).all()
    assert not any(value.requires_grad for value in state.values())


def test_small_numbers_in_single_precision_have_a_finite_derivative() -> None:
    g = torch.tensor([0.0, 1e-20, 1e-30, -1e-38, 1e-5], requires_grad=True)  # most squares are 0 here
    (sent,) = rounds(AdaDefense(), [{"w": g}])
    assert torch.isfinite(torch.autograd.grad(sent["w"].sum(), g)[0]).all()


def imitated(defense: Defense, guess: Params, received: Params, state: ClientState | None = None) -> Params:
    return defense.surrogate(sends(guess), received)({}, NOWHERE, NOWHERE, state or {})[0]


@pytest.mark.parametrize(("variant", "scale"), [(PUBLISHED, 1.0), (CODE, 0.001)])
def test_the_attackers_stand_in_is_exact_and_is_steep_where_entries_are_of_usual_size(variant: str, scale: float) -> None:
    defense, g = AdaDefense(variant=variant), torch.tensor([[0.0, 3.0], [-1e-9, 4.0]], dtype=torch.float64, requires_grad=True)
    guess = imitated(defense, {"w": g}, {"w": g.detach()})["w"]
    torch.testing.assert_close(guess.detach(), rounds(defense, [{"w": g.detach()}])[0]["w"], rtol=1e-12, atol=1e-15)
    (sent_gradient,) = torch.autograd.grad(guess.sum(), g)
    torch.testing.assert_close(
        sent_gradient, scale * 2.5 / (g.detach().abs() + 2.5) ** 2, rtol=1e-6, atol=0
    )  # rms = 5 / sqrt(4); plus 1e-8


def test_each_tensor_of_an_imitated_stand_in_has_its_own_usual_size() -> None:
    """Entries as large as the root mean square of their tensor: "stand-in" has the slope 1 / (4 rms), "signs alone" the value tanh(1)."""
    update: Params = {"w": torch.tensor([[5.0, -5.0]]), "b": torch.tensor([0.02, 0.02, -0.02])}
    guess = {name: g.double().requires_grad_() for name, g in update.items()}
    stand_in = imitated(AdaDefense(), guess, update)
    slopes = torch.autograd.grad([sent.sum() for sent in stand_in.values()], list(guess.values()))
    signs = AdaDefense().strategies()["signs alone"].surrogate(sends(guess), update)({}, NOWHERE, NOWHERE, {})[0]
    for name, slope, usual in zip(guess, slopes, (5, 0.02), strict=True):
        torch.testing.assert_close(slope, torch.full_like(slope, 1 / (4 * usual)), rtol=1e-6, atol=0)
        torch.testing.assert_close(signs[name].detach(), guess[name].detach().sign() * math.tanh(1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("strategy", ["stand-in of the guess", "signs alone"])
def test_several_guesses_together_are_imitated_like_each_alone(strategy: str) -> None:
    imitate = AdaDefense().strategies()[strategy].surrogate
    received: Params = {"w": some(0, 4, 3), "b": some(4, 3)}
    guesses = [{name: factor * some(seed, *g.shape) for name, g in received.items()} for seed, factor in ((1, 1), (2, 1000))]
    weights = [{name: some(seed, *g.shape) for name, g in received.items()} for seed in (3, 5)]

    def slopes(guess: Params, weight: Params) -> tuple[Tensor, ...]:
        guess = {name: g.clone().requires_grad_() for name, g in guess.items()}
        sent = imitate(sends(guess), received)({}, NOWHERE, NOWHERE, {})[0]
        return torch.autograd.grad([(sent[name] * weight[name]).sum() for name in sent], list(guess.values()))

    def together(updates: list[Params]) -> Params:
        return {name: torch.stack([update[name] for update in updates]) for name in received}

    for both, *alone in zip(slopes(together(guesses), together(weights)), *map(slopes, guesses, weights), strict=True):
        torch.testing.assert_close(both, torch.stack(alone), rtol=1e-12, atol=0)


def test_the_moments_are_kept_from_round_to_round_and_turn_once_in_each() -> None:
    x, own = smooth(3), AdaDefense(variant=CODE)
    settings = {"rounds": 3, "attacked_round": 3, "protocol": Part(id="fedavg", fields={"epochs": 2, "rate": 0.01})}
    seen = observed(x, **settings, defenses=(Part(id="ada_defense", fields={"variant": CODE}),))
    moved = [entries(part.update).abs() for part in seen.received.history]
    assert float(moved[0].max()) == pytest.approx(0.001, rel=1e-3)  # local training of two steps is one step of the moments
    gradient, updates = gradient_client(seen.model), []
    for part in seen.received.history:
        here, w = Params(), part.weights
        for _ in range(2):
            sent_gradient, _ = gradient({name: value + here.get(name, 0) for name, value in w.items()}, x, LABELS, {})
            here = {name: (here.get(name, 0) - 0.01 * g).detach() for name, g in sent_gradient.items()}
        updates.append(here)
    for expected, part in zip(rounds(own, updates), seen.received.history, strict=True):
        assert gradient_distances(part.update, expected)["relative_l2"] < 1e-4  # 1e-8 of a gradient far below 1 is left of some entries
    (forgetful,) = rounds(own, updates[2:])  # of a client that carries nothing
    assert gradient_distances(seen.received.history[2].update, forgetful)["relative_l2"] > 0.01


def test_an_attacker_finds_the_labels_in_a_stand_in() -> None:
    seen = observed(smooth(), defenses=(Part(id="ada_defense"),), assume=Assumptions(adaptive=False))
    bias = seen.received.update["linear.bias"]
    assert bias.sign().tolist() == [-1.0 if label == LABELS[0] else 1.0 for label in range(10)]


@pytest.mark.parametrize("variant", [PUBLISHED, CODE])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.long
def test_with_enough_digits_every_rounds_gradient_is_read_off_its_stand_in(rule: str, variant: str) -> None:
    """Every entry changes by up to 4 % a round; the attacker's moments are those that it has read. Of two roots the nearer fits."""
    defense, first = AdaDefense(variant=variant, rule=rule), lenet_gradient(torch.float64)
    waves = {name: torch.arange(g.numel(), dtype=g.dtype).sin().view(g.shape) for name, g in first.items()}
    gradients = [{name: g * (1 + 0.04 * number * waves[name]) for name, g in first.items()} for number in range(3)]
    state: ClientState = {}
    reader = defense.strategies()["read it off"]
    for gradient, sent in zip(gradients, rounds(defense, gradients), strict=True):
        found, wrong = defense.invert_update(sent, state)
        state = reader.infer_state(sent, state)
        true, read = entries(gradient), entries(found)
        assert torch.cosine_similarity(read, true, dim=0) > 0.999999
        close = (read - true).abs() <= 1e-5 * true.abs()
        assert bool(close[true.abs() > 1e-4].all())  # smaller ones: eps counts for as much as they do
        assert bool(entries(wrong).isfinite().all())


def test_in_single_precision_the_codes_stand_in_still_gives_the_gradient_away() -> None:
    gradient = lenet_gradient(torch.float32)
    (sent,) = rounds(AdaDefense(variant=CODE), [gradient])
    found, errors = (entries(part) for part in AdaDefense(variant=CODE).invert_update(sent, {}))
    true, close = entries(gradient), partial(torch.cosine_similarity, dim=0)
    assert close(found, true) > 0.97
    assert close(true.sign(), true) < 0.7  # the signs alone say far less
    wrong = (found - true).abs()
    assert float((wrong <= 2 * errors).double().mean()) > 0.99  # about 2 roundings of 1 - |s| add up
    assert 0.1 < float((wrong / errors)[true != 0].median()) < 1


def test_an_entry_that_was_rounded_to_one_is_said_to_be_lost_and_is_not_trusted() -> None:
    gradient = {"w": torch.tensor([1e-8, -1e-6, 0.0, 10.0, -100.0])}
    (sent,) = rounds(AdaDefense(), [gradient])
    found, errors = AdaDefense().invert_update(sent, {})
    assert errors["w"].isinf().tolist() == [False, False, False, True, True]
    assert found["w"].sign().tolist() == [1, -1, 0, 1, -1]
    assert found["w"][:3].tolist() == pytest.approx([1e-8, -1e-6, 0], rel=1e-4)
    assert torch.isfinite(found["w"]).all()
    entry_weights = AdaDefense().weigh_entries(sent, {})["w"]
    assert entry_weights[3:].tolist() == [0, 0]
    assert entry_weights[:3].min() > 0


def test_a_server_that_has_watched_from_the_first_round_reads_the_third() -> None:
    with precision(torch.float64):
        x, defenses = smooth(3), (Part(id="ada_defense", fields={"variant": CODE}),)
        settings = {"rounds": 3, "attacked_round": 3, "protocol": Part(id="fedsgd", fields={"rate": 0.1})}
        seen = observed(x, **settings, defenses=defenses, assume=Assumptions(strategy="read it off"))
        true = gradient_client(seen.model)(seen.received.weights, x, LABELS, {})[0]
        assert gradient_distances(seen.as_gradient(), true)["cosine"] < 1e-6
        as_first, _ = AdaDefense(variant=CODE).invert_update(seen.received.history[2].update, {})
        assert gradient_distances(as_first, true)["cosine"] > 0.01  # the client of the first round


# ---------------------------------------------------------------- Soteria


def brute_force(model: nn.Module, weights: Params, x: Tensor) -> Tensor:
    """score_f from the whole Jacobian of the input of the layer named "linear"."""
    kept: list[Tensor] = []

    def features(pictures: Tensor) -> Tensor:
        kept.clear()
        functional_call(model, weights, (pictures,))
        return kept[0]

    handle = model.get_submodule("linear").register_forward_pre_hook(lambda _layer, given: kept.append(given[0]))
    jacobian = torch.autograd.functional.jacobian(features, x)  # (B, D, B, C, H, W)
    r = features(x).detach()
    handle.remove()
    lengths = torch.stack([jacobian[b, :, b].flatten(1).norm(dim=1) for b in range(len(x))])  # (B, D)
    return (lengths / (r.abs() + 1e-10)).sum(0)


def zero_columns(weight: Tensor) -> list[int]:
    return (weight == 0).all(0).nonzero().flatten().tolist()


@pytest.mark.parametrize(("share", "hidden"), [(0.01, 0), (0.1, 3), (0.5, 16)])  # of 32 columns
def test_soteria_hides_the_columns_that_a_whole_jacobian_names(share: float, hidden: int) -> None:
    with precision(torch.float64):
        x = smooth(3)
        plain, seen = observed(x), observed(x, defenses=(Part(id="soteria", fields={"fraction": share}),))
        expected = brute_force(seen.model, seen.received.weights, x).argsort()[:hidden].sort().values.tolist()
    assert zero_columns(seen.received.update["linear.weight"]) == expected
    kept = [column for column in range(32) if column not in expected]
    assert torch.equal(seen.received.update["linear.weight"][:, kept], plain.received.update["linear.weight"][:, kept])
    assert all(torch.equal(value, plain.received.update[name]) for name, value in seen.received.update.items() if name != "linear.weight")


NETS = {
    "lenet": LENET,
    "mlp": TINY,
    "fcn3": Part(id="fcn3"),
    "convnet": Part(id="convnet", fields={"width": 4}),
    "resnet": Part(id="resnet", fields={"width": 4}),
}


@pytest.mark.parametrize(("model", "batch_norm"), [*((model, "eval") for model in NETS), ("convnet", "batch"), ("resnet", "batch")])
def test_soteria_hides_as_many_columns_as_it_says_in_every_network(model: str, batch_norm: str) -> None:
    x, settings = smooth(3, 3, 16), {"model": NETS[model], "batch_norm": batch_norm}
    plain, seen = observed(x, **settings), observed(x, **settings, defenses=(Part(id="soteria"),))
    layer = [name for name, value in plain.received.update.items() if value.dim() == 2][-1]
    before, after = plain.received.update[layer], seen.received.update[layer]
    zero = len(zero_columns(before))  # of dead ReLUs: their score is 0, so they are hidden first
    assert len(zero_columns(after)) == max(before.shape[1] // 10, zero)
    assert torch.equal(after[:, (after != 0).any(0)], before[:, (after != 0).any(0)])
    assert all(torch.equal(value, plain.received.update[name]) for name, value in seen.received.update.items() if name != layer)


def test_scores_computed_a_few_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = smooth(2, 3, 16)
    seen = observed(x, model=LENET)
    whole = soteria.scores(seen.model, "linear", seen.received.weights, x)
    monkeypatch.setattr(soteria, "AT_ONCE", 7 * x.numel())
    few = soteria.scores(seen.model, "linear", seen.received.weights, x)
    torch.testing.assert_close(few, whole, rtol=1e-5, atol=0)
    assert not seen.model.get_submodule("linear")._forward_pre_hooks


def test_soterias_choice_counts_as_a_constant() -> None:
    x = smooth(2)
    seen = observed(x)
    own = Soteria(fraction=0.5).defend(gradient_client(seen.model), seen.model, partial(generator, 1))
    gradients = []
    for masked in (True, False):
        guess = x.clone().requires_grad_()
        update, _ = (own if masked else gradient_client(seen.model))(seen.received.weights, guess, LABELS[:2], {})
        weight = update["linear.weight"] if masked else update["linear.weight"] * (gradients[0][1] != 0)
        gradients.append((torch.autograd.grad(weight.square().sum(), guess)[0], weight.detach()))
    torch.testing.assert_close(gradients[0][0], gradients[1][0], rtol=1e-5, atol=1e-12)


def test_an_attacker_that_knows_soteria_leaves_the_same_columns_out_unless_they_are_zero_by_themselves() -> None:
    guess, defense = {"w": torch.ones(2, 4), "b": torch.ones(2)}, Soteria(fraction=0.25)
    one, two = (torch.tensor([[1.0, 2, 3, 4], [1, 2, 3, 4]]) * torch.tensor(mask) for mask in ([1, 0, 1, 1], [1, 0, 0, 1]))
    assert imitated(defense, guess, {"w": one, "b": torch.zeros(2)})["w"].tolist() == [[1, 0, 1, 1]] * 2
    assert imitated(defense, guess, {"w": two, "b": torch.zeros(2)})["w"].tolist() == [[1, 1, 1, 1]] * 2


def test_soteria_says_that_it_needs_a_linear_layer() -> None:
    with pytest.raises(ValueError, match=r"Soteria hides inputs of a linear last layer; this model has no such layer\. Choose another"):
        Soteria().defend(sends({}), nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten()), partial(generator, 1))


# ---------------------------------------------------------------- Outpost


def fresh(*shape: int, seed: int = 5, std: float = 0.3) -> Tensor:
    return std * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LAYERS = {"one": fresh(100, 60, seed=6), "two": fresh(50, 40, seed=7), "bias": fresh(40, seed=8)}
WEIGHTS = {"one": fresh(100, 60), "two": fresh(50, 40, std=3.0), "bias": torch.full((40,), 0.5)}  # risks: 0.09, 1, 0


def perturbed(seed: int = 1, **fields: float) -> Params:
    return rounds(Outpost(decay=0, **fields), [LAYERS], WEIGHTS, seed)[0]


@pytest.mark.parametrize("share", [0.0, 37.5, 80.0])
def test_outpost_prunes_the_smallest_entries_of_every_layer(share: float) -> None:
    sent = perturbed(prune_base=share, noise_base=0)
    for name, g in LAYERS.items():
        count = int(share / 100 * g.numel())
        expected = g.flatten().clone()
        expected[g.flatten().abs().argsort()[:count]] = 0
        assert int((sent[name] == 0).sum()) == count
        assert torch.equal(sent[name].flatten(), expected)


@pytest.mark.parametrize(("phi", "prune"), [(40.0, 0.0), (10.0, 80.0), (100.0, 80.0), (0.0, 0.0)])
def test_outposts_noise_falls_where_the_squares_are_largest_and_is_as_strong_as_the_layers_risk(phi: float, prune: float) -> None:
    sent, pruned = perturbed(prune_base=prune, noise_base=0.8, phi=phi), perturbed(prune_base=prune, noise_base=0)
    fisher = {name: g.square().mean(0) for name, g in LAYERS.items()}  # one for every column: 60 + 40 + 1
    every = entries(fisher).sort(descending=True).values
    count = math.ceil(phi / 100 * len(every))
    for name, expected in (("one", 0.09 * 0.8), ("two", 0.8), ("bias", 0.0)):
        noise, hit = sent[name] - pruned[name], torch.isin(fisher[name], every[:count]).expand_as(LAYERS[name])
        assert torch.equal(noise != 0, hit if expected else torch.zeros_like(hit))
        if expected and int(hit.sum()) > 400:
            assert float(noise[hit].std()) == pytest.approx(expected, rel=0.1)  # 400 entries: known to 3.5 %


def test_the_risk_of_a_layer_is_the_spread_of_its_weights_up_to_one() -> None:
    assert risk(torch.tensor([1.0, 2.0, 1.5])) == pytest.approx(0.25)
    assert risk(torch.tensor([10.0, -10.0])) == 1
    assert risk(torch.tensor([3.0])) == 0


@pytest.mark.parametrize(("step", "probability"), [(0, 1 / 2), (2, 1 / 4), (8, 1 / 10)])
def test_outpost_becomes_rare(step: int, probability: float) -> None:
    small = {"w": torch.tensor([1.0, 2.0])}
    defense = Outpost(decay=1, prune_base=50, noise_base=0)
    hits = [int(rounds(defense, [small] * (step + 1), {"w": torch.ones(2)}, seed)[step]["w"][0] == 0) for seed in range(400)]
    assert sum(hits) / 400 == pytest.approx(probability, abs=0.08)  # 400 coins: known to 0.025


def test_outposts_noise_is_fresh_in_every_step_and_the_same_when_repeated() -> None:
    first, second = rounds(Outpost(decay=0, prune_base=0), [LAYERS] * 2, WEIGHTS)
    assert torch.equal(first["two"], perturbed(prune_base=0)["two"])
    assert not torch.equal(first["two"], second["two"])
    assert not torch.equal(first["two"], perturbed(seed=2, prune_base=0)["two"])


def test_outpost_follows_the_weights_of_the_local_step() -> None:
    unequal, equal = ({name: factor * value for name, value in WEIGHTS.items()} for factor in (1.0, 0.0))
    noisy, quiet = (rounds(Outpost(decay=0, prune_base=0), [LAYERS], weights)[0] for weights in (unequal, equal))
    assert not torch.equal(noisy["two"], LAYERS["two"])
    assert all(torch.equal(quiet[name], g) for name, g in LAYERS.items())
