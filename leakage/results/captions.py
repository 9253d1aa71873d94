"""An experiment in the words of a caption and of a headline, for pictures that leave the program."""

from leakage.results.differences import attacker, part_words, protection
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment


def headline(experiment: Experiment, known: Catalog) -> str:
    """The attack, and what stands against it."""
    attack = part_words("attack", experiment.attack, (), known, short=True)
    return f"{attack}, {protection(experiment.defenses, (), known)}" if experiment.defenses else attack


def caption(experiment: Experiment, known: Catalog) -> str:
    """All that must be known to play it again, in a line."""
    one, count, reading = experiment, len(experiment.pictures), attacker(experiment, known)
    told = [
        part_words("attack", one.attack, (), known, short=False),
        "" if reading == "both" else f"{reading} attacker",
        f"{part_words('model', one.model, (), known, short=False)}, {f'trained ({one.checkpoint})' if one.checkpoint else 'untrained'}",
        f"{count} picture{'' if count == 1 else 's'} of {one.size} px",
        protection(one.defenses, (), known, short=False),
        part_words("protocol", one.protocol, (), known, short=True),
        part_words("protocol", one.aggregation, (), known, short=False) if one.aggregation else "",
        f"round {one.attacked_round} of {one.rounds}" if one.rounds > 1 else "",
        f"seed {one.seed}",
    ]
    return " · ".join(words for words in told if words)
