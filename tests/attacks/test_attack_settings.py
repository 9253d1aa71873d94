"""Attacks on federated settings: a replay of the client succeeds, an attack that takes the update for a gradient does not."""

import pytest
import torch
from small_problems import CATALOG, GRANTED, LABELS, moments, observed, short, smooth

from leakage.attacks.gradinversion import mismatch
from leakage.engine.core import Observation
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Assumptions, Part
from leakage.workers.adapter import plugin

NAIVE = Assumptions(adaptive=False)
LENET = Part(id="lenet")
ADMM = Part(id="fedadmm", fields={"rate": 0.01})


def error(x: torch.Tensor, seen: Observation, attack: Part, seed: int = 1) -> float:
    answer = moments(attack, seen, seed)[-1].x.clamp(0, 1)
    return float((answer[pair(answer, x)] - x).square().mean())


@pytest.mark.parametrize("protocol", ["fedavg", "fedprox", "fedadmm"])
def test_local_steps_hide_nothing_from_who_replays_them(protocol: str) -> None:
    """Three steps so large that the gradient turns on the way."""
    x, part = smooth(), Part(id=protocol, fields={"epochs": 3, "rate": 0.3})
    adaptive, naive = (
        error(x, observed(x, protocol=part, assume=assume), short("idlg", steps=200, restarts=2)) for assume in (GRANTED, NAIVE)
    )
    assert adaptive < 1e-3
    assert naive > 20 * adaptive


def test_a_naive_attacker_who_compares_directions_alone_loses_less_than_one_who_minds_lengths_in_the_end() -> None:
    """Five local steps make what is sent five times as long, and turn it little: the last polish looks for such a long gradient."""
    x, part = smooth(), Part(id="fedavg", fields={"epochs": 5, "rate": 0.1})
    seen = observed(x, protocol=part, assume=Assumptions(labels=True, adaptive=False))
    fields = {"steps": 300, "step_size": 0.02, "starts": 1, "start": "uniform"}
    directions, lengths = (error(x, seen, Part(id="inverting_gradients", fields={**fields, "polish": polish})) for polish in (0, 15))
    assert directions < 0.5 * lengths


def test_the_paper_preset_of_inverting_gradients_has_the_weight_that_its_section_5_names() -> None:
    """0.01; 0.1 without signs is what the released code takes by default."""
    presets = CATALOG.attacks.get("inverting_gradients").presets
    (paper,) = [preset for name, preset in presets.items() if name.startswith("paper (Geiping")]
    (code,) = [preset for name, preset in presets.items() if name.startswith("their code")]
    assert (paper["tv_weight"], paper["signed"]) == (0.01, True)
    assert (code["tv_weight"], code["signed"]) == (0.1, False)


def test_a_later_round_is_attacked_with_what_the_client_carried_into_it() -> None:
    x, part = smooth(), Part(id="fedadmm", fields={"rate": 0.3, "penalty": 1.0})
    seen = observed(x, protocol=part, rounds=3, attacked_round=3, assume=GRANTED)
    assert error(x, seen, short("idlg", steps=200, restarts=2)) < 1e-3


@pytest.mark.long
def test_inverting_gradients_follows_local_steps_in_mini_batches() -> None:
    x = smooth(3)
    part = Part(id="fedavg", fields={"epochs": 2, "mini_batch": 2, "rate": 0.3})
    seen = observed(x, protocol=part, assume=GRANTED)
    assert (
        error(x, seen, short("inverting_gradients", steps=600, tv_weight=0.0, starts=1)) < 0.02
    )  # U(0, 1) smooth pictures: about 0.08 apart


# ---------------------------------------------------------------- ADMM, naive and adaptive


@pytest.mark.long
def test_dlg_on_admm_fails_by_either_mistake_and_succeeds_without_both() -> None:
    x = smooth(side=28)
    seen = observed(x, model=LENET, protocol=ADMM, assume=NAIVE)
    found = {}
    for state in (False, True):
        for scale in (False, True):
            attack = short("dlg_admm", steps=100, restarts=2, repair_state=state, repair_scale=scale)
            run = moments(attack, seen)
            found[state, scale] = float((run[-1].x.clamp(0, 1) - x).square().mean())
            words = {(False, False): "naive", (True, True): "naive, repaired: state and scale"}.get((state, scale))
            assert run[-1].note["attacker"] == words or words is None
    assert found[True, True] < 1e-3
    assert min(found[False, False], found[True, False], found[False, True]) > 0.05


@pytest.mark.parametrize(("admm", "plain"), [("dlg_admm", "dlg"), ("idlg_admm", "idlg")])
@pytest.mark.long
def test_the_adaptive_attack_on_one_step_of_admm_is_the_attack_on_fedsgd(admm: str, plain: str) -> None:
    x = smooth(side=28)
    one, other = (
        moments(short(name, steps=10, restarts=1), observed(x, model=LENET, protocol=protocol))
        for name, protocol in ((admm, ADMM), (plain, Part(id="fedsgd")))
    )
    assert torch.equal(one[0].x, other[0].x)
    for here, there in zip(one[:2], other[:2], strict=True):  # the same search, until rounding has grown
        assert float(here.loss) == pytest.approx(float(there.loss), rel=1e-2)
    assert one[-1].note["attacker"] == "adaptive"


def test_the_naive_imitation_drifts_and_leaves_the_observation_alone() -> None:
    """Called twice with one guess, the stateful imitation answers differently; the adaptive one does not."""
    from leakage.attacks._admm import with_imitation

    x = smooth(3)
    fields = {"rate": 0.3, "penalty": 1.0}
    for assume, same in ((NAIVE, False), (Assumptions(), True)):
        seen = observed(x, protocol=Part(id="fedadmm", fields=fields), assume=assume)
        attacker, _ = with_imitation(seen, stateless=False, same_scale=False)
        first, second = attacker.gradient(x, LABELS), attacker.gradient(x, LABELS)
        assert all(torch.equal(first[name], second[name]) for name in first) == same
        assert seen.replay.simulator.state == {}


# ---------------------------------------------------------------- GradInversion

MODEL = Part(id="convnet", fields={"width": 4})


@pytest.mark.parametrize("batch_norm", ["eval", "batch"])
def test_the_private_batch_matches_its_own_statistics_and_no_other_does(batch_norm: str) -> None:
    x = smooth(3, channels=3, side=28)
    seen = observed(x, model=MODEL, batch_norm=batch_norm, assume=Assumptions(statistics="exact"))
    with torch.no_grad():
        assert float(mismatch(seen, x)) < 1e-4
        assert float(mismatch(seen, smooth(3, channels=3, side=28, seed=4))) > 0.1


def test_the_first_layer_counts_ten_times() -> None:
    x = smooth(2, channels=3, side=28)
    seen = observed(x, model=MODEL, assume=Assumptions(statistics="exact"))
    assert seen.granted.statistics is not None
    names = list(seen.granted.statistics)
    totals = []
    for name in names[:2]:
        mean, variance = seen.granted.statistics[name]
        seen.granted.statistics[name] = (mean + torch.nn.functional.one_hot(torch.tensor(0), len(mean)), variance)  # 1 away in one channel
        totals.append(float(mismatch(seen, x).detach()))
        seen.granted.statistics[name] = (mean, variance)
    assert totals == pytest.approx([10, 1], abs=1e-3)


def test_the_page_is_told_whether_statistics_were_used() -> None:
    x = smooth(2, channels=3, side=28)
    for kind, words in (("none", "not used"), ("exact", "used")):
        run = moments(short("gradinversion", steps=1), observed(x, model=MODEL, assume=Assumptions(statistics=kind)))
        assert run[-1].note["BatchNorm statistics"] == words


def test_seeds_are_drawn_towards_their_mean() -> None:
    """The pixel mean of two seeds is no further from either than half their gap; with a strong group term that gap closes."""
    seen = observed(smooth(2))
    attack = plugin("attack", short("gradinversion", group_weight=10.0, tv_weight=0.0, l2_weight=0.0))
    z = torch.stack([torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)]).requires_grad_()
    (gradient,) = torch.autograd.grad(attack._prior(seen)(z).sum(), z)
    assert float(gradient[0].max()) < 0 < float(gradient[1].min())  # descending moves the dark one up and the bright one down
