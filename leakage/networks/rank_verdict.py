"""The verdict of rank analysis on attacks that solve one layer after the other, with its reason."""

from dataclasses import dataclass

from leakage.networks.grammar import Block, Pool, Step
from leakage.networks.rank import Analysis, LayerCount

WHOLE = "It says nothing of attacks that match the whole gradient at once."


@dataclass(frozen=True)
class Verdict:
    """The verdict on attacks that go layer by layer.

    Args:
        headline: the answer in one sentence
        reason: why
        recursion: whether R-GAP could solve the network, in words
        missing: the number of missing equations with which `reason` begins; 0 where none is missing
    """

    headline: str
    reason: str
    recursion: str
    missing: int = 0


def open_unknowns(row: LayerCount) -> int:
    """Return how many entries of a layer's input the layer's own equations leave undetermined.

    The rank of the equations decides where it is known, elsewhere the count of equations. A fully connected layer leaves no unknowns open.
    """
    if not row.counted:
        return 0
    return max(row.local, 0) if row.deficiency is None else row.deficiency


def missing_equations(row: LayerCount) -> int:
    """Return how many equations a layer lacks for its input: its `open_unknowns` less the equations that earlier layers hand on."""
    return open_unknowns(row) - row.v


def lacks_equations(found: Analysis) -> bool:
    """Return whether some layer has too few equations for its input, also with those that earlier layers hand on."""
    return any(open_unknowns(row) and missing_equations(row) > 0 for row in found.rows)


def layer_label(row: LayerCount, steps: tuple[Step, ...]) -> str:
    """Return the name of a layer for a page: a block has its number among the blocks, as in the paper."""
    if row.step >= len(steps) or not isinstance(steps[row.step], Block):
        return row.name.rstrip("0123456789") if row.kind in ("mean", "max") else row.name
    number = sum(isinstance(step, Block) for step in steps[: row.step + 1])
    return " ".join([f"block {number}", *row.name.split(".")[1:]])


def layer_phrase(row: LayerCount, steps: tuple[Step, ...]) -> str:
    """Return the name of a layer inside a sentence: "block 3" or "layer conv1"."""
    name = layer_label(row, steps)
    return name if name.startswith("block") else f"layer {name}"


def verdict(found: Analysis, steps: tuple[Step, ...], batch: int) -> Verdict:
    """Return the verdict whether the equations of a network suffice to recover the picture layer by layer.

    Args:
        found: the counts of the network, with measured ranks where there are any.
        steps: the network.
        batch: the number of pictures in the gradient.

    Returns:
        The verdict, as text without markup.

    Source: Zhu and Blaschko, R-GAP: Recursive Gradient Attack on Privacy, 2021, section 4.
    """
    counted = [row for row in found.rows if row.counted]
    recursion = _recursion(found, steps, batch)
    if not counted:
        why = "Every layer is fully connected, and the gradient of such a layer holds its whole input."
        return Verdict("Layer by layer, the gradient holds the picture", why, recursion)
    worst, tight = max(counted, key=missing_equations), found.critical
    partly = [row for row in counted if open_unknowns(row) and row.kind not in ("mean", "max")]
    if lacks_equations(found):
        count = f"{missing_equations(worst):,}"
        reason = f"{count} equations are missing: an attack that solves one layer after the other has to guess the rest. {WHOLE}"
        if missing_equations(worst) != found.index:
            reason += " The index says less: it also counts equations that follow from others."
        headline = f"Layer by layer, not enough equations in {layer_phrase(worst, steps)}: {_determined(worst)}"
        return Verdict(headline, reason, recursion, missing_equations(worst))
    if partly:
        row = max(partly, key=open_unknowns)
        why = (
            f"Alone it leaves {open_unknowns(row):,} open; layers before it hand on {row.v:,} equations. An attack that solves all layers "
            "at once can use them, one that goes layer by layer cannot."
        )
        headline = f"Layer by layer, enough equations in all, but not in {layer_phrase(row, steps)} alone: {_determined(row)}"
        return Verdict(headline, why, recursion)
    assert tight is not None
    why = f"Even {layer_phrase(tight, steps)}, the tightest, has {-tight.index:,} equations more than unknowns."
    why = why if tight.index else f"The tightest, {layer_phrase(tight, steps)}, has exactly as many equations as unknowns."
    return Verdict("Layer by layer, the equations suffice", why, recursion)


def _determined(row: LayerCount) -> str:
    most = "at most " if row.known is None else ""
    return f"{most}{row.x - open_unknowns(row):,} of {row.x:,} unknowns determined"


def _recursion(found: Analysis, steps: tuple[Step, ...], batch: int) -> str:
    stuck = [row for row in found.rows if open_unknowns(row)]
    if batch > 1:
        return "no, it is made for one picture"
    if any(isinstance(step, Pool) and step.kind == "max" for step in steps):
        return "no, it cannot tell what lies behind the largest of several numbers"
    if stuck:
        guess = f"only in part, it has to guess in {layer_phrase(stuck[-1], steps)}"  # it starts at the output
        return guess if lacks_equations(found) else f"{guess}, unless it is small enough to be solved together with the layers before it"
    return "yes"
