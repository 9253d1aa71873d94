"""SME: the attack takes many local steps for a single step, at weights between those that the client received and those it ended with."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from leakage.attacks._adam import ELECT, Descent
from leakage.attacks._examples import with_examples
from leakage.attacks._labels import labels_of
from leakage.attacks._plots import path_view
from leakage.engine.client import gradient_client
from leakage.engine.core import Attack, Observation, Params, Snapshot, flag, param
from leakage.engine.discrepancy import goal_of
from leakage.engine.labels import rule_field
from leakage.engine.matching import Smoothness, start
from leakage.engine.tensor_names import OF

LOOKS = 4  # how often the path of alpha is drawn, the last time at the end


@dataclass(frozen=True, kw_only=True)
class SME(Attack):
    """argmin over x in the box and alpha in [0, 1] of 1 - cos(grad L(w_alpha; x, y), w_0 - w_T) + tv_weight TV(x), by Adam on both.

    L(w; x, y) is the loss of pictures x with labels y at weights w. w_alpha = (1 - alpha) w_0 + alpha w_T lies between the weights w_0 that
    the client received and w_T that it ended with; the gradient of alpha is sum <d loss / d w_alpha, w_T - w_0>. With `per_layer` there is
    an alpha for every layer. All pictures are guessed at once, so that a step costs one gradient of the batch, however many local steps the
    client took: their number, size and order are not used. For a sum over several clients, w_T is their mean; for FedADMM it is the
    client's model, which the server computes. BatchNorm's stored statistics are those of the model: clients here do not change them. Both
    step sizes fall tenfold after 3/8, 5/8 and 7/8 of the steps. With alpha fixed at 0 this is Inverting Gradients on the mean gradient,
    without the sign. Protections are not imitated.
    Source: Zhu, Yao and Blaschko 2023; Adam on alpha, its step size and the TV weight as in their code.
    """

    title = "Guess and compare by a surrogate model (SME)"
    short = "SME"
    plain = "Takes many local steps for a single one at a model in between: after the phone began and before it ended."
    hint = "For phones that train for many steps: it needs neither their number nor their size. Give it 50 local steps, and compare."
    source = "https://arxiv.org/abs/2306.00127"
    way = "Guess pictures and a model in between, compare, improve."
    reads_labels = True
    loss_name = "cosine gradient distance"
    evaluations_per_step = 1.3
    in_place_of_steps = "it guesses all pictures at once, at a model between the one sent out and the one that came back"
    presets = {
        "paper (Zhu et al. 2023; model with normalised input)": {"steps": 1000, "step_size": 1, "tv_weight": 0.01},
        "alpha fixed at 0: the mean gradient": {"alpha_start": 0, "alpha_step": 0},
        "ours: an alpha for each layer": {"per_layer": True, "alpha_step": 0.01},
    }

    steps: int = param(1000, 1, 24000, "Optimiser steps.")
    step_size: float = param(0.1, 0.0001, 10, "How far one step may move a pixel at first, in the model's normalised units.")
    alpha_start: float = param(
        0.5, 0, 1, "Where the search for the model in between begins: 0, the one sent out; 1, the one that came back."
    )
    alpha_step: float = param(0.001, 0, 1, "How far one step may move alpha at first; 0: it stays where it begins.")
    per_layer: bool = flag(False, "Look for one alpha per layer, instead of one for the whole model.")
    tv_weight: float = param(0.01, 0, 10, "How strongly smooth pictures are preferred (weight of the total variation).")
    label_rule: str = rule_field()

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, self.label_rule)
        surrogate = SurrogateModel(seen, alpha_start=self.alpha_start, per_layer=self.per_layer)
        whole = {name: g for name, g in seen.as_gradient().items() if OF not in name}  # of all clients together: one model in between
        received, replay = replace(seen.received, update=whole), replace(seen.replay, to_gradient=lambda update: update)
        goal = goal_of(replace(seen, received=received, replay=replay), "cosine")
        match, path = goal.distance, list[Tensor]()

        def matched(x: Tensor) -> Tensor:
            """Compute the distance (1,) between the gradient of a guess (1, B, C, H, W) at w_alpha and the received gradient."""
            path.append(surrogate.clamp_alpha())
            return match({name: g.unsqueeze(0) for name, g in surrogate.gradient(x[0], labels).items()})

        descent = Descent(steps=self.steps, step_size=self.step_size, signed=False, latent_step=self.alpha_step, floor=goal.floor)
        latents = {**seen.knowledge.latents, **({"alpha": surrogate.alpha} if self.alpha_step else {})}
        with_alpha = replace(seen, knowledge=replace(seen.knowledge, latents=latents))
        z, begin_note = with_examples(seen, start("normal", seen, rng).unsqueeze(0), labels)
        note |= begin_note | goal.note
        drawn = {*(self.steps * look // LOOKS for look in range(1, LOOKS)), self.steps + 1}  # lengths of the path at which it is drawn
        prior = Smoothness(self.tv_weight) if self.tv_weight else None
        for now in descent.minimize(with_alpha, z, labels, matched, prior, note=note, rng=rng):
            if len(path) % ELECT == 1 or len(path) in drawn:  # reading a number waits for the device
                note = {**note, "alpha": float(path[-1].mean())}
            views = path_view(torch.stack(path), self.steps) if len(path) in drawn else {}
            yield replace(now, note={**now.note, **note}, views=views)


class SurrogateModel:
    """The model with weights between those that the client received (alpha 0) and those that it ended with (alpha 1).

    `alpha` is (1,), or (layers,) if `per_layer`.
    """

    def __init__(self, seen: Observation, *, alpha_start: float, per_layer: bool) -> None:
        self.client, ended = gradient_client(seen.model), seen.replay.client_weights()
        self.received = {name: value.detach() for name, value in seen.received.weights.items()}
        self.moved = {name: ended[name] - value for name, value in self.received.items()}  # w_T - w_0
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in ended)) if per_layer else []
        self.alpha_index = {name: layers.index(name.rpartition(".")[0]) if per_layer else 0 for name in ended}
        self.alpha = torch.full((len(layers) or 1,), alpha_start, device=seen.device, dtype=seen.dtype).requires_grad_()

    def weights(self) -> Params:
        """Compute w_alpha, differentiable in alpha."""
        return {name: value + self.alpha[self.alpha_index[name]] * self.moved[name] for name, value in self.received.items()}

    def gradient(self, x: Tensor, y: Tensor) -> Params:
        """Compute grad L(w_alpha; x, y), differentiable in x (B, C, H, W) and in alpha."""
        return self.client(self.weights(), x, y, {})[0]

    def clamp_alpha(self) -> Tensor:
        """Clamp alpha to [0, 1] in place, and return a copy of it."""
        with torch.no_grad():
            self.alpha.clamp_(0, 1)
        return self.alpha.detach().clone()
