"""Every server that cheats: it changes what it claims to change, and the attacker replays what the clients send all the same."""

from dataclasses import replace

import pytest
import torch
from small_problems import CATALOG, IDS, cheated, observed, precision, relative, smooth

from leakage.engine.core import Params, generator
from leakage.engine.observe import ready
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.catalog import Entries
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.workers.adapter import federation, network, observe, plugin

CHEATING = pytest.mark.parametrize("cheating", IDS["server"])
LABELS = torch.arange(8)
ONE, FOUR = {}, {"aggregation": Part(id="secure_aggregation", fields={"clients": 4})}  # inconsistent needs a sum: its one is three
THREE = tuple(Picture(id=name) for name in ("chelsea", "coffee", "rocket"))
BOTH = pytest.mark.parametrize("sent", [ONE, FOUR], ids=["one-phone", "a-sum-of-four"])


def shapes(weights: Params) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}


@BOTH
@CHEATING
def test_a_server_changes_what_it_claims_to_change(cheating: str, sent: dict[str, Part]) -> None:
    x, settings = smooth(8), cheated(cheating) | sent
    experiment = Experiment(**settings)
    seen, honest = observe(experiment, x, LABELS), observe(Experiment(**settings | {"server": None}), x, LABELS)
    same = shapes(seen.received.weights) == shapes(honest.received.history[0].weights)
    assert same == (CATALOG.servers.get(cheating).changes == "parameters")
    if same:  # then at least one client gets other numbers
        agreed = honest.received.history[0].weights
        received = federation(experiment).received_weights(seen.model, seen.received.weights)
        assert any(not torch.equal(weights[name], weight) for weights in received for name, weight in agreed.items())


@BOTH
@CHEATING
def test_a_server_hands_out_the_same_twice_and_alters_nothing_in_place(cheating: str, sent: dict[str, Part]) -> None:
    x, experiment = smooth(8), Experiment(**cheated(cheating) | sent)
    setting, server = federation(experiment), plugin("server", experiment.server)
    members, model = setting.aggregation.members, ready(network(experiment, tuple(x.shape[1:])), setting, x)
    weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    before, history = {name: weight.clone() for name, weight in weights.items()}, observe(experiment, x, LABELS).received.history

    def handed() -> list[Params]:
        common = [server.hand_out(model, weights, tuple(history[:n]), generator(1, "server")) for n in range(experiment.rounds)]
        return [*common, *(server.single_out(model, common[-1], member, members) for member in range(members))]

    for first, second in zip(handed(), handed(), strict=True):
        assert shapes(first) == shapes(before)
        assert all(torch.equal(first[name], second[name]) for name in before)
    assert all(torch.equal(weights[name], weight) for name, weight in before.items())
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert server.secret(model, members) == server.secret(model, members)


@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg"])
@BOTH
@CHEATING
def test_replaying_the_truth_gives_the_update(cheating: str, sent: dict[str, Part], protocol: str) -> None:
    with precision(torch.float64):
        seen = observe(Experiment(**{"protocol": Part(id=protocol)} | cheated(cheating) | sent), x := smooth(8), LABELS)
    assert relative(seen.replay.single(x, LABELS), seen.update) < 1e-12


@CHEATING
def test_a_search_gets_an_observation_of_at_most_as_many_pictures(cheating: str) -> None:
    seen = observe(Experiment(**cheated(cheating)), smooth(8), LABELS)
    setting = federation(Experiment(**cheated(cheating)))
    left = setting.server.isolate(seen, setting.aggregation.members)
    assert 1 <= left.batch.size <= seen.batch.size
    assert left.batch.image_shape == seen.batch.image_shape
    assert set(left.gradient(smooth(left.batch.size, seed=2), LABELS[: left.batch.size])) == set(left.as_gradient())


@CHEATING
def test_what_a_server_declares_is_there(cheating: str) -> None:
    entry = CATALOG.servers.get(cheating)
    assert [name for name in entry.reading if CATALOG.attacks.find(name) is None] == []
    fields = entry.resolve({})
    assert set(entry.widths) <= set(fields)
    if entry.granted:
        heading, text = entry.granted
        assert heading
        assert "{" not in text.format(**fields)


@CHEATING
def test_an_experiment_with_a_server_survives_json(cheating: str) -> None:
    asked = Experiment(pictures=THREE, **cheated(cheating))
    resolved = asked.resolve(CATALOG)
    for one in (asked, resolved):
        again = Experiment.model_validate_json(one.model_dump_json())
        assert (again, again.resolve(CATALOG).digest()) == (one, resolved.digest())


@CHEATING
def test_a_server_that_needs_more_rounds_is_refused_before_the_run(cheating: str) -> None:
    patient = CATALOG.servers.get(cheating).model_copy(update={"rounds": 3})
    known = replace(CATALOG, servers=Entries("server", (patient,)))
    asked = Experiment(pictures=THREE, **cheated(cheating) | {"rounds": 2, "attacked_round": 1})
    with pytest.raises(SpecError, match=rf"^rounds: {patient.short} needs at least 3 watched rounds, given was 2\. Raise the number"):
        asked.resolve(known)
    assert asked.model_copy(update={"rounds": 3}).resolve(known).server.id == cheating


def test_an_update_of_another_weight_is_no_replay() -> None:
    """The contract above can fail: one weight of the attacked round is another."""
    x = smooth(8)
    with precision(torch.float64):
        seen = observed(x[:3].double(), **cheated("imprint"))
    seen.received.weights["imprint.mix.weight"].data[0, 0] += 0.1
    assert gradient_distances(seen.replay.single(x[:3].double(), torch.tensor([7, 2, 4])), seen.update)["relative_l2"] > 1e-6


def test_too_many_checks_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 8"):
        Experiment(pictures=(Picture(id="cat"),), checks=(Part(id="new_layers"),) * 9)
