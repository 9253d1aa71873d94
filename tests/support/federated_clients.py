"""What the clients of the federations of the adapters' tests train: a network, their pictures, and plain SGD."""

import torch
from torch import Tensor, nn

from leakage.data.images import gallery, read
from leakage.models.lenet import LeNet

RATE = 0.01
SHAPES = {"lenet": (3, 32), "tiny": (1, 8)}  # the channels and the side of a picture
CLASSES = {"lenet": 10, "tiny": 4}


def make_network(kind: str) -> nn.Module:
    """Return the project's LeNet, or a tiny network of the same kind, always with the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        channels, side = SHAPES[kind]
        if kind == "lenet":
            return LeNet().build((channels, side, side), CLASSES[kind])
        layers = [nn.Conv2d(channels, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.Sigmoid()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * (side // 2) ** 2, CLASSES[kind]))


def read_batch(kind: str, client: int, pictures: int) -> tuple[Tensor, Tensor]:
    """Return the pictures (B, C, H, W) and the labels (B,) of a client: the next ones of the gallery."""
    items = gallery()[client * pictures : (client + 1) * pictures]
    channels, side = SHAPES[kind]
    x = torch.stack([torch.from_numpy(read("gallery", item.id, side, channels).reshape(side, side, channels)) for item in items])
    return x.permute(0, 3, 1, 2).float() / 255, torch.tensor([item.label for item in items])


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Take a step with all pictures, of SGD or of another optimizer, once for each epoch."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=RATE)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
