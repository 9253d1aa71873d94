"""What every benchmark shares: where the data is, one run to its end, a printed table, a JSON file in benchmarks/results/."""

import json
import os
import sys
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
    scores: dict[str, Any]
    baselines: dict[str, dict[str, float]]


def finish(experiment: Experiment) -> Result:
    """Play an experiment to its end on one thread."""
    torch.set_num_threads(1)
    experiment = experiment.resolve(catalog.describe())
    scene = prepare(experiment)
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
        scores=frame.scores,
        baselines=scene.standards.baselines,
    )


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
