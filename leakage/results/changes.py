"""What one experiment has otherwise than another, in words: all that a what-if changes."""

import re

from leakage.results.differences import aspects
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.words import ATTACKERS


def changes(before: Experiment, after: Experiment, known: Catalog) -> str:
    """Such as "8 pictures instead of 1 picture; attack: Inverting Gradients instead of iDLG"; empty where both ask the same."""
    told = []
    for about, words in aspects([before, after], known, short=True):
        if len(set(words)) > 1:
            was, now = words
            name = re.sub("^(The|Its|Their) ", "", about)
            name = name if name.startswith("BatchNorm") else name[0].lower() + name[1:]
            told.append(f"{'' if name.split()[-1].rstrip('s') in now else f'{name}: '}{now} instead of {was}")
    attackers = [ATTACKERS["adaptive" if one.assume.adaptive else "naive"].lower() for one in (after, before)]
    if len(set(attackers)) > 1:
        told.append(f"attacker: {' instead of '.join(attackers)}")
    return "; ".join(told)
