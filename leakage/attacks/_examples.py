"""Starts of searches: other pictures of the private pictures' classes in place of noise, where the experiment grants such examples."""

from torch import Tensor

from leakage.attacks._adam import Note
from leakage.attacks._labels import readable
from leakage.engine.core import Observation
from leakage.engine.labels import recover
from leakage.engine.matching import from_pixels


def with_examples(seen: Observation, z: Tensor, labels: Tensor | None, *, before: int = 0) -> tuple[Tensor, Note]:
    """Return the guesses with each picture replaced by a granted example of its class, as long as there are examples.

    No example is used twice: two guesses of a class that start alike would have the same gradients, and stay alike.
    Source: Wei et al. 2020 (A framework for evaluating gradient leakage attacks), section on initialisation.

    Args:
        seen: what the attacker observed, with the examples that the experiment grants.
        z: guesses (S, B, C, H, W) in the model's normalized space; a picture without an example stays as it is.
        labels: the classes (B,) of the guesses; None: not known.
        before: the number of earlier guesses of the batch, which have used their examples already.

    Returns:
        The guesses, and a note for the page, empty if no examples were granted.
    """
    if not seen.granted.examples:
        return z, {}
    classes = labels.tolist() if labels is not None and labels.dim() == 1 else []
    taken, z, changed = {label: before * classes.count(label) for label in classes}, z.clone(), 0
    for guess in z:
        for index, label in enumerate(classes):
            examples = seen.granted.examples.get(label)
            if examples is not None and taken[label] < len(examples):
                guess[index] = from_pixels(seen, examples[taken[label]].to(guess)[None])[0]
                changed += 1
            taken[label] += 1
    total = z.shape[0] * z.shape[1]
    if not changed:
        return z, {"begins": "noise: the attacker owns no other picture of this class"}
    return z, {"begins": "another picture of the class" + (f" for {changed} of {total} guesses, else noise" if changed < total else "")}


def example_classes(seen: Observation) -> Tensor | None:
    """Return the classes (B,) by which an attack that searches labels too starts from granted examples (`with_examples`).

    These are the granted labels, or labels read from the gradient of a linear last layer. None if no labels are granted, and there are no
    examples or no linear last layer.
    """
    if not seen.granted.examples or seen.granted.labels is not None:
        return seen.granted.labels
    return recover(seen).labels if readable(seen) else None
