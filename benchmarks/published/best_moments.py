"""Whether an attack keeps what it has found: the PSNR at the end of a run beside that of its own best moment, and why, where it fell.

The best moment is the referee's: an attack does not know it. Parts: `noise`, twenty pictures of the gallery behind Gaussian noise with what
the Lab's simple form does (LeNet, Inverting Gradients, 20 steps of polishing), before (as if the gradient were exact) and after (errors
known from the protection), and a naive attacker; `simple`, every protection and strength of the simple form; `presets`; `ask`, the
strongest known attackers of one person's picture; `recorded`, the frames of the recorded runs as they are stored.

    python benchmarks/published/best_moments.py noise [--sigma 0.01] [--pictures 20]      about 15 minutes on one core for each sigma
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
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
from leakage.results.worst_case import tries
from leakage.settings import ROOT
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.prepared import prepared
from leakage.spec.question import Question, groups
from leakage.spec.simple_choice import choices
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe, plugin
from leakage.workers.generator_adapter import with_generator
from leakage.workers.private_pictures import load

FELL = 1.0  # dB
WHO = ("exact", "known", "naive")
FALLBACK = "the attacker does not see it: the rule stops at what it knows of the errors, not at the truth"
NAIVE = "a naive attacker does not know the protection: what it fits is not what arrived"
PICTURES = (
    *("astronaut", "chelsea", "coffee", "scan-1", "face-3", "page-0", "digit-5", "rocket", "retina", "scan-4"),
    *("face-0", "page-7", "immunohistochemistry", "face-5", "face-8", "page-2", "digit-3", "digit-8", "scan-0", "scan-5"),
)


def ended(experiment: Experiment, *, exact: bool = False) -> dict[str, Any]:
    """One run: PSNR at its end and at its best moment, that of a grey picture, and what the attacker assumes of the errors.

    exact  the attacker takes the gradient for exact, as before it knew how large a protection's errors are
    """
    x, y = load(experiment, {})
    seen, attack = observe(experiment, x, y), plugin("attack", experiment.attack)
    if exact:
        seen = replace(seen, errors={})
    best, step, now = -1.0, 0, -1.0
    for moment in attack.run(with_generator(seen, attack), generator(experiment.seed, "attack")):
        guess = pixels(moment)
        now = float(psnr(guess[pair(guess, x, kept=None)], x).mean())
        best, step = max((best, step), (now, moment.step))
    grey = float(psnr(torch.full_like(x, 0.5), x).mean())
    return {"end": now, "best": best, "best_step": step, "grey": grey, "errors": str(moment.note.get("errors", ""))}


def reason(run: dict[str, Any], *, adaptive: bool) -> str:
    """Why a run ends below its best moment; nothing where it does not."""
    return "" if run["best"] - run["end"] <= FELL else FALLBACK if adaptive else NAIVE


def noise(sigma: float, count: int, attackers: list[str]) -> list[dict[str, Any]]:
    """Pictures behind noise: some attackers of each."""
    form, rows = prepared().simple.networks["small"], list[dict[str, Any]]()
    for name in PICTURES[:count]:
        base = Experiment(
            pictures=(Picture(id=name),),
            model=form.model,
            defenses=(Part(id="gaussian_noise", fields={"scale": sigma}),),
            attack=form.protected,
        )
        for who in attackers:
            run = ended(base.model_copy(update={"assume": Assumptions(adaptive=who != "naive")}), exact=who == "exact")
            rows.append({"picture": name, "sigma": sigma, "who": who, **run, "why": reason(run, adaptive=who != "naive")})
            say(f"{sigma} {name} {who}: {run['end']:.2f} dB, best {run['best']:.2f} at step {run['best_step']}, grey {run['grey']:.2f}")
    return rows


def runs_of(part: str) -> Iterator[tuple[str, Experiment]]:
    """The runs of a part, with their names."""
    if part == "presets":
        for preset in prepared().presets:
            yield from zip((f"{preset.name}, {who}" for who in ("first", "second")), preset.pair, strict=True)
    elif part == "simple":
        for choice in choices(1):
            if choice.network == "small":
                who = "adaptive" if choice.adaptive else "naive"
                yield f"{choice.protection} {choice.force} {who}", choice.experiment((Picture(id="astronaut"),))
    else:
        known = plugin_catalog.describe()
        for defense in (Part(id="gaussian_noise", fields={"scale": 0.01}), Part(id="dp_sgd", fields={"sigma": 0.1})):
            (group,) = groups(Question(defenses=(defense,), minutes=1))
            for one in tries(group.resolve(known), known):
                who = one.assume.strategy or ("adaptive" if one.assume.adaptive else "naive")
                yield f"{defense.id}, {one.attack.id}, {who}", one


def played(part: str) -> list[dict[str, Any]]:
    """Runs of that part."""
    rows = list[dict[str, Any]]()
    for name, experiment in runs_of(part):
        run = ended(experiment)
        rows.append({"run": name, **run, "why": reason(run, adaptive=experiment.assume.adaptive)})
        say(f"{name}: {run['end']:.2f} dB, best {run['best']:.2f} at step {run['best_step']} {rows[-1]['why']}")
    return rows


def recorded() -> list[dict[str, Any]]:
    """The recorded runs, as they are stored."""
    rows = list[dict[str, Any]]()
    for file in sorted(FOLDER.glob("*.json")):
        stored = json.loads(file.read_text())
        if "columns" not in stored or "psnr" not in stored["columns"]:
            continue
        scores = [value for value in stored["columns"]["psnr"] if value is not None]
        run = {"end": stored["result"]["scores"]["psnr"], "best": max(scores), "title": stored["title"]}
        adaptive = stored["experiment"]["assume"]["adaptive"]
        protections = [one["id"] for one in stored["experiment"]["defenses"]]
        rows.append({"run": file.stem, **run, "protections": protections, "why": reason(run, adaptive=adaptive)})
    return rows


def medians(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Of every sigma the median end of each attacker, and of the grey picture."""
    found = []
    for sigma in sorted({row["sigma"] for row in rows}):
        own = [row for row in rows if row["sigma"] == sigma]
        ends = {who: [row["end"] for row in own if row["who"] == who] for who in WHO}
        shown = [median(values) if values else "" for values in ends.values()]
        found.append([sigma, len(ends["known"]), *shown, median(row["grey"] for row in own)])
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("noise", "simple", "presets", "ask", "recorded"))
    parser.add_argument("--sigma", type=float, default=0.01)
    parser.add_argument("--pictures", type=int, default=len(PICTURES))
    parser.add_argument("--attackers", nargs="+", choices=WHO, default=list(WHO))
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.part == "noise":
        rows = noise(given.sigma, given.pictures, given.attackers)
    else:
        rows = recorded() if given.part == "recorded" else played(given.part)
    kept = ROOT / "benchmarks" / "results" / "best_moments.json"
    result = json.loads(kept.read_text()) if kept.exists() else {}
    if given.part == "noise":
        rows = [row for row in result.get("noise", []) if row["sigma"] != given.sigma] + rows
        table(["sigma", "pictures", "before: as if exact", "after: errors known", "naive", "grey"], medians(rows))
    else:
        table(["run", "end", "best", "why"], [[row["run"], row["end"], row["best"], row["why"]] for row in rows])
    save("best_moments", {**result, "about": __doc__, given.part: rows})
