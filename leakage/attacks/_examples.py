"""Searches that start from another picture of the class in place of noise, where the attacker owns some."""

from torch import Tensor

from leakage.attacks._adam import Note
from leakage.attacks._labels import readable
from leakage.engine.core import Observation
from leakage.engine.labels import recover
from leakage.engine.matching import from_pixels


def begun(seen: Observation, z: Tensor, labels: Tensor | None, *, before: int = 0) -> tuple[Tensor, Note]:
    """Guesses with an example of its class in place of each picture, as far as there are some.

    No example is taken twice: two guesses of one class that start alike would have the same gradients, and never part.
    Source: Wei et al. 2020 (A framework for evaluating gradient leakage attacks), section on initialisation.

    Args:
        seen: what the server holds, with `examples` where the experiment grants them.
        z: guesses (S, B, C, H, W) in the model's normalised space, which are left as they are where there is no example.
        labels: the classes (B,) that the guesses have; None: not known.
        before: how many guesses of the batch have begun earlier, and have taken their examples.

    Returns:
        The guesses, and words for the page; none where no examples were granted.
    """
    if not seen.granted.examples:
        return z, {}
    classes = labels.tolist() if labels is not None and labels.dim() == 1 else []
    taken, z, changed = {label: before * classes.count(label) for label in classes}, z.clone(), 0
    for guess in z:
        for place, label in enumerate(classes):
            own = seen.granted.examples.get(label)
            if own is not None and taken[label] < len(own):
                guess[place] = from_pixels(seen, own[taken[label]].to(guess)[None])[0]
                changed += 1
            taken[label] += 1
    total = z.shape[0] * z.shape[1]
    if not changed:
        return z, {"begins": "noise: the attacker owns no other picture of this class"}
    return z, {"begins": "another picture of the class" + (f" for {changed} of {total} guesses, else noise" if changed < total else "")}


def example_classes(seen: Observation) -> Tensor | None:
    """The classes (B,) by which a search that guesses labels too picks its examples: granted, or read where the last layer is linear."""
    if not seen.granted.examples or seen.granted.labels is not None:
        return seen.granted.labels
    return recover(seen).labels if readable(seen) else None
