"""The dispatcher of workers on a Ray cluster (LEAKAGE_RAY); `python -m leakage.workers.dispatcher` becomes it. No other module imports Ray.

It creates an actor for each open run, as far as the cluster has room. By a long poll of each actor it fetches the actor's calls of the
store, and carries them out on this machine. Only this side opens connections: nodes need not reach this machine. Actors outlive the
dispatcher, and the next dispatcher finds them by their names. If the cluster cannot be reached, the dispatcher tries again and again; runs
without a sign of life meanwhile end as with any lost worker. The nodes need this package in the same version.
"""

import contextlib
import logging
import os
import secrets
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError
from ray.util import list_named_actors

from leakage.runs.backoff import Backoff
from leakage.runs.connections import StoreError
from leakage.runs.notes import CLUSTER_NAMESPACE, SLOTS
from leakage.runs.store import Run
from leakage.settings import Settings
from leakage.spec import catalog
from leakage.workers.dispatcher import SILENCE, TICK, WORKER, Dispatcher, command
from leakage.workers.ray_worker import RayWorker, resources_of
from leakage.workers.remote_calls import RemoteCalls
from leakage.workers.remote_store import CallAnswer

IDLE = 120.0  # seconds without a run after which a worker may leave the cluster: time enough to measure the speed of its node
FAILURES = 50  # failed exchanges in a row, a tick apart, after which a worker counts as lost
log = logging.getLogger(__name__)


class ClusterWorker:
    """A worker in another process, a Ray actor, as the dispatcher knows it.

    exchange   the remote call that brings answers to the actor and returns its calls of the store; None: no such call is under way
    answers    the answers to the actor's calls that it may not have received yet
    busy       when the actor last made a call for a run
    gone       whether the actor was killed, so that its calls are ignored
    """

    def __init__(self, name: str, actor: Any, *, leave: bool = False) -> None:
        self.name, self.actor, self.leave = name, actor, leave
        self.born = self.busy = time.time()
        self.exchange: Any = None
        self.answers: list[CallAnswer] = []
        self.failures, self.answered, self.gone = 0, False, False

    def send(self) -> None:
        """Begin an exchange (send the answers to the actor, and wait for its next calls), unless an exchange is under way."""
        if self.exchange is None:
            self.exchange = self.actor.exchange.remote(self.answers, self.leave)

    def computes(self, run: Run) -> bool:
        """Return whether this actor claimed the run."""
        return run.worker == self.name

    def kill(self) -> None:
        """End the actor. If the cluster cannot be reached, the actor's later calls are refused, since its runs have ended in the store."""
        self.gone = True
        with contextlib.suppress(Exception):  # the cluster is gone: the next tick notices
            ray.kill(self.actor)

    terminate = kill


class RayDispatcher(Dispatcher):
    """A dispatcher with actors of a Ray cluster as its workers."""

    def __init__(self, config: Settings) -> None:
        super().__init__(config)
        self.workers: dict[str, ClusterWorker] = {}
        self.backoffs = defaultdict(Backoff)
        self.calls, self.version = RemoteCalls(self.store, config), catalog.version()
        self.connected, self.connecting, self.alone_since = False, Backoff(), time.time()

    # ------------------------------------------------------------ the cluster

    def connect(self) -> None:
        """Connect to the cluster, and find the workers of the previous dispatcher."""
        namespace = self.store.note(CLUSTER_NAMESPACE)
        if not namespace:
            namespace = f"leakage-{secrets.token_hex(8)}"
            self.store.put_note(CLUSTER_NAMESPACE, namespace)
        limits = {name: os.environ[name] for name in ("LEAKAGE_MEMORY_MB", "LEAKAGE_STEP") if name in os.environ} | {"LEAKAGE_COMPILE": "0"}
        handler = signal.getsignal(signal.SIGTERM)  # Ray sets its own
        environment = {"env_vars": WORKER | limits}
        try:
            ray.init(self.config.ray, namespace=namespace, runtime_env=environment, log_to_driver=False, logging_level=logging.WARNING)
        finally:
            signal.signal(signal.SIGTERM, handler)
        for name in list_named_actors():
            slot, _, version = name.split(":")
            with contextlib.suppress(ValueError):  # it has ended meanwhile
                worker = ClusterWorker(name, ray.get_actor(name), leave=version != self.version)
                if self.workers.setdefault(slot, worker) is not worker:
                    worker.kill()
        log.info("connected to the cluster %s; %d workers are there", self.config.ray, len(self.workers))
        self.connected, self.woke = True, time.time()
        self.connecting.reset()

    def disconnect(self, error: Exception) -> None:
        """Log that the cluster cannot be reached, and give up the connection; `fill_slots` connects again after ever longer pauses.

        Meanwhile no worker is started. Those on the cluster stay, and wait for the answers to their calls of the store.
        """
        pause = self.connecting.failed()
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        log.error("the cluster %s cannot be reached (%s). The next try is in %.0f s", self.config.ray, why, pause)
        if self.connected:
            self.connected, self.alone_since = False, time.time()
        self.workers.clear()
        with contextlib.suppress(Exception):
            ray.shutdown()

    # ------------------------------------------------------------ workers

    def occupied(self) -> Mapping[str, ClusterWorker]:
        """Return the workers by the name of their slot."""
        return self.workers

    def fill_slots(self, now: float) -> None:
        """Start a worker for each open run, as far as the cluster has room, and let workers leave that are not needed."""
        if not self.connected and not self.connecting.may_try:
            return
        try:
            if not self.connected:
                self.connect()
            for slot, worker in list(self.workers.items()):
                if worker.gone:
                    del self.workers[slot]
            self._make_workers(now, len(self.store.queue()) + len(self.store.running()))
            for worker in self.workers.values():
                worker.send()
        except StoreError:  # not an error of the cluster
            raise
        except Exception as error:  # whatever Ray, its network or its client may raise
            self.disconnect(error)

    def _make_workers(self, now: float, open_runs: int) -> None:
        need, room = resources_of(ray.cluster_resources(), self.config.ray_per_gpu)
        most = self.config.ray_workers or room
        if most != self.store.note(SLOTS):
            self.store.put_note(SLOTS, most)
        for slot in map(str, range(min(most, open_runs))):
            if slot not in self.workers and self.backoffs[slot].may_try:
                name = f"{slot}:{secrets.token_hex(4)}:{self.version}"
                options = {"name": name, "lifetime": "detached", "max_concurrency": 2, **need}
                actor = ray.remote(RayWorker).options(**options).remote(name, most, self.config.ray_per_gpu, self.version)
                self.workers[slot] = ClusterWorker(name, actor)
        for worker in self.workers.values():
            if len(self.workers) > open_runs and now - worker.busy > IDLE:
                worker.leave = True
                if not worker.answered:  # the cluster never had room for it
                    worker.kill()

    def rest(self) -> None:
        """Answer the calls of workers until the next tick."""
        next_tick = time.monotonic() + TICK
        while (remaining := next_tick - time.monotonic()) > 0:
            under_way = {worker.exchange: worker for worker in self.workers.values() if worker.exchange}
            if not under_way:
                time.sleep(remaining)
                return
            try:
                ready, _ = ray.wait(list(under_way), timeout=remaining)
                if ready:
                    ready, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
                for exchange in ready:
                    self.take(under_way[exchange])
            except Exception as error:  # any error of Ray, as in fill_slots
                self.disconnect(error)

    def take(self, worker: ClusterWorker) -> None:
        """Execute the calls that a worker has sent in an exchange, and begin the next exchange with the answers."""
        exchange, worker.exchange = worker.exchange, None
        slot = worker.name.split(":")[0]
        try:
            calls, ended = ray.get(exchange)
        except RayError as error:
            worker.failures += 1
            dead = isinstance(error, RayActorError) and not isinstance(error, ActorUnavailableError)
            if dead or worker.failures > FAILURES:
                log.warning("worker %s is lost: %s", worker.name, error)
                self.backoffs[slot].ended(time.time() - worker.born)
                worker.kill()
            return  # if the worker is not lost, the next tick sends the same answers again
        worker.failures, worker.answered = 0, True
        worker.answers = [self.calls.answer(worker.name, call) for call in calls]
        if any(call.name != "claim" for call in calls):
            worker.busy = time.time()
        if ended is None:
            worker.send()
            return
        if ended:
            log.error("worker %s ended:\n%s", worker.name, ended)
            self.backoffs[slot].ended(time.time() - worker.born)
        worker.kill()

    # ------------------------------------------------------------ runs

    def look_after(self, run: Run) -> None:
        """Look after a run as every dispatcher does; but while the cluster cannot be reached, wait SILENCE before a run counts as lost."""
        if self.connected or time.time() - self.alone_since > SILENCE:
            super().look_after(run)

    def has_ended(self, run: Run) -> bool:
        """Return whether no worker of this dispatcher computes the run any more: calls of other workers for it are refused."""
        return run.worker is not None and run.worker.count(":") == 2

    def loop(self, *, stay: bool) -> None:
        """Run as every dispatcher does, and at the end kill idle workers; workers with a run stay for the next dispatcher."""
        super().loop(stay=stay)
        with contextlib.suppress(Exception):  # the cluster may be gone, and its workers with it
            busy = {run.worker for run in self.store.running()}
            for worker in self.workers.values():
                if worker.name not in busy:
                    worker.kill()


if __name__ == "__main__":
    command(RayDispatcher)
