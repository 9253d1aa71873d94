"""DP-SGD and Fed-CDP against loops written by hand, the noise they draw, and the epsilon that goes with it."""

import json
import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from sent_updates import promised
from small_problems import LABELS, observed, precision, smooth

from leakage.engine.accounting import epsilon
from leakage.engine.client import gradient_client
from leakage.engine.core import Client, ClientState, Params, generator
from leakage.runs.event_parts import TrainingPrivacy
from leakage.settings import ROOT
from leakage.spec.experiment import Part
from leakage.spec.tasks import Training
from leakage.workers.adapter import plugin
from leakage.workers.training_adapter import privacy

Arrays = dict[str, np.ndarray]
BOUNDS = {"dp_sgd": "max_grad_norm", "fed_cdp": "bound"}
BOTH = pytest.mark.parametrize("name", BOUNDS)
BOUND = 0.05  # a tenth or so of what one picture of `smooth` says: every picture, and most layers, are shortened


def settings(name: str, *, bound: float = BOUND, noise_multiplier: float = 0.0) -> Part:
    """The defense with one bound, and the noise of a test."""
    fields = {BOUNDS[name]: bound, "noise_multiplier": noise_multiplier}
    return Part(id=name, fields=fields | ({"last_bound": bound} if name == "fed_cdp" else {}))


def singles(x: torch.Tensor) -> list[Arrays]:
    """What the client would send for every picture alone."""
    seen = observed(x)
    client = gradient_client(seen.model)
    sent = [client(seen.received.weights, x[place : place + 1], LABELS[place : place + 1], {})[0] for place in range(len(x))]
    return [{layer: g.numpy() for layer, g in one.items()} for one in sent]


def length(one: Arrays) -> float:
    return math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in one.values()))


def clipped_by_hand(name: str, one: Arrays, bound: float) -> Arrays:
    """DP-SGD shortens a picture's whole gradient, Fed-CDP every tensor of it."""
    if name == "dp_sgd":
        return {layer: g * min(1.0, bound / length(one)) for layer, g in one.items()}
    return {layer: g / max(1.0, length({layer: g}) / bound) for layer, g in one.items()}


def of_two(sent: list[Params], **fields: object) -> Client:
    """A defended client that sends the k-th update of `sent` for a picture with the value k."""
    name = str(fields.pop("name"))

    def says(_weights: Params, x: torch.Tensor, _y: torch.Tensor, state: ClientState) -> tuple[Params, ClientState]:
        return sent[int(x.flatten()[0])], state

    return plugin("defense", Part(id=name, fields=fields)).defend(says, torch.nn.Identity(), partial(generator, 1, "defense", name))


def numbered(count: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32).reshape(count, 1, 1, 1)


# ---------------------------------------------------------------- clipping


@BOTH
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("batch", [1, 3])
def test_without_noise_the_mean_of_shortened_gradients_is_sent_and_replayed(
    name: str, dtype: torch.dtype, tolerance: float, batch: int
) -> None:
    with precision(dtype):
        x = smooth(batch)
        short = [clipped_by_hand(name, one, BOUND) for one in singles(x)]
        seen = observed(x, defenses=(settings(name),))
        replayed = seen.replay.single(x, LABELS[:batch])
    largest = max(float(np.abs(g).max()) for one in short for g in one.values())
    for layer, g in seen.received.update.items():
        mean = sum(one[layer] for one in short) / batch
        np.testing.assert_allclose(g.numpy(), mean, rtol=0, atol=tolerance * largest)
        np.testing.assert_allclose(replayed[layer].numpy(), mean, rtol=0, atol=tolerance * largest)


def test_no_picture_says_more_than_the_bound_and_one_that_says_less_is_left_as_it_is() -> None:
    loud, soft = {"w": torch.tensor([30.0, 0.0]), "b": torch.tensor([40.0])}, {"w": torch.tensor([0.3, 0.0]), "b": torch.tensor([0.4])}
    client = of_two([loud, soft], name="dp_sgd", max_grad_norm=2.0, noise_multiplier=0.0)
    (one, _), (other, _) = (client({}, numbered(2)[place : place + 1], LABELS[:1], {}) for place in (0, 1))
    torch.testing.assert_close(one, {"w": torch.tensor([1.2, 0.0]), "b": torch.tensor([1.6])})  # of length 2, not 50
    assert all(torch.equal(other[layer], soft[layer]) for layer in soft)
    both, _ = client({}, numbered(2), LABELS[:2], {})
    torch.testing.assert_close(both, {"w": torch.tensor([0.75, 0.0]), "b": torch.tensor([1.0])})


def test_fed_cdp_bounds_every_layer_of_every_picture() -> None:
    x = smooth(1)
    (one,) = singles(x)
    seen = observed(x, defenses=(settings("fed_cdp"),))
    lengths = {layer: float(g.double().norm()) for layer, g in seen.received.update.items()}
    for layer, found in lengths.items():
        assert found == pytest.approx(min(BOUND, length({layer: one[layer]})), rel=1e-5)  # float32
    assert sum(found == pytest.approx(BOUND, rel=1e-5) for found in lengths.values()) >= 2


def test_a_gradient_of_zeros_is_sent_and_differentiated_without_a_nan() -> None:
    for name in BOUNDS:
        guess = torch.zeros(2, requires_grad=True)
        says = plugin("defense", Part(id=name)).surrogate(lambda _w, x, _y, state: ({"w": x[0] * 3, "b": x[0] ** 2}, state), {})
        update, _ = says({}, guess.unsqueeze(0), LABELS[:1], {})
        (gradient,) = torch.autograd.grad(update["w"].sum() + update["b"].sum(), guess)
        assert gradient.tolist() == [3, 3], name


@BOTH
def test_an_attackers_derivative_through_the_shortening_is_that_of_finite_differences(name: str) -> None:
    with precision(torch.float64):
        x = smooth(2)
        seen = observed(x, defenses=(settings(name),))
        guess, way = smooth(2, seed=1), smooth(2, seed=2)

        def distance(guess: torch.Tensor) -> torch.Tensor:
            return sum((g - seen.received.update[layer]).square().sum() for layer, g in seen.replay.single(guess, LABELS[:2]).items())

        leaf = guess.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(distance(leaf), leaf)
        step = 1e-5
        difference = (distance(guess + step * way) - distance(guess - step * way)) / (2 * step)
    assert float((gradient * way).sum()) == pytest.approx(float(difference), rel=1e-5)


@BOTH
def test_batchnorm_that_mixes_the_pictures_is_refused_with_a_remedy(name: str) -> None:
    model = Part(id="convnet", fields={"width": 4})
    with pytest.raises(ValueError, match=r"mixes the pictures. Choose its stored statistics, or a model with GroupNorm"):
        observed(smooth(2, 3, 32), model=model, batch_norm="batch", defenses=(Part(id=name),))
    assert observed(smooth(2, 3, 32), model=model, defenses=(Part(id=name),)).received.update


# ---------------------------------------------------------------- noise


@BOTH
@pytest.mark.parametrize("batch", [1, 4])
def test_the_noise_on_the_mean_has_the_deviation_sigma_times_bound_over_batch(name: str, batch: int) -> None:
    zeros = {"w": torch.zeros(100, 100), "v": torch.zeros(100, 100)}
    client = of_two([zeros] * batch, name=name, **settings(name, bound=3.0, noise_multiplier=0.7).fields)
    first, state = client({}, numbered(batch), LABELS[:1].expand(batch), {})
    again, _ = client({}, numbered(batch), LABELS[:1].expand(batch), {})
    second, _ = client({}, numbered(batch), LABELS[:1].expand(batch), state)
    expected = 0.7 * 3.0 / batch
    for noise in (*first.values(), *second.values()):
        count = noise.numel()
        assert float(noise.std()) == pytest.approx(expected, rel=4 / math.sqrt(2 * count))  # 4 standard errors
        assert float(noise.mean()) == pytest.approx(0, abs=4 * expected / math.sqrt(count))
    assert all(torch.equal(first[layer], again[layer]) for layer in zeros)
    for one, other in ((first["w"], second["w"]), (first["w"], first["v"])):  # fresh in every step and in every tensor
        assert abs(float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])) < 4 / 100


def test_fed_cdps_bound_and_noise_fall_in_equal_steps_and_then_stay() -> None:
    fields = {"name": "fed_cdp", "bound": 6.0, "last_bound": 2.0, "decay": 4}
    loud, zeros = {"w": torch.full((10_000,), 1.0)}, {"w": torch.zeros(10_000)}  # of length 100, and 0
    quiet, noisy = of_two([loud], **fields, noise_multiplier=0.0), of_two([zeros], **fields, noise_multiplier=1.0)
    lengths, deviations = [], []
    state: ClientState = {}
    other: ClientState = {}
    for _ in range(6):
        update, state = quiet({}, numbered(1), LABELS[:1], state)
        noise, other = noisy({}, numbered(1), LABELS[:1], other)
        lengths.append(float(update["w"].norm()))
        deviations.append(float(noise["w"].std()))
    assert lengths == pytest.approx([6, 5, 4, 3, 2, 2], rel=1e-5)
    assert deviations == pytest.approx([6, 5, 4, 3, 2, 2], rel=4 / math.sqrt(20_000))


def test_a_protection_before_it_acts_on_every_picture_alone_with_fresh_noise() -> None:
    x = smooth(3)[:1].expand(3, -1, -1, -1)
    noise, limit = Part(id="gaussian_noise", fields={"scale": 1.0}), settings("dp_sgd", bound=1e6)
    with_noise, without = (observed(x, defenses=defenses).received.update for defenses in ((noise, limit), (limit,)))
    difference = torch.cat([(with_noise[layer] - without[layer]).flatten() for layer in without])
    assert float(difference.std()) == pytest.approx(1 / math.sqrt(3), rel=4 / math.sqrt(2 * len(difference)))


# ---------------------------------------------------------------- epsilon


def delta_of(found: float, noise_multiplier: float) -> float:
    """The smallest delta of one Gaussian release at this epsilon (Balle and Wang 2018, theorem 8): the guarantee in closed form."""

    def below(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    return below(0.5 / noise_multiplier - found * noise_multiplier) - math.exp(found) * below(
        -0.5 / noise_multiplier - found * noise_multiplier
    )


def test_epsilon_of_one_upload_with_noise_as_large_as_the_bound_is_the_published_number() -> None:
    assert epsilon(1.0, 1, delta=1e-5) == pytest.approx(4.387, abs=1e-2)
    assert epsilon(1.0, 1) == epsilon(1.0, 1)


@pytest.mark.parametrize(("noise_multiplier", "steps"), [(0.5, 1), (1.0, 1), (1.0, 10), (4.0, 100), (10.0, 1)])
def test_epsilon_is_a_bound_above_the_closed_form_and_close_to_it(noise_multiplier: float, steps: int) -> None:
    found, one = epsilon(noise_multiplier, steps), noise_multiplier / math.sqrt(steps)
    assert delta_of(found, one) <= 1e-5  # it holds ...
    assert delta_of(found - 0.02, one) > 1e-5  # ... and a little less would not


def test_epsilon_falls_with_noise_and_with_sampling_and_rises_with_steps() -> None:
    by_noise = [epsilon(noise_multiplier, 1) for noise_multiplier in (0.5, 1.0, 2.0, 8.0)]
    by_steps = [epsilon(2.0, steps) for steps in (1, 2, 10, 40)]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_steps == sorted(by_steps)
    assert len({*by_noise, *by_steps}) == 7  # (2, 1) is in both
    assert epsilon(1.0, 10, sample_rate=0.1) < epsilon(1.0, 10) / 2


def test_epsilon_without_noise_is_infinite_and_with_next_to_none_too() -> None:
    assert epsilon(0.0, 1) == math.inf
    assert epsilon(0.01, 1) == epsilon(1.0, 100_000) == math.inf  # true values: 5400 and 51 000
    assert epsilon(1.0, 1, delta=0.5) == 0  # the distributions overlap by more than that


@pytest.mark.parametrize(
    "given", [{"noise_multiplier": -1.0}, {"steps": 0}, {"delta": 0.0}, {"sample_rate": 1.5}, {"noise_multiplier": math.nan}]
)
def test_epsilon_refuses_what_has_no_meaning(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected noise_multiplier >= 0, steps >= 1"):
        epsilon(**{"noise_multiplier": 1.0, "steps": 1, **given})


@pytest.mark.long
def test_neither_the_defenses_nor_the_module_of_epsilon_load_opacus() -> None:
    rooms = "leakage.engine.accounting, leakage.defenses.dp_sgd, leakage.defenses.fed_cdp, leakage.evaluation.play"
    script = f"import sys, {rooms}; print('opacus' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "False", done.stderr


# ---------------------------------------------------------------- what a run promises


@pytest.mark.long
def test_a_run_says_the_epsilon_of_all_that_its_client_sends_and_none_for_noise_without_a_bound() -> None:
    own = Part(id="dp_sgd", fields={"noise_multiplier": 1.0})
    once = promised(own)
    assert once is not None
    assert once.value == pytest.approx(4.38, abs=0.02)
    assert (once.delta, once.times) == (1e-5, 1)
    often = promised(own, protocol=Part(id="fedavg", fields={"epochs": 2}), rounds=2)
    assert often is not None
    assert often.times == 4
    assert often.value == pytest.approx(epsilon(0.5, 1), abs=0.02)  # four sums say what one with half the noise does
    layers = promised(Part(id="fed_cdp", fields={"noise_multiplier": 2.0}))
    assert layers is not None
    assert layers.value == pytest.approx(once.value, abs=0.02)  # four tensors, each as long as the bound: twice as long together
    assert promised(Part(id="gaussian_noise")) is None


def test_a_training_says_its_epsilon_as_it_was_trained_and_as_it_would_be_if_batches_were_drawn_at_random() -> None:
    training = Training(clients=3, rounds=6, batch=64, defenses=(Part(id="dp_sgd", fields={"noise_multiplier": 1.0}),))
    found = privacy(training, 20_000)
    assert found is not None
    assert (found.uses, found.steps, found.rate) == (6, 6 * 105, 64 / 6666)  # 6,666 pictures are 104 batches of 64, and one of 10
    assert found.unsampled is not None
    assert delta_of(found.unsampled, 1 / math.sqrt(6)) <= 1e-5 < delta_of(found.unsampled - 0.02, 1 / math.sqrt(6))
    assert found.sampled == epsilon(1.0, 630, sample_rate=64 / 6666)
    assert found.sampled < found.unsampled / 2
    twice = privacy(training.model_copy(update={"local_epochs": 2}), 20_000)
    assert twice is not None
    assert (twice.uses, twice.steps) == (12, 1260)
    silent = privacy(training.model_copy(update={"defenses": (Part(id="dp_sgd", fields={"noise_multiplier": 0.0}),)}), 20_000)
    assert silent is not None
    assert (silent.sampled, silent.unsampled) == (None, None)  # infinite
    assert privacy(training.model_copy(update={"defenses": (Part(id="gaussian_noise"),)}), 20_000) is None


@pytest.mark.long
def test_the_shipped_table_holds_the_accountants_epsilon_beside_every_accuracy() -> None:
    table = json.loads((ROOT / "assets" / "accuracy_cost.json").read_text())
    promised = 0
    for row in table["rows"]:
        asked = {name: row[name] for name in ("model", "defenses", "rounds", "batch")}
        found = privacy(Training(**{**table["recipe"], **asked, "pictures": 0}), row["pictures"])
        assert ("epsilon" in row) == (found is not None)
        if found:
            kept = TrainingPrivacy(**row["epsilon"])
            assert (kept.rate, kept.steps, kept.uses, kept.delta) == (found.rate, found.steps, found.uses, found.delta)
            for one, other in ((kept.sampled, found.sampled), (kept.unsampled, found.unsampled)):
                assert one == (other and pytest.approx(other, rel=1e-6))  # the last digits depend on the processor
            promised += 1
    assert promised
