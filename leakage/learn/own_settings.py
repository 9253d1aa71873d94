"""Which experiments a web page can repeat on the visitor's own picture, and with which settings. No torch."""

from typing import Any

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, with_defaults
from leakage.spec.part import Part

NETWORKS = {"lenet": (3, 32), "mlp": (3, 32), "mnist_cnn": (1, 28)}  # with their default fields; channels and side of their pictures
ATTACKS = ("idlg", "dlg", "inverting_gradients", "linear_layer")
SEARCH = {"steps", "restarts", "step_size", "schedule", "start", "polish"}  # fields of attacks for which the page has values of its own
NOISY = {"gaussian_noise": ("noise", "scale"), "dp_sgd": ("clipping", "noise_multiplier")}  # the page's name, and the field of the noise
FORMATS = ("int8", "fp16")  # of low_precision; the page calls the protection so
LEAST = 0.0001  # of an amount of noise on the page; below, there is no noise
ROUNDS, AVERAGE = 16, "average the rounds"  # rounds of the same picture, and the strategy against their noise
SLOWEST = 1e-6  # a learning rate at which the model stays the same, as on the page
PHONES = range(2, 9)
FREE = {"pictures", "model", "protocol", "aggregation", "rounds", "attacked_round", "defenses", "attack", "assume", "seed", "max_seconds"}


def own_settings(experiment: Experiment, known: Catalog | None) -> dict[str, Any] | None:
    """Return the settings with which `own/own_settings.js` repeats an experiment on another picture.

    A page computes a gradient of one picture, 16 noisy gradients of the same picture, or the sum over phones with one picture each.

    Args:
        experiment: the experiment, with or without the default fields of its plug-ins.
        known: the installed plug-ins; None while they are not known.

    Returns:
        network, attack, adaptive, seed, protection and amount; None if a page cannot compute the experiment, or while `known` is None.
    """
    model, attack = experiment.model, experiment.attack
    if known is None or model.id not in NETWORKS or attack.id not in ATTACKS or not _is_ordinary(experiment):
        return None
    kept = Part(id=attack.id, fields={name: value for name, value in attack.fields.items() if name not in SEARCH})
    if not _has_defaults("model", model, known) or not _has_defaults("attack", kept, known):
        return None
    protected = _sum(experiment) if experiment.aggregation else _protection(experiment, known)
    if protected is None:
        return None
    return {"network": model.id, "attack": attack.id, "adaptive": experiment.assume.adaptive, "seed": experiment.seed, **protected}


def _is_ordinary(experiment: Experiment) -> bool:
    """Return whether each setting that a page does not have is the default, and the pictures have the size that the page gives them."""
    usual = Experiment()
    channels, side = NETWORKS[experiment.model.id]
    rest = experiment.model_copy(update={name: getattr(usual, name) for name in FREE})
    assumed = experiment.assume.model_copy(update={"adaptive": True, "strategy": ""})
    expected = usual.model_copy(update={"channels": channels, "size": side})
    return rest == expected and assumed == Assumptions() and experiment.protocol.id == "fedsgd"


def _has_defaults(kind: str, part: Part, known: Catalog) -> bool:
    return with_defaults(known, kind, part) == with_defaults(known, kind, Part(id=part.id))


def _sum(experiment: Experiment) -> dict[str, Any] | None:
    """Return protection and amount (the number of phones) of a sum over unprotected phones; None if the page has no such sum."""
    aggregation, phones = experiment.aggregation, len(experiment.pictures)
    if experiment.defenses or experiment.rounds > 1 or phones not in PHONES:
        return None
    summed = aggregation is not None and aggregation.id == "secure_aggregation" and aggregation.fields.get("clients", 2) == phones
    return {"protection": "sum", "amount": phones} if summed else None


def _protection(experiment: Experiment, known: Catalog) -> dict[str, Any] | None:
    """Return protection and amount of a single phone, as the page names them; None if the page has no such protection."""
    if len(experiment.pictures) > 1 or len(experiment.defenses) > 1:
        return None
    if not experiment.defenses:
        return {"protection": "none", "amount": 0} if experiment.rounds == 1 else None
    defense = with_defaults(known, "defense", experiment.defenses[0])
    usual, fields = with_defaults(known, "defense", Part(id=defense.id)).fields, defense.fields
    changed = {name for name, value in fields.items() if value != usual[name]}
    if experiment.rounds > 1:
        averaged = defense.id == "gaussian_noise" and _is_averaged(experiment, known)
        return _noise("averaged", fields["scale"]) if averaged else None
    strategies = ("", *list(known.defenses.get(defense.id).strategies)[:1])
    if experiment.assume.adaptive and experiment.assume.strategy not in strategies:
        return None
    if defense.id in NOISY and changed <= {NOISY[defense.id][1]}:
        return _noise(NOISY[defense.id][0], fields[NOISY[defense.id][1]])
    if defense.id == "pruning" and changed <= {"fraction"}:
        return {"protection": "pruning", "amount": fields["fraction"]}
    if defense.id == "low_precision" and changed <= {"number"} and fields["number"] in FORMATS:
        return {"protection": fields["number"], "amount": 0}
    return None


def _is_averaged(experiment: Experiment, known: Catalog) -> bool:
    """Return whether the server watches as many rounds as on the page, attacks the last, and averages them if it knows the noise."""
    rate = with_defaults(known, "protocol", experiment.protocol).fields["rate"]
    averages = not experiment.assume.adaptive or experiment.assume.strategy == AVERAGE
    return experiment.rounds == experiment.attacked_round == ROUNDS and isinstance(rate, int | float) and rate <= SLOWEST and averages


def _noise(name: str, amount: Any) -> dict[str, Any]:
    """Return a protection with this amount of noise; clipping has at least the least noise, the others are none without noise."""
    if amount < LEAST and name != "clipping":
        return {"protection": "none", "amount": 0}
    return {"protection": name, "amount": max(float(amount), LEAST)}
