"""How a model is trained, as plain numbers and words."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """The settings of federated averaging. With one client, which has all pictures, this is central training, one epoch in each round."""

    rounds: int = 5
    clients: int = 1
    local_epochs: int = 1
    partition: Literal["iid", "shards"] = "iid"
    """How the pictures are divided among the clients. iid: at random; shards: the pictures are sorted by class and cut into runs, of which
    each client gets two."""
    batch: int = 128
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    """The learning rate of the clients' optimisers; `schedule` multiplies it."""
    schedule: Literal["cosine", "steps", "constant"] = "cosine"
    momentum: float = 0.9
    decay: float = 5e-4
    """The weight decay (L2)."""
    augment: bool = False
    """Whether pictures are shifted at random by up to 4 pixels and mirrored."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """The precision of the arithmetic; the weights stay float32."""
    server_rate: float = 1.0
    """The server's learning rate along the mean change of the clients' parameters; 1: the server takes the mean of their parameters."""
    seed: int = 1
