"""Noise, few bits, clipping, sampling: the mathematics of the small defenses, on gradients that a test writes down."""

import math
from functools import partial

import pytest
import torch

from leakage.engine.core import Client, Memory, Params, generator
from leakage.engine.play import plugin
from leakage.spec import Part

DRAWS = 2000


def sends(gradient: Params) -> Client:
    """A client whose gradient is known."""
    return lambda _weights, _x, _y, memory: (gradient, memory)


def guarded(name: str, gradient: Params, *, seed: int = 1, **fields: float | str | bool) -> Client:
    """That client behind a defense."""
    return plugin("defense", Part(id=name, fields=fields)).guard(sends(gradient), torch.nn.Identity(), partial(generator, seed, name))


def ask(client: Client, memory: Memory | None = None) -> tuple[Params, Memory]:
    """What it sends, and what it carries on."""
    return client({}, torch.zeros(1), torch.zeros(1), memory or {})


def sent(name: str, g: torch.Tensor, *, seed: int = 1, **fields: float | str | bool) -> torch.Tensor:
    """What is sent of a gradient of one tensor."""
    return ask(guarded(name, {"w": g}, seed=seed, **fields))[0]["w"]


def draws(name: str, g: torch.Tensor, **fields: float | str) -> torch.Tensor:
    """What is sent of the same gradient in DRAWS steps, one after the other: (DRAWS, n)."""
    client, memory, rows = guarded(name, {"w": g}, **fields), Memory(), []
    for _ in range(DRAWS):
        update, memory = ask(client, memory)
        rows.append(update["w"])
    return torch.stack(rows)


def in_standard_errors(samples: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """How many standard errors the mean of each column lies from `mean`."""
    error = samples.double().std(0) / math.sqrt(len(samples))
    return (samples.double().mean(0) - mean.double()).abs() / error


def ramp(*shape: int) -> torch.Tensor:
    """Different entries of both signs, none of them 0."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


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
    client = guarded("laplacian_noise", {"a": torch.zeros(2000), "b": torch.zeros(2000)}, scale=1.0)
    first, memory = ask(client)
    second, _ = ask(client, memory)
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
    got, _ = ask(guarded("low_precision", {"large": torch.tensor([127.0, 0.4]), "small": torch.tensor([1.27, 0.4])}))
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


def layers() -> Params:
    """Two layers, of norms 3 and 4: 5 together."""
    return {"a": 3 * torch.nn.functional.normalize(ramp(6, 5).flatten(), dim=0).view(6, 5), "b": torch.tensor([0.0, -4.0])}


def flat(update: Params) -> torch.Tensor:
    return torch.cat([value.flatten() for value in update.values()])


@pytest.mark.parametrize("bound", [1e-3, 1.0, 4.9])
def test_a_clipped_gradient_is_as_long_as_the_bound_and_points_the_same_way(bound: float) -> None:
    got = flat(ask(guarded("clipping", layers(), bound=bound))[0])
    assert bound * (1 - 1e-6) <= float(got.norm()) <= bound * (1 + 1e-6)  # 1e-6 is added to a norm of 5
    torch.testing.assert_close(got / got.norm(), flat(layers()) / 5)


def test_each_layer_is_clipped_by_itself_and_a_shorter_one_stays() -> None:
    got, _ = ask(guarded("clipping", layers(), bound=3.5, scope="each layer"))
    assert torch.equal(got["a"], layers()["a"])
    torch.testing.assert_close(got["b"], torch.tensor([0.0, -3.5]))
    got, _ = ask(guarded("clipping", layers(), bound=2.0, scope="each layer"))
    assert [float(value.norm()) for value in got.values()] == pytest.approx([2, 2])
    torch.testing.assert_close(got["a"], layers()["a"] * 2 / 3)


def test_a_gradient_shorter_than_the_bound_is_untouched() -> None:
    got, _ = ask(guarded("clipping", layers(), bound=5.1))
    assert all(torch.equal(value, layers()[name]) for name, value in got.items())


@pytest.mark.parametrize("scope", ["whole gradient", "each layer"])
def test_clipping_a_gradient_of_zeros_leaves_zeros_and_a_finite_slope(scope: str) -> None:
    g = torch.zeros(3, requires_grad=True)
    got = sent("clipping", g, scope=scope)
    assert got.tolist() == [0] * 3
    assert torch.autograd.grad(got.sum(), g)[0].tolist() == [1] * 3
