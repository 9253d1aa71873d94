"""The gradients of several attackers' guesses for one model, computed together."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from leakage.engine.client import lanes_client
from leakage.engine.core import Observation, Params


def join_gradients(seen: Sequence[Observation], labels: Tensor) -> Callable[[Tensor], list[Params]]:
    """Return a function that computes the gradients of S attackers' guesses at once.

    Args:
        seen: S observations of one model.
        labels: (B, S).

    Returns:
        Guesses x (S, B, C, H, W) -> each attacker's gradient, with 1 in front of every shape; in the units of `as_gradient`, and
        differentiable as `Observation.gradients` is.

    Raises:
        ValueError: the models or their weights differ.
    """
    states = [observation.model.state_dict() for observation in seen]
    if any(state.keys() != states[0].keys() or any(not torch.equal(state[n], v) for n, v in states[0].items()) for state in states):
        raise ValueError("One loop can run several attacks only if the model and its weights are the same. Run the attacks one by one.")
    client = lanes_client(seen[0].model)
    weights = {name: value.expand(len(seen), *value.shape) for name, value in seen[0].received.weights.items()}

    def replay(x: Tensor) -> list[Params]:
        gradients, _ = client(weights, x.transpose(0, 1), labels, {})
        lanes = zip(*(value.split(1) for value in gradients.values()), strict=True)
        return [
            observation.replay.to_gradient(_replayed(observation, dict(zip(gradients, lane, strict=True))))
            for observation, lane in zip(seen, lanes, strict=True)
        ]

    return replay


def _replayed(seen: Observation, gradients: Params) -> Params:
    assert seen.replay.from_gradients is not None
    return seen.replay.from_gradients(gradients)
