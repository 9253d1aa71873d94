"""Many rounds: fresh noise averages out, and the attacker uses a clean round or entry."""

from functools import partial

import pytest
import torch
from small_problems import CATALOG, LABELS, observed, relative, smooth
from torch import nn

from leakage.defenses.outpost import Outpost
from leakage.engine.core import AdaptiveStrategy, Client, ClientState, Params, generator
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import plugin

AVERAGE, CLEAN, COLLECT = "average the rounds", "take a clean round", "collect the rounds"
NOWHERE = torch.zeros(1)
FRESH = {  # protections that draw anew in every round and are right on average; clipping bites
    "gaussian_noise": {"scale": 0.01},
    "laplacian_noise": {"scale": 0.01},
    "dp_sgd": {"max_grad_norm": 0.05, "noise_multiplier": 0.1},
    "fed_cdp": {"bound": 0.05, "last_bound": 0.05, "noise_multiplier": 0.1},
    "minmax_sampling": {"ratio": 0.2},
    "low_precision": {"number": "int8", "rounding": "stochastic"},
}
DEPLOYED = {"flower_local_dp", "ldp_fl", "svt_privacy"}  # their means: tests/defenses/test_deployed_filters.py and test_flower.py
EVERY = pytest.mark.parametrize("name", FRESH)


def strategy(name: str, what: str, **fields: float | str) -> AdaptiveStrategy:
    return plugin("defense", Part(id=name, fields=fields)).strategies()[what]


def says(g: Params) -> Client:
    return lambda _weights, _x, _y, state: (g, state)


def sent(name: str, g: Params, rounds: int, **fields: float | str) -> list[Params]:
    """What a client with that gradient sends, round after round."""
    client = plugin("defense", Part(id=name, fields=fields)).defend(says(g), nn.Identity(), partial(generator, 1, name))
    state, updates = ClientState(), []
    for _ in range(rounds):
        update, state = client({}, NOWHERE, NOWHERE, state)
        updates.append(update)
    return updates


def made_of(own: AdaptiveStrategy, updates: list[Params]) -> list[Params]:
    """What the attacker works with in each of the rounds."""
    assert own.invert_update is not None
    state, made = ClientState(), []
    for update in updates:
        made.append(own.invert_update(update, state))
        state = own.infer_state(update, state)
    return made


# ---------------------------------------------------------------- the mean


@EVERY
def test_the_mean_of_so_many_rounds_is_off_by_one_rounds_error_over_its_root(name: str) -> None:
    """Unbiased and independent. Held against what the attacker compares it with, which is clipped where the client clips."""
    own, g = strategy(name, AVERAGE, **FRESH[name]), observed(smooth(1, 3, 28)).received.update
    expected, _ = own.surrogate(says(g), {})({}, NOWHERE, NOWHERE, {})
    updates = sent(name, g, 64, **FRESH[name])
    one = (sum(relative(update, expected) ** 2 for update in updates) / len(updates)) ** 0.5
    means = made_of(own, updates)
    for rounds in (4, 16, 64):
        assert relative(means[rounds - 1], expected) == pytest.approx(one / rounds**0.5, rel=0.2)


@EVERY
def test_a_single_round_is_its_own_mean(name: str) -> None:
    (update,) = sent(name, observed(smooth()).received.update, 1, **FRESH[name])
    (mean,) = made_of(strategy(name, AVERAGE, **FRESH[name]), [update])
    assert all(torch.equal(mean[layer], g) for layer, g in update.items())


@pytest.mark.parametrize(("name", "bound"), [("dp_sgd", "max_grad_norm"), ("fed_cdp", "bound")])
def test_clipping_stays_known_where_rounds_are_averaged(name: str, bound: str) -> None:
    own, g = strategy(name, AVERAGE, **FRESH[name]), observed(smooth()).received.update
    clipped, _ = own.surrogate(says(g), {})({}, NOWHERE, NOWHERE, {})
    assert bound in FRESH[name]
    assert relative(clipped, g) > 0.5  # it bites
    (quiet,) = sent(name, g, 1, **{**FRESH[name], "noise_multiplier": 0.0})
    assert relative(clipped, quiet) < 1e-6


@pytest.mark.parametrize("name", ["dp_sgd", "minmax_sampling"])
def test_on_a_server_that_moves_the_error_reaches_a_floor(name: str) -> None:
    def error(rounds: int, rate: float) -> float:
        setting = {"protocol": Part(id="fedsgd", fields={"rate": rate}), "rounds": rounds, "attacked_round": rounds}
        fields = {**FRESH[name], "max_grad_norm": 10.0, "noise_multiplier": 0.001} if name == "dp_sgd" else FRESH[name]
        x = smooth()
        seen = observed(x, defenses=(Part(id=name, fields=fields),), assume=Assumptions(strategy=AVERAGE), **setting)
        return relative(seen.received.update, {layer: g.detach() for layer, g in seen.replay.single(x, LABELS[:1]).items()})

    still = [error(rounds, 1e-6) for rounds in (2, 20)]
    moved = [error(rounds, 1.0 if name == "dp_sgd" else 0.1) for rounds in (2, 20)]
    assert still[1] < still[0] / 2
    assert moved[1] > 2 * still[1]
    words = strategy(name, AVERAGE).description
    assert words.endswith("right as far as pictures and weights stay the same")  # why, on the page


# ---------------------------------------------------------------- a clean round, or a clean entry


def test_of_twenty_rounds_of_outpost_one_is_clean_and_is_the_gradient_bit_by_bit() -> None:
    """All are disturbed with the probability prod 1 / (1 + i / 8), i = 1 ... 20: 1.5e-7. So in 300 seeds of 300."""
    g, clean = {"w": torch.randn(8, 5, generator=torch.Generator().manual_seed(3))}, 0
    own = Outpost(decay=0.125)
    weights = {"w": torch.randn(8, 5)}
    for seed in range(300):
        client = own.defend(says(g), nn.Identity(), partial(generator, seed, "outpost"))
        state, updates = ClientState(), []
        for _ in range(20):
            update, state = client(weights, NOWHERE, NOWHERE, state)
            updates.append(update)
        clean += torch.equal(made_of(own.strategies()[CLEAN], updates)[-1]["w"], g["w"])
    assert clean == 300


def test_the_last_clean_round_is_taken_and_without_one_what_has_the_fewest_zeros() -> None:
    rounds = [{"w": torch.tensor(v)} for v in ([0.0, 0.0, 1.0], [1.0, 2.0, 3.0], [0.0, 2.0, 0.0], [4.0, 5.0, 6.0], [0.0, 9.0, 8.0])]
    taken = [one["w"].tolist() for one in made_of(strategy("outpost", CLEAN), rounds)]
    assert taken == [[0, 0, 1], [1, 2, 3], [1, 2, 3], [4, 5, 6], [4, 5, 6]]


def test_a_disturbed_round_of_outpost_alone_is_imitated_as_ever() -> None:
    received, guess = {"w": torch.tensor([0.0, 0.0, 0.0, 0.0, 5.0])}, {"w": torch.arange(5.0) + 1}
    own = strategy("outpost", CLEAN)
    assert own.surrogate(says(guess), received)({}, NOWHERE, NOWHERE, {})[0]["w"].tolist() == [0, 0, 0, 0, 5]


def test_entries_that_are_pruned_at_random_are_collected() -> None:
    """Of R rounds 1 - share^R arrive, each as it is: 1 - 0.9^20 = 0.878 of 10,000, known to 4 deviations."""
    g = {"w": torch.randn(100, 100, generator=torch.Generator().manual_seed(3))}
    got = made_of(strategy("pruning", COLLECT, fraction=0.9, scope="random"), sent("pruning", g, 20, fraction=0.9, scope="random"))[-1]["w"]
    arrived = got != 0
    assert torch.equal(got[arrived], g["w"][arrived])
    share = 1 - 0.9**20
    assert float(arrived.double().mean()) == pytest.approx(share, abs=4 * (share * (1 - share) / 10_000) ** 0.5)


def test_what_arrived_last_of_an_entry_counts() -> None:
    rounds = [{"w": torch.tensor(v)} for v in ([1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [3.0, 0.0, 0.0])]
    assert [one["w"].tolist() for one in made_of(strategy("pruning", COLLECT), rounds)] == [[1, 0, 0], [1, 2, 0], [3, 2, 0]]


# ---------------------------------------------------------------- on offer


def test_every_protection_with_fresh_noise_is_answered_over_rounds() -> None:
    offered = {entry.id: names for entry in CATALOG.defenses if (names := entry.strategies_with(averaging=True))}
    assert {name for name, ways in offered.items() if AVERAGE in ways} == set(FRESH) | DEPLOYED
    assert offered["outpost"] == [CLEAN]
    assert offered["pruning"] == [COLLECT]


@pytest.mark.parametrize("name", ["outpost", "pruning", "dp_sgd"])
def test_a_single_round_is_named_as_too_few(name: str) -> None:
    (way,) = CATALOG.defenses.get(name).strategies_with(averaging=True)
    asked = Experiment(defenses=(Part(id=name),), assume=Assumptions(strategy=way)).resolve(CATALOG)
    assert warnings(asked, CATALOG) == [
        f"“{way}” has a single round to work with: it puts together what arrived up to the attacked round, and only one is watched. "
        "Watch several rounds and attack a later one."
    ]
