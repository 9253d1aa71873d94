"""Conversion between an experiment and the settings of the Lab, under the keys of session state and address."""

from collections.abc import Mapping
from typing import Any

from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

# settings that are fields of an experiment, under the same name
PLAIN = ("checkpoint", "task", "outputs", "loss", "batch_norm", "size", "channels", "rounds", "attacked_round")
NONE = "none"  # the value of the Lab's menus for no defense and for an honest server
ALONE = ""  # the value for no colluding client
CHECKS = "checks"  # the key of the phone's checks, as ids; in the address joined by commas
PICKED = "pictures"  # the key of the chosen pictures, as "source:id"; in the address joined by commas


def lab_settings(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of an experiment as the page Lab stores them: key of a widget -> value.

    Only the first of several defenses is included.
    """
    defense = experiment.defenses[0] if experiment.defenses else Part(id=NONE)
    server = experiment.server or Part(id=NONE)
    parts = {"model": experiment.model, "protocol": experiment.protocol, "defense": defense, "server": server, "attack": experiment.attack}
    clients: Any = 1
    if experiment.aggregation:
        fields = dict(experiment.aggregation.fields)
        clients = fields.pop("clients", 2)
        parts["aggregation"] = Part(id=experiment.aggregation.id, fields=fields)
    return {
        **{kind: part.id for kind, part in parts.items()},
        **{f"{part.id}.{name}": value for part in (*parts.values(), *experiment.checks) for name, value in part.fields.items()},
        CHECKS: [part.id for part in experiment.checks],
        "refuse": experiment.refuse,
        "phones": clients,
        **{name: getattr(experiment, name) for name in PLAIN},
        "labels_known": experiment.assume.labels,
        "adaptive": "true" if experiment.assume.adaptive else "false",
        "counter": experiment.assume.strategy,
        "statistics": experiment.assume.statistics,
        "examples": experiment.assume.examples,
        "accomplice": picture_name(experiment.assume.accomplice) if experiment.assume.accomplice else ALONE,
        "seed": experiment.seed,
        "max_seconds": experiment.max_seconds,
        "source": experiment.pictures[0].source,
        "batch": len(experiment.pictures),
        PICKED: [picture_name(picture) for picture in experiment.pictures],
    }


def picture_name(picture: Picture) -> str:
    """Return the name of a picture in the address (URL) of a page: "source:id"."""
    return f"{picture.source}:{picture.id}"


def accomplice_of(name: str) -> Picture | None:
    """Return the picture of the accomplice (another client that colludes with the attacker).

    Args:
        name: the picture as "source:id", as the address (URL) of a page names it; the empty text stands for no accomplice, and gives None.
    """
    source, _, id = name.partition(":")
    return None if name == ALONE else Picture.model_validate({"source": source, "id": id})


def experiment_of(settings: Mapping[str, Any], pictures: tuple[Picture, ...], known: Catalog) -> Experiment:
    """Return the experiment of these settings with these pictures; missing settings have their defaults.

    Raises:
        CatalogError: if a plug-in or a value is not known.
    """
    given = {**lab_settings(Experiment()), **settings}

    def part(kind: str, id: str, **fields: Any) -> Part:
        values = {field.name: given.get(f"{id}.{field.name}", field.default) for field in known.of(kind).get(id).fields}
        return Part(id=id, fields={**values, **fields})

    aggregations = [entry.id for entry in known.aggregations]
    asked = Experiment(
        pictures=pictures,
        **{name: given[name] for name in (*PLAIN, "seed", "max_seconds")},
        model=part("model", given["model"]),
        protocol=part("protocol", given["protocol"]),
        aggregation=part("protocol", given.get("aggregation", *aggregations[:1]), clients=given["phones"]) if given["phones"] > 1 else None,
        defenses=() if given["defense"] == NONE else (part("defense", given["defense"]),),
        checks=tuple(part("check", id) for id in given[CHECKS]),
        refuse=given["refuse"],
        server=None if given["server"] == NONE else part("server", given["server"]),
        attack=part("attack", given["attack"]),
        assume=Assumptions(
            labels=given["labels_known"],
            adaptive=given["adaptive"] == "true",
            strategy=given["counter"],
            statistics=given["statistics"],
            accomplice=accomplice_of(given["accomplice"]),
            examples=given["examples"],
        ),
    )
    return without_default_strategy(asked, known)


def without_default_strategy(experiment: Experiment, known: Catalog) -> Experiment:
    """Return the experiment with an empty strategy if its strategy is the default; raise CatalogError for an unknown protection."""
    defaults = {name for part in experiment.defenses for name in list(known.defenses.get(part.id).strategies)[:1]}
    if experiment.assume.strategy not in defaults:
        return experiment
    return experiment.model_copy(update={"assume": experiment.assume.model_copy(update={"strategy": ""})})
