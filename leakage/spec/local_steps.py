"""How many local steps a client takes, by the fields of its protocol. No torch."""

from collections.abc import Mapping
from typing import Any


def count_local_steps(fields: Mapping[str, Any], pictures: int) -> int | None:
    """Return the number of local steps of a client that has `pictures` pictures; None if the protocol has no local training.

    A step takes `accumulation` mini-batches, or all pictures if `mini_batch` is 0.

    >>> count_local_steps({"epochs": 3, "mini_batch": 2, "accumulation": 2}, 9), count_local_steps({}, 9)
    (9, None)
    """
    if "epochs" not in fields:
        return None
    of_a_step = fields.get("mini_batch", 0) * fields.get("accumulation", 1) or pictures
    return int(fields["epochs"] * -(-pictures // of_a_step))
