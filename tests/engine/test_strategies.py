"""The strategies of an adaptive attacker: chosen by name, weighted entry by entry, in the order of the defenses."""

import pytest
import torch
from sample_events import meta, received
from small_problems import CATALOG, LABELS, TINY, observed, precision, short, smooth
from torch import Tensor

from leakage.defenses._each import snap_to_received
from leakage.engine.core import Params
from leakage.engine.matching import DISTANCES, distance
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Assumptions, Experiment, Part, SpecError
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import plugin, prepare

ADA = Part(id="ada_defense", fields={"variant": "as in the code"})
NOISE = Part(id="gaussian_noise", fields={"scale": 1e-4})
PRUNE = Part(id="pruning", fields={"fraction": 0.5})


def sent_by(update: Params, name: str, strategy: str, received: Params, **fields: float | str) -> dict[str, list[float]]:
    """Return the imitated update of an attacker with this strategy."""
    answer = plugin("defense", Part(id=name, fields=fields)).strategies()[strategy]
    client = answer.surrogate(lambda _w, _x, _y, state: (update, state), received)
    told, _ = client({}, torch.zeros(1), torch.zeros(1), {})
    return {layer: value.tolist() for layer, value in told.items()}


# ---------------------------------------------------------------- choosing


def test_a_strategy_that_no_protection_here_has_is_refused_with_those_there_are() -> None:
    given = Experiment(defenses=(Part(id="soteria"),), assume=Assumptions(strategy="read it off"))
    with pytest.raises(SpecError, match="strategy: allowed is same columns, without that layer; given was 'read it off'"):
        given.resolve(CATALOG)
    with pytest.raises(SpecError, match="strategy: allowed is none, without a protection"):
        Experiment(assume=Assumptions(strategy="read it off")).resolve(CATALOG)


def test_without_a_word_the_first_strategy_is_taken() -> None:
    x = smooth(3)
    for strategies in (entry.strategies for entry in CATALOG.defenses):
        assert strategies
    first, named = (
        observed(x, defenses=(ADA,), assume=Assumptions(strategy=strategy)).received.update["linear.bias"]
        for strategy in ("", "stand-in of the guess")
    )
    assert torch.equal(first, named)


# ---------------------------------------------------------------- an order


def test_what_came_before_a_stand_in_is_imitated_once_that_is_read_off() -> None:
    with precision(torch.float64):
        x = smooth(3)
        before = observed(x, defenses=(PRUNE, ADA), assume=Assumptions(strategy="read it off"))
        pruned = observed(x, defenses=(PRUNE,)).received.update
        # the pruned gradient is what was turned into a stand-in
        assert gradient_distances(before.received.update, pruned)["relative_l2"] < 1e-6
        assert gradient_distances(before.gradient(x, LABELS), before.as_gradient())["relative_l2"] < 1e-6


def test_protections_of_gradients_act_in_the_order_in_which_they_are_named_and_before_those_of_updates() -> None:
    x = smooth(3)
    one, other = (observed(x, defenses=defenses).received.history[0].update for defenses in ((ADA, PRUNE), (PRUNE, ADA)))
    for layer in one:
        assert torch.equal(one[layer], other[layer])
        assert int((one[layer] == 0).sum()) >= one[layer].numel() // 2
    noisy_last, pruned_last = (observed(x, defenses=defenses).received.update for defenses in ((PRUNE, NOISE), (NOISE, PRUNE)))
    assert not any(bool((g == 0).any()) for g in noisy_last.values())
    assert all(int((g == 0).sum()) == g.numel() // 2 for g in pruned_last.values())


def test_the_stand_in_of_a_sum_is_imitated_as_nobody_can_read_it_off() -> None:
    summed = {"aggregation": Part(id="secure_aggregation", fields={"clients": 3})}
    seen = observed(smooth(3), defenses=(ADA,), assume=Assumptions(strategy="read it off"), **summed)
    assert all(torch.equal(seen.received.update[layer], seen.received.history[0].update[layer]) for layer in seen.received.update)
    assert seen.knowledge.entry_weights == {}


# ---------------------------------------------------------------- what is compared


@pytest.mark.parametrize("kind", DISTANCES)
def test_an_entry_that_is_not_trusted_may_be_anything(kind: str) -> None:
    target = {"a": torch.tensor([1.0, -2.0, 3.0]), "b": torch.tensor([4.0, 5.0])}
    entry_weights = {"a": torch.tensor([1.0, 1.0, 0.0]), "b": torch.tensor([0.0, 0.0])}
    match = distance(kind, target, entry_weights=entry_weights)

    def gap(a: list[float], b: list[float]) -> float:
        return float(match({"a": torch.tensor([a], dtype=torch.float32), "b": torch.tensor([b], dtype=torch.float32)})[0])

    right = gap([1, -2, 77], [-8, 0])
    assert right == pytest.approx(0.5 if kind == "cosine per layer" else 0, abs=1e-6)  # a tensor without trust has no direction
    assert gap([1, -2, 3], [4, 5]) == pytest.approx(right, abs=1e-6)
    assert gap([1, 2, 3], [4, 5]) > right + 0.1


def test_entry_weights_weigh_squares() -> None:
    match = distance("squared", {"a": torch.tensor([1.0, 2.0])}, {"a": 0.5}, {"a": torch.tensor([3.0, 10.0])})
    assert float(match({"a": torch.tensor([[2.0, 4.0]])})[0]) == 0.5 * (3 * 1 + 10 * 4)
    plain, doubled = (distance("cosine", {"a": torch.tensor([1.0, 2.0])}, entry_weights=t) for t in (None, {"a": torch.tensor([2.0, 2.0])}))
    guess = {"a": torch.tensor([[2.0, -1.0], [1.0, 1.0]])}
    torch.testing.assert_close(plain(guess), doubled(guess))


def test_an_entry_within_its_slack_counts_as_the_one_received_and_beyond_it_by_the_rest() -> None:
    received, slack = {"w": torch.tensor([1.0, 1.0, 0.0, 0.0])}, {"w": torch.tensor([0.0, 0.5, 2.0, torch.inf])}
    g = torch.tensor([1.25, 1.25, -3.0, 9.0], requires_grad=True)
    (told,) = snap_to_received(lambda _w, _x, _y, state: ({"w": g}, state), received, slack)({}, g, g, {})[0].values()
    assert told.tolist() == [1.25, 1.0, -1.0, 0.0]
    (gradient,) = torch.autograd.grad(told.sum(), g)
    assert gradient.tolist() == [1, 0, 1, 0]


def test_what_pruning_left_out_is_bounded_by_the_smallest_that_arrived() -> None:
    received, guess = {"w": torch.tensor([0.0, 3.0, 0.0, -4.0])}, {"w": torch.tensor([2.0, 2.0, -5.0, 4.0])}
    assert sent_by(guess, "pruning", "what arrived, and bounds", received, fraction=0.5) == {"w": [0, 2, -2, 4]}
    at_random_positions = sent_by(guess, "pruning", "what arrived, and bounds", received, fraction=0.5, scope="random")
    assert at_random_positions == {"w": [0, 2, 0, 4]} == sent_by(guess, "pruning", "what arrived", received, fraction=0.5)


@pytest.mark.parametrize(("rounding", "told"), [("nearest", [127.0, 1.0, 2.25]), ("stochastic", [127.0, 1.0, 2.0])])
def test_eight_bits_leave_half_a_step_or_a_whole_one_open(rounding: str, told: list[float]) -> None:
    received, guess = {"w": torch.tensor([127.0, 1.0, 2.0])}, {"w": torch.tensor([127.25, 0.5, 2.75])}
    assert sent_by(guess, "low_precision", "within the step", received, rounding=rounding) == {"w": told}


@pytest.mark.parametrize(("number", "bits"), [("fp16", 10), ("bf16", 7)])
def test_sixteen_bits_leave_half_a_unit_in_the_last_place_open(number: str, bits: int) -> None:
    half = 2.0 ** -(bits + 1)
    received, guess = {"w": torch.tensor([1.0, 1.0])}, {"w": torch.tensor([1 + half, 1 + 3 * half])}
    assert sent_by(guess, "low_precision", "within the step", received, number=number) == {"w": [1.0, 1 + 2 * half]}


def test_leaving_soterias_layer_out_leaves_the_others_and_the_labels() -> None:
    seen = observed(smooth(), defenses=(Part(id="soteria"),), assume=Assumptions(strategy="without that layer"))
    assert list(seen.knowledge.entry_weights) == ["linear.weight"]
    assert not bool(seen.knowledge.entry_weights["linear.weight"].any())
    assert torch.equal(seen.as_gradient()["linear.bias"], observed(smooth()).received.update["linear.bias"])


# ---------------------------------------------------------------- what it is good for


def error(x: Tensor, strategy: str, **settings: object) -> float:
    seen = observed(x, defenses=(ADA,), assume=Assumptions(labels=True, strategy=strategy), **settings)
    attack = plugin("attack", short("inverting_gradients", steps=300, polish=20, starts=1))
    *_, last = attack.run(seen, torch.Generator().manual_seed(1))
    return float((last.x - x).square().mean())


@pytest.mark.long
def test_whoever_reads_a_stand_in_off_and_polishes_comes_nearer_than_whoever_imitates_it() -> None:
    x = smooth()
    assert error(x, "read it off") < 1e-4 < error(x, "stand-in of the guess")


# ---------------------------------------------------------------- what the page says


@pytest.mark.long
def test_the_threat_model_table_says_what_was_done_where_the_chosen_answer_cannot_be_used() -> None:
    rounded = Experiment(model=TINY, defenses=(Part(id="low_precision"),)).resolve(CATALOG)
    alone = prepare(rounded)
    stepping = rounded.model_copy(update={"protocol": Part(id="fedavg")}).resolve(CATALOG)
    local = prepare(stepping)
    noisy = prepare(rounded.model_copy(update={"defenses": (Part(id="low_precision"), NOISE)}).resolve(CATALOG))
    assert "may lie anywhere among the numbers" in alone.federation.strategy_descriptions[0]
    assert local.federation.strategy_descriptions[0] == noisy.federation.strategy_descriptions[0] == "known: the guess is rounded too"
    said = assumptions(stepping, CATALOG, meta(answers=local.federation.strategy_descriptions, received=received(1)), {})
    (told,) = (text for _, about, text in said if about == "The protection")
    assert told.endswith("known: the guess is rounded too")


# ---------------------------------------------------------------- the mean over rounds


@pytest.mark.parametrize(("name", "deviation"), [("gaussian_noise", 1.0), ("laplacian_noise", 2**0.5)])
def test_averaged_over_sixteen_rounds_a_quarter_of_the_noise_is_left(name: str, deviation: float) -> None:
    x, scale = smooth(3), 0.01
    still = Part(id="fedsgd", fields={"rate": 1e-6})

    def gap(rounds: int, strategy: str = "average the rounds", protocol: Part = still) -> float:
        """The standard deviation of what the attacker works with around the gradient without protection."""
        noise = Part(id=name, fields={"scale": scale})
        plain = observed(x).received.update
        seen = observed(
            x, defenses=(noise,), assume=Assumptions(strategy=strategy), protocol=protocol, rounds=rounds, attacked_round=rounds
        )
        return torch.cat([(seen.received.update[layer] - g).flatten() for layer, g in plain.items()]).std().item() / (scale * deviation)

    count = sum(g.numel() for g in observed(x).received.update.values())
    near = 4 / count**0.5  # four standard errors of a standard deviation, or more (of Laplace's law it is wider than of the normal one)
    assert gap(1) == pytest.approx(1, rel=near)
    assert gap(16) == pytest.approx(1 / 4, rel=near)
    assert gap(16, "imitate") == pytest.approx(1, rel=near)
    moved = gap(16, protocol=Part(id="fedsgd", fields={"rate": 1.0}))
    assert moved > 1 / 2  # the mean is of sixteen different gradients then
