"""Inconsistent models: the sum over several clients is the update of one of them, and a search sees this client alone."""

import pytest
import torch
from small_problems import GRANTED, RELU, few_units, moments, precision, relative, smooth

import leakage
from leakage.engine.core import Observation
from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Assumptions, Experiment, Part, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe, plugin

X, Y = smooth(6, seed=5), torch.tensor([7, 2, 4, 0, 9, 5])
FOUR_STEPS = Part(id="fedavg", fields={"epochs": 2, "mini_batch": 1, "rate": 0.1})


def summed(clients: int = 3) -> dict[str, Part]:
    return {"aggregation": Part(id="secure_aggregation", fields={"clients": clients})}


def seen_by(victim: int, **settings: object) -> Observation:
    server = Part(id="inconsistent", fields={"victim": victim})
    return observe(Experiment(**{"model": RELU, "server": server} | summed() | settings), X, Y)


def alone(victim: int, seen: Observation) -> Observation:
    return plugin("server", Part(id="inconsistent", fields={"victim": victim})).isolate(seen, 3)


@pytest.mark.parametrize("protocol", [Part(id="fedsgd"), FOUR_STEPS], ids=["fedsgd", "fedavg"])
@pytest.mark.parametrize("victim", [1, 2, 3])
@pytest.mark.parametrize(
    "model", [RELU, Part(id="lenet"), Part(id="resnet", fields={"kind": "resnet20-4", "width": 4})], ids=lambda m: m.id
)
def test_the_sum_is_the_update_of_one_phone_exactly(model: Part, victim: int, protocol: Part) -> None:
    seen = seen_by(victim, model=model, protocol=protocol)
    own = slice(2 * (victim - 1), 2 * victim)
    lonely = observe(Experiment(model=model, protocol=protocol), X[own], Y[own])
    names = [name for name in lonely.update if name != "linear.bias"]
    assert len(names) >= 3
    assert all(torch.equal(seen.update[name], lonely.update[name]) for name in names)
    assert not torch.equal(seen.update["linear.bias"], lonely.update["linear.bias"])  # p - y of all phones: it does not depend on features
    left = alone(victim, seen)
    assert left.batch.size == 2
    assert set(left.update) == set(names)
    assert relative(left.gradient(X[own], Y[own]), left.as_gradient()) < 1e-6
    own_gradient = lonely.as_gradient()
    assert relative(left.as_gradient(), {name: own_gradient[name] for name in names}) < 1e-6
    assert left.isolated == f"2 pictures of phone {victim}; the updates of the 2 other phones are 0"


def test_a_naive_attacker_sees_the_same_phone_alone() -> None:
    """It imitates no phone with a dead network, and the others have none that is alive."""
    seen = {adaptive: alone(2, seen_by(2, assume=Assumptions(adaptive=adaptive))) for adaptive in (True, False)}
    guess, labels = smooth(2, seed=8), Y[:2]
    assert relative(seen[False].as_gradient(), seen[True].as_gradient()) < 1e-6
    read = [one.replay.to_gradient(one.replay.single(guess, labels)) for one in seen.values()]
    assert relative(*read) < 1e-6
    both = [one.replay.to_gradient(one.replay.several(guess[None], labels)) for one in seen.values()]
    assert relative(*both) < 1e-6


def test_of_local_steps_the_phone_alone_has_gone_all_the_way() -> None:
    left, lonely = alone(2, seen_by(2, protocol=FOUR_STEPS)), observe(Experiment(model=RELU, protocol=FOUR_STEPS), X[2:4], Y[2:4])
    ended = left.replay.client_weights()
    assert relative(ended, {name: value for name, value in lonely.replay.client_weights().items() if name in ended}) < 1e-5


def test_all_phones_but_one_receive_another_bias_and_nothing_else() -> None:
    server = plugin("server", Part(id="inconsistent", fields={"victim": 2}))
    seen = seen_by(2)
    base = seen.received.weights
    for member in range(3):
        received = server.single_out(seen.model, base, member, 3)
        other = [name for name in base if not torch.equal(received[name], base[name])]
        assert other == ([] if member == 1 else ["linear1.bias"])


def test_labels_of_the_phone_are_read_from_its_rows() -> None:
    with precision(torch.float64):
        seen = observe(Experiment(model=RELU, server=Part(id="inconsistent"), **summed(6)), X.double(), Y)
    left = plugin("server", Part(id="inconsistent")).isolate(seen, 6)
    last = moments(Part(id="inverting_gradients", fields={"steps": 2}), left)[-1]
    assert last.y.tolist() == [7]
    given = observe(Experiment(model=RELU, server=Part(id="inconsistent"), assume=GRANTED, **summed()), X, Y)
    assert alone(1, given).granted.labels.tolist() == [7, 2]


def test_a_search_finds_the_pictures_of_one_phone_and_leaves_the_others_grey() -> None:
    model = few_units(4)  # 310 numbers: fewer than the 384 pixels of all pictures, and more than the 128 of two
    sum_of = leakage.plugin("secure_aggregation", clients=3)
    search, threat = leakage.plugin("inverting_gradients", steps=150), leakage.ThreatModel(labels=True)
    asked = {"aggregation": sum_of, "attack": search, "threat_model": threat}
    cheated = leakage.attack(model, X, Y, server=leakage.plugin("inconsistent", victim=2), **asked)
    honest = leakage.attack(model, X, Y, **asked)
    grey = (cheated.reconstruction == 0.5).flatten(1).all(1)
    assert int(grey.sum()) == 4
    assert "2 pictures of phone 2; the updates of the 2 other phones are 0; 4 places are grey: not looked for" in cheated.note["read from"]
    assert psnr(cheated.reconstruction, X)[2:4].min() > psnr(honest.reconstruction, X)[2:4].max() + 3
    assert sorted(cheated.labels) == sorted(Y.tolist())


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    known, three = plugin_catalog.describe(), {"pictures": [{"id": name} for name in ("cat", "coffee", "rocket")]}
    with pytest.raises(SpecError, match=r"Inconsistent models needs a sum over at least 2 phones, given was 1"):
        Experiment(server=Part(id="inconsistent")).resolve(known)
    with pytest.raises(SpecError, match=r"server inconsistent\.victim: allowed is 1 to 3, the phones that are added up; given was 4"):
        Experiment(server=Part(id="inconsistent", fields={"victim": 4}), **three, **summed()).resolve(known)
    with pytest.raises(ValueError, match="a single phone sends its update"):
        observe(Experiment(model=RELU, server=Part(id="inconsistent")), X, Y)
    with pytest.raises(ValueError, match="names phone 4, and there are 3"):
        seen_by(4)
    with pytest.raises(ValueError, match="no bias of this network silences what enters its last layer"):
        seen_by(1, model=Part(id="mlp", fields={**RELU.fields, "activation": "tanh"}))
