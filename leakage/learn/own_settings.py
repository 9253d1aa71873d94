"""Which experiments a web page can repeat on the visitor's own picture, and with which settings. No torch."""

from typing import Any

from leakage.spec.experiment import Experiment
from leakage.spec.part import Part

NETWORKS, ATTACKS = ("lenet", "mlp"), ("idlg", "dlg", "inverting_gradients", "linear_layer")  # with their default fields
PROTECTIONS = {  # plug-in -> the page's name of the protection, and the field that the visitor turns
    "gaussian_noise": ("noise", "scale"),
    "pruning": ("pruning", "fraction"),
    "dp_sgd": ("clipping", "noise_multiplier"),
}
LEAST = 0.0001  # of an amount of noise on the page; below, there is no protection
KEPT_FIELDS = {"max_grad_norm": 1.0}  # that the page has too


def own_settings(experiment: Experiment) -> dict[str, Any] | None:
    """Return the settings with which `own/own_settings.js` repeats an experiment on another picture; None if a page cannot compute it.

    A page computes one picture, one gradient (FedSGD, one round), and the networks, attacks and protections named above.
    """
    usual = Experiment()
    ordinary = ("protocol", "rounds", "aggregation", "task", "checkpoint", "server", "checks", "precision")
    if len(experiment.pictures) > 1 or any(getattr(experiment, name, None) != getattr(usual, name, None) for name in ordinary):
        return None
    if experiment.model != Part(id=experiment.model.id) or experiment.model.id not in NETWORKS or experiment.attack.id not in ATTACKS:
        return None
    protected = _protection(experiment.defenses)
    if protected is None:
        return None
    assumed = {"adaptive": experiment.assume.adaptive, "seed": experiment.seed}
    return {"network": experiment.model.id, "attack": experiment.attack.id, **assumed, **protected}


def _protection(defenses: tuple[Part, ...]) -> dict[str, Any] | None:
    """Return protection and amount as the page names them; None if the page has no such protection."""
    if not defenses:
        return {"protection": "none", "amount": 0}
    defense, *others = defenses
    if others or defense.id not in PROTECTIONS:
        return None
    name, turned = PROTECTIONS[defense.id]
    amount, rest = defense.fields.get(turned), {field: value for field, value in defense.fields.items() if field != turned}
    if not isinstance(amount, int | float) or any(KEPT_FIELDS.get(field) != value for field, value in rest.items()):
        return None
    if amount < LEAST and name == "noise":
        return {"protection": "none", "amount": 0}
    return {"protection": name, "amount": max(float(amount), LEAST if name == "clipping" else 0)}
