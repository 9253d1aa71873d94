"""Time to a picture: seconds and steps until a guess is as good as the peer's answer, first in the line-up, or recognizable.

Ours and the package `breaching` attack one gradient from the same first guess, in turn, each in a process of its own. A process keeps every
guess with its time; they are scored afterwards, so that scoring costs neither of them anything.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:3]]  # this folder, benchmarks, the project
import numpy as np
import torch
from _table import Fields, save, saved, say, table
from loop import TV, batch_of, prepare_warm, run_like_worker, run_peer
from torch import Tensor

from leakage.engine.core import Snapshot
from leakage.evaluation import metrics
from leakage.evaluation.play import PreparedAttack
from leakage.settings import ROOT
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.spec.words import RECOGNIZABLE
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

LEAST = 5.0  # dB above grey that the peer's answer must reach; below, time to it says nothing
LOOKS = 16  # guesses of each run that are ranked in the line-up, evenly spaced by the logarithm of their step
NEVER = math.inf


@dataclass(frozen=True)
class Case:
    """A network and a batch, attacked by Inverting Gradients with `steps` steps."""

    title: str
    peer: str
    """The network's name in `peer_networks`."""
    model: str
    fields: Fields
    pictures: int
    steps: int


CASES = {
    f"{peer}-{pictures}": Case(title, peer, model, fields, pictures, steps)
    for title, peer, model, fields, sizes in (
        ("LeNet", "lenet", "lenet", Fields(), {1: 3000, 8: 3000}),
        ("ConvNet-16", "convnet", "convnet", Fields(), {1: 1000, 8: 1000}),
        ("ResNet18-16", "resnet", "resnet", Fields(), {1: 1000, 8: 1000}),
        ("ConvNet-64", "convnet64", "convnet", Fields(width=64), {1: 300, 8: 300}),  # a third of a second for each step
    )
    for pictures, steps in sizes.items()
}
MEASURES: dict[str, Fields] = {  # ways to shorten the time, each by itself; `steps` is a fraction of the peer's
    "the peer's settings": {},
    "a quarter of the steps": {"steps": 0.25},
    "an eighth of the steps": {"steps": 0.125},
    "a quarter, cosine schedule": {"steps": 0.25, "schedule": "cosine"},
    "a quarter, soft sign": {"steps": 0.25, "soft": True},
    "a quarter, no sign": {"steps": 0.25, "signed": False},
    "a quarter, four starts": {"steps": 0.25, "starts": 4},
    "coarse first": {"schedule": "coarse first"},
    "a quarter, coarse first": {"steps": 0.25, "schedule": "coarse first"},
    "an eighth, coarse first": {"steps": 0.125, "schedule": "coarse first"},
    "an eighth, coarse first, then L-BFGS": {"steps": 0.125, "schedule": "coarse first", "polish": 40},
    "a quarter, then L-BFGS": {"steps": 0.25, "polish": 40},
    "an eighth, then L-BFGS": {"steps": 0.125, "polish": 40},
}


@dataclass(frozen=True)
class Trace:
    """All guesses of a run (T, B, C, H, W), and the seconds from the beginning of its loop to each of them."""

    seconds: np.ndarray
    guesses: Tensor

    @staticmethod
    def read(path: Path) -> "Trace":
        """Read what `peer.save_trace` or `traced` wrote."""
        with np.load(path, allow_pickle=False) as kept:
            return Trace(kept["seconds"], torch.from_numpy(kept["guesses"]))

    def when(self, step: int | None) -> dict[str, float]:
        """Return the seconds and steps of a guess; never for None."""
        return {"seconds": NEVER, "steps": NEVER} if step is None else {"seconds": float(self.seconds[step]), "steps": step}


def find_first(psnr: Tensor, least: float) -> int | None:
    """Return the first guess with at least this PSNR; None: there is none."""
    reached = (psnr >= least).nonzero()
    return int(reached[0]) if len(reached) else None


def experiment(case: Case, more: Fields) -> Experiment:
    """Return Inverting Gradients on a case with other fields; labels are granted. `more["steps"]` is a fraction of the case's steps."""
    fields = {**more, "steps": int(case.steps * float(more.get("steps", 1)))}
    chosen = Experiment(
        model=Part(id=case.model, fields={"normalise": "cifar10", **case.fields}),
        assume=Assumptions(labels=True),
        attack=Part(id="inverting_gradients", fields={"tv_weight": TV, **fields}),
    )
    return batch_of(chosen, case.pictures, chosen.seed).resolve(plugin_catalog.describe())


def traced(chosen: Experiment, threads: int, seed: int, path: Path) -> None:
    """Run our attack and write its trace."""
    _, snapshots = prepare_warm(chosen, threads, seed)
    began, seconds, guesses = time.perf_counter(), list[float](), list[Tensor]()
    for snapshot in snapshots:
        seconds.append(time.perf_counter() - began)
        guesses.append(snapshot.x.clone())
    np.savez(path, seconds=np.array(seconds), guesses=torch.stack(guesses).clamp(0, 1).half().numpy())


def psnr_of(trace: Trace, scene: PreparedAttack) -> Tensor:
    """Return the PSNR of every guess (T,), the mean over its batch."""
    return torch.stack([metrics.psnr(guess.float(), scene.x).mean() for guess in trace.guesses])


def find_shown(trace: Trace, scene: PreparedAttack) -> dict[str, dict[str, float]]:
    """Return when the private picture first is first in its line-up, and when it is recognizable, among LOOKS guesses."""
    last, found = len(trace.guesses) - 1, dict[str, int]()
    for step in sorted({round(last ** (look / (LOOKS - 1))) for look in range(LOOKS)}):
        snapshot = Snapshot(step, trace.guesses[step].float(), scene.y, torch.tensor(0.0))
        frame = scene.referee().score(snapshot, ending="answer")
        if frame.scores["rank"] == 1:
            found.setdefault("first in the line-up", step)
        if frame.verdict and frame.verdict["word"] == RECOGNIZABLE:
            found.setdefault("recognizable", step)
            break
    return {name: trace.when(found.get(name)) for name in ("first in the line-up", "recognizable")}


def compared(peer: Path, case: Case, measures: dict[str, Fields], threads: int, seed: int) -> dict[str, Any]:
    """Return the times of both sides from one first guess."""
    scene = prepare(experiment(case, {}), device=torch.device("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        path, ours = Path(folder, "trace.npz"), dict[str, Trace]()
        run_peer(peer, case.peer, scene, "--trace", path, steps=case.steps, threads=threads, seed=seed)
        theirs = Trace.read(path)
        for title, more in measures.items():
            run_like_worker(__file__, "--traced", experiment(case, more).model_dump_json(), threads, seed, path)
            ours[title] = Trace.read(path)
    quality = psnr_of(theirs, scene)
    goal = float(quality[-1]) - 0.1  # dB
    row: dict[str, Any] = {"grey": scene.baselines.scores["grey"]["psnr"], "answer": float(quality[-1])}
    row["peer"] = {"the peer's PSNR": theirs.when(find_first(quality, goal)), **find_shown(theirs, scene)}
    for title, trace in ours.items():
        psnr = psnr_of(trace, scene)
        row[title] = {"the peer's PSNR": trace.when(find_first(psnr, goal)), **find_shown(trace, scene), "answer": float(psnr[-1])}
        row[title]["all"] = float(trace.seconds[-1])
    return row


def medians(case: Case, rows: list[dict[str, Any]], side: str) -> list[Any]:
    """Return a line of the table: medians of seconds, and how many times shorter than the peer's each is."""
    line: list[Any] = [case.title, case.pictures, side]
    for what in ("the peer's PSNR", "first in the line-up", "recognizable"):
        seconds = statistics.median(row[side][what]["seconds"] for row in rows)
        theirs = statistics.median(row["peer"][what]["seconds"] for row in rows)
        line += [seconds, theirs / seconds if math.isfinite(theirs) and math.isfinite(seconds) else "-"]
    return [*line, statistics.median(row[side].get("answer", row["answer"]) for row in rows), rows[0]["grey"]]


def report(peer: Path, names: list[str], measures: dict[str, Fields], threads: int, starts: int, *, resume: bool) -> None:
    """Measure the cases from several starts, write every start down, and print a table.

    Args:
        peer: the Python of the peer's environment.
        names: of the cases.
        measures: our settings, by title.
        threads: of torch.
        starts: first guesses of each case.
        resume: whether to keep the starts in the file that were measured with these settings.
    """
    lines = []
    for name in names:
        case = CASES[name]
        settings = {"threads": threads, "steps": case.steps}
        before = saved("to_picture").get(name, {"rows": []})
        rows = _known(before, settings, measures)[:starts] if resume else []
        for seed in range(len(rows), starts):
            rows.append(compared(peer, case, measures, threads, seed))
            if len(rows) >= min(starts, len(before["rows"])):  # what is unfinished does not take the place of more starts
                save("to_picture", {**saved("to_picture"), name: {**settings, "starts": len(rows), "rows": rows}})
        lines += [medians(case, rows, side) for side in ("peer", *measures)]
        above = statistics.median(row["answer"] - row["grey"] for row in rows)
        if above < LEAST:
            say(f"{case.title}, {case.pictures} pictures: the peer ends {above:.1f} dB above grey, too near for the time to mean anything.")
    say("Seconds, medians, and how many times shorter than the peer's")
    table(["network", "pictures", "side", "to its PSNR", "x", "first", "x", "recognizable", "x", "ends at dB", "grey"], lines)


def _known(before: dict[str, Any], settings: dict[str, int], measures: dict[str, Fields]) -> list[dict[str, Any]]:
    """Return the first starts of a case that were measured with these settings and measures."""
    same = all(before.get(setting) == value for setting, value in settings.items())
    return list(takewhile(lambda row: same and measures.keys() <= row.keys(), before["rows"]))


def main() -> None:
    """Parse the command line, measure, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, default=ROOT / ".venv-bench/bin/python", help="the Python of the peer's environment")
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--measure", choices=MEASURES, nargs="+", default=["the peer's settings"])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on after the starts that were measured with these settings")
    given = parser.parse_args()
    measures = {name: MEASURES[name] for name in given.measure}
    report(given.peer.absolute(), given.case, measures, given.threads, given.starts, resume=given.resume)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--traced"]:
        traced(Experiment.model_validate_json(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
