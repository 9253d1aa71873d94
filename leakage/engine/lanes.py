"""Several attackers of one model: the gradients of all their guesses, computed together."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leakage.engine.client import lanes_client
from leakage.engine.core import Observation, Params


def joined(seen: Sequence[Observation], labels: Tensor) -> Callable[[Tensor], list[Params]]:
    """For guesses x (S, B, C, H, W) with labels (B, S): what each attacker takes for its client's answer, 1 in front of every shape.

    In the units of `as_gradient`, and differentiable, as `Observation.gradients`. Raises ValueError when the models differ.
    """
    states = [one.model.state_dict() for one in seen]
    if any(state.keys() != states[0].keys() or any(not torch.equal(state[n], v) for n, v in states[0].items()) for state in states):
        raise ValueError("Several runs can be played in one loop only if the model and its weights are the same. Play them one by one.")
    client = lanes_client(seen[0].model)
    weights = {name: value.expand(len(seen), *value.shape) for name, value in seen[0].received.weights.items()}

    def replay(x: Tensor) -> list[Params]:
        gradients, _ = client(weights, x.transpose(0, 1), labels, {})
        lanes = zip(*(value.split(1) for value in gradients.values()), strict=True)
        return [
            one.replay.to_gradient(_replayed(one, dict(zip(gradients, lane, strict=True)))) for one, lane in zip(seen, lanes, strict=True)
        ]

    return replay


def _replayed(one: Observation, gradients: Params) -> Params:
    assert one.replay.from_gradients is not None
    return one.replay.from_gradients(gradients)
