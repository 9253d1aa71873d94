"""Pictures of every class that an attacker may be granted: from the sources of the private pictures, but other pictures."""

from dataclasses import replace

import torch
from torch import Tensor

from leakage.data.images import gallery, read
from leakage.engine.core import Observation, generator
from leakage.evaluation.lineup import NEAR
from leakage.evaluation.pools import first_of, tensor
from leakage.spec.experiment import Experiment

MOST = 8  # pictures of one class
PIXELS = MOST * 64 * 64  # of all pictures of one class together; at least one picture is drawn, however large it is


def class_examples(experiment: Experiment, x: Tensor) -> dict[int, Tensor]:
    """Draw pictures of every class by the seed, independent of the classes of the private pictures, which the attacker does not know.

    Args:
        experiment: its sources (uploads have the classes of the gallery), size and channels are used.
        x: the private pictures (B, C, H, W) in [0, 1]; these pictures and near-duplicates of them are not drawn.

    Returns:
        Class -> pictures (N, C, H, W) in [0, 1] on the CPU, at most MOST; a class without other pictures is left out.
    """
    x = x.cpu().float()
    sources = sorted({"gallery" if picture.source == "upload" else picture.source for picture in experiment.pictures})
    items = [item for source in sources for item in (gallery() if source == "gallery" else first_of(source))]
    examples = dict[int, Tensor]()
    for label in range(experiment.picture_classes):
        same = [item for item in items if item.label == label]
        order = torch.randperm(len(same), generator=generator(experiment.seed, "examples", label)).tolist()
        drawn = list[Tensor]()
        for index in order:
            if len(drawn) == max(1, min(MOST, PIXELS // experiment.size**2)):
                break
            picture = tensor([read(same[index].source, same[index].id, experiment.size, experiment.channels)])[0]
            if (x - picture).abs().mean((1, 2, 3)).min() >= NEAR:
                drawn.append(picture)
        if drawn:
            examples[label] = torch.stack(drawn)
    return examples


def with_examples(seen: Observation, experiment: Experiment, x: Tensor) -> Observation:
    """Return an observation with pictures of every class, if the experiment grants them and its model has an output for each class."""
    granted = experiment.assume.examples and experiment.task == "classes"
    return replace(seen, granted=replace(seen.granted, examples=class_examples(experiment, x))) if granted else seen
