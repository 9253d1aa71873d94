"""The command `run`: it computes the experiment in a file, and writes frames, the final picture and metrics.json into a folder."""

import argparse
import importlib.metadata
import json
import logging
import platform
import time
from pathlib import Path
from typing import Any

import leakage
from leakage.results.intervals import success_words
from leakage.results.metrics_file import Machine, Metrics, MetricsFrame, Privacy, ProgramFacts
from leakage.runs.endings import UNBEGUN, ending, inapplicable, why_refused
from leakage.runs.event_parts import BaselineScores, Ending, FrameScores, VerdictWords
from leakage.spec import catalog
from leakage.spec.cautions import all_cautions
from leakage.spec.experiment import MAX_SEED, Experiment, SpecError, parse
from leakage.spec.words import RECOGNIZABLE
from leakage.workers import plugin_catalog

PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-image", "scikit-learn", "pillow")  # on which results depend
RESULTS = ("frames", "final.png", "metrics.json", "success.json")
HELD = "{} holds results of another run ({}). Name another folder, or add --overwrite, which removes them."
log = logging.getLogger("leakage")


def options(run: argparse.ArgumentParser) -> None:
    """Add the arguments of the command `run` to its parser."""
    run.add_argument("experiment", type=Path, help="a JSON file, as the page's download gives it")
    run.add_argument("--out", type=Path, required=True, help="folder for the results; one that holds results is refused")
    run.add_argument("--overwrite", action="store_true", help="remove the results that the folder holds")
    run.add_argument("--seeds", type=int, default=1, help="so many runs, from the experiment's seed on, and how often the attack succeeds")


def perform(given: argparse.Namespace) -> None:
    """Compute the experiment in a file, and write its results into a folder.

    With several seeds, the runs have consecutive seeds from the experiment's seed on, and a folder each; success.json beside these folders
    has the success rates.

    Raises:
        ValueError: the number of seeds is not allowed, or the folder holds results of another run.
        SpecError: the experiment is not valid, or has uploads.
    """
    seeds, out = given.seeds, given.out
    if seeds < 1:
        raise ValueError(f"--seeds must be a whole number from 1 on; got {seeds}.")
    known = plugin_catalog.describe()
    experiment = parse(given.experiment.read_bytes()).resolve(known)
    if experiment.has_uploads:
        raise SpecError("pictures: uploads live only on the page that received them. Choose gallery or data-set pictures.")
    if experiment.seed + seeds - 1 > MAX_SEED:
        raise ValueError(f"--seeds: from seed {experiment.seed} on there are {MAX_SEED - experiment.seed + 1} seeds; got {seeds}.")
    make_room(out, overwrite=given.overwrite)
    for caution in all_cautions(experiment, known):
        log.warning("%s", caution)
    if seeds == 1:
        run_file(experiment, out)
        return
    numbers = range(experiment.seed, experiment.seed + seeds)
    ends = {seed: run_file(experiment.model_copy(update={"seed": seed}), out / f"seed-{seed}") for seed in numbers}
    words = [end.verdict.word for end in ends.values() if end.verdict]
    answers = [end.answer for end in ends.values() if end.answer]
    if not answers:  # an attack that does not apply, or on an update that the phone refused to compute, was not tried
        return
    rates = {
        "a recognizable picture": success_words([word == RECOGNIZABLE for word in words]),
        "every picture picked out of its line-up": success_words([answer.scores.identified == 1 for answer in answers]),
    }
    (out / "success.json").write_text(json.dumps({"seeds": list(ends), **rates}, indent=1))
    for event, rate in rates.items():
        log.info("Seeds with %s: %s.", event, rate)


def make_room(out: Path, *, overwrite: bool) -> None:
    """Create a folder for results; with `overwrite`, remove the results that it holds, else raise ValueError if it holds any."""
    out.mkdir(parents=True, exist_ok=True)
    present = sorted({*(out / name for name in RESULTS if (out / name).exists()), *out.glob("seed-*")})
    if present and not overwrite:
        raise ValueError(HELD.format(out, ", ".join(path.name for path in present[:3]) + (" ..." if len(present) > 3 else "")))
    for path in present:
        if not path.is_dir():
            path.unlink()
            continue
        if path.name == "frames":
            for frame in path.glob("*.png"):
                frame.unlink()
        else:
            make_room(path, overwrite=True)
        if not any(path.iterdir()):  # else somebody put files of another kind there
            path.rmdir()


def run_file(experiment: Experiment, out: Path) -> Metrics:
    """Compute an experiment, write frames/NNNNNN.png, final.png and metrics.json into `out`, and return the content of metrics.json."""
    import torch

    from leakage.engine.check import RefusedError
    from leakage.engine.inapplicable import DoesNotApplyError
    from leakage.engine.stopping import StoppedError
    from leakage.workers.adapter import play, prepare
    from leakage.workers.attack_job import contact_sheet
    from leakage.workers.check_facts import refusal
    from leakage.workers.timing import fitting_threads, searches

    (out / "frames").mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + experiment.max_seconds
    try:
        prepared = prepare(experiment, should_stop=lambda: time.monotonic() > deadline)
    except StoppedError:
        raise RuntimeError(UNBEGUN.format(experiment.max_seconds)) from None
    except RefusedError as error:
        return write(metrics_of(experiment, None, refusal(error)), out)
    if searches(prepared.seen, experiment.attack.fields):
        fitting_threads(prepared.seen, torch.get_num_threads(), experiment.attack.fields)
    rows: list[MetricsFrame] = []
    answer, verdict, note = None, None, {}
    try:
        for frame in play(experiment, prepared=prepared, should_stop=lambda: time.monotonic() > deadline):
            (out / ("final.png" if frame.final else f"frames/{frame.step:06d}.png")).write_bytes(contact_sheet(frame.x))
            scores = FrameScores.model_validate(frame.scores, extra="forbid")
            rows.append(MetricsFrame(step=frame.step, seconds=frame.seconds, loss=frame.loss, labels=tuple(frame.labels), scores=scores))
        answer, verdict, note = rows.pop(), frame.verdict, frame.note
        ended = ending("limit" if frame.ending == "stopped" else frame.ending, frame.step, experiment)
    except DoesNotApplyError as why:
        ended = inapplicable(str(why))
    found = {"answer": answer, "verdict": VerdictWords.model_validate(verdict) if verdict else None, "note": note, "frames": tuple(rows)}
    return write(metrics_of(experiment, prepared, ended, **found), out)


def metrics_of(experiment: Experiment, prepared: Any, ended: Ending, **found: Any) -> Metrics:
    """Return the content of metrics.json.

    Args:
        experiment: the experiment.
        prepared: the prepared attack; None if the phone refused to train the received model, so that nothing was sent.
        ended: how the run ended.
        found: what the attack found: answer, verdict, note and frames.
    """
    from leakage.engine.devices import best_device, device_for
    from leakage.workers.adapter import PRECISIONS
    from leakage.workers.check_facts import check_facts

    device = prepared.seen.device if prepared else device_for(PRECISIONS[experiment.precision], best_device())
    baselines = prepared.baselines.scores if prepared else {}
    return Metrics(
        version=1,
        experiment=experiment,
        program=program(),
        packages={"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES},
        machine=machine(device),
        privacy=privacy(prepared) if prepared else None,
        baselines={name: BaselineScores.model_validate(scores, extra="forbid") for name, scores in baselines.items()},
        ending=ended,
        checks=check_facts(prepared.checked) if prepared else (),
        **{"answer": None, "verdict": None, "note": {}, "frames": (), **found},
    )


def write(metrics: Metrics, out: Path) -> Metrics:
    """Write metrics.json into `out`, log the result, and return it."""
    (out / "metrics.json").write_text(json.dumps(metrics.model_dump(mode="json"), indent=1, allow_nan=False))
    log_result(metrics, out)
    return metrics


def log_result(metrics: Metrics, out: Path) -> None:
    """Log the result of a run in a few lines, with its folder."""
    if why_refused(metrics.ending):
        log.info("%s That is in %s.", metrics.ending.words, out)
        return
    if metrics.answer is None:
        log.info("%s It was not tried, and says nothing of what leaks. That is in %s.", metrics.ending.words, out)
        return
    if "event" in metrics.note:
        log.info("%s", metrics.note["event"])
    word = metrics.verdict.word.capitalize() if metrics.verdict else ""
    grey = metrics.baselines["grey"].psnr
    outcome = f"{metrics.ending.words}. {word}"
    log.info("%s: PSNR %.1f dB (a grey picture: %.1f dB). Results are in %s.", outcome, metrics.answer.scores.psnr, grey, out)
    if metrics.privacy:
        log.info("%s", metrics.privacy.words)


def privacy(prepared: Any) -> Privacy | None:
    """Return the privacy budget that the protections of a prepared attack promise; None if they promise none."""
    from leakage.engine.privacy import budget_sentence, privacy_budget

    budget = privacy_budget(prepared.federation, prepared.seen.received.weights)
    if budget is None:
        return None
    words = budget_sentence(budget.epsilon, budget.delta, budget.unit, budget.assumption)
    return Privacy(
        epsilon=budget.epsilon, delta=budget.delta, unit=budget.unit, uses=budget.uses, assumption=budget.assumption, words=words
    )


def program() -> ProgramFacts:
    """Return the version, the hash of the code and the commit of this program."""
    from leakage.workers.training_folder import commit_of_code

    return ProgramFacts(version=leakage.__version__, code=catalog.version(), commit=commit_of_code())


def machine(device: Any) -> Machine:
    """Return the name of the device that the attack ran on, the number of threads, and the platform of this machine."""
    import torch

    name = f"cuda, {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type
    return Machine(device=name, threads=torch.get_num_threads(), platform=f"{platform.system()} {platform.machine()}")
