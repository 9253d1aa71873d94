"""An experiment in the words of a caption and of a headline, for pictures that leave the program."""

from leakage.results.differences import attacker, part_words, protection
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment


def headline(experiment: Experiment, known: Catalog) -> str:
    """Name the attack and the protections of an experiment."""
    attack = part_words("attack", experiment.attack, (), known, short=True)
    return f"{attack}, {protection(experiment.defenses, (), known)}" if experiment.defenses else attack


def caption(experiment: Experiment, known: Catalog) -> str:
    """Describe the main settings of an experiment in a line, from the attack to the seed."""
    count, attacker_type = len(experiment.pictures), attacker(experiment, known)
    weights = f"trained ({experiment.checkpoint})" if experiment.checkpoint else "untrained"
    parts = [
        part_words("attack", experiment.attack, (), known, short=False),
        "" if attacker_type == "both" else f"{attacker_type} attacker",
        f"{part_words('model', experiment.model, (), known, short=False)}, {weights}",
        f"{count} picture{'' if count == 1 else 's'} of {experiment.size} px",
        protection(experiment.defenses, (), known, short=False),
        part_words("protocol", experiment.protocol, (), known, short=True),
        part_words("protocol", experiment.aggregation, (), known, short=False) if experiment.aggregation else "",
        f"round {experiment.attacked_round} of {experiment.rounds}" if experiment.rounds > 1 else "",
        f"seed {experiment.seed}",
    ]
    return " · ".join(part for part in parts if part)
