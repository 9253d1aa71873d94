"""The weights of a model: initial weights by a seed, and safetensors files (numbers without code) written and read."""

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
    """Build the network for pictures of shape (C, H, W), with initial weights by the seed; torch's global generator is unchanged."""
    with drawing(seed, "model"):
        return model.build(image_shape, num_classes)


@contextmanager
def drawing(seed: int, *purpose: str | int) -> Iterator[None]:
    """Set the state of torch's global CPU generator within the block by `seed` and a purpose, and restore it afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator(seed, *purpose).initial_seed())
        yield


def unpack(data: bytes, name: str) -> Params:
    """Return the tensors in a safetensors file; `name` is the file's name for the error. Raises CheckpointError."""
    try:
        return load(data)
    except (SafetensorError, struct.error, ValueError, KeyError) as error:
        raise CheckpointError(f"{name} is no safetensors file ({error}). Download it again, or choose an untrained model.") from None


def pack(state: Params, *, dtype: torch.dtype = torch.float32, rounds: int | None = None) -> bytes:
    """Return a model's state as the bytes of a safetensors file: floating-point numbers as `dtype`, training `rounds` in the header."""
    tensors = {name: value.to("cpu", dtype if value.is_floating_point() else value.dtype).contiguous() for name, value in state.items()}
    return save(tensors, {} if rounds is None else {"rounds": str(rounds)})


def put(model: nn.Module, state: Params, name: str) -> None:
    """Copy `state` into `model`.

    Args:
        model: the model, altered in place.
        state: its tensors by name; the precision may differ.
        name: the name of the file, for errors.

    Raises:
        CheckpointError: the names or the shapes of the tensors are not those of the model.
    """
    present = model.state_dict()
    unknown = next((key for key in state if key not in present), None)
    missing = next((key for key in present if key not in state), None)
    if unknown or missing:
        what = f"the file has {unknown!r}, the model does not" if unknown else f"the model has {missing!r}, the file does not"
        raise CheckpointError(f"{name} is of another architecture: {what}. Choose the model that its card names.")
    for key, value in state.items():
        if value.shape != present[key].shape:
            sizes = f"{key} is {tuple(value.shape)} there and {tuple(present[key].shape)} here"
            raise CheckpointError(f"{name} does not fit this model: {sizes}. Choose the fields that its card names.")
    model.load_state_dict(state)  # copies, float16 into float32
