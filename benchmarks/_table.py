"""What every benchmark shares: where the data is, one run to its end, a printed table, a JSON file in benchmarks/results/."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
if not os.environ.get("LEAKAGE_DATA") and (ROOT.parent / "shared" / "data").is_dir():
    os.environ["LEAKAGE_DATA"] = str(ROOT.parent / "shared" / "data")

import torch  # noqa: E402

from leakage import catalog  # noqa: E402
from leakage.engine.play import play, prepare  # noqa: E402
from leakage.spec import Experiment  # noqa: E402


@dataclass(frozen=True)
class Result:
    """The answer of one run, all its scores, and what pictures that know nothing would have scored."""

    psnr: float
    mse: float
    ssim: float
    loss: float
    label_right: bool
    seconds: float
    starts: int
    grey_psnr: float
    word: str  # of the verdict
    scores: dict[str, Any]
    baselines: dict[str, dict[str, float]]


def finish(experiment: Experiment, uploads: Mapping[str, bytes] | None = None) -> Result:
    """Play an experiment to its end on one thread."""
    torch.set_num_threads(1)
    experiment = experiment.resolve(catalog.describe())
    scene = prepare(experiment, uploads=uploads)
    *_, frame = play(experiment, scene=scene, per_second=1)
    return Result(
        psnr=frame.scores["psnr"],
        mse=frame.scores["mse"],
        ssim=frame.scores["ssim"],
        loss=frame.loss,
        label_right=frame.scores["label_accuracy"] == 1,
        seconds=frame.seconds,
        starts=int(frame.note.get("start", 1)),
        grey_psnr=scene.standards.baselines["grey"]["psnr"],
        word=(frame.verdict or {}).get("word", ""),
        scores=frame.scores,
        baselines=scene.standards.baselines,
    )


class Book:
    """The runs of one benchmark, in benchmarks/results/NAME.json after each: started again, it goes on where it was stopped."""

    def __init__(self, name: str, about: str | None) -> None:
        self.name, self.about, self.file = name, about, ROOT / "benchmarks" / "results" / f"{name}.json"
        self.runs: list[dict[str, Any]] = json.loads(self.file.read_text())["runs"] if self.file.exists() else []

    def play(self, asked: dict[str, Any], experiment: Experiment, uploads: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """The result (the fields of Result) of what is `asked`, computed unless it is in the book."""
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        for run in self.runs:
            if {name: run.get(name) for name in asked} == asked:
                return dict(run["result"])
        found = asdict(finish(experiment, uploads))
        say(f"{words}: MSE {found['mse']:.1e}, {found['psnr']:.1f} dB, {found['seconds']:.0f} s")
        self.runs.append({**asked, "result": found})
        self.save()
        return found

    def save(self, **more: Any) -> None:
        """Write the file anew."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps({"about": self.about, **more, "runs": self.runs}, indent=1) + "\n")


def say(text: str = "") -> None:
    """One line on the terminal, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(heads: list[str], rows: list[list[Any]]) -> None:
    """Print rows under heads, columns aligned."""
    cells = [heads, *[[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for number, row in enumerate(cells):
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            say("  ".join("-" * width for width in widths))


def save(name: str, body: dict[str, Any]) -> None:
    """Write benchmarks/results/NAME.json."""
    file = ROOT / "benchmarks" / "results" / f"{name}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(body, indent=1, default=asdict) + "\n")
    say(f"written: {file.relative_to(ROOT)}")
