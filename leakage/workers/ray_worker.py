"""A worker on a node of a Ray cluster, as an actor: a thread claims and computes runs, and `exchange` carries its calls of the store.

The actor has a name and outlives the dispatcher that created it; the next dispatcher finds it and goes on. Torch is imported only on the
node.
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
from leakage.settings import cores, memory_bytes, memory_fraction, settings
from leakage.spec import catalog
from leakage.workers.cluster_files import NeededFile, changed_files, fetch_files, process_home, training_folder
from leakage.workers.dispatcher import POLITE
from leakage.workers.remote_store import Call, CallAnswer, OpenCalls, RemoteStore

if TYPE_CHECKING:  # brings torch
    from leakage.workers.job import Job

POLL = 1.0  # seconds that an exchange waits for a call
PATIENCE = 20.0  # seconds in which another worker that was asked to stop should have left a training
OTHER_VERSION = (
    "{} has another version of this program than the dispatcher, or other plug-ins. Install the same on all nodes, then start Ray on "
    "them again."
)


def resources_of(cluster: Mapping[str, float], per_gpu: int) -> tuple[dict[str, float], int]:
    """Return the resources that a worker requests of a cluster, and how many workers fit on the cluster.

    Args:
        cluster: the resources of the cluster: its number of "CPU" and "GPU".
        per_gpu: how many workers share a GPU; without GPUs each worker has a CPU core.
    """
    if cluster.get("GPU"):
        return {"num_gpus": 1 / per_gpu, "num_cpus": 1}, int(cluster["GPU"] * per_gpu)
    return {"num_cpus": 1}, int(cluster.get("CPU", 0))


class RayWorker:
    """A worker as an actor.

    Args:
        name: the name of the worker, which begins with the name of its slot and a colon.
        slots: the number of slots of the whole cluster.
        per_gpu: how many workers share a GPU.
        version: the dispatcher's version of the code; a node with another version is refused.
    """

    def __init__(self, name: str, slots: int, per_gpu: int, version: str) -> None:
        self.name, self.slots, self.per_gpu, self.version = name, slots, per_gpu, version
        self.calls, self.leaving = OpenCalls(), False
        # Why the worker has ended; None while it works. Empty: it was asked to, has measured this node, or is unfit for another run.
        self.ended: str | None = None
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def exchange(self, answers: Sequence[CallAnswer], leave: bool) -> tuple[list[Call], str | None]:
        """Pass the dispatcher's answers to the waiting calls, and return the next calls.

        Args:
            answers: the answers to earlier calls of the store.
            leave: whether the worker ends as soon as it has no run.

        Returns:
            The open calls, and why the worker has ended (a traceback; "" if nothing failed); None while it works.
        """
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
        os.environ.setdefault("LEAKAGE_MEMORY_MB", str(int(memory_bytes() * memory_fraction(cores())) // 2**20))
        self._claim_and_perform()

    def _claim_and_perform(self) -> None:
        from leakage.engine.devices import best_device
        from leakage.workers import worker
        from leakage.workers.memory_limit import limit_memory

        os.nice(POLITE)
        device = best_device()
        if device.type == "cpu":
            limit_memory(settings().memory_mb)
        worker.limit_gpu(device, 1 / self.per_gpu)
        self.store = RemoteStore(self.calls)
        worker.work(cast(Store, self.store), self.name, device, going=lambda: not self.leaving, prepare=self._prepare)

    def _prepare(self, job: "Job") -> None:
        """Fetch the files of a run. Raises UnbegunError if the run is stopped, CheckpointError if another worker is at its training."""
        from leakage.workers.job import UnbegunError

        def read(file: NeededFile) -> bytes:
            if job.heartbeat.should_stop():
                raise UnbegunError
            return cast(bytes, self.store.read_file(job.run.id, file))

        deadline = time.monotonic() + PATIENCE
        while (needed := self.store.needed_files(job.run.id)) is None:
            if job.heartbeat.should_stop() or time.monotonic() > deadline:
                raise CheckpointError("Another worker is at this training. Wait until it has ended, then ask again.")
            time.sleep(PATIENCE / 40)
        self.store.training = None
        if job.run.kind in ("train", "invert"):
            self.store.training = training_folder(job.run, settings())
            shutil.rmtree(self.store.training, ignore_errors=True)
            self.store.training.mkdir(parents=True)
        fetch_files(needed, read, {"data": Path(os.environ["LEAKAGE_DATA"]), "checkpoints": settings().checkpoints})
        self.store.kept = changed_files(self.store.training, {})[0] if self.store.training else {}
