"""Homomorphic encryption: the sum as under secure aggregation, and the unencrypted tensors of each client."""

import pytest
import torch
from small_problems import CATALOG, LABELS, TINY, observed, precision, relative, smooth

from leakage.engine.client import gradient_client
from leakage.evaluation.metrics import gradient_distances
from leakage.evaluation.received import describe
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import plugin

PROTOCOLS = ["fedsgd", "fedavg", "fedprox", "fedadmm"]


def over(unencrypted: str = "", name: str = "homomorphic_encryption") -> Part:
    return Part(id=name, fields={"clients": 3} | ({"unencrypted": unencrypted} if unencrypted else {}))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_all_encrypted_the_server_holds_what_secure_aggregation_gives_it(protocol: str) -> None:
    x = smooth(3)
    one, other = (
        observed(x, protocol=Part(id=protocol), aggregation=over(name=name)) for name in ("homomorphic_encryption", "secure_aggregation")
    )
    assert list(one.received.update) == list(other.received.update)
    assert all(torch.equal(one.received.update[name], other.received.update[name]) for name in one.received.update)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_not_encrypted_arrives_of_each_phone_as_it_sent_it(protocol: str) -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, protocol=Part(id=protocol), aggregation=over("linear.*"))
        client = plugin("protocol", Part(id=protocol)).client(gradient_client(seen.model))
        for number in range(3):
            alone, _ = client(seen.received.weights, x[number : number + 1], LABELS[number : number + 1], {})
            for name in ("linear.weight", "linear.bias"):
                torch.testing.assert_close(seen.received.update[f"{number}/{name}"], alone[name], rtol=1e-12, atol=1e-15)
        assert {name for name in seen.received.update if "/" in name} == {
            f"{n}/linear.{part}" for n in range(3) for part in ("weight", "bias")
        }
        assert relative(seen.replay.single(x, LABELS), seen.received.update) < 1e-10
        if protocol == "fedsgd":  # the unit of a gradient, of the sum and of what is plain
            mean = sum(seen.as_gradient()[f"{number}/linear.bias"] for number in range(3)) / 3
            torch.testing.assert_close(mean, seen.as_gradient()["linear.bias"])


def test_what_is_not_encrypted_tells_whose_pictures_are_whose() -> None:
    x, turned = smooth(3), torch.tensor([1, 0, 2])
    for names, told in (("", False), ("last", True)):
        seen = observed(x, aggregation=over(names))
        swapped = gradient_distances(seen.gradient(x[turned], LABELS[turned]), seen.as_gradient())["relative_l2"]
        assert (swapped > 0.1) is told


@pytest.mark.parametrize("defenses", [(), (Part(id="clipping", fields={"bound": 1e6}),)])  # vectorised, and one by one
def test_several_guesses_are_replayed_with_what_is_not_encrypted(defenses: tuple[Part, ...]) -> None:
    x = smooth(3)
    seen = observed(x, aggregation=over("last"), defenses=defenses)
    several = seen.replay.several(torch.stack([x, x.flip(-1)]), LABELS)
    assert several.keys() == seen.received.update.keys()
    assert relative({name: value[0] for name, value in several.items()}, seen.received.update) < 1e-5


def test_of_what_is_not_encrypted_each_phones_numbers_are_received_and_no_sum() -> None:
    seen = observed(smooth(3), aggregation=over("last"))
    told = describe(seen.received.update, seen.as_gradient(), [])
    assert [layer["name"] for layer in told["layers"]] == [
        "linear1.weight",
        "linear1.bias",
        *(name for name in seen.received.update if "/" in name),
    ]
    assert told["entries"] == sum(g.numel() for g in seen.received.weights.values()) + 2 * (32 * 10 + 10)


def test_a_naive_attacker_takes_the_sum_and_nothing_else() -> None:
    x = smooth(3)
    seen, plain = (observed(x, aggregation=over(names), assume=Assumptions(adaptive=False)) for names in ("last", ""))
    assert all(torch.equal(seen.received.update[name], plain.received.update[name]) for name in plain.received.update)
    assert list(seen.received.update) == list(seen.received.weights)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_later_round_begins_where_the_sum_has_led(protocol: str) -> None:
    x = smooth(3)
    one, other = (observed(x, protocol=Part(id=protocol), aggregation=over(names), rounds=2, attacked_round=2) for names in ("last", ""))
    assert all(torch.equal(one.received.weights[name], other.received.weights[name]) for name in one.received.weights)


def test_a_tensor_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"homomorphic_encryption.unencrypted: no tensor of this model is called 'fc'; it has linear1"):
        observed(smooth(3), aggregation=over("fc"))


def test_the_threat_model_table_says_what_of_each_phone_the_server_has() -> None:
    pictures = Experiment().pictures * 3
    for names, words in (
        ("", "never a single update"),
        ("linear.bias", "of each phone by itself only linear.bias, which is not encrypted"),
    ):
        asked = Experiment(model=TINY, pictures=pictures, aggregation=over(names))
        rows = {what: told for _, what, told in assumptions(asked, CATALOG, None, {})}
        assert rows["A sum of several phones"].endswith(words)
        assert ("of each by itself linear.bias" in rows["Naive or adaptive"]) is bool(names)
        assert ("as a naive attacker would" in rows["Naive or adaptive"]) is not bool(names)
