"""Labels by rehearsal: behind protections whose effect on the last layer is known, and how certain they are said to be."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from small_problems import altered, observed, smooth
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Observation, generator
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.label_certainty import COEFFICIENT, calibrated
from leakage.engine.label_counts import count_probabilities, expected_right, guessed_right, likeliest
from leakage.engine.label_disturbance import Disturbance, intact
from leakage.engine.label_evidence import ORDINAL, CountFit, fit, misfit
from leakage.engine.label_probes import Head, predict
from leakage.engine.label_readings import Rehearsed, likeness, mean_feature, overconfidence, read_counts
from leakage.engine.label_rehearsal import rehearsed
from leakage.engine.labels import RULE_TITLES, recover
from leakage.engine.loading import load
from leakage.engine.observe import observe as watch
from leakage.evaluation.metrics import label_overlap
from leakage.spec.experiment import Experiment, Part
from leakage.workers.adapter import observe

# ---------------------------------------------------------------- counts that add up


def test_count_probabilities_are_those_of_all_counts_that_add_up() -> None:
    expected, variance = torch.tensor([0.3, 1.6, 0.1, 2.0]).double(), torch.tensor([0.2, 0.3, 0.4, 0.5]).double()
    every = torch.zeros(4, 5, dtype=torch.float64)
    for counts in product(range(5), repeat=4):
        if sum(counts) == 4:
            off = torch.tensor(counts).double() - 1  # the mean of each of 4 counts that add up to 4; their variance is 1 - 1 / 4
            likelihood = ((expected - 1) * off / variance - off.square() * (1 / variance - 4 / 3) / 2).sum().exp()
            probability = likelihood / math.prod(math.factorial(k) for k in counts)
            for c, k in enumerate(counts):
                every[c, k] += probability
    assert torch.allclose(count_probabilities(expected, variance, 4), every / every.sum(1, keepdim=True), atol=1e-12)


@pytest.mark.parametrize(("variance", "misfit"), [(0.72, 1.0), (5.0, 1.0), (0.01, 1e12)])
def test_where_nothing_is_known_each_count_is_binomial(variance: float, misfit: float) -> None:
    expected = torch.linspace(0, 1.6, 10) if misfit > 1 else torch.full((10,), 0.8)
    probabilities = count_probabilities(expected, torch.full((10,), variance), 8, misfit)
    binomial = [math.comb(8, k) * 0.1**k * 0.9 ** (8 - k) for k in range(9)]
    assert torch.allclose(probabilities, torch.tensor(binomial).double().expand(10, 9), atol=1e-7)
    assert likeliest(probabilities)[1] == pytest.approx(1 - 0.9**8)  # eight classes, each there at least once with this probability


def alone(given: Tensor, counts: Tensor) -> Tensor:
    """P(n_c = k) (K, 2) of the first of some batches of one, by a fit to the others."""
    found = fit(given[1:], counts[1:], torch.ones(len(counts) - 1).double())
    expected = found(given[0])
    return count_probabilities(expected, found.variance(expected), 1)


def test_evidence_that_is_noise_makes_every_class_about_as_likely_as_any() -> None:
    rng = torch.Generator().manual_seed(0)
    said, told = list[float](), list[float]()
    for _ in range(10):
        given = torch.randn(73, 10, 20, generator=rng).double()
        given[..., -1] = 1
        counts = F.one_hot(torch.randint(10, (73,), generator=rng), 10).double()
        said.append(float(alone(given, counts)[:, 1].amax()))
        given[..., 0] += 100 * counts  # it shows the counts, and is taken in full
        told.append(float(alone(given, counts)[counts[0].argmax(), 1]))
    assert sum(said) / 10 < 0.15  # one in ten is right
    assert min(told) > 0.99


def readings(counts: Tensor, measured: Tensor, compared: Tensor, rng: torch.Generator) -> Tensor:
    """Ten readings (..., K, 18) that measure one batch's counts, with much noise, seven that show which classes another has, and 1."""
    noise = torch.randn(*counts.shape, 17, generator=rng).double() / torch.tensor([2.0] * 10 + [20.0] * 7).double()
    told = torch.cat([measured.unsqueeze(-1).expand(*counts.shape, 10), (compared > 0).double().unsqueeze(-1).expand(*counts.shape, 7)], -1)
    return torch.cat([told + noise, torch.ones(*counts.shape, 1).double()], -1)


def test_readings_that_contradict_each_other_count_less_and_those_that_compare_are_taken_alone_where_they_agree() -> None:
    rng = torch.Generator().manual_seed(0)
    counts = F.one_hot(torch.randint(10, (72, 4), generator=rng), 10).sum(1).double()  # (S, K)
    own = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 0]).double()
    given = readings(counts, counts, counts, rng)
    played = Rehearsed(given, torch.zeros(72, 2), counts, torch.zeros(72), torch.zeros(72))

    def read(received: Tensor) -> tuple[list[int], float]:
        labels, sure = likeliest(read_counts(played, torch.ones(72).double(), received, 4)[0])
        return labels.tolist(), sure

    agreeing = readings(own, own, own, rng)
    labels, sure = read(agreeing)
    assert (labels, sure > 0.95) == ([1, 3, 5, 7], True)
    mixed = torch.stack([agreeing[torch.randperm(10, generator=rng), place] for place in range(17)] + [torch.ones(10).double()], -1)
    stretched = torch.cat([mixed[:, :-ORDINAL], agreeing[:, -ORDINAL:]], -1)  # what measures is of other classes, what compares agrees
    assert read(stretched)[0] == [1, 3, 5, 7]
    assert read(mixed)[1] < 0.6  # every reading is of other classes: hardly more than a guess, which gets 1 - 0.9^4 = 0.34


def test_the_likeliest_labels_are_the_best_of_all_and_expect_what_they_get() -> None:
    probabilities = count_probabilities(torch.tensor([0.4, 1.5, 1.1]), torch.full((3,), 0.5), 3)
    labels, fraction = likeliest(probabilities)
    every = {
        counts: sum(float(probabilities[c, k]) * min(m, k) for c, m in enumerate(counts) for k in range(4)) / 3
        for counts in product(range(4), repeat=3)
        if sum(counts) == 3
    }
    assert fraction == pytest.approx(max(every.values()))
    assert fraction == pytest.approx(every[tuple(torch.bincount(labels, minlength=3).tolist())])
    assert expected_right(torch.tensor([0, 0, 0]), probabilities) == pytest.approx(every[3, 0, 0])


# ---------------------------------------------------------------- what an update shows by itself


def last_layer_of(counts: list[int], *, noise: float = 0.0) -> Head:
    """The last layer of a batch with these counts, uniform predictions and features that are all (1, 2, ..., 20) / 20."""
    size, classes = sum(counts), len(counts)
    rows = torch.full((classes,), 1 / classes) - torch.tensor(counts) / size
    feature = torch.arange(1.0, 21) / 20
    weight_gradient = torch.outer(rows, feature)
    return Head(
        torch.zeros_like(weight_gradient),
        weight_gradient + noise * torch.randn(weight_gradient.shape, generator=generator(1, "noise")),
        rows,
    )


def test_columns_that_add_up_to_0_are_taken_as_they_are_and_others_show_the_noise() -> None:
    assert intact(last_layer_of([2, 0, 1, 1]))
    clipped = last_layer_of([2, 0, 1, 1])
    assert intact(clipped._replace(weight_gradient=clipped.weight_gradient / 100))
    shown = Disturbance.of(last_layer_of([2, 0, 1, 1, 0, 0, 0, 0], noise=0.3))
    assert shown.deviation == pytest.approx(0.3, rel=0.5)  # from 20 sums: their deviation is known to 1 / sqrt(40) = 16 %
    assert (shown.zeros, shown.bias_zeros) == (0, 0)


def test_entries_that_were_scaled_one_by_one_are_no_noise_and_leave_the_layer_not_intact() -> None:
    last = last_layer_of([2, 0, 1, 1])
    signs = last._replace(
        weight_gradient=last.weight_gradient.sign() * torch.rand(last.weight_gradient.shape, generator=generator(0, "scaled"))
    )
    shown = Disturbance.of(signs._replace(weight_gradient=signs.weight_gradient.abs()))  # every column adds up to about four times an entry
    assert (shown.uneven, shown.deviation, shown.none) == (True, 0, False)
    assert not intact(signs._replace(weight_gradient=signs.weight_gradient.abs()))


def test_zeros_inside_rows_and_columns_show_pruning_and_a_dead_feature_does_not() -> None:
    last = last_layer_of([3, 1, 0, 0, 0])
    dead = last.weight_gradient.clone()
    dead[:, 3] = 0
    assert intact(last._replace(weight_gradient=dead))
    pruned = last.weight_gradient * (last.weight_gradient.abs() >= last.weight_gradient.abs().median())
    assert Disturbance.of(last._replace(weight_gradient=pruned)).zeros == pytest.approx(
        1 - 53 / 85
    )  # 17 columns of 5 have entries left, 53 of them


def test_the_mean_feature_is_read_from_the_entries_that_are_left() -> None:
    last = last_layer_of([3, 1, 0, 0])
    assert last.bias is not None
    kept = last.weight_gradient.clone()
    kept[1:, ::2] = 0  # the first row alone shows every other entry
    found = mean_feature(kept.double(), last.bias.double(), torch.zeros(20).double())
    assert torch.allclose(found, torch.arange(1.0, 21).double() / 20, atol=1e-6)


def test_rehearsals_like_the_update_count_most_and_enough_always_count() -> None:
    knows = torch.linspace(0, 9, 40).double()
    sizes = torch.stack([-knows, 0.3 * torch.sin(9 * knows)], 1)
    near = likeness(sizes, knows, torch.tensor([-4.5, 0.0]).double())
    assert 4 < float((near * knows).sum() / near.sum()) < 5
    far = likeness(sizes, knows, torch.tensor([50.0, 0.0]).double())
    assert float(far.sum()) >= 20


# ---------------------------------------------------------------- behind protections


def protected(defense: Part, seed: int, *, model: Part, size: int = 4, adaptive: bool = True) -> tuple[Observation, Tensor]:
    """What the server sees of smooth pictures with random labels."""
    x, y = smooth(size, side=16, seed=seed), torch.randint(10, (size,), generator=generator(seed, "truth"))
    return observe(Experiment(model=model, seed=seed, defenses=(defense,), assume={"adaptive": adaptive}), x, y), y


PRUNED = [
    # Before, pruned entries were read as zeros: about half of the labels, with certainty up to 0.9.
    (Part(id="convnet", fields={"width": 8}), {}, 0.95),  # every label's row is longer than any other: all can be read
    (Part(id="convnet", fields={"width": 8}), {"scope": "whole gradient"}, 0.95),
    (Part(id="he_resnet"), {}, 0.75),  # its rows shrink with a picture's contrast, so that some are pruned whole
]


@pytest.mark.parametrize(("model", "fields", "least"), PRUNED)
def test_labels_behind_pruning_are_read_from_the_rows_that_are_left(model: Part, fields: dict[str, str], least: float) -> None:
    right = [
        label_overlap(recover(seen).labels, y)
        for seen, y in (protected(Part(id="pruning", fields=fields), seed, model=model) for seed in range(4))
    ]
    assert sum(right) / 4 >= least


@pytest.mark.parametrize("adaptive", [True, False])
def test_noise_lowers_the_certainty_to_what_is_right(adaptive: bool) -> None:
    said, right = [], []
    for seed in range(8):
        seen, y = protected(Part(id="gaussian_noise", fields={"scale": 1.0}), seed, model=Part(id="lenet"), adaptive=adaptive)
        found = recover(seen)
        assert found.rule == RULE_TITLES["rehearsed"]
        assert found.certainty is not None
        said.append(found.certainty)
        right.append(label_overlap(found.labels, y))
    assert sum(right) / 8 > 0.5  # of 32 labels, with a standard error of about 0.08; a guess gets 0.34
    if adaptive:
        assert sum(said) / 8 == pytest.approx(sum(right) / 8, abs=0.2)
    else:  # the gradient might have been shortened before noise was added, so it warrants less
        assert 0.34 < sum(said) / 8 < sum(right) / 8


def test_several_attacks_on_one_observation_share_its_rehearsals() -> None:
    (seen, _), (other, _) = (protected(Part(id="gaussian_noise"), seed, model=Part(id="lenet")) for seed in (0, 1))
    first = rehearsed(seen)
    assert first is not None
    assert rehearsed(seen) is first
    again = rehearsed(replace(seen))  # of the same parts, but another observation
    assert again is not first
    assert torch.equal(torch.as_tensor(again), first)
    assert not torch.equal(torch.as_tensor(rehearsed(other)), first)


def test_a_layer_that_was_withheld_leaves_no_more_than_a_guess() -> None:
    seen, _ = protected(Part(id="exclude_vars"), 0, model=Part(id="lenet"))
    found = recover(seen)
    assert found.certainty is not None
    assert found.certainty < 0.5  # four of ten classes, any of them: 0.34 by the most even guess


def test_a_rehearsal_is_the_protection_again_and_for_the_pictures_that_are_meant() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    x = smooth(2)
    clipping = load("defense", "dp_sgd")(max_grad_norm=1.0, noise_multiplier=0.0)
    federation = Federation.of(load("protocol", "fedsgd")(), [clipping], ThreatModel(), seed=0)
    seen = watch(model, x, torch.tensor([1, 3]), federation, num_classes=5)
    assert seen.replay.rehearse is not None
    gradients = {"1.weight": torch.stack([torch.full((5, 64), 0.001), torch.ones(5, 64)]), "1.bias": torch.zeros(2, 5)}
    read = seen.replay.rehearse(gradients, 0)
    assert torch.allclose(read["1.weight"], torch.full((5, 64), (0.001 + 1 / 320**0.5) / 2))  # the first is short, the second clipped to 1
    naive = watch(model, x, torch.tensor([1, 3]), replace(federation, threat=ThreatModel(adaptive=False)), num_classes=5)
    assert naive.replay.rehearse is None


def test_labels_are_read_beside_an_accomplice() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Sigmoid(), nn.Linear(20, 10))
    threat = ThreatModel(strategy="with an accomplice", accomplice=(smooth(1, seed=5), torch.tensor([3])))
    sampling = load("defense", "minmax_sampling")(ratio=0.5)
    federation = Federation.of(load("protocol", "fedsgd")(), [sampling], threat, seed=0)
    found = recover(watch(model, smooth(2), torch.tensor([1, 3]), federation, num_classes=10))
    assert found.certainty is not None  # it failed: a rehearsal lacked the accomplice's gradient
    assert len(found.labels) == 2


def test_entries_that_a_limit_cut_off_are_rehearsed_with_that_limit() -> None:
    last = last_layer_of([3, 1, 1, 0, 0, 0])  # rows -26/60, twice -2/60 and three times 10/60, times 1/20, 2/20, ..., 20/20
    shown = Disturbance.of(last._replace(weight_gradient=last.weight_gradient.clamp(-0.1, 0.1)))
    assert shown.limited == pytest.approx((16 + 3 * 9) / 120)  # from 5/20 in the first row, and from 12/20 in the last three
    assert shown.deviation == 0  # that the columns do not add up is explained by the limit
    again, _ = shown.apply(last.weight_gradient.double(), last.bias, 0)
    assert float(again.abs().max()) == pytest.approx(0.1)  # the smallest of these 43
    assert Disturbance.of(last).limited == 0


@pytest.mark.parametrize("defense", ["ada_defense", "percentile_privacy", "clipping", "outpost", "svt_privacy"])
def test_a_naive_attacker_reads_labels_whatever_was_changed(defense: str) -> None:
    said, right = [], []
    for seed in range(4):  # before: percentile_privacy 0.25 right at certainty 1.00; outpost and svt_privacy about half
        seen, y = protected(Part(id=defense), seed, model=Part(id="lenet"), adaptive=False)
        found = recover(seen)
        assert found.certainty is not None
        said.append(found.certainty)
        right.append(label_overlap(found.labels, y))
    assert sum(right) / 4 >= 0.75
    assert sum(said) / 4 <= sum(right) / 4 + 0.2  # 16 labels: a standard error of about 0.1


@pytest.mark.parametrize("adaptive", [True, False])
def test_noise_that_hides_one_picture_leaves_its_label_as_unsure_as_a_guess(adaptive: bool) -> None:
    said = []
    for seed in range(6):  # before: 0.8 on average for a naive attacker, which does not know the clipping
        seen, _ = protected(Part(id="dp_sgd", fields={"noise_multiplier": 1.0}), seed, model=Part(id="lenet"), size=1, adaptive=adaptive)
        found = recover(seen)
        assert found.certainty is not None
        said.append(found.certainty)
    assert sum(said) / 6 < 0.4


def test_a_gate_that_draws_noise_draws_it_for_every_probe_too() -> None:
    seen, _ = protected(Part(id="precode"), 0, model=Part(id="lenet"))
    features = predict(seen, smooth(1, side=16).expand(4, -1, -1, -1)).features  # one picture, four times
    assert float((features - features.mean(0)).norm()) > 0.1 * float(features.norm())  # before: four equal rows, as without noise
    plain, _ = protected(Part(id="clipping"), 0, model=Part(id="lenet"))
    features = predict(plain, smooth(1, side=16).expand(4, -1, -1, -1)).features
    assert torch.allclose(features, features[:1].expand_as(features))


def test_an_adaptive_attacker_acts_naively_where_the_update_contradicts_what_it_rehearses() -> None:
    for seed in range(2):
        seen, y = protected(Part(id="clipping"), seed, model=Part(id="lenet"))
        turned = altered(seen, rehearse=lambda gradients, _: {name: -g.mean(0) for name, g in gradients.items()})  # no client sends that
        naive, found = (recover(one, "rehearsed") for one in (altered(seen, rehearse=None), turned))
        assert (found.labels.tolist(), found.certainty) == (naive.labels.tolist(), naive.certainty)
        assert label_overlap(found.labels, y) >= 0.75


def test_a_fit_that_says_too_small_a_variance_is_weakened_by_about_that_factor() -> None:
    rng = generator(0, "overconfidence")
    counts = F.one_hot(torch.randint(10, (200, 4), generator=rng), 10).sum(1).double()  # (S, K)
    tested = counts + 0.4 * torch.randn(counts.shape, generator=rng).double()
    alike = torch.ones(200).double()
    exact, bold = (CountFit(torch.ones(1), base, 0.0, tested) for base in (0.16, 0.04))
    assert overconfidence(exact, counts, alike, 4) < 1.5
    assert 2.8 <= overconfidence(bold, counts, alike, 4) <= 5.7  # a quarter of the true variance: 4, in steps of the root of 2


def test_zeros_drawn_at_random_are_told_from_the_smallest_entries_and_rehearsed_as_such() -> None:
    rng = generator(0, "scattered")
    weight_gradient = torch.randn((10, 200), generator=rng).double() * torch.linspace(0.1, 3, 10).double().unsqueeze(1)
    kept = weight_gradient * (torch.rand(weight_gradient.shape, generator=rng) < 0.1)
    small = weight_gradient * (weight_gradient.abs() > weight_gradient.abs().flatten().kthvalue(1800).values)
    drawn, pruned = (Disturbance.of(Head(weight_gradient, left, None)) for left in (kept, small))
    assert (drawn.scattered, pruned.scattered) == (True, False)
    rows = (drawn.apply(weight_gradient, None, 0)[0] != 0).sum(1)
    assert int(rows.min()) >= 8  # of 200 entries, 20 on average with a deviation of 4; of the smallest row none would be left
    assert int((pruned.apply(weight_gradient, None, 0)[0] != 0).sum(1)[0]) == 0


def test_readings_that_contradict_each_other_enlarge_the_variance_and_others_do_not() -> None:
    rng = generator(0, "misfit")
    counts = torch.randint(3, (40, 5), generator=rng).double()
    noise = 0.1 * torch.randn(40, 5, 2, generator=rng).double()
    given = torch.cat([counts.unsqueeze(2) + noise, torch.ones(40, 5, 1).double()], 2)  # two readings of every count, and 1
    alike, found = torch.ones(40).double(), torch.tensor([0.0, 1, 1, 2, 0]).double()
    exact = torch.cat([found.unsqueeze(1).expand(5, 2), torch.ones(5, 1).double()], 1)
    assert misfit(given, counts, alike, exact, found).usual == 1
    apart = exact + 0.5 * torch.tensor([1.0, -1.0, 0.0]).double()  # each is five deviations off: 25 times the usual square
    assert misfit(given, counts, alike, apart, found).usual == pytest.approx(25, rel=0.25)


def test_certainty_grows_with_what_rehearsals_expect_and_says_of_a_guess_that_it_is_one() -> None:
    grid = [calibrated(p / 20, 0.1) for p in range(21)]
    assert grid == sorted(grid)
    assert (grid[0], grid[2], grid[-1]) == (pytest.approx(0, abs=1e-4), pytest.approx(0.1), pytest.approx(1, abs=1e-4))
    odds = (0.5 / 0.5) / (0.1 / 0.9)  # nine times those of a guess
    assert calibrated(0.5, 0.1) == pytest.approx(odds**COEFFICIENT / (odds**COEFFICIENT + 9))


def test_a_guess_gets_one_class_of_k_right_and_of_a_batch_the_likeliest_counts() -> None:
    assert guessed_right(1, 10) == pytest.approx(0.1)
    assert guessed_right(8, 10) == pytest.approx(1 - 0.9**8)  # eight classes, each there at least once with this probability
    assert guessed_right(2, 2) == pytest.approx(0.75)  # one of each: (0, 0) and (1, 1) half right, (0, 1) and (1, 0) right


def test_the_update_of_a_hand_made_last_layer_is_read_behind_pruning_of_its_bias() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Sigmoid(), nn.Linear(20, 10))
    x, y, weights = smooth(4), torch.tensor([7, 2, 2, 5]), weights_of(model)
    update, _ = gradient_client(model)(weights, x, y, {})
    update["3.bias"] = update["3.bias"] * (update["3.bias"].abs() >= update["3.bias"].abs().max())  # one entry of ten is left
    seen = altered(observed(smooth()), model=model, weights=weights, update=update, size=4)
    assert recover(seen).labels.tolist() == [2, 2, 5, 7]
    assert recover(seen, "matched prior").labels.tolist() != [2, 2, 5, 7]


def test_an_update_that_somebody_shortened_is_read_by_proportions() -> None:
    """Read by lengths, each of the four draws has a label wrong."""
    for seed in range(4):
        seen, y = protected(
            Part(id="gaussian_noise", fields={"scale": 0.001}), seed, model=Part(id="convnet", fields={"width": 8}), adaptive=False
        )
        shortened = altered(seen, update={name: g / 1000 for name, g in seen.received.update.items()})
        assert label_overlap(recover(shortened).labels, y) == 1
