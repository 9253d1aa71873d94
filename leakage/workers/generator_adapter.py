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
    """Add to an observation the generator that the attack's field names, or a sentence why it is not on this machine.

    Args:
        seen: what the server holds.
        attack: the attack that works with it; an attack that needs no generator, or an untrained one, is given none.

    Returns:
        `seen` with its `generator`.

    Raises:
        CheckpointError: where the weights are damaged, or of another network.
    """
    if not isinstance(attack, GenerativeAttack) or attack.generator == UNTRAINED:
        return seen
    try:
        return replace(seen, granted=replace(seen.granted, generator=load_generator(attack.generator)))
    except MissingGeneratorError as error:
        return replace(seen, granted=replace(seen.granted, generator=str(error)))


def load_generator(name: str) -> TrainedGenerator:
    """Load the generator of a card, by the card's name: "digits" ships, "faces" comes in a package of others.

    Raises CheckpointError with a sentence where its weights cannot be used: MissingGeneratorError where they are not on this machine.
    """
    card, path = find_card(name)
    with drawing(0, "generator"):  # weights that the file's take the place of
        network = DECODERS[card.decoder](card.latent)
    data = verified_weights(card, path)
    put(network, of_others(data, network, path.name) if card.package else unpack(data, path.name), path.name)
    return TrainedGenerator(network.eval().requires_grad_(False), card.latent, card.image_shape, card.knowledge)


def of_others(data: bytes, network: nn.Module, name: str) -> Params:
    """Return the weights of a torch file, a single dictionary in the order of `network`, under the names of `network`.

    Raises CheckpointError. Of such a file only tensors are read (`weights_only`): it may hold code, which is not run.
    """
    try:
        (weights,) = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True).values()
        return dict(zip(network.state_dict(), weights.values(), strict=True))
    except (ValueError, AttributeError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{name} holds no weights of this generator ({why}). Get it again, or choose another generator.") from None
