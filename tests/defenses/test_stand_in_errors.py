"""AdaDefense inverted in later rounds: an error of the first round stays in the moments, is tracked, and lowers an entry's weight."""

import pytest
import torch
from small_problems import LABELS, observed, smooth

from leakage.defenses.ada_defense import CODE, FIRST, FIRST_ERROR, LAST, PUBLISHED, ROUND, RULES, SECOND, SECOND_ERROR, AdaDefense
from leakage.engine.client import gradient_client
from leakage.engine.core import ClientState
from leakage.engine.whole_distance import flatten
from leakage.spec.experiment import Assumptions, Part

G, SHARE = 0.5, 0.01  # an entry, and by which share of it the first round was misread


def after_a_misread_round(defense: AdaDefense, g: torch.Tensor) -> ClientState:
    """Return the state of an attacker that inverted the first round to g (1 + SHARE) instead of g."""
    read = g * (1 + SHARE)
    newest = 1.0 if defense.rule == "adagrad" else 0.001  # what a square counts for; from 0 Yogi's first step is Adam's
    moments = {FIRST: 0.1 * read, SECOND: newest * read.square(), LAST: read}
    errors = {FIRST_ERROR: 0.1 * SHARE * g, SECOND_ERROR: newest * 2 * read * SHARE * g}
    return {ROUND: torch.tensor(1)} | {name + "w": value for name, value in (moments | errors).items()}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sign", [1, -1])
def test_who_misread_an_unchanged_gradient_misreads_it_by_the_same_share_again_and_says_so(rule: str, sign: int) -> None:
    defense, g = AdaDefense(rule=rule), torch.tensor([sign * G], dtype=torch.float64)
    state = after_a_misread_round(defense, g)
    _, honest = defense.stand_in({"w": g}, {})
    sent, _ = defense.stand_in({"w": g}, honest)  # whatever the scale of all gradients, Adam's step is the same
    found, wrong = defense.invert_update(sent, state)
    assert float(found["w"]) == pytest.approx(sign * G * (1 + SHARE), rel=1e-3)
    assert float(wrong["w"]) == pytest.approx(G * SHARE, rel=0.05)
    carried = defense.strategies()["read it off"].infer_state(sent, state)  # m is as wrong as g, and v, where squares are, twice
    assert float(carried[FIRST_ERROR + "w"] / carried[FIRST + "w"]) == pytest.approx(SHARE, rel=0.05)
    assert float(carried[SECOND_ERROR + "w"] / carried[SECOND + "w"]) == pytest.approx(2 * SHARE, rel=0.05)


def test_an_error_of_the_first_round_is_carried_into_the_moments_by_their_own_formulas() -> None:
    defense, g = AdaDefense(variant=CODE), torch.tensor([0.25, -0.001])
    sent, _ = defense.stand_in({"w": g}, {})
    found, wrong = defense.invert_update(sent, {})
    state = defense.strategies()["read it off"].infer_state(sent, {})
    torch.testing.assert_close(state[FIRST_ERROR + "w"].abs(), 0.1 * wrong["w"])
    torch.testing.assert_close(state[SECOND_ERROR + "w"].abs(), 0.002 * found["w"].abs() * wrong["w"])


def test_what_the_first_round_has_lost_does_not_count_in_the_second() -> None:
    defense, g = AdaDefense(variant=PUBLISHED), torch.tensor([1e-8, 2e-8, 3e-8, 1.0])
    first, state = defense.stand_in({"w": g}, {})
    second, _ = defense.stand_in({"w": g}, state)
    watched = defense.strategies()["read it off"].infer_state(first, {})
    assert float(first["w"][3]) == 1  # rounded: its size is gone
    assert defense.weigh_entries(second, watched)["w"].tolist()[3] == 0
    assert min(defense.weigh_entries(second, watched)["w"].tolist()[:3]) > 0


@pytest.mark.parametrize("number", [1, 2, 4])
def test_in_every_round_nearly_all_entries_are_as_near_as_is_said(number: int) -> None:
    x, defense = smooth(3), Part(id="ada_defense", fields={"variant": CODE})
    settings = {"rounds": number, "attacked_round": number, "protocol": Part(id="fedsgd", fields={"rate": 1e-6})}
    seen = observed(x, **settings, defenses=(defense,), assume=Assumptions(strategy="read it off"))
    true = flatten(gradient_client(seen.model)(seen.received.weights, x, LABELS, {})[0]).detach()
    at = seen.received.history[number - 1]
    found, wrong = (flatten(part) for part in AdaDefense(variant=CODE).invert_update(at.update, at.state))
    near = (found - true).abs() <= 3 * wrong + 1e-5 * true.square().mean().sqrt()
    assert float(near.float().mean()) > 0.95
    assert float(wrong.max() / wrong.clamp(min=1e-12).min()) > 10  # and it is not said of all alike
