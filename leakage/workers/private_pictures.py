"""The private pictures of an experiment and their labels, as tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor

from leakage.data.images import PictureError, find, read
from leakage.spec.experiment import Experiment, Picture


def load(experiment: Experiment, uploads: Mapping[str, bytes]) -> tuple[Tensor, Tensor]:
    """Return the private pictures float32 (B, C, H, W) in [0, 1] and their labels int64 (B,), in the experiment's order, on the CPU.

    Args:
        experiment: the experiment.
        uploads: id of an upload in the experiment -> its file.

    Raises:
        PictureError: a picture or a label is missing.
    """
    size, channels = experiment.size, experiment.channels
    pixels = [torch.from_numpy(read(p.source, p.id, size, channels, uploads.get(p.id))) for p in experiment.pictures]
    x = torch.stack(pixels).permute(0, 3, 1, 2).contiguous().float() / 255  # (B, C, H, W)
    return x, torch.tensor([_label(picture) for picture in experiment.pictures])


def _label(picture: Picture) -> int:
    if picture.label is not None:
        return picture.label
    if picture.source == "upload":
        raise PictureError(f"Upload {picture.id} has no class. Choose one for it.")
    return find(picture.source, picture.id).label
