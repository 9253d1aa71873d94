"""The trained generator that an attack is handed: its weights, read from the file that its card names."""

import io
import pickle
from dataclasses import replace

import torch
from torch import nn

from leakage.attacks._generative import UNTRAINED, GenerativeAttack
from leakage.data.errors import CheckpointError
from leakage.data.generators import MissingGeneratorError, find_card, verified_weights
from leakage.engine.core import Attack, Observation, Params, TrainedGenerator
from leakage.engine.decoders import DECODERS
from leakage.engine.weights import drawing, put, unpack


def with_generator(seen: Observation, attack: Attack) -> Observation:
    """Return an observation with the generator that the attack's field `generator` names, or with the reason why it is not on this machine.

    Args:
        seen: the observation.
        attack: the attack; the observation is returned unchanged if the attack uses no generator, or an untrained generator.

    Raises:
        CheckpointError: the weights are damaged, or of another network.
    """
    if not isinstance(attack, GenerativeAttack) or attack.generator == UNTRAINED:
        return seen
    try:
        return replace(seen, granted=replace(seen.granted, generator=load_generator(attack.generator)))
    except MissingGeneratorError as error:
        return replace(seen, granted=replace(seen.granted, generator=str(error)))


def load_generator(name: str) -> TrainedGenerator:
    """Load a generator by its name: "digits" is shipped with the program, the weights of "faces" come from another project's package.

    Raises:
        MissingGeneratorError: the weights are not on this machine.
        CheckpointError: the weights are damaged, or of another network.
    """
    card, path = find_card(name)
    with drawing(0, "generator"):  # random weights, which the weights of the file replace
        network = DECODERS[card.decoder](card.latent)
    data = verified_weights(card, path)
    put(network, unpack_foreign(data, network, path.name) if card.package else unpack(data, path.name), path.name)
    return TrainedGenerator(network.eval().requires_grad_(False), card.latent, card.image_shape, card.knowledge)


def unpack_foreign(data: bytes, network: nn.Module, name: str) -> Params:
    """Return the weights in a torch file of another project under the names of `network`'s parameters.

    Only tensors of the file are read (`weights_only`): code in it is not run.

    Args:
        data: the content of the file: a single dictionary, with its tensors in the order of `network`.
        network: the network.
        name: the name of the file, for error messages.

    Raises:
        CheckpointError: the file does not have such a dictionary.
    """
    try:
        (weights,) = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True).values()
        return dict(zip(network.state_dict(), weights.values(), strict=True))
    except (ValueError, AttributeError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{name} holds no weights of this generator ({why}). Get it again, or choose another generator.") from None
