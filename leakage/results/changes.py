"""The differences between two experiments in words: everything that a what-if changes."""

import re

from leakage.results.differences import aspects
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.words import ATTACKERS


def changes(before: Experiment, after: Experiment, known: Catalog) -> str:
    """Describe how one experiment differs from another; empty if they ask the same.

    Such as "8 pictures instead of 1 picture; attack: Inverting Gradients instead of iDLG".
    """
    sentences = []
    for about, words in aspects([before, after], known, short=True):
        if len(set(words)) > 1:
            was, now = words
            name = re.sub("^(The|Its|Their) ", "", about)
            name = name if name.startswith("BatchNorm") else name[0].lower() + name[1:]
            sentences.append(f"{'' if name.split()[-1].rstrip('s') in now else f'{name}: '}{now} instead of {was}")
    attackers = [ATTACKERS["adaptive" if experiment.assume.adaptive else "naive"].lower() for experiment in (after, before)]
    if len(set(attackers)) > 1:
        sentences.append(f"attacker: {' instead of '.join(attackers)}")
    return "; ".join(sentences)
