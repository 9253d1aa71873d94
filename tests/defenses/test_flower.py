"""The protections of Flower, adaptive clipping, LDP-FL and excluded tensors: formulas, privacy budgets, averages over rounds."""

import math
import re

import pytest
import torch
from sent_updates import ask, defended, draws, flat, in_standard_errors, layers, promised, sent
from small_problems import CATALOG, GRANTED, LABELS, TINY, moments, observed, relative, short, smooth

from leakage.defenses.flower_local_dp import FlowerLocalDP
from leakage.engine.core import ClientState, DoesNotApplyError
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.fields import CatalogError
from leakage.spec.tasks import Training
from leakage.ui.architecture.withheld import sentence
from leakage.workers.adapter import plugin, prepare
from leakage.workers.training_adapter import privacy

FLOWER = Part(id="flower_local_dp", fields={"clipping_norm": 10.0, "sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-5})

# ---------------------------------------------------------------- local DP of Flower

# sensitivity, epsilon, delta -> s: ln(1.25 / delta) is 11.7361 for 1e-5, and 2 for 1.25 / e^2
DEVIATIONS = [(1.0, 1.0, 1e-5, 4.84481), (2.0, 0.5, 1e-5, 19.37923), (3.0, 6.0, 1.25 / math.e**2, 1.0), (1.0, 1e5, 1e-5, 4.84481e-5)]


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta", "deviation"), DEVIATIONS)
def test_the_noise_of_flower_has_the_deviation_of_its_formula(sensitivity: float, epsilon: float, delta: float, deviation: float) -> None:
    fields = {"sensitivity": sensitivity, "epsilon": epsilon, "delta": delta}
    assert FlowerLocalDP(**fields).deviation == pytest.approx(deviation, rel=1e-5)
    noise = sent("flower_local_dp", torch.zeros(100_000), **fields)  # known to 0.2 %
    assert float(noise.std()) == pytest.approx(deviation, rel=0.02)


def test_flower_shortens_the_whole_update_before_the_noise() -> None:
    got, _ = ask(defended("flower_local_dp", layers(), clipping_norm=2.0, sensitivity=0.0))  # of norm 5
    torch.testing.assert_close(flat(got), flat(layers()) * 2 / 5)


def test_the_budget_of_flower_is_that_of_its_noise_and_its_limit_and_holds_for_a_phone() -> None:
    """Typed in is epsilon 1; but the noise is 4.84 for a limit of 10, a noise multiplier below one half."""
    bound = promised(FLOWER, protocol=Part(id="fedavg", fields={"epochs": 5}))
    assert bound is not None
    assert bound.times == 1  # once per round, not in each local step
    assert bound.value is not None
    assert bound.value > 9
    assert bound.whom.startswith("all that one phone holds")
    assert "sensitivity of at least 10 (20 for other pictures" in bound.whom
    assert "proved for epsilon below 1 alone" in bound.whom
    kept = promised(Part(id="flower_local_dp", fields={"clipping_norm": 1.0, "epsilon": 0.9}))
    assert kept is not None
    assert kept.value is not None
    assert kept.value < 0.9  # the classical formula gives more noise than it must
    assert "would take" not in kept.whom
    assert "proved" not in kept.whom


def test_a_training_behind_flower_counts_its_rounds_and_not_its_local_steps() -> None:
    training = Training(clients=3, rounds=6, local_epochs=2, batch=64, defenses=(FLOWER,))
    found = privacy(training, 20_000)
    assert found is not None
    assert (found.steps, found.uses, found.rate) == (6, 6, 1.0)
    assert found.sampled == found.unsampled
    assert found.whom.startswith("all that one phone holds")


@pytest.mark.parametrize("name", ["flower_local_dp", "ldp_fl", "svt_privacy"])
def test_who_averages_over_the_rounds_comes_nearer(name: str) -> None:
    """A server that stands still: the mean of 16 draws errs a quarter as much as one; SVT's entries arrive in some rounds only."""
    fields = {  # limits that the update meets, so that the guess has to meet them too
        "flower_local_dp": {"epsilon": 1e4, "clipping_norm": 0.05},
        "ldp_fl": {"radius": 0.02},
        "svt_privacy": {"gamma": 0.1, "fraction": 1.0, "noise_var": 1.0, "replace": False},
    }[name]
    still = {"protocol": Part(id="fedsgd", fields={"rate": 1e-6}), "defenses": (Part(id=name, fields=fields),)}
    x, errors = smooth(3), []
    for rounds in (1, 16):
        seen = observed(x, **still, rounds=rounds, attacked_round=rounds, assume=Assumptions(strategy="average the rounds"))
        errors.append(relative(seen.received.update, seen.replay.single(x, LABELS)))
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.1)


# ---------------------------------------------------------------- central DP


def test_central_noise_changes_nothing_that_this_server_sees_and_promises_it_nothing() -> None:
    x, central = smooth(3), Part(id="flower_central_dp")
    plain, seen = observed(x), observed(x, defenses=(central,))
    assert all(torch.equal(plain.received.update[name], seen.received.update[name]) for name in plain.received.update)
    assert promised(central) is None


def test_where_the_phone_shortens_its_update_the_server_gets_it_shortened() -> None:
    got, _ = ask(defended("flower_central_dp", layers(), clipping_norm=2.0, clipping="by the phone"))
    torch.testing.assert_close(flat(got), flat(layers()) * 2 / 5)


# ---------------------------------------------------------------- adaptive clipping


def bounds_of(lengths: list[float], **fields: float) -> list[float]:
    """How long the updates of such lengths are when they are sent, round by round."""
    state, found = ClientState(), []
    for length in lengths:
        update, state = ask(defended("adaptive_clipping", {"w": torch.tensor([length, 0.0], dtype=torch.float64)}, **fields), state)
        found.append(float(update["w"].norm()))
    return found


def test_the_limit_grows_while_updates_are_longer_and_falls_while_they_are_shorter() -> None:
    up, down = math.exp(0.2 * 0.5), math.exp(-0.2 * 0.5)
    assert bounds_of([9, 9, 9], start=1.0) == pytest.approx([1, up, up**2])
    # a short one, then long ones that show the limit
    assert bounds_of([0.5, 0.5, 9, 9], start=1.0) == pytest.approx([0.5, 0.5, down**2, down])
    assert bounds_of([9, 9], start=1.0, rate=0.5, quantile=0.9) == pytest.approx([1, math.exp(0.45)])


def test_the_limit_ends_where_half_of_the_updates_are_shorter() -> None:
    state, lengths = ClientState(), torch.rand(1000, generator=torch.Generator().manual_seed(5)) + 1
    for length in lengths:
        _, state = ask(defended("adaptive_clipping", {"w": length.view(1)}, rate=0.02), state)
    assert float(state["adaptive_clipping.bound"]) == pytest.approx(1.5, abs=0.25)  # it wavers by 0.06


# ---------------------------------------------------------------- LDP-FL


def test_ldp_fl_sends_one_of_two_numbers_and_is_right_on_average_within_its_range() -> None:
    g = torch.tensor([0.3, 0.5, 0.45, 0.6, 0.7, 2.0, -3.0], dtype=torch.float64)
    got = draws("ldp_fl", g, center=0.5, radius=0.2, epsilon=1.0)
    far = 0.2 * (math.e + 1) / (math.e - 1)
    assert sorted(got.unique().tolist()) == pytest.approx([0.5 - far, 0.5 + far])
    assert float(in_standard_errors(got, g.clamp(0.3, 0.7)).max()) < 3.5


def test_no_number_of_ldp_fl_is_more_likely_by_more_than_e_to_epsilon() -> None:
    """At the ends of the range the probabilities are e^eps / (e^eps + 1) and 1 / (e^eps + 1)."""
    got = draws("ldp_fl", torch.tensor([-1.0, 1.0], dtype=torch.float64), radius=1.0, epsilon=2.0) > 0
    probability = 1 / (math.exp(2) + 1)
    assert got.double().mean(0).tolist() == pytest.approx([probability, 1 - probability], abs=4 * math.sqrt(probability / 2000))


def test_ldp_fl_counts_every_number_of_a_phone() -> None:
    bound = promised(Part(id="ldp_fl", fields={"epsilon": 0.5}), rounds=2)
    assert bound is not None
    experiment = Experiment(model=TINY).resolve(CATALOG)
    entries = sum(value.numel() for value in prepare(experiment, device=torch.device("cpu")).seen.received.weights.values())
    assert (bound.value, bound.delta) == (entries * 0.5 * 2, 0)
    assert bound.whom.endswith("(for one number alone it is 0.5)")


# ---------------------------------------------------------------- tensors that stay


def test_the_tensors_named_arrive_as_zeros_and_the_others_as_they_are() -> None:
    x = smooth(3)
    plain = observed(x).received.update
    for names, gone in (("last", {"linear.weight", "linear.bias"}), ("*1.weight linear.bias", {"linear1.weight", "linear.bias"})):
        seen = observed(x, defenses=(Part(id="exclude_vars", fields={"names": names}),))
        assert {name for name, g in seen.received.update.items() if not g.any()} == gone
        assert all(torch.equal(seen.received.update[name], plain[name]) for name in plain.keys() - gone)


def test_a_name_that_no_tensor_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no tensor of this model is called 'fc9.weight'; it has linear1.weight, linear1.bias, linear"):
        observed(smooth(), defenses=(Part(id="exclude_vars", fields={"names": "last fc9.weight"}),))


def test_names_are_read_with_commas_and_refused_with_other_signs() -> None:
    assert plugin("defense", Part(id="exclude_vars", fields={"names": " a.weight,b.bias  a.weight "})).names == "a.weight b.bias"
    with pytest.raises(CatalogError, match=r"names: a tensor is named by letters, digits, dots, _, \* and \?; given was 'a;b'"):
        plugin("defense", Part(id="exclude_vars", fields={"names": "a;b"}))
    with pytest.raises(CatalogError, match="at most 50 names, given were 51"):
        plugin("defense", Part(id="exclude_vars", fields={"names": " ".join(map(str, range(51)))}))


@pytest.mark.parametrize(
    ("names", "attack", "words"),
    [
        ("first", "linear_layer", "The bias of linear1 receives no gradient (dead units, nothing left to learn, or its phone keeps it)"),
        ("first", "r_gap", "The gradient of linear1 is zero, or its phone keeps it"),
        ("last", "r_gap", "The last layer's gradient is zero"),
    ],
)
def test_a_closed_form_does_not_apply_where_the_tensor_that_it_needs_stays_on_the_phone(names: str, attack: str, words: str) -> None:
    seen = observed(smooth(), defenses=(Part(id="exclude_vars", fields={"names": names}),), assume=GRANTED)
    with pytest.raises(DoesNotApplyError, match=f"^{re.escape(words)}"):
        moments(short(attack), seen)


@pytest.mark.parametrize(
    ("names", "attack"),
    [
        ("last", "linear_layer"),  # it needs the first layer alone
        ("linear1.bias", "r_gap"),  # the weight says it all
    ],
)
def test_a_closed_form_is_exact_without_the_tensors_that_it_does_not_need(names: str, attack: str) -> None:
    x = smooth()
    seen = observed(x, defenses=(Part(id="exclude_vars", fields={"names": names}),), assume=GRANTED)
    answer = moments(short(attack), seen)[-1]
    assert "event" not in answer.note
    assert float((answer.x - x).abs().max()) < 1e-3


def test_the_page_of_networks_says_which_attack_needs_which_tensor() -> None:
    words = sentence(CATALOG)
    assert "Bias attack needs the weight or the bias of the first layer" in words
    assert "R-GAP needs the weight of each layer, and the bias of the last layer" in words
    assert "iDLG" not in words
