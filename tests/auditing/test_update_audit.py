"""Recorded updates: matched with their model by names or order, read without the truth, attacked as their card says."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import smooth
from torch import Tensor, nn

import leakage
from leakage.adapters.update_reader import read_update
from leakage.api.arrival import received_update
from leakage.auditing.calibration import measure_planted
from leakage.auditing.card_client import assumptions_of, card_clients
from leakage.auditing.recorded_client import RecordedClient, load_client
from leakage.auditing.update_audit import audit_update
from leakage.auditing.update_finding import UpdateFinding
from leakage.auditing.update_statements import update_statements
from leakage.data.errors import UpdateFileError
from leakage.engine.statistics import batch_statistics
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.update_card import UpdateCard

SHAPE = (1, 8, 8)
LABELS = torch.tensor([2, 0, 1])


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Sigmoid(), nn.Linear(16, 5))


def normalised() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Sigmoid(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 5)
    )


def trained(model: nn.Module, x: Tensor, y: Tensor, *, steps: int, rate: float = 0.1) -> nn.Module:
    """Train a copy, as a script does."""
    copy = deepcopy(model).train()
    optimizer = torch.optim.SGD(copy.parameters(), rate)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(copy(x), y).backward()
        optimizer.step()
    return copy


def state(model: nn.Module, prefix: str = "") -> dict[str, Any]:
    return {prefix + name: value.detach().numpy() for name, value in model.state_dict().items()}


def recorded(folder: Path, before: dict[str, Any], after: dict[str, Any], **card: Any) -> Path:
    np.savez(folder / "before.npz", **before)
    np.savez(folder / "after.npz", **after)
    (folder / "card.json").write_text(UpdateCard.model_validate({"input": SHAPE, **card}).model_dump_json(exclude_defaults=True))
    return folder


def client_in(folder: Path, model: nn.Module) -> RecordedClient:
    return load_client(read_update(folder), model)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model."])
@pytest.mark.parametrize("make", [network, normalised])
def test_names_with_the_prefix_of_a_framework_are_those_of_the_model(make: Callable[[], nn.Module], prefix: str, tmp_path: Path) -> None:
    model, x = make(), smooth(3)
    after = trained(model, x, LABELS, steps=2)
    with torch.no_grad():
        for value in (other := deepcopy(model)).parameters():
            value.add_(1)  # the owner's model has other weights: those of the file count
        for value in other.buffers():
            value.add_(1)
    client = client_in(recorded(tmp_path, state(model, prefix), state(after, prefix)), other)
    assert all(torch.equal(value, dict(model.named_buffers())[name]) for name, value in client.model.named_buffers())
    assert client.counted == (2 if make is normalised else None)
    assert all(torch.equal(value, dict(model.named_parameters())[name]) for name, value in client.model.named_parameters())
    differences = {name: dict(after.named_parameters())[name] - value for name, value in model.named_parameters()}
    assert all(torch.equal(client.sent[name], value) for name, value in differences.items())


@pytest.mark.parametrize("part", ["after", "gradient"])
def test_what_a_client_does_not_train_is_no_part_of_what_it_sends(part: str, tmp_path: Path) -> None:
    model, x = network(), smooth(2)
    model[1].requires_grad_(False)
    after = trained(model, x, LABELS[:2], steps=1)
    recorded(tmp_path, state(model), state(after))
    if part == "gradient":
        (tmp_path / "after.npz").unlink()
        np.savez(tmp_path / "gradient.npz", **{f"3.{name}": value.numpy() for name, value in model[3].state_dict().items()})
    client = client_in(tmp_path, model)
    assert list(client.sent) == ["3.weight", "3.bias"]
    assert not any("are 0" in text for text in update_statements(client))


def test_a_list_without_names_follows_the_state_dictionary(tmp_path: Path) -> None:
    model, x = normalised(), smooth(3)
    after = trained(model, x, LABELS, steps=1)
    lists = [{str(place): value for place, value in enumerate(state(each).values())} for each in (model, after)]
    client = client_in(recorded(tmp_path, *lists), model)
    assert client.counted == 1
    assert torch.equal(client.sent["0.weight"], after[0].weight - model[0].weight)


def test_another_network_is_refused_by_the_first_name_or_shape_that_differs(tmp_path: Path) -> None:
    model = network()
    wide = nn.Sequential(nn.Flatten(), nn.Linear(64, 17), nn.Sigmoid(), nn.Linear(17, 5))
    recorded(tmp_path, state(model), state(model))
    with pytest.raises(UpdateFileError, match=r"before: 1.weight must have the shape of its parameter, \(17, 64\); got \(16, 64\)"):
        client_in(tmp_path, wide)
    with pytest.raises(
        UpdateFileError, match=r"before: is that of another model: this one has the parameter '0.weight', which the update lacks"
    ):
        client_in(tmp_path, normalised())


# ---------------------------------------------------------------- what an update says


def test_the_buffers_give_the_steps_and_the_statistics_of_the_batch(tmp_path: Path) -> None:
    model, x = normalised(), smooth(3)
    after = trained(model, x, LABELS, steps=1)
    client = client_in(recorded(tmp_path, state(model), state(after), pictures=3), model)
    assert client.counted == client.card.steps.value == 1
    assert client.card.batch_norm.value == "batch"
    true = batch_statistics(deepcopy(model).train(), x)
    assert client.statistics is not None
    for name, (mean, variance) in true.items():
        found_mean, found_variance = client.statistics[name]
        torch.testing.assert_close(found_mean, mean, atol=1e-6, rtol=1e-5)  # float32, divided by the momentum 0.1
        torch.testing.assert_close(found_variance, variance, atol=1e-6, rtol=1e-5)
    several = tmp_path / "several"
    several.mkdir()
    later = client_in(recorded(several, state(model), state(trained(model, x, LABELS, steps=4))), model)
    assert (later.counted, later.statistics) == (4, None)
    (several / "card.json").write_text('{"steps": 3}')
    assert "card.json says 3 local steps, and BatchNorm counted 4 mini-batches in training." in words(client_in(several, model))
    (several / "card.json").write_text('{"steps": 2}')
    twice = client_in(several, model)
    assert (twice.card.accumulation.value, twice.card.accumulation.state, twice.disagreement) == (2, "guessed", "")
    (several / "card.json").write_text('{"accumulation": 2, "batch_norm": "eval"}')
    assert (client_in(several, model).card.steps.value, client_in(several, model).card.batch_norm.value) == (2, "eval")


def test_a_buffer_of_another_shape_is_refused(tmp_path: Path) -> None:
    model = normalised()
    after = state(model) | {"1.running_mean": np.zeros(1, "f4")}
    with pytest.raises(UpdateFileError, match=r"after: 1\.running_mean must have the shape of its buffer, \(4,\); got \(1,\)"):
        client_in(recorded(tmp_path, state(model), after), model)


def words(client: RecordedClient) -> str:
    return " ".join(update_statements(client))


def test_what_was_done_to_the_numbers_is_seen(tmp_path: Path) -> None:
    model, x = network(), smooth(3)
    gradient = leakage.observe(model, x, LABELS).received.update

    def said(changed: Callable[[Tensor], Tensor]) -> str:
        np.savez(tmp_path / "gradient.npz", **{name: changed(value).numpy() for name, value in gradient.items()})
        return words(client_in(tmp_path, model))

    assert said(lambda g: g) == "The update is a gradient."
    assert "have nearly the same size, so only their signs" in said(lambda g: g.sign() * 0.001)
    assert "90% of the entries are 0" in said(lambda g: torch.where(g.abs() >= g.abs().flatten().quantile(0.9), g, 0)).replace("89%", "90%")
    assert "have the largest size" in said(lambda g: g.clamp(-0.001, 0.001))
    assert "have 16 bits (float16)" in said(Tensor.half)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 5))
    large = leakage.observe(wide, x, LABELS).received.update
    scale = {name: value.abs().max() / 127 for name, value in large.items()}
    np.savez(tmp_path / "gradient.npz", **{name: (torch.round(value / scale[name]) * scale[name]).numpy() for name, value in large.items()})
    assert "different values: the numbers seem to have been rounded to 8 bits" in words(client_in(tmp_path, wide))


# ---------------------------------------------------------------- the card


PROTOCOLS = {
    "fedavg": {"epochs": 3, "mini_batch": 2, "rate": 0.1, "momentum": 0.5},
    "fedprox": {"epochs": 2, "rate": 0.1, "proximal": 0.7},
    "fedadmm": {"epochs": 2, "rate": 0.05},
    "fedavg_optimizer": {"optimizer": "AdamW", "epochs": 2, "rate": 0.01, "weight_decay": 0.1},
}


@pytest.mark.parametrize("protocol", ["fedsgd", *PROTOCOLS])
def test_an_exported_update_is_observed_as_it_was_sent(protocol: str, tmp_path: Path) -> None:
    model, x, fields = network(), smooth(3), PROTOCOLS.get(protocol, {})
    seen = leakage.observe(model, x, LABELS, protocol=leakage.plugin(protocol, **fields))
    part = "gradient" if protocol == "fedsgd" else "difference"
    np.savez(tmp_path / f"{part}.npz", **{name: value.numpy() for name, value in seen.received.update.items()})
    card = UpdateCard.model_validate({"input": SHAPE, "pictures": 3, "protocol": {"id": protocol, "fields": fields}})
    (tmp_path / "card.json").write_text(card.model_dump_json(exclude_defaults=True))
    client = client_in(tmp_path, model)
    assumed = card_clients(client)[0]
    arguments = leakage.api.arguments.AttackArguments(
        client.model, update=assumed.update, image_shape=SHAPE, batch_size=3, **assumed.arguments
    )
    again = received_update(arguments).observation("eval")
    assert all(torch.equal(again.received.update[name], value) for name, value in seen.received.update.items())
    assert gradient_distances(again.replay.single(x, LABELS), seen.received.update)["relative_l2"] < 1e-6
    assert gradient_distances(again.as_gradient(), seen.as_gradient())["relative_l2"] < 1e-6


@pytest.mark.parametrize(
    ("card", "protocol", "fields"),
    [
        ({"rate": 0.1, "epochs": 2}, "fedavg", {"epochs": 2, "rate": 0.1, "mini_batch": 0}),
        ({"rate": 0.1, "steps": 6, "mini_batch": 2, "pictures": 3}, "fedavg", {"epochs": 3, "mini_batch": 2}),
        ({"rate": 0.1, "steps": 3, "optimizer": "Adam"}, "fedavg_optimizer", {"optimizer": "Adam", "epochs": 3, "momentum": 0.0}),
        ({"rate": 0.1, "epochs": 2, "steps": 4, "pictures": 3}, "fedavg", {"epochs": 2, "mini_batch": 2}),
        ({"rate": 0.1, "steps": 2, "optimizer": "SGD with Nesterov momentum"}, "fedavg_optimizer", {"momentum": 0.9}),
        ({"rate": 0.1, "steps": 3, "weight_decay": 0.01, "momentum": 0.9}, "fedavg_optimizer", {"weight_decay": 0.01, "momentum": 0.9}),
    ],
)
def test_the_card_says_how_an_attacker_imitates_the_client(
    card: dict[str, Any], protocol: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    model = network()
    client = client_in(recorded(tmp_path, state(model), state(trained(model, smooth(3), LABELS, steps=1)), **card), model)
    adaptive, naive = card_clients(client)
    assert (adaptive.title, naive.title) == ("adaptive", "naive")
    assert adaptive.arguments["protocol"].id == protocol
    assert {name: getattr(adaptive.arguments["protocol"], name) for name in fields} == fields
    assert naive.arguments["adaptive"] is False


def test_without_the_rate_local_steps_are_not_imitated_and_the_rest_is_tried(tmp_path: Path) -> None:
    model, x = network(), smooth(1)
    after = trained(model, x, LABELS[:1], steps=2)
    folder = recorded(tmp_path, state(model), state(after), steps={"guess": 2})
    client = client_in(folder, model)
    assert [assumed.title for assumed in card_clients(client)] == ["naive"]
    said = " ".join(assumptions_of(client))
    assert "The local learning rate is unknown, so attackers cannot imitate the local steps." in said
    assert "The number of pictures is unknown: 1 is assumed." in said
    assert "Guessed: steps 2." in said
    assert "in each mini-batch" not in said
    named = ["linear_layer", leakage.plugin("sme", steps=10), leakage.plugin("inverting_gradients", steps=10)]
    found = audit_update(model, folder, minutes=3, attacks=named)
    states = {finding.attack: finding.state for finding in found.findings}
    assert states == {"linear_layer": "answered", "sme": "answered", "inverting_gradients": "answered"}
    exact = next(finding for finding in found.findings if finding.attack == "linear_layer")
    assert exact.distance is not None
    assert exact.distance < 0.05  # of the direction: how long the steps were does not matter
    assert found.assumptions == tuple(assumptions_of(client))


def test_training_that_cannot_be_imitated_leaves_the_naive_attacker(tmp_path: Path) -> None:
    model = network()
    folder = recorded(tmp_path, state(model), state(trained(model, smooth(1), LABELS[:1], steps=1)), rate=50.0, steps=1)
    client = client_in(folder, model)
    assert [assumed.title for assumed in card_clients(client)] == ["naive"]
    assert "The local training on the card cannot be imitated: FedAvg.rate" in " ".join(assumptions_of(client))


def test_more_pictures_than_attacks_take_leave_what_the_update_says(tmp_path: Path) -> None:
    model = network()
    folder = recorded(tmp_path, state(model), state(trained(model, smooth(3), LABELS, steps=1)), pictures=5000, rate=0.1, steps=1)
    found = audit_update(model, folder)
    assert found.findings == ()
    assert "The client has 5000 pictures. Attacks here take at most 128 together" in found.statements[-1]


def test_a_search_ends_soon_after_it_is_stopped(tmp_path: Path) -> None:
    model = network()
    folder = recorded(tmp_path, state(model), state(trained(model, smooth(1), LABELS[:1], steps=1)), rate=0.1, steps=1, pictures=1)
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 30

    attack = leakage.plugin("inverting_gradients", steps=20000)
    found = audit_update(model, folder, minutes=10, attacks=[attack], should_stop=stop)
    assert found.findings[0].state == "answered"
    assert 0 < found.findings[0].steps < 100
    assert found.findings[0].agreement is None


def test_a_card_with_other_labels_than_pictures_is_refused(tmp_path: Path) -> None:
    model = network()
    folder = recorded(tmp_path, state(model), state(model), pictures=1, labels=[3, 4])
    with pytest.raises(UpdateFileError, match=r"card\.json has 2 labels, and 1 picture\. Give one label for each picture"):
        audit_update(model, folder)


def test_a_card_without_the_shape_says_what_is_missing(tmp_path: Path) -> None:
    model = network()
    recorded(tmp_path, state(model), state(model))
    (tmp_path / "card.json").unlink()
    with pytest.raises(UpdateFileError, match=r"card.json does not say the shape of a picture. Add input"):
        audit_update(model, tmp_path)


# ---------------------------------------------------------------- findings


def test_a_closed_form_finds_the_picture_and_public_pictures_say_so_beforehand(tmp_path: Path) -> None:
    """The first layer has a bias and one picture enters: its gradient divided by the bias's is the picture."""
    model, x = network(), smooth(1)
    folder = recorded(tmp_path, state(model), state(trained(model, x, LABELS[:1], steps=1)), rate=0.1, steps=1, pictures=1)
    told, findings = list[str](), list[UpdateFinding]()
    audit = audit_update(
        model, folder, minutes=3, pictures=x, attacks=["linear_layer"], on_statement=told.append, on_finding=findings.append
    )
    best = audit.findings[0]
    assert (best.attack, best.state, best.labels) == ("linear_layer", "answered", (2,))
    assert best.psnr is not None
    assert best.psnr > 40  # float32 differences: rounded at the size of the weights
    assert best.planted
    assert min(best.planted) > 40
    assert best.distance is not None
    assert best.distance < 0.05 < (best.random_distance or 0)
    assert told == [*audit.statements, *audit.assumptions]
    assert findings[0].planted == ()  # told before it was judged
    assert "public pictures: median" in str(audit)


def test_a_mini_batch_that_follows_from_the_card_is_said_to_be_assumed(tmp_path: Path) -> None:
    model = network()
    folder = recorded(tmp_path, state(model), state(model), rate=0.1, epochs=2, steps=4, pictures=3)
    said = " ".join(assumptions_of(client_in(folder, model)))
    assert "Assumed too: 2 pictures in each mini-batch." in said
    assert "in the same, known order" in said


def test_what_speaks_against_the_card_is_said() -> None:
    against = UpdateFinding("A", "naive", "answered", distance=0.9, random_distance=1.0, warnings=("Turn its sign.",))
    assert str(against) == "A, naive: leaves 0.9 of the update unexplained (random pictures: 1). Turn its sign."


class Angles(nn.Module):
    """A head whose labels cannot be read: only the direction of its input counts."""

    def __init__(self) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(torch.randn(5, 5))

    def forward(self, x: Tensor) -> Tensor:
        return 9 * nn.functional.normalize(x, dim=1) @ nn.functional.normalize(self.prototypes, dim=1).T


@pytest.mark.parametrize("labelled", [False, True], ids=["labels read", "labels of the card"])
def test_planted_pictures_score_as_in_an_attack_on_them(labelled: bool, tmp_path: Path) -> None:
    from leakage.auditing.protection_effects import planted

    model = nn.Sequential(network(), Angles()) if labelled else network()
    folder = recorded(tmp_path, state(model), state(trained(model, smooth(1), LABELS[:1], steps=1)), rate=0.1, steps=1, pictures=1)
    client = client_in(folder, model)
    assumed = card_clients(client)[0]
    attack = leakage.plugin("inverting_gradients", steps=40)
    arguments = leakage.api.arguments.AttackArguments(
        client.model, update=assumed.update, image_shape=SHAPE, batch_size=1, attack=attack, seed=4, **assumed.arguments
    )
    arguments = replace(arguments, y=LABELS[:1]) if labelled else arguments
    threat = arguments.threat
    assert threat.labels == labelled
    found = measure_planted(arguments, attack, [2], 2, stop=lambda: False)
    pictures, others = planted(2, SHAPE), {name: value for name, value in assumed.arguments.items() if name != "adaptive"}
    alone = [
        leakage.attack(client.model, picture[None], torch.tensor([2]), attack=attack, seed=4, threat_model=threat, **others).scores["psnr"]
        for picture in pictures
    ]
    assert list(found.psnr) == pytest.approx(alone, abs=1e-3)
    assert found.grey == pytest.approx(float(np.mean([-10 * np.log10(float((p - 0.5).square().mean())) for p in pictures])), abs=1e-3)
