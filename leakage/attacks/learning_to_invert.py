"""Learning to Invert: a network that was trained beforehand maps the update to pictures, without a search."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from leakage.attacks._labels import labels_of
from leakage.engine.core import Attack, Observation, Snapshot
from leakage.engine.matching import distance, grey_pictures


@dataclass(frozen=True, kw_only=True)
class LearningToInvert(Attack):
    """x = f(R u): u is the direction of each tensor that arrived, R a fixed random matrix of signs, f a network trained to give x back.

    A server with the model's weights can compute updates of other pictures, protect them as the client does, and train f on the pairs; it
    needs no formula of the protection. The server has the weights before the client answers. A naive attacker's f is trained on updates
    without protection; an adaptive attacker's f on updates with the client's protection, with fresh randomness in every example. f fits a
    single model's weights, protection and number of pictures (`leakage/engine/inverter.py`). The card of f shows its score on pictures
    outside its training data, beside the score of the mean training picture, which ignores the update.
    Unlike the paper: one hidden layer with ReLU, of a random projection of directions, in place of two with sigmoid of the update itself.
    Source: Wu, Chen, Guo and Weinberger 2023.
    """

    title = "Ask a network that has learned to undo it (Learning to Invert)"
    short = "Learning to Invert"
    plain = "Asks a network that has seen thousands of other pictures and what phones send of them, and answers at once."
    hint = "Needs no formula of a protection, only examples. Two ship, for digits on LeNet; Training trains others, in minutes."
    source = "https://arxiv.org/abs/2210.10880"
    way = "Ask a trained network."
    reads_labels = True
    loss_name = "cosine gradient distance"
    learned = True

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        labels, note = labels_of(seen, "best")
        if isinstance(seen.granted.learned, str):
            x, note = grey_pictures(seen), {**note, "event": seen.granted.learned}
        else:
            x = seen.granted.learned(seen.received.history[0].update).to(seen.device, seen.dtype)  # (B, C, H, W)
            note |= {"prior": knowledge} if (knowledge := getattr(seen.granted.learned, "knowledge", "")) else {}
        replayed = {name: g.unsqueeze(0) for name, g in seen.gradient(x, labels).items()}
        loss = distance("cosine", seen.as_gradient(), entry_weights=seen.knowledge.entry_weights)(replayed)[0].detach()
        yield Snapshot(step=1, x=x, y=labels, loss=loss.nan_to_num(2.0), note=note)
