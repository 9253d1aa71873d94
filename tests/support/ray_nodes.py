"""A Ray cluster of simulated nodes of one core in a separate process; tests add and kill nodes."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from leakage.settings import ROOT

SCRIPT = """
import sys
from ray.cluster_utils import Cluster
small = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
nodes = {}
print("address", cluster.address, flush=True)
for line in sys.stdin:
    what, name = line.split()
    if what == "add":
        nodes[name] = cluster.add_node(num_cpus=1, wait=False, **small)
    else:
        cluster.remove_node(nodes.pop(name), allow_graceful=False)
    print("done", what, flush=True)
cluster.shutdown()
"""


class Nodes:
    """A head that computes nothing, and as many nodes of one core as `complete` asks for."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="nodes-")  # a short path: there are sockets in it
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEAKAGE_", "RAY_"))}
        quiet = {
            "RAY_TMPDIR": self.folder,
            "TMPDIR": self.folder,
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env=kept | quiet,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.names: list[str] = []
        self.added = 0
        self.address = self._answer("address")

    def _answer(self, what: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:  # Ray prints, too
            words = line.split()
            if words[:1] == [what]:
                return words[1]
        raise AssertionError("the cluster has ended")

    def _tell(self, what: str, name: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {name}\n")
        self.process.stdin.flush()
        self._answer("done")

    def complete(self, count: int = 3) -> None:
        """Add what is missing."""
        while len(self.names) < count:
            self.added += 1
            self.names.append(f"n{self.added}")
            self._tell("add", self.names[-1])

    def kill(self) -> None:
        """Kill the oldest node, with all that runs on it."""
        self._tell("kill", self.names.pop(0))

    def end(self) -> None:
        """Leave no process behind."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.process.communicate(timeout=240)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def nodes() -> Iterator[Nodes]:
    """Yield a cluster, and end it afterwards."""
    made = Nodes()
    try:
        yield made
    finally:
        made.end()
