"""An experiment as the settings of the Lab, by the keys that they have in session state and address alike."""

from typing import Any

from leakage.spec.experiment import Experiment, Part

NONE = "none"  # no defense, as the Lab's menu calls it
PICKED = "pictures"  # the picked pictures, as "source:id"; in the address joined by commas


def lab_settings(experiment: Experiment) -> dict[str, Any]:
    """Every setting by the key of its widget. Of several defenses the Lab has the first."""
    defense = experiment.defenses[0] if experiment.defenses else Part(id=NONE)
    parts = {"model": experiment.model, "protocol": experiment.protocol, "defense": defense, "attack": experiment.attack}
    phones: Any = 1
    if experiment.aggregation:
        fields = dict(experiment.aggregation.fields)
        phones = fields.pop("clients", 2)
        parts["aggregation"] = Part(id=experiment.aggregation.id, fields=fields)
    return {
        **{kind: part.id for kind, part in parts.items()},
        **{f"{part.id}.{name}": value for part in parts.values() for name, value in part.fields.items()},
        "phones": phones,
        "checkpoint": experiment.checkpoint,
        "task": experiment.task,
        "batch_norm": experiment.batch_norm,
        "size": experiment.size,
        "channels": experiment.channels,
        "rounds": experiment.rounds,
        "attacked_round": experiment.attacked_round,
        "labels_known": experiment.assume.labels,
        "adaptive": "true" if experiment.assume.adaptive else "false",
        "counter": experiment.assume.strategy,
        "statistics": experiment.assume.statistics,
        "seed": experiment.seed,
        "max_seconds": experiment.max_seconds,
        "source": experiment.pictures[0].source,
        "batch": len(experiment.pictures),
        PICKED: [f"{picture.source}:{picture.id}" for picture in experiment.pictures],
    }
