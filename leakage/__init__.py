"""Gradient Leakage Explorer: see what a gradient gives away.

    import leakage

    result = leakage.attack(model, x, y, attack="inverting_gradients", defenses=["pruning"], adaptive=True, seed=1)
    result.reconstruction, result.scores, result.baselines, result.threat_model

    print(leakage.audit(model, "folder of pictures", minutes=5))

What is named here comes from `leakage.api` and `leakage.auditing`, and with them torch, at its first use: pages import this package too,
and hold no torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakage.api import Result, Scores, ThreatModel, attack, frames, observe, plugin, score
    from leakage.auditing import Audit, UpdateAudit, UpdateCard, audit, audit_update

__version__ = "0.3.0"
__all__ = [
    "Audit",
    "Result",
    "Scores",
    "ThreatModel",
    "UpdateAudit",
    "UpdateCard",
    "attack",
    "audit",
    "audit_update",
    "frames",
    "observe",
    "plugin",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import leakage.api
        import leakage.auditing

        return getattr(leakage.api, name, None) or getattr(leakage.auditing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
