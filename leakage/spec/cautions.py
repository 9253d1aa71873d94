"""What is allowed and cannot work as it is meant, as sentences to be said before Run is pressed. No torch."""

from collections.abc import Iterable
from typing import Any

from leakage.data.inverters import ONE_GRADIENT, inverters, missing
from leakage.spec.catalog import Catalog, DefenseEntry
from leakage.spec.experiment import Experiment, clients_of


def warnings(experiment: Experiment, known: Catalog) -> list[str]:
    """What of the (resolved) experiment's settings does nothing, or is passed over; empty for most.

    Args:
        experiment: one that may be run.
        known: the plug-ins.

    Returns:
        A sentence with the remedy for each.
    """
    return [*_untrained(experiment, known), *_strategy(experiment, known), *_unclassed(experiment)]


def _unclassed(experiment: Experiment) -> list[str]:
    """Why examples of classes are none here."""
    if not experiment.assume.examples or experiment.task == "classes":
        return []
    return ["Other pictures of every class do nothing here: the model has one output, and no class of theirs. Choose one output per class."]


def _untrained(experiment: Experiment, known: Catalog) -> list[str]:
    """Why an attack that answers by a trained network has none here."""
    if not known.attacks.get(experiment.attack.id).learned:
        return []
    cards = list(inverters().values())
    one = known.protocols.get(experiment.protocol.id).sends_gradient and not experiment.aggregation and experiment.rounds == 1
    if not one:
        return [ONE_GRADIENT]
    victim: dict[str, Any] = {"model": experiment.model.model_dump(), "checkpoint": experiment.checkpoint}
    victim |= {"image_shape": (experiment.channels, experiment.size, experiment.size), "num_classes": experiment.num_classes}
    victim |= {} if experiment.checkpoint else {"seed": experiment.seed}
    fits = [card for card in cards if experiment.task == "classes" and all(getattr(card, name) == value for name, value in victim.items())]
    behind = tuple(part.model_dump() for part in experiment.defenses) if experiment.assume.adaptive else ()
    batch = len(experiment.pictures)
    if any((card.defenses, card.batch) == (behind, batch) for card in fits):
        return []
    words = " and ".join(known.defenses.get(part["id"]).short for part in behind) or "no protection"
    return [missing(fits, cards, words, batch)]


def _strategy(experiment: Experiment, known: Catalog) -> list[str]:
    """What of the countermeasure does nothing."""
    name = experiment.assume.strategy
    if not experiment.assume.adaptive or not name:
        return []
    told, shown, attack = [], known.strategy_title(name), known.attacks.get(experiment.attack.id)
    if attack.learned:
        return [f"“{shown}” does nothing here: {attack.short} asks the network that was trained behind the protection. Leave the default."]
    entries = [known.defenses.get(part.id) for part in experiment.defenses]
    for entry in entries:
        strategy = entry.strategies.get(name)
        if strategy is None:
            continue
        if strategy.literal and (why := _hidden(experiment, entry, entries, known)):
            usable = next(other for other in entry.strategies.values() if not other.literal)
            told.append(
                f"“{shown}” works with the very numbers that {entry.short} makes, and {why}: "
                f"“{usable.title}” is used instead. "
                "Choose that, or a setting that leaves them as they are."
            )
        elif strategy.colluding and not experiment.assume.accomplice:
            told.append(
                f"“{shown}” needs another phone that works with the attacker, and there is none: "
                f"“{entry.default_strategy.title}” is used instead. Choose the picture of that phone."
            )
        elif strategy.averaging and experiment.attacked_round == 1:
            watched = "only one is watched" if experiment.rounds == 1 else "the first is attacked"
            told.append(
                f"“{shown}” has a single round to work with: it puts together what arrived up to the attacked round, and {watched}. "
                "Watch several rounds and attack a later one."
            )
    return told


def all_warnings(experiments: Iterable[Experiment], known: Catalog) -> list[str]:
    """Those of several experiments, each once."""
    return list(dict.fromkeys(words for one in experiments for words in warnings(one, known)))


def _hidden(experiment: Experiment, entry: DefenseEntry, entries: list[DefenseEntry], known: Catalog) -> str:
    """Why the attacker never holds the numbers that this protection makes; empty where it does."""
    if clients_of(experiment.aggregation, known) > 1:
        return "they arrive added up with those of other phones"
    behind = [other for other in entries if other.stage == entry.stage][-1]
    if behind is not entry or (entry.stage == "gradient" and any(other.stage != "gradient" for other in entries)):
        return "another protection changes them afterwards"
    protocol = known.protocols.get(experiment.protocol.id)
    return f"{protocol.short} sends something else" if entry.stage == "gradient" and not protocol.sends_gradient else ""
