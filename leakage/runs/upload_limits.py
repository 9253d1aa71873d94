"""The limit on the uploads of an owner that the store keeps, so that one visitor cannot fill the store of all."""

from collections.abc import Mapping, Sequence

from leakage.runs.store import Store
from leakage.spec.experiment import SpecError

MAX_KEPT = 200  # different pictures in the runs of one owner
MAX_KEPT_MB = 64  # of the files of uploads in these runs; each run has a copy
TOO_MANY = "Your runs would hold {} uploaded pictures; {} are allowed. Delete runs with your own pictures first, on the page Your runs."
TOO_LARGE = (
    "Your runs would hold {:.0f} MB of uploaded pictures; {} MB are allowed. "
    "Delete runs with your own pictures first, on the page Your runs, or choose fewer pictures."
)


def check_room(store: Store, owner: str, files: Sequence[Mapping[str, bytes]]) -> None:
    """Raise SpecError if an owner may not store these files in addition to the uploads that are stored already.

    Args:
        store: the store.
        owner: the owner.
        files: the files of each run that the owner submits, by name.
    """
    if not any(files):
        return
    kept = store.database.read().execute(
        "SELECT name, LENGTH(data) AS size FROM files WHERE substr(name, 1, 7) = 'upload:' AND run IN"
        " (SELECT run FROM holders WHERE owner = ?)",
        (owner,),
    )
    names, size = {name for run in files for name in run}, sum(len(data) for run in files for data in run.values())
    for row in kept:
        names.add(row["name"])
        size += row["size"]
    if len(names) > MAX_KEPT:
        raise SpecError(TOO_MANY.format(len(names), MAX_KEPT))
    if size > MAX_KEPT_MB * 2**20:
        raise SpecError(TOO_LARGE.format(size / 2**20, MAX_KEPT_MB))
