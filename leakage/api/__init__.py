"""Attack a model of your own: what `import leakage` offers. It brings torch along, which is why nothing else imports it."""

from leakage.api.attacking import attack, frames, observe
from leakage.api.outcome import Result
from leakage.api.plugins import plugin
from leakage.api.scoring import Scores, score
from leakage.engine.federation import ThreatModel

__all__ = ["Result", "Scores", "ThreatModel", "attack", "frames", "observe", "plugin", "score"]
