"""The ranks of a network's gradient in three ways, and the results of the attacks of the page Architecture.

Ten networks with 10 outputs and random weights, six of them with an index above 0: the index and the ranks of rank analysis (for attacks
that go layer by layer), the rank and the condition of d(gradient)/d(picture) at a picture (for every attack near it), as the button of the
page measures them, and the page's Verify with its defaults: R-GAP if the network has no max pooling, and a search with the
known class, DLG if the network is shallow, else Inverting Gradients. An attack has 180 s. Seconds are those of one core of a busy
machine.

Run: .venv/bin/python benchmarks/published/jacobian_rank.py
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _table import Book, say, table

from leakage.engine.measured_rank import measured_rank
from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import analyse
from leakage.networks.templates import TEMPLATES
from leakage.runs.endings import ending
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import Ranks
from leakage.ui.architecture.editor import Given
from leakage.ui.architecture.verify import first_search, questions
from leakage.workers import plugin_catalog
from leakage.workers.adapter import play
from leakage.workers.rank_job import PICTURE, describe_spectrum, whole_gradient

COLOUR, GREY = (3, 32, 32), (1, 28, 28)


@dataclass(frozen=True)
class Case:
    """A network, and the pictures it is for."""

    name: str
    network: str
    shape: tuple[int, int, int]

    @property
    def given(self) -> Given:
        """As the page has it."""
        return Given(parse(self.network), self.shape, 10, 1, "unit")


CASES = (
    Case("three poolings", "conv 3@32 p1 - max 2 - conv 3@64 p1 - max 2 - conv 3@128 p1 - max 2 - mean - linear 128", COLOUR),
    Case("R-GAP's net B", TEMPLATES["R-GAP's net B"], COLOUR),
    Case("stride of 4", "conv 4@8 /4 - linear 64", GREY),
    Case("a mean first", "mean 4 - conv 3@8 p1", GREY),
    Case("a mean last", "conv 3@8 p1 - conv 3@8 p1 - mean", GREY),
    Case("narrow waist", "conv 3@8 p1 - conv 3@1 /2 p1 - conv 3@8 p1", GREY),
    Case("R-GAP's net A", TEMPLATES["R-GAP's net A"], COLOUR),
    Case("LeNet (Zhu)", TEMPLATES["LeNet (Zhu)"], COLOUR),
    Case("two blocks", "block 8 - block 16 /2 - mean", GREY),
    Case("CNN6-d", TEMPLATES["CNN6-d"], COLOUR),
)


def ranks_of(case: Case) -> dict[str, Any]:
    """Return all ranks of a network, as the page measures them."""
    asked = Ranks.model_validate({"network": case.network, "size": case.shape[1], "channels": case.shape[0]})
    begun = time.monotonic()
    layers = {layer.name: measured_rank(layer, asked.seed) for layer in asked.layers}
    between = time.monotonic()
    gradient = describe_spectrum(whole_gradient(asked))
    seconds = {"layers": round(between - begun, 1), "gradient": round(time.monotonic() - between, 1)}
    return {"layers": layers, "gradient": gradient.model_dump(), "seconds": seconds}


def attack(experiment: Experiment) -> dict[str, Any]:
    """Run one attack within its time; return its result."""
    experiment = experiment.resolve(plugin_catalog.describe())
    until = time.monotonic() + experiment.max_seconds
    late = False

    def should_stop() -> bool:
        nonlocal late
        late = time.monotonic() > until
        return late

    *_, last = play(experiment, should_stop=should_stop, per_second=1)
    how = "limit" if late else last.ending or "answer"
    said = {name: last.scores.get(name) for name in ("psnr", "ssim", "rank", "identified")}
    word = (last.verdict or {}).get("word", "")
    return {"word": word, "ending": ending(how, last.step, experiment).words, "seconds": round(last.seconds, 1), **said}


def verified(case: Case) -> dict[str, Any]:
    """Verify with its first settings: attack -> what it comes to."""
    first = first_search(case.given)
    asked = questions(case.given, PICTURE.id, first.activation, first.attack.id)
    return {one.attack.id: {"activation": first.activation, **attack(one)} for one in asked}


def main() -> None:
    """Measure what is not in the book yet, and print the table."""
    torch.set_num_threads(1)
    book, lines = Book("jacobian_rank", __doc__), []
    for case in CASES:
        asked = {"name": case.name, "network": case.network, "shape": list(case.shape)}
        run = next((run for run in book.runs if {name: run[name] for name in asked} == asked), None)
        if run is None:
            found = analyse(unroll(parse(case.network), case.shape, 10))
            run = {**asked, "index": found.index, **ranks_of(case)}
            say(f"{case.name}: {run['layers']}, {run['gradient']}, {run['seconds']}")
            book.runs.append(run)
            book.save()
        if "verify" not in run:
            run["verify"] = verified(case)
            say(f"{case.name}: {run['verify']}")
            book.save()
        lines.append(line(case, run))
    table(["network", "index", "layers", "rank", "condition", "above 0.001", "above 0.01", "Verify", "seconds"], lines)


def line(case: Case, run: dict[str, Any]) -> list[Any]:
    """Return one row of the table."""
    found = analyse(unroll(parse(case.network), case.shape, 10))
    rows = {row.name: row.x for row in found.rows}
    layers = ", ".join(f"{name} {rank:,}/{rows[name]:,}" for name, rank in run["layers"].items() if rank is not None)
    whole = run["gradient"]
    rank = f"{whole['rank']:,} of {whole['unknowns']:,}" + ("" if whole["exact"] else " (sketch)")
    above = [one["directions"] for one in whole["above"]]
    ends = "; ".join(f"{name} {end['psnr']:.1f} dB {end['word']}" for name, end in run["verify"].items())
    return [case.name, run["index"], layers, rank, float(whole["condition"]), *above, ends, f"{sum(run['seconds'].values()):.0f}"]


if __name__ == "__main__":
    main()
