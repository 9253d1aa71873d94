"""MinMax sampling inverted: the identities of one draw, the leak of several draws, and the accomplice that an attacker may need."""

import math
from functools import partial

import pytest
import torch
from reachable_truth import leaks
from small_problems import CATALOG, LABELS, observed, smooth
from torch import Tensor, nn

import leakage
from leakage.defenses._minmax import DrawSums, infer_threshold
from leakage.engine.client import gradient_client
from leakage.engine.core import AdaptiveStrategy, Batch, ClientState, Params, generator
from leakage.engine.federation import Federation
from leakage.engine.observe import received
from leakage.engine.strategy import ACCOMPLICE
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError, parse
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import plugin, prepare
from leakage.workers.private_pictures import load

LENET = Part(id="lenet")
ASTRONAUT, CAT = Picture(id="astronaut"), Picture(id="chelsea")
NOWHERE = torch.zeros(1)
SOLVE, AVERAGE, COUNT, RANK, ARRIVED = plugin("defense", Part(id="minmax_sampling")).strategies()


def sampling(ratio: float) -> Part:
    return Part(id="minmax_sampling", fields={"ratio": ratio})


def strategy(name: str, ratio: float) -> AdaptiveStrategy:
    return plugin("defense", sampling(ratio)).strategies()[name]


def draws(g: Params, number: int, ratio: float, seed: int = 1) -> list[Params]:
    """What is sent of the same gradient in so many rounds."""
    client = plugin("defense", sampling(ratio)).defend(
        lambda _w, _x, _y, state: (g, state), nn.Identity(), partial(generator, seed, "defense")
    )
    state, sent = ClientState(), []
    for _ in range(number):
        update, state = client({}, NOWHERE, NOWHERE, state)
        sent.append(update)
    return sent


def watched(name: str, sent: list[Params], ratio: float, state: ClientState | None = None) -> tuple[Params, Params]:
    """Return the inverted update of an attacker with that strategy after all these updates, and its entry weights."""
    own, shadow = strategy(name, ratio), ClientState(state or {})
    for update in sent[:-1]:
        shadow = own.infer_state(update, shadow)
    assert own.invert_update is not None
    return own.invert_update(sent[-1], shadow), own.entry_weights(sent[-1], shadow)


def flat(update: Params) -> Tensor:
    return torch.cat([value.flatten() for value in update.values()]).double()


def cosine(one: Params, other: Params) -> float:
    return float(torch.cosine_similarity(flat(one), flat(other), dim=0))


@pytest.fixture(scope="module")
def lenet() -> Params:
    """A gradient of 15,826 numbers in single precision."""
    return observed(smooth(1, 3, 32), model=LENET).received.update


def weights_of_draw(g: Tensor, step: int) -> Tensor:
    """w = (1/r - 1) g^2 of the draw of this step, (D,)."""
    r = 1 - torch.rand(len(g), generator=generator(1, "defense", step), dtype=torch.float64)
    return (1 / r - 1) * g.double().square()


# ---------------------------------------------------------------- one draw


@pytest.mark.long
def test_an_entry_is_sent_as_often_as_its_square_beside_c_says() -> None:
    """Of 1000 entries with the k-th largest weight of the others as C: 1e4 draws, within 3 standard errors."""
    g = torch.randn(1000, generator=torch.Generator().manual_seed(3), dtype=torch.float64).pow(3)
    number, k = 10_000, 50
    counts, expected, variance = torch.zeros(1000), torch.zeros(1000, dtype=torch.float64), torch.zeros(1000, dtype=torch.float64)
    for step, update in enumerate(draws({"w": g}, number, 0.05)):
        first = weights_of_draw(g, step).topk(k + 1).values
        sent = update["w"] != 0
        assert int(sent.sum()) == k
        p = g.square() / (g.square() + torch.where(sent, first[k], first[k - 1]))  # C of the others alone
        counts += sent
        expected += p
        variance += p * (1 - p)
    errors = (counts - expected).abs() / variance.sqrt()
    assert float((errors < 3).double().mean()) > 0.99  # 99.7 % of a normal law
    assert float(errors.max()) < 5


def test_the_smallest_entry_of_one_draw_tells_c(lenet: Params) -> None:
    g = flat(lenet)
    for step, update in enumerate(draws(lenet, 5, 0.05)):
        k = int(0.05 * len(g))
        c = float(weights_of_draw(g.float(), step).topk(k + 1).values[-1])
        assert float(infer_threshold(update, k)) == pytest.approx(c, rel=0.01)
        v = flat(update)
        kept = v != 0
        assert float(v[kept].abs().min()) >= 2 * math.sqrt(c) * (1 - 1e-6)
        root = (v[kept].square() - 4 * c).clamp(min=0).sqrt()
        roots = torch.stack([(v[kept].abs() + root) / 2, (v[kept].abs() - root) / 2])
        nearest = ((roots - g[kept].abs()) / g[kept].abs()).abs().amin(0)
        assert float(nearest.max()) < 0.01  # float32: where both roots meet a rounding of 1e-7 is one of 4e-4 of the root


def test_signs_are_never_wrong(lenet: Params) -> None:
    sent = draws(lenet, 20, 0.05)
    for name in (SOLVE, COUNT):
        got, _ = watched(name, sent, 0.05)
        kept = flat(got) != 0
        assert torch.equal(flat(got)[kept].sign(), flat(lenet)[kept].sign())


# ---------------------------------------------------------------- several draws


def test_what_was_sent_twice_is_solved(lenet: Params) -> None:
    sent = draws(lenet, 5, 0.05)
    got, weights = watched(SOLVE, sent, 0.05)
    times = sum((flat(update) != 0).long() for update in sent)
    wrong = ((flat(got) - flat(lenet)) / flat(lenet)).abs()[times >= 2]
    assert float((wrong < 0.01).double().mean()) > 0.95
    assert torch.equal(flat(weights) == 0, times == 0)
    assert float(flat(weights)[times >= 2].mean()) > 0.95


def test_after_twenty_rounds_the_entries_that_make_up_most_of_the_gradient_are_known_to_four_digits(lenet: Params) -> None:
    """By length, not by number: the large entries were sent twice, most small ones never."""
    got, _ = watched(SOLVE, draws(lenet, 20, 0.05), 0.05)
    right = ((flat(got) - flat(lenet)) / flat(lenet)).abs() < 5e-5
    assert float(flat(lenet)[right].square().sum() / flat(lenet).square().sum()) > 0.8
    assert float(right.double().mean()) < 0.5


@pytest.mark.parametrize(
    ("name", "number", "least"),
    [(SOLVE, 1, 0.5), (SOLVE, 5, 0.85), (SOLVE, 20, 0.95), (COUNT, 20, 0.9), (AVERAGE, 20, 0.7)],
)
def test_the_direction_of_the_gradient_comes_back(lenet: Params, name: str, number: int, least: float) -> None:
    """The product's own sampler, LeNet, a CIFAR-10 picture, ratio 0.05: solved 0.59, 0.91, 0.98; counted 0.94; averaged 0.80 to 0.85."""
    got, _ = watched(name, draws(lenet, number, 0.05), 0.05)
    assert cosine(got, lenet) > least


def test_what_was_sent_in_every_draw_and_what_in_one_are_counted_as_half_a_draw_less_or_more() -> None:
    """p = 19.5 / 20 and 1 / 20 of 20 draws, with a mean sqrt(C) of 3."""
    tally = DrawSums(torch.tensor([20.0, 1.0, 0.0]), torch.tensor([40.0, -1.0, 0.0]), *[torch.zeros(3)] * 3)
    assert tally.estimate_from_counts(20, 60.0).tolist() == pytest.approx([3 * 39**0.5, -3 * 19**-0.5, 0])


def test_solving_beats_counting_beats_averaging(lenet: Params) -> None:
    sent = draws(lenet, 20, 0.05)
    solved, counted, averaged = (cosine(watched(name, sent, 0.05)[0], lenet) for name in (SOLVE, COUNT, AVERAGE))
    assert solved > counted + 0.02 > averaged + 0.04


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("name", [SOLVE, AVERAGE])
def test_who_receives_everything_reads_it_as_it_is(lenet: Params, name: str, number: int) -> None:
    got, weights = watched(name, draws(lenet, number, 1.0), 1.0)
    assert all(torch.allclose(got[layer], g, rtol=1e-6, atol=0) for layer, g in lenet.items())
    assert all(bool((weight == 1).all()) for weight in weights.values())


def test_what_is_sent_whole_because_it_is_short_is_read_as_it_is() -> None:
    g = {"w": torch.tensor([0.0, 3.0, 0.0, -2.0, 0.0])}
    got, _ = watched(SOLVE, draws(g, 2, 0.6), 0.6)  # three of five may be sent, two are not 0
    assert got["w"].tolist() == [0, 3, 0, -2, 0]


def test_one_draw_of_many_entries_is_taken_as_it_came_but_for_the_smallest_which_is_sqrt_c(lenet: Params) -> None:
    (sent,) = draws(lenet, 1, 0.5)
    got, _ = watched(SOLVE, [sent], 0.5)
    share = (flat(got) / flat(sent))[flat(sent) != 0]
    halves = int((share - 0.5).abs().lt(1e-3).sum())  # single precision: two or three may be the smallest
    assert 1 <= halves <= 3
    assert int((share - 1).abs().lt(1e-5).sum()) == len(share) - halves
    assert cosine(got, lenet) > 0.97


def test_a_root_that_hardly_changed_at_random_is_not_taken_for_an_entry_that_would_be_sent_every_time() -> None:
    """g = 0.1 and C = 1: sent twice of 20 draws as v = 10.1, from weights that moved by 1 %, while C at random moved by 0.01 %."""
    roots = torch.tensor([[0.1, 10.0], [0.101, 9.999]], dtype=torch.float64)
    sums = [roots[:, 0].sum(), roots[:, 0].square().sum(), roots[:, 1].sum(), roots[:, 1].square().sum()]
    tally = DrawSums(torch.tensor([2.0]), *(value.reshape(1) for value in sums))
    assert float(tally.solve(20, rare=True)[0]) == pytest.approx(0.1005)
    assert float(tally.solve(2, rare=True)[0]) == pytest.approx(9.9995)  # of two draws it was sent in both


def test_where_the_server_moves_the_weights_the_roots_deviate_and_count_less() -> None:
    x = smooth(1, 3, 32)
    settings = {"model": LENET, "rounds": 6, "attacked_round": 6, "defenses": (sampling(0.2),)}
    still, moved = (observed(x, **settings, protocol=Part(id="fedsgd", fields={"rate": rate})) for rate in (1e-6, 0.1))
    assert float(flat(still.knowledge.entry_weights).mean()) > float(flat(moved.knowledge.entry_weights).mean()) + 0.1
    assert cosine(still.received.update, observed(x, model=LENET).received.update) > 0.98


def test_of_entries_of_one_size_only_the_signs_can_be_solved() -> None:
    g = torch.ones(1000)
    g[::3] = -1  # as AdaDefense sends them
    defense = plugin("defense", sampling(0.05))
    state, sent = {}, Params()
    for number in range(1, 101):
        sent = defense.sample({"w": g}, generator(number))
        kept = sent["w"] != 0
        size = float(sent["w"][kept].abs().mean())
        torch.testing.assert_close(sent["w"][kept].abs(), torch.full((50,), size))  # 1 + C, whatever the entry
        if number == 1:
            torch.testing.assert_close(strategy(SOLVE, 0.05).invert_update(sent, {})["w"], sent["w"] / 2)  # both roots are |v| / 2
        state = strategy(SOLVE, 0.05).infer_state(sent, state) if number < 100 else state
    found = strategy(SOLVE, 0.05).invert_update(sent, state)["w"]
    assert torch.equal(found.sign()[found != 0], g[found != 0])
    assert int((found != 0).sum()) > 980  # 1 - 0.95^100 of 1000 are expected: 994


# ---------------------------------------------------------------- an accomplice


def test_whoever_is_his_own_accomplice_keeps_the_sizes_and_gets_the_order_from_counts(lenet: Params) -> None:
    own = {ACCOMPLICE + layer: g for layer, g in lenet.items()}
    got, weights = watched(RANK, draws(lenet, 20, 0.05), 0.05, own)
    assert torch.equal(flat(got).abs().sort().values, flat(lenet).abs().sort().values)
    assert torch.equal(flat(got).sign(), flat(lenet).sign())
    assert weights == {}
    assert cosine(got, lenet) > 0.9


def test_the_sizes_are_dealt_out_by_rank_of_counts_and_missing_signs_are_the_accomplices() -> None:
    sent = [{"w": torch.tensor(v)} for v in ([0.0, -4.0, 0.0, 0.0], [3.0, -4.0, 0.0, 0.0], [0.0, -4.0, 0.0, 0.0])]
    other = {ACCOMPLICE + "w": torch.tensor([-0.5, 0.25, -8.0, 1.0])}
    got, _ = watched(RANK, sent, 0.25, other)
    assert got["w"].tolist() == [1, -8, -0.5, 0.25]


def test_the_accomplice_computes_its_own_gradient_and_nothing_of_the_private_picture_is_reached() -> None:
    x = smooth(1, 3, 32)
    assume = Assumptions(strategy=RANK, accomplice=CAT)
    rounds = {"rounds": 4, "attacked_round": 4, "protocol": Part(id="fedsgd", fields={"rate": 0.1})}
    seen = observed(x, model=LENET, defenses=(sampling(0.05),), assume=assume, **rounds)
    held, label = load(Experiment(pictures=(CAT,)), {})
    gradient, _ = gradient_client(seen.model)(seen.received.weights, held, label, {})
    assert all(torch.equal(seen.received.history[3].state[ACCOMPLICE + layer], g) for layer, g in gradient.items())
    assert torch.equal(flat(seen.received.update).abs().sort().values, flat(gradient).abs().sort().values)
    assert leaks(seen, x, LABELS) == []


def test_an_update_alone_is_ranked_with_an_accomplice_too() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    x, y = torch.rand(2, 1, 4, 4), torch.tensor([2, 0])
    plain = leakage.observe(model, x[:1], y[:1]).received.update
    other = leakage.observe(model, x[1:], y[1:]).received.update
    threat = leakage.ThreatModel(strategy=RANK, accomplice=(x[1:], y[1:]))
    federation = Federation.of(plugin("protocol", Part(id="fedsgd")), [plugin("defense", sampling(0.5))], threat, seed=1)
    seen = received(model, plain, federation, Batch(1, (1, 4, 4), 3))
    assert torch.equal(flat(seen.received.update).abs().sort().values, flat(other).abs().sort().values)


@pytest.mark.long
def test_without_an_accomplice_the_attacker_solves_and_is_told_so() -> None:
    alone = Experiment(model=LENET, defenses=(sampling(0.05),), assume=Assumptions(strategy=RANK), rounds=4, attacked_round=4)
    assert warnings(alone.resolve(CATALOG), CATALOG) == [
        f"“{RANK}” needs another phone that works with the attacker, and there is none: “{SOLVE}” is used instead. "
        "Choose the picture of that phone."
    ]
    assert prepare(alone.resolve(CATALOG)).federation.strategy_descriptions == (strategy(SOLVE, 0.05).description,)


@pytest.mark.parametrize("name", [SOLVE, AVERAGE, COUNT, RANK])
def test_one_round_is_named_as_too_few(name: str) -> None:
    asked = Experiment(defenses=(sampling(0.05),), assume=Assumptions(strategy=name, accomplice=CAT)).resolve(CATALOG)
    (words,) = warnings(asked, CATALOG)
    assert words.startswith(f"“{name}” has a single round to work with")
    assert warnings(asked.model_copy(update={"rounds": 5, "attacked_round": 5}), CATALOG) == []


@pytest.mark.parametrize(
    ("accomplice", "more", "words"),
    [
        (ASTRONAUT, {}, "given was one of the private pictures"),
        (Picture(id="astronaut", label=3), {}, "given was one of the private pictures"),
        (Picture(source="upload", id="mine", label=1), {}, "given was an upload"),
        (Picture(source="cifar100", id="1"), {}, "its class must be one of the model's 10"),
        (CAT, {"task": "two"}, "needs a model with one output for each class"),
    ],
)
def test_an_accomplice_that_cannot_be_is_refused_with_a_remedy(accomplice: Picture, more: dict[str, str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        Experiment(assume=Assumptions(accomplice=accomplice), **more).resolve(CATALOG)


def test_the_threat_model_table_says_that_another_phone_colludes() -> None:
    asked = Experiment(defenses=(sampling(0.05),), assume=Assumptions(strategy=RANK, accomplice=CAT)).resolve(CATALOG)
    rows = {about: (tag, told) for tag, about, told in assumptions(asked, CATALOG, None, {})}
    assert rows["Another phone colludes"][0] == "granted"
    assert "gallery chelsea" in rows["Another phone colludes"][1]
    assert "Another phone colludes" not in {about for _, about, _ in assumptions(Experiment().resolve(CATALOG), CATALOG, None, {})}


def test_an_experiment_without_an_accomplice_is_written_as_before() -> None:
    assert "accomplice" not in Experiment().model_dump_json()
    asked = Experiment(assume=Assumptions(accomplice=CAT))
    assert parse(asked.model_dump_json()) == asked
    assert asked.digest() != Experiment().digest()
