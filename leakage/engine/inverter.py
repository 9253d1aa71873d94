"""A network that learns to undo the updates of one model, with any protection: features, training, error."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.data.errors import CheckpointError
from leakage.engine.core import Params, generator
from leakage.engine.stopping import StoppedError
from leakage.engine.weights import drawing

MOST_ENTRIES = 200_000  # in an update: each entry is a row of the matrix of signs
MEAN, SPREAD = "features.mean", "features.spread"  # names in a file of weights, beside the network's parameters
TOO_LARGE = "Only models of at most {:,} weights can be undone by a trained network, this one has {:,}. Choose a smaller model."
OTHER = "This file is of another network: it has {}, expected was {}. Train it anew, or put back the file that belongs to its card."


def weights_hash(weights: Params) -> str:
    """Return a sha256 of the names, shapes and numbers of a model's weights, which identifies them."""
    digest = hashlib.sha256()
    for name, value in weights.items():
        digest.update(f"{name}{tuple(value.shape)}".encode() + value.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Shape:
    """The sizes of an inverter: a network that is trained to turn an update into the pictures of its batch.

    Args:
        entries: d, the numbers in an update
        features: m, the numbers that the network takes, computed from an update by `project`
        hidden: hidden units
        pictures: (B, C, H, W) of its output
        seed: of the random matrix of signs in `project`, of the initial weights, and of the order of the training examples
    """

    entries: int
    features: int
    hidden: int
    pictures: tuple[int, int, int, int]
    seed: int

    def network(self) -> nn.Sequential:
        """Return the untrained network, m -> hidden -> B C H W in [0, 1]."""
        with drawing(self.seed, "inverter"):
            size = torch.Size(self.pictures).numel()
            return nn.Sequential(nn.Linear(self.features, self.hidden), nn.ReLU(), nn.Linear(self.hidden, size), nn.Sigmoid())

    def project(self, update: Params) -> Tensor:
        """Return the m features of an update: the normalized tensors, concatenated, times a fixed random matrix of signs.

        The matrix approximately keeps inner products. After normalization, a tensor of small entries counts as much as a tensor of large
        ones.
        """
        directions = [value.detach().cpu().float().flatten() for value in update.values()]
        flat = torch.cat([value / value.norm().clamp(min=1e-30) for value in directions])
        if len(flat) != self.entries:
            raise CheckpointError(OTHER.format(f"{self.entries:,} entries", f"{len(flat):,}"))
        return flat @ signs(self.entries, self.features, self.seed)


@lru_cache(maxsize=2)
def signs(entries: int, features: int, seed: int) -> Tensor:
    """Return a random matrix (entries, features) of 1 and -1, the same at each call with this seed; ValueError for too many entries."""
    if entries > MOST_ENTRIES:
        raise ValueError(TOO_LARGE.format(MOST_ENTRIES, entries))
    drawn = torch.randint(0, 2, (entries, features), generator=generator(seed, "signs"), dtype=torch.int8)
    return drawn.float().mul_(2).sub_(1)


class Inverter:
    """A network that was trained to undo the updates of one model; called with an update, it returns pictures (B, C, H, W).

    Args:
        shape: its sizes.
        state: the parameters of the network, and the mean and standard deviation by which its features are normalized.
        name: the file that they are from, for messages.
        knowledge: what the network was trained on, for the threat model table.
    """

    def __init__(self, shape: Shape, state: Params, name: str, knowledge: str = "") -> None:
        """Check the parameters and load them. Raises CheckpointError where they do not fit the shape or are not finite."""
        self.shape, self.network, self.knowledge = shape, shape.network().eval(), knowledge
        state = {key: value.float() for key, value in state.items()}
        wanted = {key: value.shape for key, value in self.network.state_dict().items()} | {
            MEAN: torch.Size([shape.features]),
            SPREAD: torch.Size([shape.features]),
        }
        for key, size in wanted.items():
            value = state.get(key)
            if value is None or value.shape != size or not bool(torch.isfinite(value).all()):
                problem = "no" if value is None else f"{tuple(value.shape)} numbers, or numbers that are not finite, as"
                raise CheckpointError(f"{name}: {OTHER.format(f'{problem} {key}', tuple(size))}")
        self.mean, self.spread = state.pop(MEAN), state.pop(SPREAD)
        self.network.load_state_dict(state)

    @torch.no_grad()
    def __call__(self, update: Params) -> Tensor:
        return self.answers(self.shape.project(update)[None])[0]

    @torch.no_grad()
    def answers(self, features: Tensor) -> Tensor:
        """Return the pictures (N, B, C, H, W) that the network gives for N updates with these features (N, m)."""
        x: Tensor = self.network((features - self.mean) / self.spread)
        return x.view(-1, *self.shape.pictures)


def closest_order(answers: Tensor, truth: Tensor) -> Tensor:
    """Return the order in which true pictures fit the network's pictures best, by least mean squared error: indices (N, B).

    Args:
        answers: the pictures that the network returned for N updates, (N, B, ...).
        truth: the true pictures, (N, B, ...).
    """
    count = truth.shape[1]
    if count == 1:
        return torch.zeros(len(truth), 1, dtype=torch.long)
    gaps = (answers.detach().flatten(2)[:, :, None] - truth.flatten(2)[:, None]).square().mean(3)  # (N, B, B)
    return torch.stack([torch.as_tensor(linear_sum_assignment(gap.cpu().numpy())[1]) for gap in gaps])


def least_error(answers: Tensor, truth: Tensor) -> Tensor:
    """Return the mean squared errors (N, B) of N batches of guesses, with the true pictures in the order that makes their sum least.

    The order of pictures in a batch is unknown. It is found as the assignment of least cost (Kuhn 1955, "Hungarian").
    """
    order = closest_order(answers, truth)
    return (answers - truth[torch.arange(len(truth))[:, None], order]).square().flatten(2).mean(2)


@dataclass(frozen=True)
class Recipe:
    """How an inverter (a network that turns updates into pictures) is trained.

    Args:
        epochs: passes through the training examples
        rate: Adam's initial learning rate
        batch: training examples per step
    """

    epochs: int
    rate: float
    batch: int


@dataclass(frozen=True)
class Epoch:
    """The progress of a training.

    Args:
        done: epochs done
        loss: mean squared error on the training examples
    """

    done: int
    loss: float


def learn(
    shape: Shape, features: Tensor, pictures: Tensor, recipe: Recipe, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[Epoch | Params]:
    """Train a network that turns updates into pictures; yield an Epoch after each epoch and at the end the state for `Inverter`.

    The optimizer is Adam with a learning rate that falls along a cosine; the loss is the error for the best order of the pictures.

    Args:
        shape: sizes of the network.
        features: the features (`Shape.project`) of N example updates, (N, m).
        pictures: the batch of pictures behind each of these updates, (N, B, C, H, W).
        recipe: how to train.
        should_stop: called before each step.

    Raises:
        StoppedError: `should_stop()` returned True.
    """
    epochs, batch = recipe.epochs, recipe.batch
    network, rng = shape.network(), generator(shape.seed, "examples")
    mean, spread = features.mean(0), features.std(0).clamp(min=1e-12)
    features = (features - mean) / spread
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.rate)
    per_epoch = -(-len(features) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * per_epoch)
    for epoch in range(1, epochs + 1):
        total = torch.zeros(())
        for part in torch.randperm(len(features), generator=rng).split(batch):
            if should_stop():
                raise StoppedError
            loss = least_error(network(features[part]).view(-1, *shape.pictures), pictures[part]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.detach() * len(part)
        yield Epoch(epoch, float(total) / len(features))
    yield {**network.state_dict(), MEAN: mean, SPREAD: spread}


def mean_picture_error(pictures: Tensor, truth: Tensor) -> float:
    """Return the mean squared error of the mean training picture against the truth: the baseline of an attacker that ignores the update."""
    return float(F.mse_loss(pictures.mean(0).expand_as(truth), truth))
