"""What a network's gradient holds, told in three ways, and what an attack makes of it.

For each network at 3x32x32 with 10 outputs: the index of rank analysis (counts, for attacks that go layer by layer), the rank and the
condition of d(gradient)/d(picture) at a picture (for every attack near it), and how the search of the Architecture page ends that is told
the class: Inverting Gradients where layers are made of straight pieces, DLG where they are smooth.

Run: .venv/bin/python benchmarks/published/jacobian_rank.py
"""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _table import Book, say, table

from leakage.engine.jacobian_rank import spectrum
from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.networks.templates import TEMPLATES
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

NETWORKS = {
    name: TEMPLATES[name] for name in ("R-GAP's net A", "R-GAP's net B", "R-GAP's net C", "R-GAP's net D", "LeNet (Zhu)", "CNN6-d")
} | {
    "three poolings": "conv 3@32 p1 - max 2 - conv 3@64 p1 - max 2 - conv 3@128 p1 - max 2 - mean - linear 128",
    "two filters": "conv 3@2 p1 - conv 3@2 p1",
    "stride 4": "conv 4@8 /4 - linear 64",
    "a mean over all": "conv 3@16 p1 - conv 3@16 p1 - mean",
    "narrow waist": "conv 3@16 p1 - conv 3@1 p1 - conv 3@16 p1",
}
SEARCH = Part(id="inverting_gradients", fields={"steps": 2400, "starts": 2})
PICTURE = Picture(id="astronaut")


def question(network: str) -> Experiment:
    """The search on one picture, as Verify asks it."""
    model = Part(id="custom", fields={"network": network, "activation": "leaky_relu"})
    asked = Experiment(pictures=(PICTURE,), model=model, attack=SEARCH, assume=Assumptions(labels=True), max_seconds=600)
    return asked.resolve(plugin_catalog.describe())


def main() -> None:
    """Measure what is not in the book yet, and print the table."""
    book = Book("jacobian_rank", __doc__)
    lines = []
    for name, network in NETWORKS.items():
        found = analyse(unroll(parse(network), (3, 32, 32), 10))
        asked = {"network": name, "steps": network}
        experiment = question(network)
        scene, begun = prepare(experiment), time.monotonic()
        torch.set_num_threads(2)
        measured = spectrum(scene.seen.model, scene.x, scene.y)
        seconds = time.monotonic() - begun
        say(f"{name}: rank {measured.rank:,} of {measured.unknowns:,}, condition {measured.condition:.3g}, {seconds:.0f} s")
        ended = book.play(asked, experiment)
        how = f"{measured.rank:,} of {measured.unknowns:,}" + ("" if measured.exact else " (sketched)")
        condition, above = f"{measured.condition:.3g}", measured.above(1e-2)
        lines.append([name, found.index, how, condition, above, f"{ended['psnr']:.1f}", ended["word"], f"{seconds:.0f}"])
    table(["network", "index", "rank", "condition", "above noise 0.01", "PSNR", "search", "seconds"], lines)


if __name__ == "__main__":
    main()
