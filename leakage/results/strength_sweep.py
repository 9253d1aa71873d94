"""A sweep: experiments that differ in a single number of a protection."""

from collections.abc import Sequence

from leakage.spec.experiment import Experiment


def find_sweep(experiments: Sequence[Experiment]) -> tuple[str, str, list[float]] | None:
    """Find the number that a sweep varies.

    Seeds may differ too, if every strength was run with each of them.

    Returns:
        The id of the protection, the name of the field, and its value in every experiment. None if not exactly one number differs, or if
        anything else differs.
    """
    stacks = [[(part.id, name, value) for part in each.defenses for name, value in part.fields.items()] for each in experiments]
    if len({tuple((id, name) for id, name, _ in stack) for stack in stacks}) != 1:
        return None
    varied = [index for index, fields in enumerate(zip(*stacks, strict=True)) if len(set(fields)) > 1]
    if len(varied) != 1:
        return None
    id, name, _ = stacks[0][varied[0]]
    values = [stack[varied[0]][2] for stack in stacks]
    if any(isinstance(value, bool | str) for value in values) or len({_rest(experiment) for experiment in experiments}) > 1:
        return None
    tried: dict[float, set[int]] = {}
    for value, experiment in zip(values, experiments, strict=True):
        tried.setdefault(float(value), set()).add(experiment.seed)
    if len({frozenset(seeds) for seeds in tried.values()}) > 1:
        return None
    return id, name, [float(value) for value in values]


def _rest(experiment: Experiment) -> str:
    """Return a digest of everything but the protections, the attacker's knowledge of them, and the seed."""
    adaptive = experiment.assume.model_copy(update={"adaptive": True})
    return experiment.model_copy(update={"defenses": (), "assume": adaptive, "seed": 0}).digest()
