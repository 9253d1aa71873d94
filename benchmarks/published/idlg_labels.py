"""iDLG's label (Zhao et al. 2020, table 1): 100 % of 1,000 runs on MNIST, CIFAR-100 and LFW, where DLG finds 89.9, 83.3 and 79.1 %.

Here: 100 untrained LeNets (seeds 0 to 99), each with another CIFAR-10 test picture; the label alone, no reconstruction.
Differs from the paper: CIFAR-10, and 100 runs.

    python benchmarks/published/idlg_labels.py       some seconds
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import save, table

from leakage.engine.labels import recover
from leakage.spec.experiment import Experiment, Picture
from leakage.workers import plugin_catalog
from leakage.workers.adapter import prepare

right = []
for seed in range(100):
    scene = prepare(Experiment(pictures=(Picture(source="cifar10", id=str(seed)),), seed=seed).resolve(plugin_catalog.describe()))
    label = recover(scene.seen).labels
    right.append(bool(label == scene.y))
table(["rule", "nets", "right", "paper"], [["iDLG", len(right), sum(right), "100 %"]])
save("idlg_labels", {"about": __doc__, "right": sum(right), "nets": len(right)})
