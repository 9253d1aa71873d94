"""One run from claim to finish, in a warm process of its own: `python -m leakage.runs.worker SLOT DISPATCHER`."""

import base64
import importlib.metadata
import logging
import os
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from leakage import catalog, privacy
from leakage.checkpoints import words
from leakage.engine.play import Frame, Scene, best_device, play, plugin, prepare
from leakage.engine.timing import fitting_threads, measure
from leakage.pictures import class_names, find, sheet
from leakage.runs import ranks, training
from leakage.runs.database import StoreError, is_full
from leakage.runs.pulse import Pulse
from leakage.runs.service import FULL, SPEEDS, like
from leakage.runs.store import Run, Store
from leakage.settings import Settings, cores, settings
from leakage.spec import Experiment, Part, parse
from leakage.tasks import Ranks, Training, parse_training

TWO = ["class 0", "class 1"]  # of a model with one output
DELTA = 1e-5  # of differential privacy
MEMORY = "This needs more memory than one run may use here. Choose a smaller batch, a smaller picture or a narrower model."
log = logging.getLogger(__name__)


def perform(store: Store, run: Run, device: torch.device) -> None:
    """Play one claimed run and close it, whatever happens."""
    pulse = Pulse(store, run)
    pulse.start()
    try:
        kind = KINDS[run.kind]
        asked = kind.parse(run.experiment)
        pulse.deadline = time.monotonic() + asked.max_seconds
        result = kind.perform(store, run, pulse, device)
        message = f"Stopped after {asked.max_seconds} s, the limit for one run; {kind.so_far}." if pulse.late else ""
        if pulse.stopped:
            message = f"Cancelled; {kind.so_far}."
        store.finish(run.id, "done" if kind.whole(result) and not pulse.stopped else "cancelled", message=message, result=result)
    except Exception as error:  # the one place that must survive anything a run may do
        log.error("run %s failed:\n%s", run.id, traceback.format_exc())
        fail(store, run, error)
    finally:
        pulse.over.set()
        pulse.join()


def attack(store: Store, run: Run, pulse: Pulse, device: torch.device) -> dict[str, Any]:
    """Play the attack, keep its frames and answer the result."""
    experiment = parse(run.experiment)
    uploads = {name.removeprefix("upload:"): data for name, data in store.files(run.id, "upload:").items()}
    scene = prepare(experiment, uploads=uploads, device=device)
    store.put_file(run.id, "private.png", contact_sheet(scene.x))
    store.add_event(run.id, "meta", describe(scene, run, device))
    if device.type == "cpu" and "steps" in experiment.attack.fields:
        pulse.most = fitting_threads(scene.seen, cores(), int(experiment.attack.fields.get("starts", 1)))
    frame: Frame | None = None
    for frame in play(experiment, scene=scene, pulse=pulse):
        seq = keep(store, run.id, frame)
    assert frame is not None
    assert frame.verdict is not None
    return {
        "answer": seq,
        "steps": frame.step,
        "seconds": frame.seconds,
        "scores": finite(frame.scores),
        "labels": frame.labels,
        "note": finite(frame.note),
        "verdict": frame.verdict,
        "like": like(experiment),
    }


def train(store: Store, run: Run, pulse: Pulse, device: torch.device) -> dict[str, Any]:
    """Train, with all cores while alone."""
    pulse.most = cores()
    return training.perform(store, run, pulse, device)


def measure_ranks(store: Store, run: Run, pulse: Pulse, _device: torch.device) -> dict[str, Any]:
    """Measure ranks, on one core."""
    return ranks.perform(store, run, pulse)


@dataclass(frozen=True)
class Kind:
    """What is done with one kind of run, and what is said of one that was stopped.

    whole   whether a result answers all that was asked: if not, it is not shared with who asks for the same again; a training then goes on
            from its checkpoint, ranks begin anew
    """

    parse: Callable[[str], Experiment | Training | Ranks]
    perform: Callable[[Store, Run, Pulse, torch.device], dict[str, Any]]
    so_far: str
    whole: Callable[[dict[str, Any]], bool]


KINDS = {
    "attack": Kind(parse, attack, "the best so far is shown", lambda result: True),
    "train": Kind(
        parse_training,
        train,
        "the same training, asked for again, goes on from its last full round",
        lambda result: result["checkpoint"] is not None,
    ),
    "rank": Kind(Ranks.model_validate_json, measure_ranks, "the ranks so far are shown", lambda result: result["whole"]),
}


def keep(store: Store, run: str, frame: Frame) -> int:
    """Store one frame; what it could not miss saying becomes an event of its own."""
    if "event" in frame.note:
        store.add_event(run, "note", {"text": frame.note["event"]})
    body: dict[str, Any] = {
        "step": frame.step,
        "seconds": round(frame.seconds, 3),
        "loss": finite(frame.loss),
        "scores": finite(frame.scores),
        "labels": frame.labels,
        "note": finite(frame.note),
    }
    if frame.verdict:
        body["verdict"] = frame.verdict
    if frame.views:
        body["views"] = {name: picture_address(view) for name, view in frame.views.items()}
    return store.add_frame(run, body, contact_sheet(frame.x))


def contact_sheet(x: torch.Tensor) -> bytes:
    """Pictures (B, C, H, W) in [0, 1] as one lossless PNG."""
    return sheet((x * 255).round().byte().permute(0, 2, 3, 1).numpy())


def picture_address(picture: torch.Tensor) -> str:
    """A small picture (C, H, W) in [0, 1] as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(contact_sheet(picture.unsqueeze(0))).decode()


def finite(value: Any) -> Any:
    """JSON knows no infinity: None instead, in lists and dicts too."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def describe(scene: Scene, run: Run, device: torch.device) -> dict[str, Any]:
    """The "meta" event: everything a page shows that does not change during the run."""
    experiment, held = scene.experiment, scene.standards
    attack = catalog.load("attack", experiment.attack.id)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type}, {cores()} cores"
    return {
        "batch": len(experiment.pictures),
        "size": experiment.size,
        "channels": experiment.channels,
        "private": f"/api/runs/{run.id}/private.png",
        "pictures": [one | {"label": label} for one, label in zip(pictures(experiment), scene.y.tolist(), strict=True)],
        "class_names": class_names(experiment.pictures[0].source) if experiment.task == "classes" else TWO,
        "received": scene.received,
        "baselines": finite(held.baselines),
        "lineup": {"size": held.lineup.size, "words": held.lineup.words},
        "lpips": {"net": held.perceptual.net, "words": held.perceptual.words},
        "steps": experiment.attack.fields.get("steps"),  # None: it answers at once
        "attack": attack.title,
        "loss_name": attack.loss_name,
        "way": attack.way,
        "labels_granted": experiment.assume.labels,
        "weights": words(experiment.checkpoint),
        "batch_norm": any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) for layer in scene.seen.model.modules()),
        "changed": scene.changed,
        "known": scene.known,
        "answers": scene.answers,
        "epsilon": finite(guarantee(scene)),
        "device": name,
        "versions": {package: importlib.metadata.version(package) for package in ("torch", "scikit-image")} | {"engine": run.version},
        "estimate": run.estimate,
    }


def guarantee(scene: Scene) -> dict[str, Any] | None:
    """Epsilon of the first protection that promises one: for one picture, in all that this client has sent."""
    experiment = scene.experiment
    for part in experiment.defenses:
        sigma = plugin("defense", part).multiplier(len(scene.seen.weights))
        if sigma is not None:
            times = experiment.rounds * int(experiment.protocol.fields.get("epochs", 1))
            return {"value": privacy.epsilon(sigma, times, delta=DELTA), "delta": DELTA, "times": times}
    return None


def pictures(experiment: Experiment) -> list[dict[str, Any]]:
    """Title and class name of every private picture, for the page."""

    def one(source: str, name: str, label: int | None) -> dict[str, Any]:
        if source == "upload":
            return {"title": "Your picture", "class_name": class_names(source)[label or 0]}
        item = find(source, name)
        return {"title": item.title, "class_name": item.class_name}

    return [one(p.source, p.id, p.label) for p in experiment.pictures]


def fail(store: Store, run: Run, error: Exception) -> None:
    """Close the run with a sentence that a user can act on."""
    if is_full(error):
        sentence = FULL
    elif (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "not enough memory" in str(error)
        or "can't allocate memory" in str(error)
    ):
        sentence = MEMORY
    elif isinstance(error, ValueError):
        sentence = str(error)
    else:
        sentence = f"The worker met an error that it did not expect ({type(error).__name__}: {error}). The run's frames so far are kept."
    store.finish(run.id, "failed", message=sentence)


def limit_memory(megabytes: int) -> None:
    """On Linux, cap what this process may allocate on top of what it holds now, so that a run fails with a sentence instead of swapping."""
    if sys.platform != "linux":
        return
    with open("/proc/self/status") as status:
        held = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmData"))
    cap = (held + megabytes) * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (cap, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def claim(store: Store, worker: str) -> Run | None:
    """The next run, if there is one and the store can be written."""
    try:
        return store.claim(worker)
    except StoreError as error:
        log.warning("no run can be claimed now: %s", error)
        time.sleep(1)
        return None


def chores(store: Store, slot: str, device: torch.device) -> Iterator[None]:
    """What an idle worker does, one piece at a time, so that no run waits for all of it.

    First it plays one step, so that no user waits for what is loaded at first use; then the first worker measures this machine, once in
    its life, and ends. A plug-in that cannot be imported is no reason to die.
    """
    try:
        short = Part(id="idlg", fields={"steps": 1, "tries": 1})
        deque(play(Experiment(attack=short).resolve(catalog.describe())), maxlen=0)
        yield
        if slot == "0" and not store.note(SPEEDS):
            speeds = {}
            for name, seconds in measure(device):
                speeds[name] = seconds
                yield
            store.put_note(SPEEDS, speeds)
            sys.exit()  # a process that has run many models is 6 % slower ever after: the dispatcher starts a fresh one
    except Exception:
        log.error("this machine could not be measured:\n%s", traceback.format_exc())


def main(config: Settings, slot: str, dispatcher: int) -> None:
    """Claim and perform until the dispatcher, the process with that id, is gone."""
    store = Store(config.store, max_mb=config.store_mb)
    device = best_device()
    if device.type == "cpu":
        limit_memory(config.memory_mb)
    worker, idle_since, todo = f"{slot}:{os.getpid()}", time.monotonic(), chores(store, slot, device)
    while os.getppid() == dispatcher:
        run = claim(store, worker)
        if run:
            perform(store, run, device)
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since < 1 or next(todo, True):  # a chore done is None
            time.sleep(0.1)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s worker %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the web server; the dispatcher ends its workers itself
    main(settings(), sys.argv[1], int(sys.argv[2]))
