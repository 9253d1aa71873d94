"""CI-Net: the attack searches for the weights of an untrained generator that has more weights than the attacked model."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leakage.attacks._adam import SCHEDULES, Descent, Note, replays
from leakage.attacks._flat_weights import flat_weights, generate_with
from leakage.attacks._generative import with_event
from leakage.attacks._labels import labels_of
from leakage.attacks._objective import Unknowns
from leakage.attacks._upsampling_generator import GeneratorSize, UpsamplingGenerator
from leakage.engine.core import Attack, Observation, Snapshot, choice, flag, param
from leakage.engine.discrepancy import goal_of
from leakage.engine.labels import rule_field
from leakage.engine.weights import drawing

FEWER = "The generator has {:,} weights and the model {:,}. The paper wants more of them than the model has: {}."
TOO_LARGE = "that would take more than a gigabyte"
NOT_ASKED = "switch on the doubling of its channels"


@dataclass(frozen=True, kw_only=True)
class CINet(Attack):
    """min over the weights w of a generator G of D(g(G_w(v), y), g*) + tv_weight * TV(G_w(v)), by Adam on the signs of the gradients.

    g(x, y) is the gradient of pictures x with labels y, g* the received gradient, D their cosine distance, TV the total variation.
    v ~ N(0, 1) (B, inputs) stays as it was drawn, one row for each picture, and nothing is trained beforehand.
    With fewer weights than the model the generator may be unable to produce any picture with that gradient; so its channels are doubled
    until it has more. Its only prior knowledge is that convolutions produce smooth pictures more easily than noise. TV is mean |dx| +
    mean |dy|. BatchNorm follows every convolution, so dividing a weight by its spectral norm changes no picture.
    Unlike the paper's code: steps of 0.003 with a cosine schedule; the code's constant steps of 0.001 score 2.5 dB less on LeNet (1,000
    steps). The labels are read from the update, unless they are granted. The channels are doubled as in the paper's text, not until there
    are four weights for each pixel. Pixels come from sigmoid, not tanh.
    Source: Zhang et al. 2023, section 4.3, and their code.
    """

    title = "Guess and compare by an oversized untrained generator (CI-Net)"
    short = "CI-Net"
    plain = "Lets a network that has never seen a picture, and is larger than the model, generate pictures until one gives the gradient."
    hint = "Sharp after 300 steps. Behind noise take fewer, or prefer smooth pictures (weight 0.1). A large model makes it slow."
    source = (
        "https://openaccess.thecvf.com/content/ICCV2023/html/"
        "Zhang_Generative_Gradient_Inversion_via_Over-Parameterized_Networks_in_Federated_Learning_ICCV_2023_paper.html"
    )
    way = "Let a large network generate a picture, compare, improve the network."
    reads_labels = True
    evaluations_per_step = 4
    loss_name = "gradient distance"
    presets = {
        "paper's code, CIFAR-10 (Zhang et al. 2023)": {"steps": 2000, "step_size": 0.001, "schedule": "constant"},
        "paper's code, ImageNet (30,000 steps)": {"steps": 30000, "step_size": 0.001, "schedule": "constant"},
        "too small a generator (figure 2 of the paper)": {"width": 4, "grow": False},
        "behind noise": {"steps": 1000, "tv_weight": 0.1},
        "quick look": {"steps": 300},
    }

    steps: int = param(2000, 1, 50000, "Optimiser steps.")
    step_size: float = param(0.003, 0.000001, 0.1, "How far one step moves each of the generator's weights at first.")
    tv_weight: float = param(0.0, 0, 10, "How strongly smooth pictures are preferred (weight of the total variation).")
    width: int = param(32, 4, 512, "Channels of the generator's layers, at least.")
    grow: bool = flag(True, "Double the channels until the generator has more weights than the model, within a gigabyte.")
    inputs: int = param(128, 1, 1024, "How many random numbers the generator is given for each picture.")
    signed: bool = flag(True, "Use only the sign of each weight's gradient, so that every weight moves equally fast.")
    schedule: str = choice("cosine", SCHEDULES, "How the step size falls: tenfold three times, along a cosine, or not at all.")
    distance: str = choice("cosine", ("cosine", "squared"), "How two gradients are compared.")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        goal = goal_of(seen, self.distance)
        size = GeneratorSize(self.inputs, self.width, seen.batch.image_shape)
        model_weights = sum(weight.numel() for weight in seen.received.weights.values())
        size = size.beyond(model_weights, batch=seen.batch.size) if self.grow else size
        note |= goal.note | {"generator's weights": size.weights, "model's weights": model_weights}
        why = TOO_LARGE if self.grow else NOT_ASKED
        event: Note = {} if size.weights > model_weights else {"event": FEWER.format(size.weights, model_weights, why)}
        with drawing(int(torch.randint(2**31, (), generator=rng)), "generator"):
            generator = UpsamplingGenerator(size).to(seen.device, seen.dtype)
        v = torch.randn((seen.batch.size, self.inputs), generator=rng).to(seen.device, seen.dtype)
        unknowns = Unknowns(lambda flat: generate_with(generator, flat, v)[None], tv_weight=self.tv_weight)
        descent = Descent(self.steps, self.step_size, self.schedule, signed=self.signed, unknowns=unknowns, floor=goal.floor)

        def distances(x: Tensor) -> Tensor:
            return goal.distance(replays(seen, x, labels))

        search = descent.minimize(seen, flat_weights(generator), labels, distances, None, note=note, rng=rng)
        yield from with_event(search, event)
