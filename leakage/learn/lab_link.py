"""An experiment as an address of the Lab: the settings that differ from their defaults, under the names that its widgets have."""

from urllib.parse import quote, urlencode

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import VERSION, Experiment, Part

NO_DEFENSE = "none"  # as the Lab's menu calls it


def lab_query(experiment: Experiment, known: Catalog | None) -> str | None:
    """What follows the "?" of the Lab's address; None where the Lab has no widgets for what is asked, or as long as nothing is known."""
    if known is None:
        return None
    usual = Experiment()
    uploads = any(picture.source == "upload" or picture.label is not None for picture in experiment.pictures)
    if uploads or len(experiment.defenses) > 1 or experiment.precision != usual.precision:
        return None
    before, settings = _settings(usual, known), _settings(experiment, known)
    differing = {name: value for name, value in settings.items() if before.get(name) != value}
    return urlencode({"v": str(VERSION), **differing}, quote_via=quote, safe=":,@")


def _settings(experiment: Experiment, known: Catalog) -> dict[str, str]:
    """Every setting by the key of its widget."""
    usual_strategies = {name for part in experiment.defenses for name in list(known.get("defense", part.id).strategies)[:1]}
    strategy = experiment.assume.strategy
    defense = experiment.defenses[0] if experiment.defenses else Part(id=NO_DEFENSE)
    parts = {"model": experiment.model, "protocol": experiment.protocol, "defense": defense, "attack": experiment.attack}
    phones, aggregation = 1, {}
    if experiment.aggregation:
        fields = dict(experiment.aggregation.fields)
        phones = int(fields.pop("clients", 2))
        parts["aggregation"] = Part(id=experiment.aggregation.id, fields=fields)
        aggregation = {"phones": str(phones)}
    return {
        **{kind: part.id for kind, part in parts.items()},
        **{f"{part.id}.{name}": str(value) for part in parts.values() for name, value in part.fields.items()},
        **aggregation,
        "checkpoint": experiment.checkpoint,
        "task": experiment.task,
        "batch_norm": experiment.batch_norm,
        "size": str(experiment.size),
        "channels": str(experiment.channels),
        "rounds": str(experiment.rounds),
        "attacked_round": str(experiment.attacked_round),
        "labels_known": str(experiment.assume.labels),
        "adaptive": "true" if experiment.assume.adaptive else "false",
        "counter": "" if strategy in usual_strategies else strategy,
        "statistics": experiment.assume.statistics,
        "seed": str(experiment.seed),
        "max_seconds": str(experiment.max_seconds),
        "source": experiment.pictures[0].source,
        "batch": str(len(experiment.pictures)),
        "pictures": ",".join(f"{picture.source}:{picture.id}" for picture in experiment.pictures),
    }
