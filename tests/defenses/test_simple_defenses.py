"""Noise, low precision, clipping, pruning, sampling: the mathematics of the small defenses, on gradients written by hand."""

import math
from functools import partial

import pytest
import torch
from sent_updates import DRAWS, ask, defended, draws, flat, in_standard_errors, layers, ramp, replayed, sent, two

from leakage.engine.core import ClientState, Params, generator
from leakage.spec.experiment import Part
from leakage.workers.adapter import plugin

# ---------------------------------------------------------------- Laplacian noise


def test_laplacian_noise_has_the_mean_the_deviation_and_the_tails_of_its_law() -> None:
    scale, n = 0.5, 1_000_000
    noise = sent("laplacian_noise", torch.zeros(n, dtype=torch.float64), scale=scale) / scale
    # Var x^2 = 24 - 4, so the deviation is known to sqrt(20 / (4 * 2 n)); the kurtosis by the delta method to sqrt(1188 / n)
    assert float(noise.mean()) == pytest.approx(0, abs=4 * math.sqrt(2 / n))
    assert float(noise.std()) == pytest.approx(math.sqrt(2), abs=4 * math.sqrt(2.5 / n))
    assert float(noise.pow(4).mean() / noise.square().mean().square()) == pytest.approx(6, abs=4 * math.sqrt(1188 / n))
    assert float(noise.abs().median()) == pytest.approx(math.log(2), abs=4 / math.sqrt(n))  # |x| is exponential: density 1/2 there


def test_laplacian_noise_is_fresh_in_every_step_and_in_every_tensor() -> None:
    client = defended("laplacian_noise", {"a": torch.zeros(2000), "b": torch.zeros(2000)}, scale=1.0)
    first, state = ask(client)
    second, _ = ask(client, state)
    rows = torch.stack([first["a"], first["b"], second["a"], second["b"]])
    assert float((torch.corrcoef(rows) - torch.eye(4)).abs().max()) < 4 / math.sqrt(2000)


# ---------------------------------------------------------------- low precision


def test_int8_errs_by_half_a_level_at_most_uses_255_levels_and_keeps_the_largest_entry() -> None:
    g = 0.01 * ramp(50, 40).double()
    level = g.abs().max() / 127
    got = sent("low_precision", g)
    assert float((got - g).abs().max()) <= float(level) / 2 * (1 + 1e-9)
    steps = got / level
    assert float((steps - steps.round()).abs().max()) < 1e-9
    assert float(got.abs().max()) == pytest.approx(float(g.abs().max()), rel=1e-15)  # up to the rounding of 127 * (max / 127)
    assert len(got.unique()) > 100  # 8 bits, not 7
    assert int(got.abs().argmax()) == int(g.abs().argmax())


def test_int8_takes_the_levels_of_every_tensor_by_itself() -> None:
    got, _ = ask(defended("low_precision", {"large": torch.tensor([127.0, 0.4]), "small": torch.tensor([1.27, 0.4])}))
    torch.testing.assert_close(got["large"], torch.tensor([127.0, 0.0]))
    torch.testing.assert_close(got["small"], torch.tensor([1.27, 0.4]))


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_int8_of_a_tensor_of_zeros_is_zero(rounding: str) -> None:
    assert sent("low_precision", torch.zeros(7), rounding=rounding).tolist() == [0] * 7


def test_stochastic_rounding_goes_to_one_of_the_two_neighbours_and_is_right_on_average() -> None:
    g = torch.tensor([127.0, 3.25, -3.25, 0.1, -90.9, 0.5])  # levels are whole numbers here
    got = draws("low_precision", g, rounding="stochastic")
    assert torch.equal(got[:, 0], torch.full((DRAWS,), 127.0))
    assert float((got - got.round()).abs().max()) < 1e-5
    assert float((got - g).abs().max()) < 1
    assert float(in_standard_errors(got[:, 1:], g[1:]).max()) < 3
    assert torch.equal(sent("low_precision", g), torch.tensor([127.0, 3.0, -3.0, 0.0, -91.0, 0.0]))  # to the nearest: biased


@pytest.mark.parametrize(("number", "kind"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_sixteen_bits_are_those_of_torch(number: str, kind: torch.dtype) -> None:
    g = torch.cat([ramp(500) * 10.0**power for power in range(-12, 4)])
    assert torch.equal(sent("low_precision", g, number=number), g.to(kind).float())


def test_half_precision_loses_what_is_below_half_its_smallest_number_and_bf16_does_not() -> None:
    g = torch.tensor([2.0**-24, 1.1 * 2**-25, 0.9 * 2**-25, -(2.0**-26)])
    assert sent("low_precision", g, number="fp16").tolist() == [2.0**-24, 2.0**-24, 0, 0]
    torch.testing.assert_close(sent("low_precision", g, number="bf16"), g, rtol=2**-8, atol=0)


# ---------------------------------------------------------------- clipping


@pytest.mark.parametrize("bound", [1e-3, 1.0, 4.9])
def test_a_clipped_gradient_is_as_long_as_the_bound_and_points_the_same_way(bound: float) -> None:
    got = flat(ask(defended("clipping", layers(), bound=bound))[0])
    assert bound * (1 - 1e-6) <= float(got.norm()) <= bound * (1 + 1e-6)  # 1e-6 is added to a norm of 5
    torch.testing.assert_close(got / got.norm(), flat(layers()) / 5)


def test_each_layer_is_clipped_by_itself_and_a_shorter_one_stays() -> None:
    got, _ = ask(defended("clipping", layers(), bound=3.5, scope="each layer"))
    assert torch.equal(got["a"], layers()["a"])
    torch.testing.assert_close(got["b"], torch.tensor([0.0, -3.5]))
    got, _ = ask(defended("clipping", layers(), bound=2.0, scope="each layer"))
    assert [float(value.norm()) for value in got.values()] == pytest.approx([2, 2])
    torch.testing.assert_close(got["a"], layers()["a"] * 2 / 3)


def test_a_gradient_shorter_than_the_bound_is_untouched() -> None:
    got, _ = ask(defended("clipping", layers(), bound=5.1))
    assert all(torch.equal(value, layers()[name]) for name, value in got.items())


@pytest.mark.parametrize("scope", ["whole gradient", "each layer"])
def test_clipping_a_gradient_of_zeros_leaves_zeros_and_a_finite_gradient(scope: str) -> None:
    g = torch.zeros(3, requires_grad=True)
    got = sent("clipping", g, scope=scope)
    assert got.tolist() == [0] * 3
    assert torch.autograd.grad(got.sum(), g)[0].tolist() == [1] * 3


# ---------------------------------------------------------------- pruning: what is dropped, and what is done with it


def survivors(update: Params) -> dict[str, int]:
    return {name: int((value != 0).sum()) for name, value in update.items()}


@pytest.mark.parametrize("share", [0.25, 0.5, 0.93])
@pytest.mark.parametrize("scope", ["each tensor", "random"])
def test_of_each_tensor_the_same_share_survives_as_it_was(scope: str, share: float) -> None:
    got, _ = ask(defended("pruning", two(), scope=scope, fraction=share))
    assert survivors(got) == {"small": 40 - int(share * 40), "large": 60 - int(share * 60)}
    for name, value in two().items():
        assert torch.equal(got[name], value * (got[name] != 0))


@pytest.mark.parametrize("share", [0.3, 0.75, 0.93])
def test_of_the_whole_gradient_the_largest_entries_survive_wherever_they_are(share: float) -> None:
    got, _ = ask(defended("pruning", two(), scope="whole gradient", fraction=share))
    order = flat(two()).abs().argsort()
    expected = flat(two()).index_fill(0, order[: int(share * 100)], 0)
    assert torch.equal(flat(got), expected)
    assert sum(survivors(got).values()) == 100 - int(share * 100)
    assert survivors(got)["small"] < (40 - int(share * 40)) / 2  # nearly all of the small tensor goes first


def test_random_pruning_takes_every_entry_alike_and_others_in_every_step() -> None:
    rows = draws("pruning", ramp(20), scope="random", fraction=0.75) != 0
    frequency = rows.double().mean(0)
    assert float((frequency - 0.25).abs().max()) < 4 * math.sqrt(0.25 * 0.75 / DRAWS)
    same = (rows[1:] == rows[:-1]).all(1)
    assert float(same.double().mean()) < 0.01  # one of 15504 masks at random


@pytest.mark.parametrize("scope", ["each tensor", "whole gradient", "random"])
def test_with_feedback_nothing_is_lost_only_late(scope: str) -> None:
    state, total, given = ClientState(), torch.zeros(100, dtype=torch.float64), torch.zeros(100, dtype=torch.float64)
    for step in range(20):
        before = dict(state)
        client = defended("pruning", two(step), scope=scope, fraction=0.9, feedback=True)
        update, after = ask(client, state)
        again, _ = ask(client, state)
        assert torch.equal(flat(again), flat(update))
        assert all(state[name] is before[name] for name in state)  # what it was given, it leaves alone
        assert sum(survivors(update).values()) == 10
        state, total, given = after, total + flat(update), given + flat(two(step))
    assert all(name.startswith("pruning.") for name in state)
    owed = torch.cat([value.flatten() for name, value in state.items() if ".owed." in name])
    torch.testing.assert_close(total + owed, given, rtol=0, atol=1e-6)
    assert float(owed.abs().max()) > 0.01


def test_what_is_owed_carries_no_derivatives() -> None:
    _, state = ask(defended("pruning", {"w": ramp(10).requires_grad_()}, feedback=True))
    assert [value.requires_grad for value in state.values()] == [False]


def test_two_prunings_with_feedback_do_not_share_what_they_owe() -> None:
    state, total, given = ClientState(), torch.zeros(100), torch.zeros(100)
    for step in range(5):
        inner = defended("pruning", two(step), fraction=0.5, feedback=True)
        prune = plugin("defense", Part(id="pruning", fields={"fraction": 0.9, "scope": "whole gradient", "feedback": True}))
        update, state = ask(prune.defend(inner, torch.nn.Identity(), partial(generator, 2)), state)
        total, given = total + flat(update), given + flat(two(step))
    owed = torch.cat([value.flatten() for value in state.values()]).view(2, 100).sum(0)
    torch.testing.assert_close(total + owed, given, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scope", ["each tensor", "whole gradient"])
def test_without_feedback_pruning_carries_nothing(scope: str) -> None:
    client = defended("pruning", two(), scope=scope)
    first, state = ask(client)
    assert state == {}
    assert torch.equal(flat(ask(client, state)[0]), flat(first))


@pytest.mark.parametrize("scope", ["each tensor", "whole gradient", "random"])
def test_an_attacker_that_knows_the_pruning_replays_the_gradient_to_what_was_sent(scope: str) -> None:
    gradient = two()
    gradient["large"][:30] = 0  # black pixels
    received, _ = ask(defended("pruning", gradient, scope=scope, fraction=0.4))
    got = replayed("pruning", received, gradient, scope=scope, fraction=0.4)
    assert torch.equal(flat(got), flat(received))


def test_an_attacker_takes_zeros_for_real_only_where_pruning_made_fewer() -> None:
    received = {"a": torch.tensor([0.0, 0.0, 0.0, 5.0]), "b": torch.tensor([1.0, 2.0, 3.0, 4.0])}  # 3 of 8 entries are zero
    ones = {name: torch.ones(4) for name in received}
    assert flat(replayed("pruning", received, ones, scope="whole gradient", fraction=0.375)).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert flat(replayed("pruning", received, ones, scope="whole gradient", fraction=0.25)).tolist() == [1] * 8
    assert flat(replayed("pruning", received, ones, scope="each tensor", fraction=0.5)).tolist() == [1] * 8
    assert flat(replayed("pruning", received, ones, scope="random", fraction=0.25)).tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
        1,
        1,
    ]  # any may be pruned


# ---------------------------------------------------------------- MinMax sampling


def test_minmax_sampling_sends_as_many_entries_as_asked_enlarged_and_with_their_signs() -> None:
    gradient = {name: value.double() for name, value in two().items()}
    for ratio, count in ((0.05, 5), (0.5, 50), (1e-6, 1), (0.999, 99)):
        got, _ = ask(defended("minmax_sampling", gradient, ratio=ratio))
        assert sum(survivors(got).values()) == count
        g, arrived = flat(gradient), flat(got)
        place = arrived != 0
        assert torch.equal(arrived[place].sign(), g[place].sign())
        added = ((arrived - g) * g)[place]  # C, the same for all
        assert float(added.min()) > 0
        torch.testing.assert_close(added, added.mean().expand(count), rtol=1e-6, atol=0)  # a small difference of large numbers


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.9])
@pytest.mark.long
def test_minmax_sampling_is_right_on_average(ratio: float) -> None:
    g = torch.tensor([4.0, -3.0, 2.0, -1.0, 1.0, 0.5, -0.5, 0.25, 3.0, 0.1], dtype=torch.float64)
    got = draws("minmax_sampling", g, ratio=ratio)
    assert float(in_standard_errors(got, g).max()) < 3
    assert torch.equal((got != 0).sum(1), torch.full((DRAWS,), round(10 * ratio)))


@pytest.mark.long
def test_minmax_sampling_takes_large_entries_more_often() -> None:
    """Two entries, one sent: w_1 > w_2 with r_1, r_2 ~ U(0, 1) and g = (2, 1) has the probability q (q - 1 - ln q) / (q - 1)^2, q = 4."""
    often = (draws("minmax_sampling", torch.tensor([2.0, 1.0]), ratio=0.5) != 0).double().mean(0)
    expected = 4 * (3 - math.log(4)) / 9
    assert float(often[0]) == pytest.approx(expected, abs=3 * math.sqrt(expected * (1 - expected) / DRAWS))


def test_minmax_sampling_sends_all_that_is_not_zero_when_that_is_less_than_it_may() -> None:
    g = torch.tensor([0.0, 3.0, 0.0, -1e-30, 0.0])
    assert torch.equal(sent("minmax_sampling", g, ratio=0.6), g)
    assert torch.equal(sent("minmax_sampling", torch.zeros(5), ratio=0.6), torch.zeros(5))
    assert torch.equal(replayed("minmax_sampling", {"w": g}, {"w": torch.ones(5)}, ratio=0.6)["w"], torch.ones(5))


def test_the_attacker_of_minmax_sampling_compares_what_arrived() -> None:
    received = {"a": torch.tensor([0.0, 3.0]), "b": torch.tensor([-4.0, 0.0])}
    guess = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0, 4.0])}
    assert flat(replayed("minmax_sampling", received, guess, ratio=0.5)).tolist() == [0, 2, 3, 0]
