"""Gradient Leakage Explorer: see what a gradient gives away.

    import leakage

    result = leakage.attack(model, x, y, attack="inverting_gradients", defenses=["pruning"], adaptive=True, seed=1)
    result.reconstruction, result.scores, result.baselines, result.threat_model

What is named here comes from `leakage.api`, and with it torch, at its first use: pages import this package too, and hold no torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakage.api import Result, Scores, ThreatModel, attack, frames, observe, plugin, score

__version__ = "0.3.0"
__all__ = ["Result", "Scores", "ThreatModel", "attack", "frames", "observe", "plugin", "score"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import leakage.api

        return getattr(leakage.api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
