"""Warnings before a run: settings that are allowed but have no effect. No torch."""

from collections.abc import Iterable
from typing import Any

from leakage.data.inverters import ONE_GRADIENT, inverters, missing
from leakage.spec.catalog import Catalog, DefenseEntry
from leakage.spec.experiment import Experiment, clients_of


def warnings(experiment: Experiment, known: Catalog) -> list[str]:
    """Return a sentence with a remedy for each setting of the experiment that has no effect or is replaced.

    Args:
        experiment: a resolved experiment.
        known: the plug-ins.
    """
    return [*_untrained(experiment, known), *_strategy(experiment, known), *_useless_examples(experiment)]


def all_cautions(experiment: Experiment, known: Catalog) -> list[str]:
    """Return `warnings`, and a sentence with a remedy for each check of the phones that has nothing to compare."""
    phones = clients_of(experiment.aggregation, known)
    checks = [known.checks.get(part.id) for part in experiment.checks]
    alone = {
        "clients": phones == 1 and "compares the models of several phones, and one phone is alone here: it finds nothing. Add up phones.",
        "pictures": len(experiment.pictures) <= phones
        and "compares the pictures of a phone, and each phone has one picture here: it finds nothing. Choose more pictures.",
    }
    return [*warnings(experiment, known), *(f"{check.short} {why}" for check in checks if (why := alone.get(check.compares)))]


def _useless_examples(experiment: Experiment) -> list[str]:
    """Warn if the attacker is granted other pictures of every class, which have no effect on a model with one output."""
    if not experiment.assume.examples or experiment.task == "classes":
        return []
    return ["Other pictures of every class do nothing here: the model has one output, and no class of theirs. Choose one output per class."]


def _untrained(experiment: Experiment, known: Catalog) -> list[str]:
    """Warn if the attack needs a trained network and there is none for this experiment."""
    if not known.attacks.get(experiment.attack.id).learned:
        return []
    cards = list(inverters().values())
    single = known.protocols.get(experiment.protocol.id).sends_gradient and not experiment.aggregation and experiment.rounds == 1
    if not single:
        return [ONE_GRADIENT]
    victim: dict[str, Any] = {"model": experiment.model.model_dump(), "checkpoint": experiment.checkpoint}
    victim |= {"image_shape": (experiment.channels, experiment.size, experiment.size), "num_classes": experiment.num_classes}
    victim |= {} if experiment.checkpoint else {"seed": experiment.seed}
    fits = [card for card in cards if experiment.task == "classes" and all(getattr(card, name) == value for name, value in victim.items())]
    defenses = tuple(part.model_dump() for part in experiment.defenses) if experiment.assume.adaptive else ()
    batch = len(experiment.pictures)
    if any((card.defenses, card.batch) == (defenses, batch) for card in fits):
        return []
    words = " and ".join(known.defenses.get(part["id"]).short for part in defenses) or "no protection"
    return [missing(fits, cards, words, batch)]


def _strategy(experiment: Experiment, known: Catalog) -> list[str]:
    """Warn if the chosen adaptive strategy has no effect or is replaced."""
    name = experiment.assume.strategy
    if not experiment.assume.adaptive or not name:
        return []
    sentences, title, attack = [], known.strategy_title(name), known.attacks.get(experiment.attack.id)
    if attack.learned:
        return [f"“{title}” does nothing here: {attack.short} asks the network that was trained behind the protection. Leave the default."]
    entries = [known.defenses.get(part.id) for part in experiment.defenses]
    for entry in entries:
        strategy = entry.strategies.get(name)
        if strategy is None:
            continue
        if strategy.literal and (why := _why_changed(experiment, entry, entries, known)):
            usable = next(other for other in entry.strategies.values() if not other.literal)
            sentences.append(
                f"“{title}” works with the very numbers that {entry.short} makes, and {why}: "
                f"“{usable.title}” is used instead. "
                "Choose that, or a setting that leaves them as they are."
            )
        elif strategy.colluding and not experiment.assume.accomplice:
            sentences.append(
                f"“{title}” needs another phone that works with the attacker, and there is none: "
                f"“{entry.default_strategy.title}” is used instead. Choose the picture of that phone."
            )
        elif strategy.averaging and experiment.attacked_round == 1:
            watched = "only one is watched" if experiment.rounds == 1 else "the first is attacked"
            sentences.append(
                f"“{title}” has a single round to work with: it puts together what arrived up to the attacked round, and {watched}. "
                "Watch several rounds and attack a later one."
            )
    return sentences


def all_warnings(experiments: Iterable[Experiment], known: Catalog) -> list[str]:
    """Return the sentences of `all_cautions` for several experiments, without repetitions."""
    return list(dict.fromkeys(sentence for experiment in experiments for sentence in all_cautions(experiment, known)))


def _why_changed(experiment: Experiment, entry: DefenseEntry, entries: list[DefenseEntry], known: Catalog) -> str:
    """Return why the attacker does not receive a protection's output unchanged, such as "another protection changes them"; "" if it does.

    Args:
        experiment: the experiment.
        entry: the protection.
        entries: all protections of the experiment, in the order in which they act.
        known: the plug-ins.
    """
    if clients_of(experiment.aggregation, known) > 1:
        return "they arrive added up with those of other phones"
    last_of_stage = [other for other in entries if other.stage == entry.stage][-1]
    changed_later = entry.stage == "gradient" and any(other.stage != "gradient" for other in entries)
    if last_of_stage is not entry or changed_later:
        return "another protection changes them afterwards"
    protocol = known.protocols.get(experiment.protocol.id)
    return f"{protocol.short} sends something else" if entry.stage == "gradient" and not protocol.sends_gradient else ""
