"""A sweep: experiments that differ in one number of one protection."""

from collections.abc import Sequence

from leakage.spec.experiment import Experiment


def swept(experiments: Sequence[Experiment]) -> tuple[str, str, list[float]] | None:
    """The protection and its number that alone differ, with its value in every experiment; None where something else differs, or none.

    Seeds may differ too, where every strength was tried with each of them.
    """
    stacks = [[(part.id, name, value) for part in one.defenses for name, value in part.fields.items()] for one in experiments]
    if len({tuple((id, name) for id, name, _ in stack) for stack in stacks}) != 1:
        return None
    moved = [place for place, values in enumerate(zip(*stacks, strict=True)) if len(set(values)) > 1]
    if len(moved) != 1:
        return None
    id, name, _ = stacks[0][moved[0]]
    found = [stack[moved[0]][2] for stack in stacks]
    if any(isinstance(value, bool | str) for value in found) or len({_rest(one) for one in experiments}) > 1:
        return None
    tried: dict[float, set[int]] = {}
    for value, one in zip(found, experiments, strict=True):
        tried.setdefault(float(value), set()).add(one.seed)
    if len({frozenset(seeds) for seeds in tried.values()}) > 1:
        return None
    return id, name, [float(value) for value in found]


def _rest(experiment: Experiment) -> str:
    """All but the protections, who knows them, and the seed."""
    adaptive = experiment.assume.model_copy(update={"adaptive": True})
    return experiment.model_copy(update={"defenses": (), "assume": adaptive, "seed": 0}).digest()
