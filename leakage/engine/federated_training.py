"""Federated averaging over any number of clients; a single client that has all pictures trains centrally.

Source: McMahan et al. 2017, algorithm 1 (FederatedAveraging); every client takes part in every round. A server step of a size other than
1 is that of Reddi et al. 2021, algorithm 1, with plain SGD.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.client import weights_of
from leakage.engine.client_protections import Protection
from leakage.engine.core import ClientState, Params, generator
from leakage.engine.fed_client import FedClient
from leakage.engine.recipe import TrainingRecipe
from leakage.engine.stopping import StoppedError

PADDING = 4  # black pixels on each side of a picture before a crop of the original size
SHARDS = 2  # shards per client, of the pictures sorted by class
EVALUATED = 100  # test pictures in a batch
REPORT_EVERY = 1.0  # seconds between two reports of progress within a round


class TrainingError(ValueError):
    """The training cannot continue; the message says why and what to do."""


@dataclass(frozen=True)
class Progress:
    """The progress of a training; `accuracy` and `weights` are set at the end of a round only."""

    done: float
    """Rounds done, with a fraction."""
    loss: float
    """Mean training loss of this round so far."""
    seconds: float
    accuracy: float | None = None
    """Fraction of all test pictures that are classified correctly."""
    weights: Params | None = None
    """The model's state dict."""
    client_states: tuple[ClientState, ...] = ()
    """The states that the clients keep for the next round."""


@dataclass(frozen=True)
class State:
    """The state of a training between two rounds.

    Args:
        rounds: rounds done
        weights: the model's state dict
        client_states: the state that each client keeps
    """

    rounds: int
    weights: Params
    client_states: tuple[ClientState, ...]


@dataclass(frozen=True)
class Pictures:
    """Labeled pictures in memory.

    Args:
        x: uint8 (N, C, H, W)
        y: int64 (N,)
    """

    x: Tensor
    y: Tensor

    def to(self, device: torch.device) -> "Pictures":
        return Pictures(self.x.to(device), self.y.to(device))


def train(  # noqa: PLR0913  (what is trained, and how it is watched)
    training: TrainingRecipe,
    model: nn.Module,
    train_set: Pictures,
    test_set: Pictures,
    *,
    protections: Sequence[Protection] = (),
    start: State | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress]:
    """Train a model by federated averaging and yield its progress; the training ends when `should_stop()` returns True.

    Optimizers are new in every round, and each round has a random generator of its own for order, crops and flips. A training that
    continues from a State therefore gives the same numbers as an uninterrupted training.

    Args:
        training: how to train.
        model: the model as `Federation.changed` returns it, on the device of the training; it is altered in place.
        train_set: the clients' pictures.
        test_set: the pictures for the accuracy.
        protections: in the order in which they act.
        start: the state to continue from; None starts at round 0.
        should_stop: called after every local step and before every batch of test pictures.

    Yields:
        Progress, about every second and at the end of every round.

    Raises:
        TrainingError: the weights are no longer finite.
    """
    device = next(model.parameters()).device
    if device.type == "cpu":
        model = model.to(memory_format=torch.channels_last)
    start = start or State(0, copy_of(model), ({},) * training.clients)
    weights = start.weights
    train_set, test_set = train_set.to(device), test_set.to(device)
    clients = [
        FedClient(model, training, protections, number, {name: value.to(device) for name, value in state.items()})
        for number, state in enumerate(start.client_states)
    ]
    parts = partition(train_set.y.cpu(), training)
    began = reported = time.perf_counter()
    for number in range(start.rounds, training.rounds):
        sent, losses = list[Params](), list[float]()
        for client, indices in zip(clients, parts, strict=False):  # with very few pictures, some clients get none
            model.load_state_dict(weights)
            for fraction, loss in local_steps(client, train_set, indices, round_number=number):
                losses.append(loss)
                if time.perf_counter() - reported > REPORT_EVERY:
                    done = number + (client.number + fraction) / len(parts)
                    yield Progress(done, sum(losses) / len(losses), time.perf_counter() - began)
                    reported = time.perf_counter()
                if should_stop():
                    return
            sent.append(client.sent(weights, copy_of(model)))
        weights = apply_server_step(weights, average_states(sent, [len(indices) for indices in parts]), model, training.server_rate)
        if not all(value.isfinite().all() for value in weights.values()):
            raise TrainingError(f"The weights grew beyond all numbers in round {number + 1}. Choose a smaller learning rate.")
        model.load_state_dict(weights)
        try:
            right = accuracy(model, test_set, should_stop)
        except StoppedError:
            return
        client_states = tuple(client.state for client in clients)
        yield Progress(number + 1, sum(losses) / len(losses), time.perf_counter() - began, right, weights, client_states)


def local_steps(client: FedClient, data: Pictures, indices: Tensor, *, round_number: int) -> Iterator[tuple[float, float]]:
    """Train one client for one round, in place, by SGD or Adam; yield the fraction done and the loss after every step.

    Args:
        client: the client, with the model that it trains.
        data: all pictures.
        indices: the indices of the client's pictures, (N,).
        round_number: which round, from 0.
    """
    model, training = client.model, client.training
    weights = weights_of(model)
    rng = generator(training.seed, "training", round_number, client.number)
    optimiser = _optimiser(model, training)
    alone = len(indices) % training.batch == 1 < len(indices)  # a last batch of a single picture is left out: BatchNorm may refuse it
    total = (math.ceil(len(indices) / training.batch) - alone) * training.local_epochs
    drops_out = any(isinstance(layer, nn.Dropout) for layer in model.modules())
    model.train()
    step = 0
    for _ in range(training.local_epochs):
        batches = indices[torch.randperm(len(indices), generator=rng)].split(training.batch)
        for chosen in batches[:-1] if alone else batches:
            for group in optimiser.param_groups:
                group["lr"] = training.rate * factor(training.schedule, (round_number + step / total) / training.rounds)
            x = data.x[chosen.to(data.x.device)]  # (B, C, H, W)
            x = (augment(x, rng) if training.augment else x).float() / 255
            with torch.random.fork_rng(enabled=drops_out):
                if drops_out:  # dropout draws from the global generator only
                    torch.manual_seed(int(torch.randint(2**62, (1,), generator=rng)))
                gradient, loss = client.gradient(weights, x, data.y[chosen.to(data.y.device)])
            for name, value in weights.items():
                value.grad = gradient[name]
            optimiser.step()
            step += 1
            yield step / total, loss.item()


def factor(schedule: str, at: float) -> float:
    """Return the factor on the learning rate when the fraction `at` of a training is done.

    cosine: linear from 0 to 1 over the first tenth, then down to 0 along half a cosine. steps: a tenth after each of 3/8, 5/8 and 7/8
    (Geiping et al. 2020).

    >>> [factor("cosine", at) for at in (0.05, 0.1, 0.55)], [round(factor("steps", at), 3) for at in (0, 0.4, 0.9)], factor("constant", 0.5)
    ([0.5, 1.0, 0.5], [1.0, 0.1, 0.001], 1.0)
    """
    if schedule == "cosine":
        return at / 0.1 if at < 0.1 else round((1 + math.cos(math.pi * (at - 0.1) / 0.9)) / 2, 12)
    if schedule == "steps":
        return 0.1 ** sum(at >= edge for edge in (3 / 8, 5 / 8, 7 / 8))
    return 1.0


def augment(x: Tensor, rng: torch.Generator) -> Tensor:
    """Return each picture (B, C, H, W) shifted at random by up to PADDING pixels, with black borders, and mirrored with probability 1/2."""
    count, _, height, width = x.shape
    shift = torch.randint(0, 2 * PADDING + 1, (2, count, 1), generator=rng).to(x.device)
    mirrored = torch.rand(count, 1, generator=rng).to(x.device) < 0.5
    rows = shift[0] + torch.arange(height, device=x.device)  # (B, H)
    columns = torch.arange(width, device=x.device).expand(count, width)
    columns = shift[1] + torch.where(mirrored, columns.flip(1), columns)  # (B, W)
    padded = F.pad(x, (PADDING,) * 4)  # (B, C, H + 8, W + 8)
    here = torch.arange(count, device=x.device)[:, None, None]
    return padded[here, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)  # (B, C, H, W)


def partition(labels: Tensor, training: TrainingRecipe) -> list[Tensor]:
    """Return the indices of each client's pictures, (N / clients,) each: drawn at random, or SHARDS shards of the pictures sorted by class.

    Source of the shards: McMahan et al. 2017, section 3 ("pathological non-IID partition").
    """
    rng = generator(training.seed, "partition")
    if training.clients > 1 and training.partition == "shards":
        shards = labels.argsort(stable=True).chunk(SHARDS * training.clients)
        order = torch.randperm(len(shards), generator=rng)
        return [torch.cat([shards[index] for index in indices]) for indices in order.chunk(training.clients)]
    return list(torch.randperm(len(labels), generator=rng).chunk(training.clients))


def average_states(sent: list[Params], counts: list[int]) -> Params:
    """Return the mean of the clients' state dicts, weighted by their numbers of pictures; integer entries are those of the first client."""
    total = sum(counts)
    return {
        name: torch.stack([state[name] * (count / total) for state, count in zip(sent, counts, strict=True)]).sum(0)
        if value.is_floating_point()
        else value
        for name, value in sent[0].items()
    }


def apply_server_step(weights: Params, mean: Params, model: nn.Module, rate: float) -> Params:
    """Return weights + rate (mean - weights) for the model's parameters; other entries, and all at rate 1, take the mean."""
    parameters = weights_of(model) if rate != 1 else {}
    return {name: weights[name] + rate * (value - weights[name]) if name in parameters else value for name, value in mean.items()}


@torch.no_grad()
def accuracy(model: nn.Module, data: Pictures, should_stop: Callable[[], bool] = lambda: False) -> float:
    """Return the fraction of pictures that the model classifies correctly, in eval mode.

    Raises StoppedError when `should_stop()` returns True.
    """
    model.eval()
    right = 0
    for x, y in zip(data.x.split(EVALUATED), data.y.split(EVALUATED), strict=True):
        if should_stop():
            raise StoppedError
        right += int((model(x.float() / 255).argmax(1) == y).sum())
    return right / len(data.y)


def copy_of(model: nn.Module) -> Params:
    """Return a copy of the model's state dict."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _optimiser(model: nn.Module, training: TrainingRecipe) -> torch.optim.Optimizer:
    if training.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), training.rate, weight_decay=training.decay)
    return torch.optim.SGD(
        model.parameters(), training.rate, momentum=training.momentum, nesterov=training.momentum > 0, weight_decay=training.decay
    )
