"""Pictures of every class that an attacker may own: from where the private ones are from, and none of these."""

from dataclasses import replace

import torch
from torch import Tensor

from leakage.data.images import gallery, read
from leakage.engine.core import Observation, generator
from leakage.evaluation.lineup import NEAR
from leakage.evaluation.pools import first_of, tensor
from leakage.spec.experiment import Experiment

MOST = 8  # pictures of one class that are handed over
PIXELS = MOST * 64 * 64  # of one class together: of large pictures fewer, one at least


def class_examples(experiment: Experiment, x: Tensor) -> dict[int, Tensor]:
    """Draw pictures of every class by the seed, independent of the classes of the private pictures, which the attacker is not given.

    Args:
        experiment: its sources (uploads have the classes of the gallery), size and channels.
        x: the private pictures (B, C, H, W) in [0, 1]: neither they nor near-duplicates of them are handed over.

    Returns:
        Class -> pictures (N, C, H, W) in [0, 1] on the CPU, at most MOST; classes of which there is no other picture are left out.
    """
    x = x.cpu().float()
    sources = sorted({"gallery" if picture.source == "upload" else picture.source for picture in experiment.pictures})
    items = [item for source in sources for item in (gallery() if source == "gallery" else first_of(source))]
    found = dict[int, Tensor]()
    for label in range(experiment.picture_classes):
        same = [item for item in items if item.label == label]
        order = torch.randperm(len(same), generator=generator(experiment.seed, "examples", label)).tolist()
        own = list[Tensor]()
        for place in order:
            if len(own) == max(1, min(MOST, PIXELS // experiment.size**2)):
                break
            one = tensor([read(same[place].source, same[place].id, experiment.size, experiment.channels)])[0]
            if (x - one).abs().mean((1, 2, 3)).min() >= NEAR:
                own.append(one)
        if own:
            found[label] = torch.stack(own)
    return found


def with_examples(seen: Observation, experiment: Experiment, x: Tensor) -> Observation:
    """Add examples of classes to an observation, where the experiment grants them and its model tells classes apart."""
    granted = experiment.assume.examples and experiment.task == "classes"
    return replace(seen, granted=replace(seen.granted, examples=class_examples(experiment, x))) if granted else seen
