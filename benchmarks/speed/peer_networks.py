"""The networks of our speed benchmark, written for the peer's environment, which knows nothing of our code."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

SHAPE, CLASSES = (3, 32, 32), 10


def lenet() -> nn.Sequential:
    """LeNet (Zhu): conv 5@12 /2 - conv 5@12 /2 - conv 5@12 /1, a sigmoid after each, then linear."""
    layers: list[nn.Module] = []
    for before, stride in ((SHAPE[0], 2), (12, 2), (12, 1)):
        layers += [nn.Conv2d(before, 12, 5, stride=stride, padding=2), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(12 * 8 * 8, CLASSES))


def convnet(width: int = 16) -> nn.Sequential:
    """The ConvNet of Inverting Gradients, whose paper has width 64: eight times conv 3 - BatchNorm - ReLU, two max-pools, then linear."""
    layers: list[nn.Module] = []
    before = SHAPE[0]
    for number, times in enumerate((1, 2, 2, 4, 4, 4, 4, 4)):
        after = times * width
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        if number in (5, 7):
            layers.append(nn.MaxPool2d(3))  # 32 -> 10 -> 3
        before = after
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * 3 * 3, CLASSES))


class Block(nn.Module):
    """A basic residual block: conv 3 - BatchNorm - ReLU - conv 3 - BatchNorm, plus the skip, then ReLU."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        resized = nn.Sequential(nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after))
        self.skip = nn.Identity() if before == after and stride == 1 else resized

    def forward(self, x: Tensor) -> Tensor:
        summed: Tensor = self.body(x) + self.skip(x)
        return summed.relu()


def resnet18(width: int = 16) -> nn.Sequential:
    """ResNet18 for small pictures: conv 3, four stages of two blocks, each stage twice as wide as the one before, then linear."""
    layers: list[nn.Module] = [nn.Conv2d(SHAPE[0], width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    before = width
    for stage in range(4):
        after = width * 2**stage
        layers += [Block(before, after, stride=2 if stage else 1), Block(after, after, stride=1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


NETWORKS: dict[str, Callable[[], nn.Sequential]] = {
    "lenet": lenet,
    "convnet": convnet,
    "convnet64": partial(convnet, 64),
    "resnet": resnet18,
}
