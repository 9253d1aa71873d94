"""A ring of clients: each received sum by hand, what follows from it, its imitation, and the threat model table."""

import pytest
import torch
from small_problems import CATALOG, GRANTED, LABELS, TINY, moments, observed, precision, relative, smooth

from leakage.attacks._dense import rows_of_sums
from leakage.attacks._read_layers import Reading
from leakage.defenses.precode import names_before_gate
from leakage.engine.client import gradient_client
from leakage.engine.core import Observation, Params
from leakage.evaluation.metrics import gradient_distances
from leakage.results.comparison_report import question
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.threat_model import assumptions
from leakage.ui.components import sent
from leakage.ui.lab.result import staged
from leakage.workers.adapter import play, plugin, prepare

PROTOCOLS = ["fedsgd", "fedavg", "fedprox", "fedadmm"]


def in_ring(**fields: object) -> Part:
    return Part(id="ring_all_reduce", fields={"clients": 3, **fields})


def one_update(seen: Observation, protocol: str, x: torch.Tensor, number: int) -> Params:
    """What one phone adds."""
    client = plugin("protocol", Part(id=protocol)).client(gradient_client(seen.model))
    return client(seen.received.weights, x[number : number + 1], LABELS[number : number + 1], {})[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("clients_before", [1, 2])
def test_the_sum_of_the_phones_before_it_and_that_of_all_reach_the_attacker(protocol: str, clients_before: int) -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, protocol=Part(id=protocol), aggregation=in_ring(clients_before=clients_before))
        own = [one_update(seen, protocol, x, number) for number in range(3)]
        for name in seen.received.weights:
            torch.testing.assert_close(seen.received.update[name], own[0][name] + own[1][name] + own[2][name], rtol=1e-12, atol=1e-15)
            before = own[0][name] if clients_before == 1 else own[0][name] + own[1][name]
            torch.testing.assert_close(seen.received.update[f"before/{name}"], before, rtol=1e-12, atol=1e-15)
        assert len(seen.received.update) == 2 * len(seen.received.weights)
        assert relative(seen.replay.single(x, LABELS), seen.received.update) < 1e-10


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("clients_before", [2, 3, 16])
def test_two_on_both_sides_of_a_phone_hold_its_update(protocol: str, clients_before: int) -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, protocol=Part(id=protocol), aggregation=in_ring(clients_before=clients_before, colluding=True))
        accomplice = observed(x, protocol=Part(id=protocol), aggregation=in_ring(clients_before=min(clients_before, 3) - 1))
        own = one_update(seen, protocol, x, min(clients_before, 3) - 1)
        for name in seen.received.weights:
            torch.testing.assert_close(seen.received.update[f"neighbour/{name}"], own[name], rtol=1e-12, atol=1e-15)
            # less what the accomplice handed to the phone between them
            behind = seen.received.update[f"before/{name}" if clients_before < 3 else name]
            torch.testing.assert_close(behind - accomplice.received.update[f"before/{name}"], own[name], rtol=1e-9, atol=1e-12)


def test_behind_all_phones_it_is_secure_aggregation() -> None:
    x = smooth(3)
    one, other = (
        observed(x, aggregation=in_ring(clients_before=3)),
        observed(x, aggregation=Part(id="secure_aggregation", fields={"clients": 3})),
    )
    assert list(one.received.update) == list(other.received.update)
    assert all(torch.equal(one.received.update[name], other.received.update[name]) for name in one.received.update)


def test_behind_the_first_nothing_is_added_by_an_accomplice() -> None:
    x = smooth(3)
    assert not [
        name for name in observed(x, aggregation=in_ring(clients_before=1, colluding=True)).received.update if name.startswith("neighbour/")
    ]


def test_every_sum_is_read_as_the_mean_gradient_of_its_phones() -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, aggregation=in_ring(clients_before=2, colluding=True))
        own = [one_update(seen, "fedsgd", x, number)["linear.bias"] for number in range(3)]
        found = seen.as_gradient()
    torch.testing.assert_close(found["linear.bias"], (own[0] + own[1] + own[2]) / 3)
    torch.testing.assert_close(found["before/linear.bias"], (own[0] + own[1]) / 2)
    torch.testing.assert_close(found["neighbour/linear.bias"], own[1])


@pytest.mark.parametrize(
    ("settings", "told"), [({"clients_before": 1}, True), ({"clients_before": 2}, False), ({"clients_before": 2, "colluding": True}, True)]
)
def test_sums_tell_on_which_side_of_the_attacker_a_picture_is(settings: dict[str, object], told: bool) -> None:
    x, turned = smooth(3), torch.tensor([1, 0, 2])  # the first two change places
    seen = observed(x, aggregation=in_ring(**settings))
    swapped = gradient_distances(seen.gradient(x[turned], LABELS[turned]), seen.as_gradient())["relative_l2"]
    assert (swapped > 0.1) is told


def test_several_guesses_are_replayed_at_once() -> None:
    x = smooth(3)
    seen = observed(x, aggregation=in_ring(clients_before=2, colluding=True))
    several = seen.replay.several(torch.stack([x, x.flip(-1)]), LABELS)
    assert several.keys() == seen.received.update.keys()
    assert relative({name: value[0] for name, value in several.items()}, seen.received.update) < 1e-5


def test_a_naive_attacker_takes_the_sum_of_all_alone() -> None:
    x = smooth(3)
    seen = observed(x, aggregation=in_ring(clients_before=1), assume=Assumptions(adaptive=False))
    assert list(seen.received.update) == list(seen.received.weights)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_later_round_begins_where_the_sum_has_led(protocol: str) -> None:
    x = smooth(3)
    one, other = (
        observed(x, protocol=Part(id=protocol), aggregation=over, rounds=2, attacked_round=2)
        for over in (in_ring(clients_before=1), Part(id="secure_aggregation", fields={"clients": 3}))
    )
    assert all(torch.equal(one.received.weights[name], other.received.weights[name]) for name in one.received.weights)


def test_a_search_that_knows_the_ring_finds_the_first_phones_picture_better() -> None:
    def psnr(over: Part) -> float:
        asked = Experiment(
            pictures=tuple(Picture(id=id) for id in ("face-0", "digit-3", "page-0")),
            size=28,
            channels=1,
            model=Part(id="mlp", fields={"width": 16, "depth": 1, "activation": "sigmoid"}),
            aggregation=over,
            attack=Part(id="inverting_gradients", fields={"steps": 100}),
            assume=Assumptions(labels=True),
        ).resolve(CATALOG)
        *_, last = play(asked, prepared=prepare(asked))
        return float(last.scores["psnr_each"][0])

    assert psnr(in_ring(clients_before=1)) > psnr(Part(id="secure_aggregation", fields={"clients": 3})) + 3


@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg"])
@pytest.mark.parametrize(
    ("fields", "whose"),
    [
        ({"clients_before": 1}, 0),
        ({"clients_before": 2, "colluding": True}, 1),
        ({"clients_before": 3, "colluding": True}, 2),
        ({"clients_before": 2}, None),
    ],
)
def test_one_phones_update_alone_gives_its_picture_away(protocol: str, fields: dict[str, object], whose: int | None) -> None:
    """A layer with all units active for every picture (sigmoid): no row of a sum of several is a copy of one picture."""
    x = smooth(3)
    seen = observed(x, protocol=Part(id=protocol), aggregation=in_ring(**fields), assume=GRANTED)
    (answer,) = moments(Part(id="linear_layer"), seen)
    nearest = (answer.x[:, None] - x).abs().flatten(2).amax(2).amin(0)  # of each private picture, the largest error of a pixel
    assert [error < 1e-3 for error in nearest.tolist()] == [number == whose for number in range(3)]
    assert str(answer.note["event"]).startswith(f"Several rows agree on {0 if whose is None else 1} of the 3 pictures")


def test_a_unit_of_which_two_sums_say_the_same_is_one_row() -> None:
    """Behind two of three phones: where the third is silent (ReLU) the whole sum says of a unit what the smaller one says."""
    x = smooth(3)
    model = Part(id="mlp", fields={"width": 64, "depth": 1, "activation": "relu"})
    seen = observed(x, model=model, aggregation=in_ring(clients_before=2), assume=GRANTED)
    first, _ = Reading.of(seen).pixel_layer()
    on = x.flatten(1) @ seen.received.weights[f"{first.name}.weight"].T + seen.received.weights[f"{first.name}.bias"] > 0  # (3, 64)
    (_, whole), (_, before) = rows_of_sums(seen.as_gradient(), first.name, 0.0)
    assert (len(whole), len(before)) == (int(on[2].sum()), int((on[0] | on[1]).sum()))
    assert 0 < len(whole) < int(on.any(0).sum())


def test_what_is_not_encrypted_of_the_first_layer_gives_every_picture_away() -> None:
    x = smooth(3)
    plain = Part(id="homomorphic_encryption", fields={"clients": 3, "unencrypted": "first"})
    (answer,) = moments(Part(id="linear_layer"), observed(x, aggregation=plain, assume=GRANTED))
    assert float((answer.x - x).abs().max()) < 1e-4
    assert "event" not in answer.note


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"clients_before": 2}, "of 3 phones with 1 picture each; and the sum of 2 phones before the attacker"),
        (
            {"clients_before": 2, "colluding": True},
            "the sum of 2 phones before the attacker and the update of the last phone before it by itself",
        ),
    ],
)
def test_the_threat_model_table_says_which_sums_the_attacker_has(fields: dict[str, object], words: str) -> None:
    asked = Experiment(model=TINY, pictures=Experiment().pictures * 3, aggregation=in_ring(**fields))
    rows = {what: told for _, what, told in assumptions(asked, CATALOG, None, {})}
    assert rows["A sum of several phones"].endswith(words)
    assert "the sum of 2 phones before the attacker" in rows["Naive or adaptive"]
    assert "as a naive attacker would" not in rows["Naive or adaptive"]


@pytest.mark.parametrize(("clients_before", "beside"), [(2, ", and the sum of 2 phones before the attacker"), (3, " only")])
def test_the_picture_of_a_ring_shows_no_server_and_behind_all_one_sum_alone(clients_before: int, beside: str) -> None:
    asked = Experiment(model=TINY, pictures=Experiment().pictures * 3, aggregation=in_ring(clients_before=clients_before))
    sender = ClientBehavior.in_experiment(asked, CATALOG)
    assert sent.describe(sender).endswith(f"; another phone gets the sum of 3 updates{beside}.")
    assert "another phone</text>" in sent.picture(sender)
    assert "the server" not in sent.picture(sender)


@pytest.mark.parametrize(
    ("over", "receiver", "sums", "steps"),
    [
        (None, "the server", "the gradient", "the server steps by 0.1"),
        (Part(id="secure_aggregation", fields={"clients": 3}), "the server", "the sum of 3 phones", "the server steps by 0.1"),
        (in_ring(clients_before=2), "another phone", "sums over 3 phones", "every phone steps by 0.1"),
        (in_ring(clients_before=3), "another phone", "the sum of 3 phones", "every phone steps by 0.1"),
    ],
)
def test_what_is_said_of_a_run_names_who_receives_the_update(over: Part | None, receiver: str, sums: str, steps: str) -> None:
    asked = Experiment(model=TINY, pictures=Experiment().pictures * 3, aggregation=over)
    shown = staged("run", "title", asked, CATALOG)
    assert (shown.receiver, shown.sent, shown.phones) == (receiver, sums, 3 if over else 1)
    assert question([asked, asked], CATALOG) == f"What can {receiver} see of the private picture?"
    assert steps in ClientBehavior.in_experiment(asked, CATALOG).describe(rounds=2)


def test_a_report_of_a_server_and_of_a_ring_asks_what_anybody_can_see() -> None:
    asked = [Experiment(model=TINY, pictures=Experiment().pictures * 3, aggregation=over) for over in (None, in_ring(clients_before=1))]
    assert question(asked, CATALOG) == "What can be seen of the private picture?"


def test_what_is_not_compared_of_the_sum_of_all_is_not_compared_of_the_other_sums_either() -> None:
    """Soteria's last table; and behind PRECODE's gate, before which every sum is compared."""

    def left_out(seen: Observation) -> set[str]:
        return {name for name, weight in seen.knowledge.entry_weights.items() if not weight.any()}

    place, x = in_ring(clients_before=2), smooth(3)
    without = Assumptions(strategy="without that layer")
    seen = observed(x, aggregation=place, defenses=(Part(id="soteria"),), assume=without)
    table = [name for name, weight in seen.received.weights.items() if weight.dim() == 2][-1]
    assert left_out(seen) == {table, f"before/{table}"}

    gated = observed(x, aggregation=place, defenses=(Part(id="precode"),))
    compared = {name for name in gated.as_gradient() if name not in left_out(gated)}
    assert compared == {
        *names_before_gate(gated.received.weights),
        *(f"before/{name}" for name in names_before_gate(gated.received.weights)),
    }
    assert compared
