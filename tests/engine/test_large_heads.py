"""Last layers with thousands of classes: labels, searches, the bias attack and a whole run, in bounded memory."""

import math

import pytest
import torch
from small_problems import CATALOG, GRANTED, smooth

from leakage.attacks._dense import SCALES, TOGETHER, roots
from leakage.attacks.linear_layer import LinearLayer
from leakage.engine.core import Observation, generator
from leakage.engine.labels import RULES, recover
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import observe, play, prepare
from leakage.workers.attack_job import name_class

MANY = 10_000


def seen_by(x: torch.Tensor, y: torch.Tensor, model: str = "lenet", **fields: object) -> Observation:
    return observe(Experiment(model=Part(id=model, fields=fields), outputs=MANY), x, y)


@pytest.mark.parametrize("bias", [True, False])
def test_the_label_of_one_picture_is_read_among_ten_thousand(bias: bool) -> None:
    seen = seen_by(smooth(channels=3, side=12), torch.tensor([8765]), bias=bias)
    assert seen.batch.num_classes == MANY
    found = recover(seen)
    assert found.labels.tolist() == [8765]
    assert found.certainty == 1


@pytest.mark.parametrize("rule", RULES)
def test_labels_of_a_batch_are_read_among_ten_thousand(rule: str) -> None:
    y = torch.tensor([17, 4321, 9999])
    assert recover(seen_by(smooth(3, channels=3, side=12), y), rule).labels.tolist() == y.tolist()


def test_the_bias_attack_without_biases_works_from_the_loss_of_ten_thousand_classes() -> None:
    x = smooth(channels=3, side=8).double()
    seen = observe(Experiment(model=Part(id="fcn3"), outputs=MANY, precision="float64"), x, torch.tensor([4321]))
    *_, last = LinearLayer().run(seen, generator(1))
    assert float((last.x - x).square().mean()) < 1e-8


def test_crossings_are_looked_for_a_few_scales_at_a_time() -> None:
    sizes = list[int]()

    def wave(t: torch.Tensor) -> torch.Tensor:
        sizes.append(len(t))
        return (t.log() * 3 + 0.5).sin()

    found = roots(wave, SCALES)
    assert max(sizes) <= TOGETHER
    assert len(found) == 35  # log t runs from -18.42 to 18.42: 3 log t + 0.5 passes -17 pi to 17 pi
    assert [round(float(one.log() * 3 + 0.5) / math.pi, 9) for one in found] == list(range(-17, 18))


def test_a_run_with_lfws_head_is_played_and_scored() -> None:
    asked = Experiment(
        pictures=(Picture(id="face-0", label=5748), Picture(id="astronaut", label=12)),
        outputs=5749,
        attack=Part(id="inverting_gradients", fields={"steps": 2}),
        assume=GRANTED,
    ).resolve(CATALOG)
    prepared = prepare(asked)
    *_, last = play(asked, prepared=prepared)
    assert prepared.y.tolist() == [5748, 12]
    assert prepared.seen.received.update["linear.weight"].shape == (5749, 768)
    assert last.scores["label_accuracy"] == 1
    assert last.scores["rank"] is not None


def test_a_class_without_a_name_has_its_number() -> None:
    assert name_class("gallery", 6) == "face"
    assert name_class("upload", 5748) == "class 5748"
