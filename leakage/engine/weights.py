"""The weights of a model: drawn by a seed, packed into a safetensors file, which holds numbers and runs no code, and put back."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from leakage.data.errors import CheckpointError
from leakage.engine.core import Model, Params, generator


def untrained(model: Model, image_shape: tuple[int, int, int], num_classes: int, *, seed: int) -> nn.Module:
    """The network for pictures (C, H, W), its weights drawn by the seed; torch's global generator stays as it is."""
    with drawing(seed, "model"):
        return model.build(image_shape, num_classes)


@contextmanager
def drawing(seed: int, *purpose: str | int) -> Iterator[None]:
    """Inside, torch's global generator draws for this purpose; afterwards it is as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator(seed, *purpose).initial_seed())
        yield


def unpack(data: bytes, name: str) -> Params:
    """The tensors of a safetensors file. Raises CheckpointError."""
    try:
        return load(data)
    except (SafetensorError, struct.error, ValueError, KeyError) as error:
        raise CheckpointError(f"{name} is no safetensors file ({error}). Get it anew, or choose an untrained model.") from None


def pack(state: Params, *, dtype: torch.dtype = torch.float32, rounds: int | None = None) -> bytes:
    """A model's state as a safetensors file, its floating-point numbers as `dtype`; `rounds` goes into the file's head."""
    tensors = {name: value.to("cpu", dtype if value.is_floating_point() else value.dtype).contiguous() for name, value in state.items()}
    return save(tensors, {} if rounds is None else {"rounds": str(rounds)})


def put(model: nn.Module, state: Params, name: str) -> None:
    """Copy `state` into `model`, if every tensor has its place and its shape there. Raises CheckpointError."""
    own = model.state_dict()
    strange = next((key for key in state if key not in own), None)
    missing = next((key for key in own if key not in state), None)
    if strange or missing:
        what = f"it has {strange!r}, which the model has not" if strange else f"the model has {missing!r}, which it has not"
        raise CheckpointError(f"{name} is of another architecture: {what}. Choose the model that its card names.")
    for key, value in state.items():
        if value.shape != own[key].shape:
            sizes = f"{key} is {tuple(value.shape)} there and {tuple(own[key].shape)} here"
            raise CheckpointError(f"{name} does not fit this model: {sizes}. Choose the fields that its card names.")
    model.load_state_dict(state)  # copies, float16 into float32
