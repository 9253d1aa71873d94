"""The run of an attack: its frames become events. Runs of one model and one attack share one loop where that is faster."""

import base64
import importlib.metadata
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from leakage.data.checkpoints import describe_training
from leakage.data.images import class_names, find, sheet
from leakage.engine.check import RefusedError
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.privacy import privacy_budget
from leakage.engine.stopping import StoppedError
from leakage.evaluation.play import PreparedAttack, play, play_together
from leakage.evaluation.referee import Frame
from leakage.runs.endings import UNBEGUN, ending, inapplicable
from leakage.runs.estimates import timing_key
from leakage.runs.event_parts import (
    BaselineScores,
    FrameScores,
    GradientDistances,
    LineupFacts,
    LpipsFacts,
    PrivacyBound,
    PrivatePicture,
    ReceivedUpdate,
    VerdictWords,
)
from leakage.runs.events import AttackEnd, FrameEvent, MetaEvent, NoteEvent
from leakage.runs.meta_parts import AttackerKnowledge, AttackMethod, Judging, PrivateBatch, RunEnvironment, UpdateFacts
from leakage.runs.store import Run
from leakage.settings import AUTOGRAD, FORMULA, cores, settings
from leakage.spec.experiment import Experiment, Picture, parse
from leakage.workers.adapter import batchable, prepare
from leakage.workers.check_facts import check_facts, refusal
from leakage.workers.compiled_programs import compiled_programs
from leakage.workers.heartbeat import STUCK
from leakage.workers.job import Job, UnbegunError
from leakage.workers.timing import fitting_threads, lanes_cost, searches

TWO = ("class 0", "class 1")  # of a model with one output
SO_FAR = "the best so far is shown"
LANES = 8  # runs in one loop


def perform(job: Job, device: torch.device) -> None:
    """Run an attack, in one batched optimization (a loop) with waiting runs that can share it, and store their frames and results.

    The time of a run begins when the run is claimed, so it includes the preparation. All runs of a loop have one time limit: the limit of
    one run, times the duration of a step of the loop divided by the duration of a step of one run. So each run has as many steps as it
    would have by itself, and all runs together take less time than one after the other.
    """
    limit = parse(job.run.experiment).max_seconds
    job.limit_time(limit)
    first = prepare_case(job, device)
    if first is None:
        return
    with ExitStack() as stack:
        cases = [first]
        others, cost = batchable_runs(first)
        limit, runs = math.ceil(limit * cost), 1 + len(others)
        job.limit_time(limit, runs=runs)
        for run in others:
            other_job = stack.enter_context(Job(job.store, run, so_far=SO_FAR))
            other_job.limit_time(limit, runs=runs, since=job.run.started)
            with suppress(Exception), other_job.failing():  # an error in one run does not end the others
                if case := prepare_case(other_job, device):
                    cases.append(case)
            job.fit = job.fit and other_job.fit
        for case in cases:
            case.job.store_device_kind(device)
            case.job.store.put_file(case.job.run.id, "private.png", contact_sheet(case.prepared.x))
            case.job.store.add_event(case.job.run.id, describe(case, others=len(cases) - 1))
        with end_inapplicable(cases):
            if len(cases) == 1:
                run_single(first)
                return
            with count_missed_programs(first):
                for index, frame in play_together([case.prepared for case in cases], [case.job.heartbeat for case in cases]):
                    store_frame(cases[index], frame, alone=False)


@contextmanager
def end_inapplicable(cases: "Sequence[Case]") -> Iterator[None]:
    """End the runs of these cases as "does not apply" when the attack raises DoesNotApplyError inside the block."""
    try:
        yield
    except DoesNotApplyError as error:
        for case in cases:
            if not case.job.closed:
                case.job.done(AttackEnd(ending=inapplicable(str(error)), seconds=0.0))


@dataclass(frozen=True)
class Case:
    """A claimed run with its experiment and its prepared attack."""

    job: Job
    experiment: Experiment
    prepared: PreparedAttack


def prepare_case(job: Job, device: torch.device) -> Case | None:
    """Return a claimed run with its attack prepared; where a phone refuses the received model, end the run and return None.

    Raises:
        UnbegunError: the run is stopped meanwhile, or its time is over.
    """
    experiment = parse(job.run.experiment)
    job.heartbeat.last_words = UNBEGUN.format(job.limit)
    uploads = {name.removeprefix("upload:"): data for name, data in job.store.files(job.run.id, "upload:").items()}
    try:
        prepared = prepare(experiment, uploads=uploads, device=device, should_stop=job.heartbeat.should_stop)
    except StoppedError:
        raise UnbegunError from None
    except RefusedError as error:
        job.store_device_kind(device)
        job.done(AttackEnd(ending=refusal(error), seconds=0.0))
        return None
    job.heartbeat.last_words = STUCK
    return Case(job, experiment, prepared)


def batchable_runs(case: Case) -> tuple[list[Run], float]:
    """Claim waiting runs, of any owner, that can be computed in one batched optimization (a loop) with this run.

    They have its model, weights and attack. Those that would begin first are claimed first. At most LANES runs share a loop, and at most
    as many as divide the runs equally among all slots. No run is claimed if the loop would be no faster than one run after the other.

    Returns:
        The claimed runs, and the duration of a step of the loop divided by the duration of a step of one run.
    """
    job, experiment = case.job, case.experiment
    assert job.run.worker is not None
    open_runs = [*job.store.queue(), *job.store.running()] if batchable(experiment) else []
    others = [run for run in open_runs if run.id != job.run.id and run.kind == job.run.kind]
    others = [run for run in others if (other := parse(run.experiment)).same_model_and_attack(experiment) and batchable(other)]
    per_slot = min(LANES, math.ceil((len(others) + 1) / settings().slots)) - 1
    waiting = [run.id for run in others if run.status == "queued"]
    most = min(per_slot, len(waiting))
    cost = lanes_cost(case.prepared.seen, most + 1) if most else 1.0
    claimed = job.store.claim_also(waiting, most, job.run.worker) if cost < most + 1 else []
    return claimed, min(cost, 1.0 + len(claimed))


def run_single(case: Case) -> None:
    """Compute one run by itself, from its second frame on with as many threads as make it fast, and store its frames."""
    fields, seen = case.experiment.attack.fields, case.prepared.seen
    fitting = searches(seen, fields)  # the number of threads is still to be found
    with count_missed_programs(case):
        for frame in play(case.prepared, should_stop=case.job.heartbeat):
            store_frame(case, frame, alone=True)
            if fitting and not frame.final:
                with compiled_programs().uncounted():
                    case.job.heartbeat.most = fitting_threads(seen, cores(), fields)
                fitting = False


@contextmanager
def count_missed_programs(case: Case) -> Iterator[None]:
    """Note which compiled programs the search in the block missed; where no run waits, those that are worth it are recorded."""
    programs, began = compiled_programs(), time.monotonic()
    programs.missed.clear()
    yield
    programs.count_run(time.monotonic() - began, record=not case.job.store.queue())


def store_frame(case: Case, frame: Frame, *, alone: bool) -> None:
    """Store a frame of a run as an event with its pictures. The final frame also closes the job.

    Args:
        case: the run.
        frame: the frame; the text under "event" in its note is stored as an event before it.
        alone: whether the run is the only run in its loop, so that similar runs can be expected to take as long.
    """
    job, store, run = case.job, case.job.store, case.job.run.id
    if "event" in frame.note:
        store.add_event(run, NoteEvent(text=frame.note["event"]))
    scores = FrameScores.model_validate(frame.scores, extra="forbid")
    common: dict[str, Any] = {"step": frame.step, "scores": scores, "labels": tuple(frame.labels), "note": frame.note}
    common["verdict"] = VerdictWords.model_validate(frame.verdict) if frame.verdict else None
    views = {name: picture_address(view) for name, view in frame.views.items()}
    event = FrameEvent(**common, seconds=round(frame.seconds, 3), loss=frame.loss, views=views)
    seq = store.add_frame(run, event, contact_sheet(frame.x))
    if frame.final:
        how = job.cut if frame.ending == "stopped" else frame.ending
        job.done(
            AttackEnd(
                **common,
                answer=seq,
                ending=ending(how, frame.step, case.experiment),
                steps=frame.step,
                seconds=frame.seconds,
                timing_key=timing_key(case.experiment) if alone else None,
            )
        )


def contact_sheet(x: torch.Tensor) -> bytes:
    """Return pictures (B, C, H, W) in [0, 1] as one lossless PNG, side by side."""
    return sheet((x * 255).round().byte().permute(0, 2, 3, 1).numpy())


def picture_address(picture: torch.Tensor) -> str:
    """Return a small picture (C, H, W) in [0, 1] as a data: URL."""
    return "data:image/png;base64," + base64.b64encode(contact_sheet(picture.unsqueeze(0))).decode()


def describe(case: Case, *, others: int) -> MetaEvent:
    """Return the first event of a run: all that a page shows and that does not change during the run.

    Args:
        case: the run.
        others: the number of other runs in its loop.
    """
    experiment, prepared, run = case.experiment, case.prepared, case.job.run
    baselines, attack, device = prepared.baselines, prepared.attack, prepared.seen.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type}, {cores()} core{'s' if cores() > 1 else ''}"
    steps = experiment.attack.fields.get("steps")
    name += f", in one loop with {others} other run{'' if others == 1 else 's'}" if others else ""
    versions = {**package_versions(), "engine": run.version}
    server = prepared.federation.server
    isolated = server is not None and server.separates and attack.id not in server.reading  # a network of its own is searched
    formula = None if isolated else prepared.seen.replay.formula
    versions["derivatives by"] = FORMULA if formula and formula.exists() else AUTOGRAD
    return MetaEvent(
        truth=PrivateBatch(
            batch=len(experiment.pictures),
            size=experiment.size,
            channels=experiment.channels,
            private=f"/api/runs/{run.id}/private.png",
            pictures=pictures(experiment, prepared.y.tolist()),
            class_names=tuple(class_names(experiment.pictures[0].source)) if experiment.task == "classes" else TWO,
            classes=experiment.outputs or None,
        ),
        update=UpdateFacts(
            received=ReceivedUpdate.model_validate(prepared.received, extra="forbid"),
            changed=GradientDistances.model_validate(prepared.changed, extra="forbid"),
            known=GradientDistances.model_validate(prepared.known, extra="forbid"),
            epsilon=guarantee(prepared),
        ),
        method=AttackMethod(
            steps=None if steps is None else int(steps),
            attack=attack.short or attack.title,
            loss_name=attack.loss_name,
            way=attack.way,
        ),
        knowledge=AttackerKnowledge(
            labels_granted=experiment.assume.labels,
            weights=describe_training(experiment.checkpoint),
            batch_norm=any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) for layer in prepared.seen.model.modules()),
            answers=prepared.federation.strategy_descriptions,
        ),
        environment=RunEnvironment(device=name, versions=versions, estimate=run.estimate),
        judging=Judging(
            baselines={name: BaselineScores.model_validate(scores, extra="forbid") for name, scores in baselines.scores.items()},
            lineup=LineupFacts(size=baselines.lineup.size, words=baselines.lineup.words),
            lpips=LpipsFacts(net=baselines.perceptual.net, words=baselines.perceptual.words),
        ),
        checks=check_facts(prepared.checked),
    )


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages on which the digits of a result depend."""
    return {package: importlib.metadata.version(package) for package in ("torch", "scikit-image")}


def guarantee(prepared: PreparedAttack) -> PrivacyBound | None:
    """Return the privacy bound (epsilon, delta, unit) on all that the client has sent; None if no protection promises a bound."""
    budget = privacy_budget(prepared.federation, prepared.seen.received.weights)
    return PrivacyBound(value=budget.epsilon, delta=budget.delta, times=budget.uses, whom=budget.unit) if budget else None


def name_class(source: str, label: int) -> str:
    """Return the name of a class in a source of pictures, or "class N" if the class has no name."""
    names = class_names(source)
    return names[label] if label < len(names) else f"class {label}"


def pictures(experiment: Experiment, labels: Sequence[int]) -> tuple[PrivatePicture, ...]:
    """Return title, class name and label of every private picture, for the page."""

    def described(picture: Picture, label: int) -> PrivatePicture:
        if picture.source == "upload":
            return PrivatePicture(title="Your picture", class_name=name_class(picture.source, picture.label or 0), label=label)
        item = find(picture.source, picture.id)
        return PrivatePicture(title=item.title, class_name=item.class_name, label=label)

    return tuple(described(*pair) for pair in zip(experiment.pictures, labels, strict=True))
