"""SPEAR: whole batches exactly, its statements on its own answer, and a message wherever it cannot work."""

import re
from itertools import islice

import pytest
import torch
from small_problems import GRANTED, altered, moments, precision
from torch import Tensor, nn

from leakage.attacks._certificate import Layer, Proof
from leakage.attacks._spear_search import descend, rank_of, sample, spectrum
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Observation, Snapshot
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.evaluation.pairing import pair
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import observe

ATTACK = Part(id="spear")
WIDE = {"width": 256, "normalise": "cifar10"}
MLP = Part(id="mlp", fields=WIDE)


def pictures(count: int, seed: int = 0, side: int = 10) -> Tensor:
    """Colour pictures of noise: none is a mixture of others."""
    rng = torch.Generator().manual_seed(seed)
    return torch.rand((count, 3, side, side), generator=rng, dtype=torch.get_default_dtype())


def seen_of(x: Tensor, model: Part = MLP, **settings: object) -> Observation:
    """What the server holds of these pictures; their labels repeat and are in no order."""
    return observe(Experiment(model=model, **settings), x, labels_of(x))


def labels_of(x: Tensor) -> Tensor:
    return torch.arange(len(x)) * 7 % 10


def answer(seen: Observation, attack: Part = ATTACK, seed: int = 1) -> Snapshot:
    """The last snapshot."""
    return moments(attack, seen, seed)[-1]


def errors(found: Snapshot, x: Tensor) -> Tensor:
    """The mean squared error of every picture, (B,)."""
    return (found.x[pair(found.x, x)] - x).square().flatten(1).mean(1)


def grey(found: Snapshot) -> Tensor:
    """Which places of the batch hold no picture, (B,) bool."""
    return (found.x == 0.5).flatten(1).all(1)


def cut_of(seen: Observation, name: str = "linear1") -> Layer:
    gradient = {key: value.detach().double() for key, value in seen.as_gradient().items()}
    weight, bias = (seen.received.weights[f"{name}.{part}"].detach().double() for part in ("weight", "bias"))
    return Layer(weight, bias, gradient[f"{name}.bias"], spectrum(gradient[f"{name}.weight"], seen.batch.size))


def relative_noise(seen: Observation, share: float, seed: int = 0) -> Observation:
    """The same with Gaussian noise of so large a share of the first layer's root mean square on every entry."""
    size = share * float(seen.received.update["linear1.weight"].square().mean().sqrt())
    rng = torch.Generator().manual_seed(seed)
    noise = {name: size * torch.randn(value.shape, generator=rng, dtype=value.dtype) for name, value in seen.received.update.items()}
    return altered(seen, update={name: value + noise[name] for name, value in seen.received.update.items()})


# ---------------------------------------------------------------- the identity


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_the_gradient_has_as_many_directions_as_pictures_and_each_is_zero_where_its_relu_was_off(count: int) -> None:
    with precision(torch.float64):
        x = pictures(count)
        seen = seen_of(x)
        layer = cut_of(seen)
        assert layer.cut.rank == count
        mean, std = seen.scale
        inputs = ((x - mean) / std).flatten(1)
        on = inputs @ layer.weight.T + layer.bias > 0  # (B, m)
        *_, found = islice(descend(layer.cut, torch.Generator().manual_seed(0)), 4)
        zeros = layer.cut.zeros(found).T  # (K, m)
        agreeing = (zeros[:, None] == ~on[None]).double().mean(2)  # (K, B)
        assert (agreeing.amax(0) == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_eight_pictures_are_exact_and_proved(seed: int) -> None:
    with precision(torch.float64):
        x = pictures(8, seed)
        found = answer(seen_of(x, seed=seed), seed=seed)
    assert float(errors(found, x).max()) < 1e-20
    assert found.note["lambda"] == 1
    assert found.note["proved"] == 8
    assert "Proved, without the truth: all of the units" in str(found.note["event"])


def test_thirty_two_pictures_of_one_gradient_in_single_precision() -> None:
    x = pictures(32, side=16)
    found = answer(seen_of(x, Part(id="mlp", fields=WIDE | {"width": 512})))
    assert float(errors(found, x).max()) < 1e-9
    assert found.note["proved"] == 32


def test_each_picture_comes_with_its_label() -> None:
    x = pictures(8)
    found = answer(seen_of(x))
    assert torch.equal(found.y[pair(found.x, x)], labels_of(x))


def test_the_search_as_published_finds_the_same() -> None:
    with precision(torch.float64):
        x = pictures(4)
        found = answer(seen_of(x), Part(id="spear", fields={"search": "samples"}))
    assert float(errors(found, x).max()) < 1e-20


def test_a_try_of_the_published_search_succeeds_as_often_as_its_formula_says() -> None:
    """All 3 rows are zeros of one of 4 pictures: 4 * 2^-3 of the tries, less what two pictures share."""
    with precision(torch.float64):
        layer = cut_of(seen_of(pictures(4)))
    found = next(sample(layer.cut, torch.Generator().manual_seed(0)))
    sparsest = layer.cut.zeros(found).double().mean(0)
    assert (sparsest[:4] > 0.4).all()  # a half, and the standard deviation of 256 coins is 3 %
    assert (sparsest[4:] < 0.36).all()  # differences of two: a quarter


# ---------------------------------------------------------------- sums


def test_four_phones_with_four_pictures_are_one_batch_of_sixteen() -> None:
    with precision(torch.float64):
        x = pictures(16)
        phones = seen_of(x, aggregation=Part(id="secure_aggregation", fields={"clients": 4}))
        summed, alone = answer(phones), answer(seen_of(x))
    assert float(errors(summed, x).max()) < 1e-20
    assert float(errors(summed, alone.x).max()) < 1e-20
    assert summed.note["proved"] == 16


@pytest.mark.parametrize("fields", [{"epochs": 5}, {"epochs": 5, "mini_batch": 2}])
def test_local_steps_keep_the_form_of_a_batch(fields: dict[str, int]) -> None:
    """Each step's gradient is D X of the same pictures, and units seldom change their sign between two steps."""
    x = pictures(6)
    found = answer(seen_of(x, protocol=Part(id="fedavg", fields=fields | {"rate": 0.01})))
    assert float(errors(found, x).max()) < 1e-6
    assert found.note["lambda"] > 0.95


# ---------------------------------------------------------------- protections


def test_clipping_every_picture_changes_none_of_them() -> None:
    x = pictures(8)
    clipped = seen_of(x, defenses=(Part(id="dp_sgd", fields={"max_grad_norm": 0.5, "noise_multiplier": 0.0}),))
    plain = seen_of(x)
    assert float((clipped.received.update["linear1.weight"] - plain.received.update["linear1.weight"]).norm()) > 0.1
    found, undefended = answer(clipped), answer(plain)
    assert float((found.x[pair(found.x, undefended.x)] - undefended.x).abs().max()) < 1e-6


def test_lambda_falls_with_noise_and_the_pictures_with_it() -> None:
    """Labels are granted: SPEAR needs none, and to read them takes longer than to find the pictures."""
    with precision(torch.float64):
        found = [
            [answer(relative_noise(seen_of(pictures(8, seed), seed=seed, assume=GRANTED), share, seed)) for seed in range(3)]
            for share in (1e-4, 1e-3, 1e-2, 1e-1)
        ]
        means = [sum(float(one.note["lambda"]) for one in some) / 3 for some in found]
        worst = [max(float(errors(one, pictures(8, seed)).max()) for seed, one in enumerate(some)) for some in found]
    assert means == sorted(means, reverse=True)
    assert means[0] > means[2] > means[3] > 0.9
    assert worst == sorted(worst)
    assert worst[0] < 1e-8
    assert worst[2] < 1e-4


def test_eight_bits_hide_no_picture() -> None:
    x = pictures(8)
    found = answer(seen_of(x, defenses=(Part(id="low_precision", fields={"number": "int8"}),)))
    assert float(errors(found, x).max()) < 1e-4


def test_noise_is_averaged_away_over_rounds() -> None:
    """Labels are granted: SPEAR needs none, and to read them takes longer than to find the pictures."""
    x, worst = pictures(8), []
    for strategy in ("", "average the rounds"):
        defense = (Part(id="gaussian_noise", fields={"scale": 0.003}),)
        watched = {"protocol": Part(id="fedsgd", fields={"rate": 1e-6}), "rounds": 16, "attacked_round": 16}
        found = answer(seen_of(x, defenses=defense, assume=Assumptions(labels=True, strategy=strategy), **watched))
        worst.append(float(errors(found, x).mean()))
    assert worst[1] < worst[0] / 8  # a sixteenth of the variance


# ---------------------------------------------------------------- what it invents: nothing


def test_of_two_equal_pictures_one_is_reported() -> None:
    with precision(torch.float64):
        x = pictures(8)
        x[5] = x[2]
        found = answer(seen_of(x))
    assert found.note["rank"] == 7
    assert int(grey(found).sum()) == 1
    assert float(errors(found, x)[~grey(found)[pair(found.x, x)]].max()) < 1e-20
    assert "speaks of 7 pictures, and 8 were in the batch" in str(found.note["event"])


def test_in_a_gradient_without_zeros_none_is_found() -> None:
    seen = seen_of(pictures(8))
    rng = torch.Generator().manual_seed(0)
    m, n = seen.received.update["linear1.weight"].shape
    made = torch.randn((m, 8), generator=rng) @ torch.randn((8, n), generator=rng)
    found = answer(altered(seen, update=seen.received.update | {"linear1.weight": made}))
    assert grey(found).all()
    assert found.note["proved"] == 0
    assert str(found.note["event"]).startswith("None found")


@pytest.mark.parametrize(
    ("share", "words"), [(0.95, "None found: in no direction is this gradient zero as often as ReLU would make it"), (0.3, "Not proved")]
)
def test_pruning_fills_the_rank_and_the_sentence_says_so(share: float, words: str) -> None:
    found = answer(seen_of(pictures(8), defenses=(Part(id="pruning", fields={"fraction": share}),)))
    assert str(found.note["event"]).startswith(words)
    if share > 0.9:
        assert grey(found).all()
        assert "where 8 pictures would leave 8: a protection or rounding has filled it" in str(found.note["event"])


def test_a_wrong_direction_lowers_lambda_to_about_a_half() -> None:
    with precision(torch.float64):
        layer = cut_of(seen_of(pictures(4)))
    found = next(descend(layer.cut, torch.Generator().manual_seed(0)))[:, :4]
    assert (layer.agreement(found) == 1).all()
    wrong = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)).Q
    assert float(layer.agreement(wrong).mean()) < 0.65


def test_no_label_is_used_a_granted_one_says_only_which_picture_stands_where() -> None:
    x = pictures(6)
    seen = seen_of(x)
    assert seen.granted.labels is None
    alone, granted = answer(seen), answer(altered(seen, labels=labels_of(x).flip(0)))
    wrong = answer(altered(seen, labels=torch.zeros(6, dtype=torch.long)))
    assert torch.equal(granted.y, labels_of(x).flip(0))
    assert float((granted.x - x.flip(0)).abs().max()) < 1e-5
    for other in (granted, wrong):
        assert torch.equal(other.x[pair(other.x, alone.x)], alone.x)


# ---------------------------------------------------------------- where it cannot work


@pytest.mark.parametrize(
    ("model", "count", "words"),
    [
        (Part(id="mlp", fields=WIDE | {"activation": "sigmoid"}), 3, "Here Sigmoid follows, which leaves no zeros. Choose ReLU."),
        (Part(id="lenet"), 3, "This network has no such layer. Choose the MLP with ReLU."),
        (Part(id="fcn3", fields={"activation": "relu"}), 3, "has no bias, which would say how bright each picture is"),
        (Part(id="mlp", fields=WIDE | {"width": 8}), 8, "here 8 pictures meet 8 units and 300 inputs"),
    ],
)
def test_where_it_cannot_work_it_does_not_apply_and_says_why(model: Part, count: int, words: str) -> None:
    with pytest.raises(DoesNotApplyError, match=re.escape(words)):
        answer(seen_of(pictures(count), model))


def test_noise_above_everything_is_a_sentence() -> None:
    seen = relative_noise(seen_of(pictures(3)), 1e4)
    assert answer(seen).note["event"] == "No singular value of this gradient stands out of its noise, so nothing can be taken apart."


def test_a_dead_layer_is_a_sentence() -> None:
    seen = seen_of(pictures(3))
    silent = altered(seen, update={name: torch.zeros_like(value) for name, value in seen.received.update.items()})
    with pytest.raises(DoesNotApplyError, match=r"^No gradient passes through linear1"):
        answer(silent)


def test_raw_pixels_protect_by_their_mean_and_it_says_so() -> None:
    """Pictures of one brightness, in a narrow network: nearly every unit is on for all of them, or for none."""
    x = 0.5 + 0.02 * (pictures(12) - 0.5)
    raw, normal = (seen_of(x, Part(id="mlp", fields=WIDE | {"width": 64, "normalise": kind})) for kind in ("none", "cifar10"))
    found = answer(raw)
    assert found.note["proved"] == 0
    assert "The pixels enter this network as they are" in str(found.note["event"])
    assert "The pixels enter" not in str(answer(normal).note["event"])


# ---------------------------------------------------------------- a later layer


def test_behind_a_convolution_features_are_found_and_pictures_searched_that_have_them() -> None:
    with precision(torch.float64), torch.random.fork_rng():
        torch.manual_seed(0)
        front = [nn.Conv2d(3, 8, 3, padding=1), nn.Tanh(), nn.Flatten()]
        model = nn.Sequential(*front, nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
        x = pictures(4, side=8)
        client, weights = gradient_client(model), weights_of(model)
        known = {
            "model": model,
            "weights": weights,
            "update": client(weights, x, labels_of(x), {})[0],
            "to_gradient": lambda update: update,
        }
        seen = altered(seen_of(x), single=lambda x, y: client(weights, x, y, {})[0], **known)
        found = moments(Part(id="spear", fields={"feature_steps": 60}), seen)
    (told,) = dict.fromkeys(str(one.note["event"]) for one in found if "event" in one.note)
    assert "What enters 3 was found for 4 pictures: 512 numbers of each, no pixels." in told
    assert "All of the units of 3 are on or off just as 4 pictures would have them" in told
    assert "Proved" not in told  # of features, not of the pictures that are searched for them
    features = nn.Sequential(*front)
    h, wanted = features(found[-1].x).detach(), features(x).detach()
    cosine = torch.nn.functional.cosine_similarity(h[:, None], wanted[None], dim=2)
    assert (cosine.amax(1) > 0.9).all()
    assert len(cosine.argmax(1).unique()) == 4


# ---------------------------------------------------------------- singular values


def test_the_rank_is_counted_above_rounding_or_above_noise() -> None:
    """Gavish and Donoho: for a square matrix 4 / sqrt(3) = 2.31 sqrt(n) deviations; noise alone ends at 2 sqrt(n)."""
    rng = torch.Generator().manual_seed(0)
    made = torch.randn((90, 5), generator=rng, dtype=torch.float64) @ torch.randn((5, 90), generator=rng, dtype=torch.float64)
    noise = torch.randn((90, 90), generator=rng, dtype=torch.float64)
    assert [spectrum(made + size * noise, 8).rank for size in (0, 1e-12, 1e-4, 1e-1)] == [5] * 4
    assert spectrum(noise, 8).rank == 0
    edge = 4 / 3**0.5 * 3
    assert rank_of(torch.tensor([edge + 0.1, edge - 0.1]), torch.Size([9, 9]), 1.0) == 1


@pytest.mark.parametrize("shape", [(1200, 1100), (1100, 1200)])
def test_a_large_gradient_is_cut_by_a_sketch_as_exactly(shape: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(0)
    made = torch.randn((shape[0], 6), generator=rng, dtype=torch.float64) @ torch.randn((6, shape[1]), generator=rng, dtype=torch.float64)
    cut = spectrum(made, 20)
    assert cut.rank == 6
    torch.testing.assert_close(cut.left @ cut.right, made, rtol=0, atol=1e-10)
    noisy = spectrum(made + 0.01 * torch.randn(shape, generator=rng, dtype=torch.float64), 20)
    assert noisy.rank == 6
    assert noisy.noise == pytest.approx(0.01, rel=0.02)  # of 1.3 million entries


def test_faint_pictures_keep_their_digits() -> None:
    """A square loses half of the digits: what is 1e-6 of the largest would be 1e-12 there, with an error of 1e-16."""
    rng = torch.Generator().manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn((side, 3), generator=rng, dtype=torch.float64)).Q for side in (60, 80))
    sizes = torch.tensor([1, 1e-3, 1e-6], dtype=torch.float64)
    cut = spectrum(left * sizes @ right.T, 5)
    assert cut.rank == 3
    assert float((cut.left @ (cut.left.T @ left) - left).abs().max()) < 1e-9


def test_pictures_whose_replayed_update_is_another_one_are_not_proved_however_many_units_agree() -> None:
    assert Proof(3, 0.1, 0.01).proved == 0
    assert Proof(3, 0.005, 0.01).proved == 3
