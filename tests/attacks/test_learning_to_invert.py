"""Learning to Invert: the network reads updates, shipped networks fit their cards, and every fault has a message."""

import json
import math
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from small_problems import CATALOG, moments, observed, smooth
from torch import Tensor

from leakage.data.errors import CheckpointError
from leakage.data.inverters import SHIPPED_INVERTERS, WEIGHTS, InverterCard, fitting, inverters, read_inverter
from leakage.engine.inverter import Epoch, Inverter, Recipe, Shape, closest_order, learn, least_error, weights_hash
from leakage.engine.observation import Observation
from leakage.settings import settings
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.tasks import InverterTraining
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import federation, observe
from leakage.workers.learned_adapter import load_inverter, with_learned

ADA = (Part(id="ada_defense"),)
ATTACK = Part(id="learning_to_invert")
DIGITS = Experiment(size=28, channels=1, attack=ATTACK)  # the LeNet of seed 1, as the shipped ones were trained for
MEGABYTES = 6  # all shipped ones together
TINY_SHAPE = Shape(entries=12, features=16, hidden=32, pictures=(2, 1, 2, 2), seed=1)


def decibels(error: float) -> float:
    return -10 * math.log10(error)


@cache
def shipped(defense: str = "") -> InverterCard:
    return read_inverter(SHIPPED_INVERTERS / f"lenet-mnist-{defense or 'plain'}" / "card.json")


def seen_by(experiment: Experiment, x: Tensor, label: int = 3) -> Observation:
    return with_learned(observe(experiment.resolve(CATALOG), x, torch.tensor([label])), federation(experiment))


# ---------------------------------------------------------------- batches: which picture is which nobody can say


def test_the_least_error_is_that_of_the_best_order_and_does_not_depend_on_the_order_given() -> None:
    rng = torch.Generator().manual_seed(0)
    truth = torch.rand(5, 3, 1, 2, 2, generator=rng)
    found = truth[:, [2, 0, 1]] + 0.01
    assert closest_order(found, truth).tolist() == [[2, 0, 1]] * 5
    assert float(least_error(found, truth).mean()) == pytest.approx(1e-4, rel=1e-3)
    guess = torch.rand(5, 3, 1, 2, 2, generator=rng)
    for order in ([1, 0, 2], [2, 1, 0]):
        torch.testing.assert_close(least_error(guess, truth[:, order]).sum(1), least_error(guess, truth).sum(1))
    brute = min(
        float((guess[0] - truth[0, list(order)]).square().mean())
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
    )
    assert float(least_error(guess, truth)[0].mean()) == pytest.approx(brute)


# ---------------------------------------------------------------- learning


def learned(seed: int = 1) -> tuple[list[Epoch], Inverter]:
    """A small network that learns pictures of 4 pixels, two at a time, from features that hold them."""
    rng = torch.Generator().manual_seed(0)
    pictures = torch.rand(400, 2, 1, 2, 2, generator=rng)
    features = torch.cat([pictures.flatten(1), torch.zeros(400, 8)], 1)
    shape = replace(TINY_SHAPE, seed=seed)
    *epochs, state = learn(shape, features, pictures, Recipe(epochs=20, rate=0.01, batch=50))
    return epochs, Inverter(shape, state, "tiny")


@pytest.mark.long
def test_it_learns_and_is_repeated_by_its_seed() -> None:
    (epochs, one), (_, again), (_, other) = learned(), learned(), learned(2)
    assert epochs[-1].loss < 0.2 * epochs[0].loss
    first, second, third = (net.network.state_dict()["0.weight"] for net in (one, again, other))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_a_tensor_counts_by_its_direction_however_large_its_entries_are() -> None:
    update = {"w": torch.arange(1.0, 9.0), "b": torch.tensor([3.0, -1.0, 2.0, 5.0])}
    found = TINY_SHAPE.project(update)
    torch.testing.assert_close(TINY_SHAPE.project({"w": 1e4 * update["w"], "b": 1e-4 * update["b"]}), found)
    assert not torch.allclose(TINY_SHAPE.project({**update, "b": -update["b"]}), found)


# ---------------------------------------------------------------- what is shipped, without the data sets


@pytest.mark.parametrize("defense", ["", "ada_defense"])
def test_a_shipped_one_is_of_the_lab_s_own_network_and_better_than_the_mean_picture_by_3_db(defense: str) -> None:
    card = shipped(defense)
    seen = observe(DIGITS.resolve(CATALOG), torch.rand(1, 1, 28, 28), torch.tensor([3]))
    assert card.victim == weights_hash(seen.received.weights)
    assert [part["id"] for part in card.defenses] == ([defense] if defense else [])
    assert decibels(card.mse) > decibels(card.mse_mean) + 3
    assert card.seconds < 360
    assert InverterTraining.model_validate(card.training).resolve(CATALOG).model_dump(mode="json") == card.training


def test_the_shipped_ones_are_small() -> None:
    files = list(SHIPPED_INVERTERS.rglob("*.*"))
    assert {file.name for file in files} == {"card.json", WEIGHTS}
    assert sum(file.stat().st_size for file in files) < MEGABYTES * 2**20


def test_who_knows_the_protection_asks_the_network_trained_behind_it_and_a_naive_one_the_other() -> None:
    x = torch.rand(1, 1, 28, 28)
    answers = {}
    for adaptive, defense in ((True, "ada_defense"), (False, "")):
        seen = seen_by(DIGITS.model_copy(update={"defenses": ADA, "assume": Assumptions(adaptive=adaptive)}), x)
        answers[adaptive] = moments(ATTACK, seen)[-1].x
        torch.testing.assert_close(answers[adaptive], load_inverter(shipped(defense))(seen.received.history[0].update))
    assert not torch.allclose(answers[True], answers[False], atol=0.05)


def test_the_threat_model_table_is_told_what_the_network_was_trained_on_and_behind_what() -> None:
    behind = {}
    for adaptive in (False, True):
        experiment = DIGITS.model_copy(update={"defenses": ADA, "assume": Assumptions(adaptive=adaptive)})
        note = moments(ATTACK, seen_by(experiment, torch.rand(1, 1, 28, 28)))[-1].note
        rows = {what: (tag, words) for tag, what, words in assumptions(experiment.resolve(CATALOG), CATALOG, None, note)}
        behind[adaptive] = rows["What such pictures look like"]
    told = "what this model sends of pictures, behind {}: 20,000 training pictures of MNIST taught a network to undo it"
    assert behind == {False: ("assumed", told.format("no protection")), True: ("assumed", told.format("AdaDefense"))}


# ---------------------------------------------------------------- where there is none


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "other weights do not work"),
        ({"size": 32}, "other weights do not work"),
        ({"defenses": (Part(id="pruning"),)}, "behind Pruning"),
        ({"protocol": Part(id="fedavg")}, "needs a single gradient"),
        ({"rounds": 2}, "needs a single gradient"),
    ],
)
def test_without_a_fitting_network_a_sentence_says_why_and_what_to_do(change: dict[str, object], words: str) -> None:
    experiment = DIGITS.model_copy(update=change)
    seen = seen_by(experiment, torch.rand(1, 1, experiment.size, experiment.size))
    (answer,) = moments(ATTACK, seen)
    assert words in answer.note["event"]
    assert "train-attacker" in answer.note["event"] or "Choose FedSGD" in answer.note["event"]
    assert torch.equal(answer.x, torch.full_like(answer.x, 0.5))


def test_outside_the_lab_there_is_no_trained_attacker_and_that_is_said() -> None:
    (answer,) = moments(ATTACK, observed(smooth()))
    assert "No attacker was trained beforehand" in answer.note["event"]


# ---------------------------------------------------------------- damaged files


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a shipped one among those of this machine."""
    monkeypatch.setenv("LEAKAGE_HOME", str(tmp_path))
    folder = settings().home / "inverters" / "mine"
    shutil.copytree(SHIPPED_INVERTERS / "lenet-mnist-plain", folder)
    return folder


def test_one_of_this_machine_is_listed_beside_ours(own: Path) -> None:
    assert {"mine", "lenet-mnist-plain", "lenet-mnist-ada_defense"} == set(inverters())
    (own / "card.json").write_text("{}")
    assert "mine" not in inverters()
    with pytest.raises(CheckpointError, match=r"is no card of a trained attacker .* train it again"):
        read_inverter(own / "card.json")


def test_a_damaged_file_of_weights_is_refused(own: Path) -> None:
    data = bytearray((own / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (own / WEIGHTS).write_bytes(data)
    with pytest.raises(CheckpointError, match=r"is damaged or was exchanged: its sha256 begins with .* train that attacker again"):
        load_inverter(read_inverter(own / "card.json"))
    (own / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_inverter(read_inverter(own / "card.json"))


def test_a_file_of_another_size_is_refused(own: Path) -> None:
    card = json.loads((own / "card.json").read_text())
    (own / "card.json").write_text(json.dumps({**card, "hidden": 500}))
    with pytest.raises(CheckpointError, match=r"This file is of another network: it has \(600, 1024\) .* expected was \(500, 1024\)"):
        load_inverter(read_inverter(own / "card.json"))


def test_an_update_of_another_size_is_refused() -> None:
    with pytest.raises(CheckpointError, match="it has 12 entries, expected was 3"):
        TINY_SHAPE.project({"w": torch.ones(3)})


def test_one_is_found_by_weights_protections_and_number_of_pictures_alone() -> None:
    plain, ada = shipped(), shipped("ada_defense")
    cards = [plain, ada]
    assert fitting(cards, plain.victim, (), 1) is plain
    assert fitting(cards, plain.victim, ada.defenses, 1) is ada
    assert fitting(cards, plain.victim, (), 2) is None
    assert fitting(cards, "0" * 64, (), 1) is None
