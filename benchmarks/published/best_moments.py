"""Whether an attack keeps what it has found: the PSNR at the end of a run and at its best moment, and the reason for a loss.

The best moment is the referee's: an attack does not know it. Parts: `noise`, twenty pictures of the gallery behind Gaussian noise with what
the Lab's simple form does (LeNet, Inverting Gradients, 20 steps of polishing), before (as if the gradient were exact) and after (errors
known from the protection), and a naive attacker; `simple`, every protection and strength of the simple form; `presets`; `ask`, the
strongest known attackers of one person's picture; `recorded`, the frames of the recorded runs as they are stored.

A share of the runs of all parts but `recorded` can be played on each of several cores, and the parts joined:

    python benchmarks/published/best_moments.py noise --sigma 0.003 0.01 0.03             about 25 minutes of one core
    python benchmarks/published/best_moments.py noise simple presets ask --share 3/16 --out parts
    python benchmarks/published/best_moments.py --join parts
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import save, say, table

from leakage.engine.core import generator
from leakage.evaluation.metrics import psnr
from leakage.evaluation.pairing import pair
from leakage.evaluation.referee import pixels
from leakage.learn.recordings import FOLDER
from leakage.results.worst_case import strongest_attacks
from leakage.settings import ROOT
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.prepared import prepared
from leakage.spec.question import Question, groups
from leakage.spec.simple_choice import choices
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

FELL = 1.0  # dB
WHO = ("exact", "known", "naive")
SIGMAS = (0.003, 0.01, 0.03)
OPEN = "not looked into yet"
NEAR_GREY = "its best moment is below the grey picture too: noise is all it fits, and the moment nearest to grey scores best"
REASONS = {  # of runs that fell: all of these words stand in the row's names
    ("exact",): "it takes the gradient for exact, and fits the noise",
    ("r05",): "it takes five local steps for one gradient, near by direction but five times too long; polishing compares lengths",
    (
        "r15",
    ): "it takes AdaDefense's entries, all about equally large, for a gradient: the residual is no noise, a closer fit no better picture",
    ("adadefense", "naive"): "as r15",
    ("m01",): "DLG fits zeros where 95 % of the entries were not sent: no picture has this gradient, and it has no prior to stop it",
    ("glaus", "first"): "as m01",
    ("m02",): "the entries have the sizes of another phone's gradient: no picture has this gradient, and DLG has no prior to stop it",
    ("glaus", "second"): "as m02",
    ("r18",): "its first frame is the grey picture, from before a layer is solved; too few equations determine less than that",
    ("overturned", "first"): "the attack's two mistakes: it fits an update that the phone did not send, ever more closely",
    ("pruning", "naive"): "it takes entries that were set to zero for zeros: the residual is no noise but leans towards smaller gradients",
    ("pruning", "adaptive", "steps"): "several pruned gradients are added up: the size of the errors is not known, so it fits to the end",
    ("digit", "naive"): "a digit is sharp strokes on black, and smoothness takes some of these away",
    ("stand-in", "first"): "as r15",
    ("soteria", "naive"): "it takes columns that were set to zero for zeros: the residual is no noise but lies in one layer",
}
PLAYED = ("noise", "simple", "presets", "ask")
PICTURES = (
    *("astronaut", "chelsea", "coffee", "scan-1", "face-3", "page-0", "digit-5", "rocket", "retina", "scan-4"),
    *("face-0", "page-7", "immunohistochemistry", "face-5", "face-8", "page-2", "digit-3", "digit-8", "scan-0", "scan-5"),
)


def ended(experiment: Experiment, *, exact: bool = False) -> dict[str, Any]:
    """Run one job; return PSNR at its end and best moment, that of a grey picture, and the errors that the attacker assumes.

    exact  the attacker takes the gradient for exact, as before it knew how large a protection's errors are
    """
    scene = prepare(experiment)
    x, seen = scene.x, replace(scene.seen, knowledge=replace(scene.seen.knowledge, errors={})) if exact else scene.seen
    best, step, now = -1.0, 0, -1.0
    for moment in scene.attack.run(seen, generator(experiment.seed, "attack")):
        guess = pixels(moment)
        now = float(psnr(guess[pair(guess, x, kept=None)], x).mean())
        best, step = max((best, step), (now, moment.step))
    grey = float(psnr(torch.full_like(x, 0.5), x).mean())
    return {"end": now, "best": best, "best_step": step, "grey": grey, "errors": str(moment.note.get("errors", ""))}


@dataclass(frozen=True)
class Job:
    """One run of a part: the columns that name it, the experiment, and whether its attacker takes the gradient for exact."""

    part: str
    names: Mapping[str, str | float]
    experiment: Experiment
    exact: bool = False

    def play(self) -> dict[str, Any]:
        """Its row."""
        run = ended(self.experiment, exact=self.exact)
        row = {**self.names, **run}
        say(
            f"{self.part} {' '.join(map(str, self.names.values()))}: {run['end']:.2f} dB, best {run['best']:.2f} at step {run['best_step']}"
        )
        return row


def noise(sigma: float, count: int, attackers: Sequence[str]) -> Iterator[Job]:
    """Yield pictures behind noise, each with several attackers."""
    form = prepared().simple.networks["small"]
    for name in PICTURES[:count]:
        base = Experiment(
            pictures=(Picture(id=name),),
            model=form.model,
            defenses=(Part(id="gaussian_noise", fields={"scale": sigma}),),
            attack=form.protected,
        )
        for who in attackers:
            experiment = base.model_copy(update={"assume": Assumptions(adaptive=who != "naive")})
            yield Job("noise", {"picture": name, "sigma": sigma, "who": who}, experiment, exact=who == "exact")


def runs_of(part: str) -> Iterator[tuple[str, Experiment]]:
    """Yield the runs of a part, with their names."""
    if part == "presets":
        for preset in prepared().presets:
            yield from zip((f"{preset.name}, {who}" for who in ("first", "second")), preset.pair, strict=True)
    elif part == "simple":
        for choice in choices(1):
            if choice.network == "small":
                who = "adaptive" if choice.adaptive else "naive"
                steps = " after local steps" if choice.local else ""
                yield f"{choice.protection} {choice.strength} {who}{steps}", choice.experiment((Picture(id="astronaut"),))
    else:
        known = plugin_catalog.describe()
        for defense in (Part(id="gaussian_noise", fields={"scale": 0.01}), Part(id="dp_sgd", fields={"noise_multiplier": 0.1})):
            (group,) = groups(Question(defenses=(defense,), minutes=1))
            for one in strongest_attacks(group.resolve(known), known):
                who = one.assume.strategy or ("adaptive" if one.assume.adaptive else "naive")
                yield f"{defense.id}, {one.attack.id}, {who}", one


def jobs(parts: Sequence[str], sigmas: Sequence[float], pictures: int, attackers: Sequence[str]) -> Iterator[Job]:
    """Yield all runs of these parts."""
    for part in parts:
        if part == "noise":
            for sigma in sigmas:
                yield from noise(sigma, pictures, attackers)
        elif part != "recorded":
            yield from (Job(part, {"run": name}, experiment) for name, experiment in runs_of(part))


def recorded() -> list[dict[str, Any]]:
    """Return the rows of the recorded runs, as they are stored."""
    rows = list[dict[str, Any]]()
    for file in sorted(FOLDER.glob("*.json")):
        stored = json.loads(file.read_text())
        if "columns" not in stored or "psnr" not in stored["columns"]:
            continue
        scores = [value for value in stored["columns"]["psnr"] if value is not None]
        run = {"end": stored["result"]["scores"]["psnr"], "best": max(scores), "title": stored["title"]}
        protections = [one["id"] for one in stored["experiment"]["defenses"]]
        rows.append({"run": file.stem, **run, "protections": protections})
    return rows


def medians(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Return for every sigma the median end of each attacker, and of the grey picture."""
    found = []
    for sigma in sorted({row["sigma"] for row in rows}):
        own = [row for row in rows if row["sigma"] == sigma]
        ends = {who: [row["end"] for row in own if row["who"] == who] for who in WHO}
        shown = [median(values) if values else "" for values in ends.values()]
        found.append([sigma, len(ends["known"]), *shown, median(row["grey"] for row in own)])
    return found


def reason(row: Mapping[str, Any]) -> str:
    """Return why a run that fell ended below its best moment."""
    words = f"{row.get('who', '')} {row.get('run', '')} {row.get('picture', '').split('-')[0]}".replace(",", " ").split()
    known = (why for needed, why in REASONS.items() if set(needed) <= set(words))
    return next(known, NEAR_GREY if row["best"] < row.get("grey", 0) else OPEN)


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the old rows with the new rows in place of those with the same names."""
    keyed = {tuple(row.get(name) for name in ("run", "picture", "sigma", "who")): row for row in [*old, *new]}
    return list(keyed.values())


def keep(found: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write the rows into the result file, and print the table of every part."""
    kept = ROOT / "benchmarks" / "results" / "best_moments.json"
    result = json.loads(kept.read_text()) if kept.exists() else {}
    for part, rows in found.items():
        rows = rows if part == "recorded" else merged(result.get(part, []), rows)
        result[part] = [{**row, "why": reason(row) if row["best"] - row["end"] > FELL else ""} for row in rows]
        if part == "noise":
            table(["sigma", "pictures", "before: as if exact", "after: errors known", "naive", "grey"], medians(result[part]))
        fell = [row for row in result[part] if row["best"] - row["end"] > FELL]
        names = [" ".join(str(row[name]) for name in ("run", "picture", "sigma", "who") if name in row) for row in fell]
        table([part, "end", "best", "why"], [[name, row["end"], row["best"], row["why"]] for name, row in zip(names, fell, strict=True)])
    save("best_moments", {**result, "about": __doc__})


def main() -> None:
    """Play, join or sum up what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=(*PLAYED, "recorded"))
    parser.add_argument("--sigma", type=float, nargs="+", default=list(SIGMAS))
    parser.add_argument("--pictures", type=int, default=len(PICTURES))
    parser.add_argument("--attackers", nargs="+", choices=WHO, default=list(WHO))
    parser.add_argument("--share", default="1/1", help="which part of the runs, as 3/16: the third of every sixteen")
    parser.add_argument("--out", type=Path, help="write the rows into this folder, for --join")
    parser.add_argument("--join", type=Path, help="play nothing: take the rows from this folder")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = dict[str, list[dict[str, Any]]]()
    if given.join:
        for file in sorted(given.join.glob("*.json")):
            for part, rows in json.loads(file.read_text()).items():
                found.setdefault(part, []).extend(rows)
    place, count = map(int, given.share.split("/"))
    for job in list(jobs(given.parts, given.sigma, given.pictures, given.attackers))[place - 1 :: count]:
        found.setdefault(job.part, []).append(job.play())
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / f"{place}-of-{count}.json").write_text(json.dumps(found, indent=1))
    if "recorded" in given.parts:
        found["recorded"] = recorded()
    if not given.out:
        keep(found)


if __name__ == "__main__":
    main()
