"""What a server that changes the model has built in to read pictures from updates: known to the attacker, and to no client."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bins:
    """A fully connected layer of which the rows sort pictures by one number, such as their brightness, into K bins.

    Args:
        layer: the layer's name in the model; its parameters are LAYER.weight (K, n) and LAYER.bias (K,)
        cumulative: True: row i answers to all pictures from the lower edge of bin i on; False: to the pictures in bin i alone
        every_round: whether the bins differ from round to round, so that the earlier rounds tell something too
        clients: 0: raw pixels enter the layer. Otherwise the maps of so many clients enter it, one client after the other: for each channel
            the client's own pictures, multiplied by `scale`, then a map of ones. The maps of other clients are 0 for this client's pictures
        scale: the factor of the pictures in the clients' maps
    """

    layer: str
    cumulative: bool
    every_round: bool = False
    clients: int = 0
    scale: float = 1.0
