"""The run that looks at the model which a server hands out in the first round, and compares it with the agreed network."""

from dataclasses import replace

import torch

from leakage.engine.client import weights_of
from leakage.engine.handed_layers import describe_layers
from leakage.engine.observe import ready
from leakage.runs.event_parts import LayerFacts
from leakage.spec.tasks import HandedModel
from leakage.workers.adapter import federation, network


def layers(task: HandedModel) -> tuple[LayerFacts, ...]:
    """Return each layer of the model that the clients receive in the first round, and what is not as agreed.

    Args:
        task: a task of which model, aggregation and server have all their fields.

    Raises:
        ValueError: the server cannot use this network, or pictures of this shape.
    """
    setting, shape = federation(task.experiment), (task.channels, task.size, task.size)
    like = torch.zeros(1, *shape)
    agreed = ready(network(task.experiment, shape), replace(setting, server=None), like)
    handed = ready(network(task.experiment, shape), setting, like)
    received = setting.received_weights(handed, setting.handed_out(handed, weights_of(handed), ()))
    return tuple(map(LayerFacts.model_validate, describe_layers(agreed, handed, received)))
