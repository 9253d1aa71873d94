"""A worker on a node of a Ray cluster, as an actor: one thread claims and performs as every worker does, `exchange` carries its calls.

The actor has a name and outlives the dispatcher that made it; the next one finds it and goes on. No torch until it is at work on its node.
"""

import os
import shutil
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from leakage.data.errors import CheckpointError
from leakage.runs.store import Store
from leakage.settings import cores, memory_bytes, settings, share_of_slot
from leakage.spec import catalog
from leakage.workers.cluster_files import NeededFile, changed_files, fetch_files, process_home, training_folder
from leakage.workers.remote_store import Call, CallAnswer, OpenCalls, RemoteStore

if TYPE_CHECKING:  # brings torch
    from leakage.workers.job import Job

POLL = 1.0  # seconds that an exchange waits for a call
PATIENCE = 20.0  # seconds in which a worker that was told to stop should have left a training
OTHER_VERSION = (
    "{} has another version of this program than the dispatcher, or other plug-ins. Install the same on all nodes, then start Ray on "
    "them again."
)


def resources_of(cluster: Mapping[str, float], per_gpu: int) -> tuple[dict[str, float], int]:
    """Return what one worker requests of a cluster with these resources, and how many fit: fractions of its GPUs if any, else its cores."""
    if cluster.get("GPU"):
        return {"num_gpus": 1 / per_gpu, "num_cpus": 1}, int(cluster["GPU"] * per_gpu)
    return {"num_cpus": 1}, int(cluster.get("CPU", 0))


class RayWorker:
    """The actor. `name` begins with its slot; so many `slots` has the whole cluster, and so many workers share a GPU (`per_gpu`)."""

    def __init__(self, name: str, slots: int, per_gpu: int, version: str) -> None:
        self.name, self.slots, self.per_gpu, self.version = name, slots, per_gpu, version
        self.calls, self.leaving = OpenCalls(), False
        self.ended: str | None = None  # why, once it has; empty: it was told to, has measured this node, or is unfit for another run
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def exchange(self, answers: Sequence[CallAnswer], leave: bool) -> tuple[list[Call], str | None]:
        """Take answers, and give the open calls and why it has ended, if it has. `leave`: end when no run is left."""
        self.leaving = self.leaving or leave
        calls = self.calls.exchange(answers, POLL if self.thread.is_alive() else 0)
        return calls, self.ended

    def _live(self) -> None:
        try:
            self._work()
            self.ended = ""
        except SystemExit:  # it has measured this node, or is unfit for another run
            self.ended = ""
        except BaseException:
            self.ended = traceback.format_exc()

    def _work(self) -> None:
        if catalog.version() != self.version:
            raise RuntimeError(OTHER_VERSION.format(socket.gethostname()))
        cache = Path(tempfile.gettempdir()) / f"leakage-{os.getuid()}"
        os.umask(0o077)
        cache.mkdir(exist_ok=True)
        if cache.stat().st_uid != os.getuid():
            raise RuntimeError(f"{cache} on {socket.gethostname()} belongs to somebody else. Remove it, or set TMPDIR for Ray there.")
        home = process_home(cache)
        os.environ |= {"LEAKAGE_HOME": str(home), "LEAKAGE_DATA": str(cache / "data"), "TORCH_HOME": str(home / "torch")}
        os.environ["LEAKAGE_SLOTS"] = str(self.slots)
        os.environ.setdefault("LEAKAGE_MEMORY_MB", str(int(memory_bytes() * share_of_slot(cores())) // 2**20))
        self._claim_and_perform()

    def _claim_and_perform(self) -> None:
        from leakage.engine.devices import best_device
        from leakage.workers import worker
        from leakage.workers.memory_limit import limit_memory

        os.nice(worker.POLITE)
        device = best_device()
        if device.type == "cpu":
            limit_memory(settings().memory_mb)
        worker.limit_gpu(device, 1 / self.per_gpu)
        self.store = RemoteStore(self.calls)
        worker.work(cast(Store, self.store), self.name, device, going=lambda: not self.leaving, prepare=self._prepare)

    def _prepare(self, job: "Job") -> None:
        """Bring the files that a run needs. Raises what a sentence can be made of."""
        from leakage.workers.job import UnbegunError

        def read(file: NeededFile) -> bytes:
            if job.heartbeat.should_stop():
                raise UnbegunError
            return cast(bytes, self.store.read_file(job.run.id, file))

        ends = time.monotonic() + PATIENCE
        while (needed := self.store.needed_files(job.run.id)) is None:
            if job.heartbeat.should_stop() or time.monotonic() > ends:
                raise CheckpointError("Another worker is at this training. Wait until it has ended, then ask again.")
            time.sleep(PATIENCE / 40)
        self.store.training = None
        if job.run.kind in ("train", "invert"):
            self.store.training = training_folder(job.run, settings())
            shutil.rmtree(self.store.training, ignore_errors=True)
            self.store.training.mkdir(parents=True)
        fetch_files(needed, read, {"data": Path(os.environ["LEAKAGE_DATA"]), "checkpoints": settings().checkpoints})
        self.store.kept = changed_files(self.store.training, {})[0] if self.store.training else {}
