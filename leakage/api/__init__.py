"""Attack a model of your own: what `import leakage` offers. It brings torch along, which is why nothing else imports it."""

from leakage.api.attacking import attack, frames, observe
from leakage.api.outcome import Result
from leakage.api.scoring import Scores, score

__all__ = ["Result", "Scores", "attack", "frames", "observe", "score"]
