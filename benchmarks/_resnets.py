"""Shared parts of the attacks on ResNets (Geiping et al. 2020): a cell of a table, and the table."""

import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from _table import say, table

from leakage.models.resnet import STAGES
from leakage.spec.experiment import Experiment, Part, Picture

SEED = 1


class Cell(NamedTuple):
    """A network, the attack on it, the number of pictures, the published PSNR, and what is set besides."""

    kind: str
    width: int
    steps: int
    tv_weight: float
    pictures: int
    published: str
    seed: int = SEED
    also: Mapping[str, Any] = MappingProxyType({})  # fields of the attack, or `batch_norm`, or `weights`: how they are drawn

    def describe_run(self, picture: int) -> dict[str, Any]:
        """Return what a run is stored under."""
        attack = {"steps": self.steps, "tv_weight": self.tv_weight}
        return {"network": self.kind, "width": self.width, **attack, "picture": picture, "seed": self.seed, **self.also}

    def experiment(self, picture: int) -> Experiment:
        """Return the attack on a picture."""
        attack = {name: value for name, value in self.also.items() if name not in ("batch_norm", "weights")}
        return Experiment(
            pictures=(Picture(source="cifar10", id=str(picture)),),
            model=resnet(self.kind, self.width, drawn_by_torch="weights" in self.also),
            attack=Part(id="inverting_gradients", fields={"steps": self.steps, "tv_weight": self.tv_weight, **attack}),
            batch_norm=self.also.get("batch_norm", "eval"),
            seed=self.seed,
        )


def resnet(kind: str, width: int, *, drawn_by_torch: bool = False, biases: bool = False) -> Part:
    """Return a ResNet whose weights are drawn by Kaiming's fan-out, or by PyTorch's default.

    The convolutions and the last layer that PyTorch draws have no biases, or, with `biases`, they have them. In the other network only the
    last layer has biases. BatchNorm always has its own.
    """
    if not drawn_by_torch:
        return Part(id="resnet", fields={"kind": kind, "width": width})
    stages, _ = STAGES[kind]
    steps = [f"conv 3@{width} p1 norm"]
    for stage, blocks in enumerate(stages):
        block = f"block {width * 2**stage}"
        steps += [f"{block} /2 norm" if stage and not number else f"{block} norm" for number in range(blocks)]
    network = " - ".join([*steps, "mean"])
    return Part(id="custom", fields={"network": network, "activation": "relu", "bias": biases, "normalise": "cifar10"})


def print_results(found: Sequence[tuple[Cell, Sequence[Mapping[str, Any]]]]) -> None:
    """Print a line for each cell, from the results of its runs."""
    rows = []
    for cell, results in found:
        psnr = [result["psnr"] for result in results]
        deviation = statistics.stdev(psnr) if len(psnr) > 1 else ""
        means = [statistics.mean(result[score] for result in results) for score in ("grey_psnr", "ssim", "loss")]
        first = sum(result["scores"]["rank"] == 1 for result in results)
        also = ", ".join(f"{name} {value}" for name, value in {"seed": cell.seed, **cell.also}.items() if (name, value) != ("seed", SEED))
        name = f"{cell.kind}, width {cell.width}"
        attack = [cell.steps, cell.tv_weight, also]
        rows.append([name, *attack, statistics.mean(psnr), deviation, cell.published, *means, f"{first} of {len(psnr)}"])
    say()
    table(["network", "steps", "TV", "also", "PSNR", "deviation", "published", "grey PSNR", "SSIM", "cosine distance", "identified"], rows)
