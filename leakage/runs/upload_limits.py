"""How much of what one owner uploads is kept: without a limit, one visitor fills the store of all."""

from collections.abc import Mapping, Sequence

from leakage.runs.store import Store
from leakage.spec.experiment import SpecError

MAX_KEPT = 200  # different pictures in the runs of one owner
MAX_KEPT_MB = 64  # of their files; every run has its own
TOO_MANY = "Your runs would hold {} uploaded pictures; {} are allowed. Delete runs with your own pictures first, on the page Your runs."
TOO_LARGE = (
    "Your runs would hold {:.0f} MB of uploaded pictures; {} MB are allowed. "
    "Delete runs with your own pictures first, on the page Your runs, or choose fewer pictures."
)


def check_room(store: Store, owner: str, files: Sequence[Mapping[str, bytes]]) -> None:
    """Raise SpecError when these files, by run, are more than this owner may keep beside what is kept already."""
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
