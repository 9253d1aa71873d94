"""Learning to Invert on new digits: it reads updates, and reaches the numbers of its card."""

import math
from functools import cache
from pathlib import Path

import pytest
import torch
from small_problems import CATALOG, moments
from torch import Tensor

from leakage.data.inverters import SHIPPED_INVERTERS, InverterCard, read_inverter
from leakage.engine.inverter import weights_hash
from leakage.engine.stopping import StoppedError
from leakage.settings import settings
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.tasks import InverterTraining
from leakage.workers.adapter import prepare
from leakage.workers.inverter_adapter import TESTED, errors_of, pictures_of, train_inverter, updates
from leakage.workers.learned_adapter import load_inverter

COUNT = 100  # held-out pictures


@cache
def card(defense: str) -> InverterCard:
    return read_inverter(SHIPPED_INVERTERS / f"lenet-mnist-{defense or 'plain'}" / "card.json")


@cache
def digits(defense: str) -> tuple[InverterTraining, Tensor, Tensor, Tensor]:
    """The task of a card, held-out pictures with labels, and the mean of those that it learned from."""
    task = InverterTraining.model_validate(card(defense).training)
    (train, _), (x, y) = pictures_of(task)
    return task, x[:COUNT], y[:COUNT], train.mean(0)


def gain(defense: str, sent: list[dict[str, Tensor]], baseline: Tensor) -> float:
    """By how many decibels the answers to what was sent are better than the baseline's pictures."""
    _, x, _, _ = digits(defense)
    inverter = load_inverter(card(defense))
    answers = torch.cat([inverter(update) for update in sent])
    return 10 * math.log10(float((baseline - x).square().mean()) / float((answers - x).square().mean()))


def sent(defense: str, **changed: object) -> list[dict[str, Tensor]]:
    task, x, y, _ = digits(defense)
    return list(updates(task.model_copy(update=changed), (x, y), first_seed=TESTED + 7, should_stop=lambda: False))


@pytest.mark.parametrize("defense", ["", "ada_defense"])
def test_on_pictures_it_never_saw_it_beats_the_mean_picture_by_3_db(defense: str) -> None:
    assert gain(defense, sent(defense), digits(defense)[-1]) > 3


@pytest.mark.parametrize("defense", ["", "ada_defense"])
def test_updates_of_other_weights_tell_it_no_more_than_the_mean_picture_knows(defense: str) -> None:
    assert gain(defense, sent(defense, seed=2), digits(defense)[-1]) < 0.5


@pytest.mark.parametrize("defense", ["", "ada_defense"])
def test_updates_whose_entries_are_shuffled_are_worth_less_than_the_mean_of_the_class(defense: str) -> None:
    _, x, y, _ = digits(defense)
    means = torch.stack([x[y == label].mean(0) for label in range(10)])[y]
    rng = torch.Generator().manual_seed(0)
    shuffled = [
        {name: g.flatten()[torch.randperm(g.numel(), generator=rng)].view_as(g) for name, g in one.items()} for one in sent(defense)
    ]
    assert gain(defense, shuffled, means) < 0
    others = sent(defense)[1:] + sent(defense)[:1]  # each digit's place is taken by the next one's update
    assert gain(defense, others, means) < 0


@pytest.mark.parametrize("defense", ["", "ada_defense"])
def test_the_number_on_the_card_comes_out_again(defense: str) -> None:
    task = InverterTraining.model_validate(card(defense).training)
    today = float(errors_of(task, load_inverter(card(defense)), pictures_of(task)[1]).mean())
    assert today == pytest.approx(card(defense).mse, abs=1e-4)  # another processor may round differently


@pytest.mark.parametrize("batch", [1, 2])
def test_one_that_is_trained_here_is_found_by_the_attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(tmp_path))
    fields = {"model": {"id": "mlp", "fields": {"width": 16}}, "defenses": [{"id": "gaussian_noise"}], "batch": batch}
    small = {"pictures": 400, "epochs": 3, "features": 64, "hidden": 32}
    task = InverterTraining.model_validate({**fields, **small}).resolve(CATALOG)
    done = [epoch.done for epoch in train_inverter(task, settings().home / "inverters" / task.name)]
    assert done == [0, 1, 2, 3]
    made = read_inverter(settings().home / "inverters" / task.name / "card.json")
    assert 0 < made.mse < 0.5
    pictures = tuple(Picture(source="mnist", id=str(place)) for place in range(batch))
    base = {"size": 28, "channels": 1, "model": task.model, "defenses": task.defenses, "attack": Part(id="learning_to_invert")}
    scene = prepare(Experiment(pictures=pictures, **base).resolve(CATALOG))
    assert weights_hash(scene.seen.received.weights) == made.victim
    (answer,) = moments(Part(id="learning_to_invert"), scene.seen)
    assert "event" not in answer.note
    naive = Experiment(pictures=pictures, **base, assume=Assumptions(adaptive=False)).resolve(CATALOG)
    (answer,) = moments(Part(id="learning_to_invert"), prepare(naive).seen)
    assert "behind no protection" in answer.note["event"]


def test_a_training_that_is_stopped_leaves_nothing_and_one_whose_phones_differ_is_refused(tmp_path: Path) -> None:
    task = InverterTraining(pictures=100).resolve(CATALOG)
    with pytest.raises(StoppedError):
        list(train_inverter(task, tmp_path / "stopped", should_stop=lambda: True))
    assert not (tmp_path / "stopped").exists()
    secret = InverterTraining(pictures=100, defenses=(Part(id="precode"),)).resolve(CATALOG)
    with pytest.raises(ValueError, match="puts something of its own into the model"):
        next(train_inverter(secret, tmp_path / "precode"))
