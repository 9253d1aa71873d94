"""How a model is trained, as plain numbers and words."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """Federated averaging; with one client that holds all pictures it is ordinary, central training, a round an epoch.

    partition    iid: at random; shards: two runs of the pictures sorted by class for each client
    rate         of the clients' optimisers, times what `schedule` says
    decay        of the weights (L2)
    augment      random shifts by up to 4 pixels and mirroring
    precision    of the arithmetic; the weights themselves stay float32
    server_rate  of the server's step along the mean of how far the clients' parameters moved; 1: it takes the mean of what they send
    """

    rounds: int = 5
    clients: int = 1
    local_epochs: int = 1
    partition: Literal["iid", "shards"] = "iid"
    batch: int = 128
    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    schedule: Literal["cosine", "steps", "constant"] = "cosine"
    momentum: float = 0.9
    decay: float = 5e-4
    augment: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    server_rate: float = 1.0
    seed: int = 1
