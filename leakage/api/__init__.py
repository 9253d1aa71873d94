"""The public functions of `import leakage`, which attack a model of your own. They import torch, so no other folder imports this one."""

from leakage.api.attacking import attack, frames, observe
from leakage.api.outcome import Result
from leakage.api.plugins import plugin
from leakage.api.scoring import Scores, score
from leakage.engine.federation import ThreatModel

__all__ = ["Result", "Scores", "ThreatModel", "attack", "frames", "observe", "plugin", "score"]
