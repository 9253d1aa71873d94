"""Shared parts of the benchmarks: the data folder, one run to its end, a printed table, JSON in benchmarks/results/."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
if not os.environ.get("LEAKAGE_DATA") and (ROOT.parent / "shared" / "data").is_dir():
    os.environ["LEAKAGE_DATA"] = str(ROOT.parent / "shared" / "data")

import torch

from leakage.evaluation.play import PreparedAttack, play_together
from leakage.evaluation.referee import Frame
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import batchable, play, prepare

LANES = 8  # runs in one loop
Fields = dict[str, bool | int | float | str]  # of a Part


class Watched(TypedDict, total=False):
    """What of an experiment says how long the server has watched; empty: a single round, as everywhere."""

    protocol: Part
    rounds: int
    attacked_round: int


WATCHED: Watched = {  # for attackers that combine 16 rounds: a server that never moves the weights
    "protocol": Part(id="fedsgd", fields={"rate": 1e-6}),
    "rounds": 16,
    "attacked_round": 16,
}
ACCOMPLICE = Picture(source="cifar10", id="100")  # of a phone that colludes: none of those that are attacked
BRIEF = ("identified", "rank", "lpips")


def attacker(who: str, accomplice: Picture | None = None) -> Assumptions:
    """Return the naive attacker or an adaptive one: "imitate" and "adaptive" mean the default strategy, other names that strategy."""
    strategy = "" if who in ("naive", "adaptive", "imitate") else who
    return Assumptions(adaptive=who != "naive", strategy=strategy, accomplice=accomplice)


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
    experiment = experiment.resolve(plugin_catalog.describe())
    prepared = prepare(experiment, uploads=uploads)
    *_, frame = play(experiment, prepared=prepared, per_second=1)
    return result(prepared, frame)


def result(prepared: PreparedAttack, frame: Frame) -> Result:
    """Return the Result of a final frame."""
    return Result(
        psnr=frame.scores["psnr"],
        mse=frame.scores["mse"],
        ssim=frame.scores["ssim"],
        loss=frame.loss,
        label_right=frame.scores["label_accuracy"] == 1,
        seconds=frame.seconds,
        starts=int(frame.note.get("start", 1)),
        grey_psnr=prepared.baselines.scores["grey"]["psnr"],
        word=(frame.verdict or {}).get("word", ""),
        scores=frame.scores,
        baselines=prepared.baselines.scores,
    )


class Book:
    """The runs of one benchmark, in benchmarks/results/NAME.json after each: started again, it goes on where it was stopped.

    `brief`: of hundreds of runs, without baselines and with few scores.
    """

    def __init__(self, name: str, about: str | None, *, brief: bool = False) -> None:
        self.name, self.about, self.brief, self.file = name, about, brief, ROOT / "benchmarks" / "results" / f"{name}.json"
        self.runs: list[dict[str, Any]] = json.loads(self.file.read_text())["runs"] if self.file.exists() else []

    def play(self, asked: dict[str, Any], experiment: Experiment, uploads: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """Return the result (the fields of Result) of what is `asked`, computed unless it is stored."""
        return self.known(asked) or self.note(asked, asdict(finish(experiment, uploads)))

    def play_together(self, cells: Sequence[tuple[dict[str, Any], Experiment]]) -> None:
        """The same for several, LANES at a time in one loop as far as they can share one; what cannot is left for `play`."""
        torch.set_num_threads(1)
        known, todo = plugin_catalog.describe(), list[tuple[dict[str, Any], Experiment]]()
        for asked, experiment in cells:
            with suppress(SpecError):  # `play` says why it cannot be run
                if not self.known(asked) and batchable(resolved := experiment.resolve(known)):
                    todo.append((asked, resolved))
        while todo:
            group = [cell for cell in todo if cell[1].same_model_and_attack(todo[0][1])][:LANES]
            todo = [cell for cell in todo if cell not in group]
            scenes = [prepare(experiment) for _, experiment in group]
            for place, frame in play_together(scenes, [lambda: False] * len(group), per_second=1):
                if frame.final:
                    self.note(group[place][0], asdict(result(scenes[place], frame)))

    def known(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return the stored result of this run; None if it is not stored."""
        return next((dict(run["result"]) for run in self.runs if {name: run[name] for name in run if name != "result"} == asked), None)

    def take(self, names: Iterable[str]) -> None:
        """Add the runs of other files that are not in this one."""
        for name in names:
            self.runs += [run for run in Book(name, None).runs if run not in self.runs]
        self.save()

    def note(self, asked: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """Write it down."""
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        say(f"{words}: MSE {found['mse']:.1e}, {found['psnr']:.1f} dB, {found['seconds']:.0f} s")
        if self.brief:
            found = {**found, "baselines": {}, "scores": {name: found["scores"].get(name) for name in BRIEF}}
        self.runs.append({**asked, "result": found})
        self.save()
        return found

    def save(self, **more: Any) -> None:
        """Write the file anew."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps({"about": self.about, **more, "runs": self.runs}, indent=1) + "\n")


def say(text: str = "") -> None:
    """Print one line at once."""
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


def saved(name: str) -> dict[str, Any]:
    """Return what `save` wrote; {} where it wrote nothing yet."""
    file = ROOT / "benchmarks" / "results" / f"{name}.json"
    body: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return body


def save(name: str, body: dict[str, Any]) -> None:
    """Write benchmarks/results/NAME.json."""
    file = ROOT / "benchmarks" / "results" / f"{name}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(body, indent=1, default=asdict) + "\n")
    say(f"written: {file.relative_to(ROOT)}")
