"""Workers on a Ray cluster of three simulated nodes: the same answers, live, stopped, killed, and found again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from homes import furnished
from place import LONG, QUICK, Place, another, place, until

from leakage.runs.notes import CLUSTER
from leakage.workers.dispatcher import LOST

pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]'): nothing about workers on a cluster is tested")
pytestmark = pytest.mark.processes

# A head without cores and three nodes of one each, in a process that adds and removes nodes as it is told.
NODES = """
import sys
from ray.cluster_utils import Cluster
small = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
nodes = {}
print(cluster.address, flush=True)
for line in sys.stdin:
    what, name = line.split()
    if what == "add":
        nodes[name] = cluster.add_node(num_cpus=1, wait=False, **small)
    else:
        cluster.remove_node(nodes.pop(name), allow_graceful=False)
    print(nodes[name].node_id if what == "add" else "gone", flush=True)
cluster.shutdown()
"""
