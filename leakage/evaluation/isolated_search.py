"""The run of an attack where a server may have separated pictures: a search runs on these alone, and the other places stay grey."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from leakage.engine.core import Attack, Observation, Server, Snapshot
from leakage.engine.federation import Federation
from leakage.engine.labels import labels_by_prior, mean_predictions
from leakage.engine.losses import classes_of, fractions_of

GREY = 0.5  # in the places of pictures that were not looked for
SEPARATED_BY_CLASS = "known to the server, which has separated the pictures of this class"
UNKNOWN_CLASS = "not known: the class that the server has set stands in its place"


def run_attack(attack: Attack, federation: Federation, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
    """Run an attack, and yield its Snapshots, with all B places filled.

    An attack that reads what the server has built in, or that was trained beforehand, runs on the whole observation. Any other attack runs
    on what the server isolates. The pictures that it finds come first; the other places are grey.

    Args:
        attack: the attack.
        federation: the federation, with the server.
        seen: what the attacker has observed.
        rng: the attack's random numbers.

    Raises:
        DoesNotApplyError: as the server, which isolates, and the attack raise it.
    """
    server = federation.server
    whole = server is None or attack.learned or attack.id in server.reading
    alone = seen if server is None or whole else server.isolate(seen, federation.aggregation.members)
    snapshots = attack.run(alone, rng)
    if alone is seen:
        yield from snapshots or ()  # None: the attack's `run` has no yield
        return
    assert server is not None
    others = _labels_of_others(seen, alone)
    for snapshot in snapshots or ():
        fits = snapshot.x.shape == alone.batch.shape  # a Snapshot of a wrong shape is reported as it is
        yield _filled(snapshot, seen, alone, others, server) if fits else snapshot


def _filled(snapshot: Snapshot, seen: Observation, alone: Observation, others: Tensor, server: Server) -> Snapshot:
    """Return a Snapshot of the separated pictures with grey pictures in the other places, which have the labels `others`."""
    left = len(others)
    grey = snapshot.x.new_full((left, *snapshot.x.shape[1:]), GREY)
    y = others.to(snapshot.y.device)
    y = fractions_of(y, seen.batch.num_classes).to(snapshot.y) if snapshot.y.dim() == 2 else y
    proved = None if snapshot.proved is None else torch.cat([snapshot.proved, snapshot.proved.new_zeros(left)])
    filled = torch.arange(seen.batch.size) < alone.batch.size
    found = [str(snapshot.note["read from"])] if "read from" in snapshot.note else []
    grey_words = [f"{left} place{' is' if left == 1 else 's are'} grey: not looked for"] if left else []
    note = {**snapshot.note, "read from": "; ".join([*found, alone.isolated, *grey_words])}
    if alone.granted.labels is not None and seen.granted.labels is None:
        note["label rule"] = SEPARATED_BY_CLASS if server.separates_by_class else UNKNOWN_CLASS
    return replace(snapshot, x=torch.cat([snapshot.x, grey]), y=torch.cat([snapshot.y, y]), note=note, proved=proved, filled=filled)


def _labels_of_others(seen: Observation, alone: Observation) -> Tensor:
    """Return labels (B - n,) for the places that stay grey: granted, or as many of each class as the last layer's gradient shows."""
    separated = [] if alone.granted.labels is None else classes_of(alone.granted.labels).tolist()
    left = (classes_of(seen.granted.labels) if seen.granted.labels is not None else _labels_of_all(seen)).tolist()
    for label in separated:
        if label in left:
            left.remove(label)
    return torch.tensor(left[: seen.batch.size - alone.batch.size], dtype=torch.long)  # also where none is left


def _labels_of_all(seen: Observation) -> Tensor:
    """Return labels (B,) by the model's mean predictions on random pictures; of class 0 where they cannot be read."""
    nothing = torch.zeros(seen.batch.size, dtype=torch.long)
    try:
        means = mean_predictions(seen)
    except ValueError:  # no layer shows the labels, or the loss is another
        return nothing
    return nothing if means is None else labels_by_prior(means, "model prior", seen.batch.size)
