"""Training: federated averaging over any number of clients; with one client that holds all pictures it is ordinary, central training.

Source: McMahan et al. 2017, algorithm 1 (FederatedAveraging), every client taking part in every round. The server's step of another size
than 1 is that of Reddi et al. 2021, algorithm 1, with plain SGD.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.engine.client import weights_of
from leakage.engine.core import ClientState, Params, generator
from leakage.engine.fed_client import FedClient
from leakage.engine.federation import Protection
from leakage.engine.recipe import TrainingRecipe
from leakage.engine.stopping import StoppedError

PADDING = 4  # pixels around a picture before a crop of its old size is taken
SHARDS = 2  # per client, of the pictures sorted by class
EVALUATED = 100  # pictures at a time
TELL = 1.0  # seconds between two words of progress within a round


class TrainingError(ValueError):
    """A training that cannot go on; the message says why and what to do."""


@dataclass(frozen=True)
class Progress:
    """Where a training stands. `accuracy` on all test pictures and `weights` (the model's whole state) only when a round has ended."""

    done: float  # rounds, with a fraction
    loss: float  # mean training loss of this round so far
    seconds: float
    accuracy: float | None = None
    weights: Params | None = None
    client_states: tuple[ClientState, ...] = ()  # what the clients carry into the next round


@dataclass(frozen=True)
class State:
    """All there is between two rounds: how many were done, the model's whole state, and what every client carries."""

    rounds: int
    weights: Params
    client_states: tuple[ClientState, ...]


@dataclass(frozen=True)
class Pictures:
    """Labelled pictures in memory: uint8 (N, C, H, W) and int64 (N,)."""

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
    """Yield progress; goes on after `start` exactly as if it had never stopped, and ends when `should_stop()` returns True.

    `model` is as `Federation.changed` left it, on the device where it is to be trained, and is altered in place. Optimisers start afresh
    in every round, and each round's order, crops and flips come from a generator of its own.
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
    began = told = time.perf_counter()
    for number in range(start.rounds, training.rounds):
        sent, losses = list[Params](), list[float]()
        for client, mine in zip(clients, parts, strict=False):  # of very few pictures some clients get none
            model.load_state_dict(weights)
            for share, loss in local_steps(client, train_set, mine, round_number=number):
                losses.append(loss)
                if time.perf_counter() - told > TELL:
                    done = number + (client.number + share) / len(parts)
                    yield Progress(done, sum(losses) / len(losses), time.perf_counter() - began)
                    told = time.perf_counter()
                if should_stop():
                    return
            sent.append(client.sent(weights, copy_of(model)))
        weights = stepped(weights, average_states(sent, [len(mine) for mine in parts]), model, training.server_rate)
        if not all(value.isfinite().all() for value in weights.values()):
            raise TrainingError(f"The weights grew beyond all numbers in round {number + 1}. Choose a smaller learning rate.")
        model.load_state_dict(weights)
        try:
            found = accuracy(model, test_set, should_stop)
        except StoppedError:
            return
        client_states = tuple(client.state for client in clients)
        yield Progress(number + 1, sum(losses) / len(losses), time.perf_counter() - began, found, weights, client_states)


def local_steps(client: FedClient, data: Pictures, mine: Tensor, *, round_number: int) -> Iterator[tuple[float, float]]:
    """One client's part of one round: SGD or Adam over its pictures `mine` (N,), in place; yields (share done, loss) after every step."""
    model, training = client.model, client.training
    weights = weights_of(model)
    rng = generator(training.seed, "training", round_number, client.number)
    optimiser = _optimiser(model, training)
    alone = len(mine) % training.batch == 1 < len(mine)  # a last batch of one picture, which BatchNorm may not take, is left out
    total = (math.ceil(len(mine) / training.batch) - alone) * training.local_epochs
    drops_out = any(isinstance(layer, nn.Dropout) for layer in model.modules())
    model.train()
    step = 0
    for _ in range(training.local_epochs):
        batches = mine[torch.randperm(len(mine), generator=rng)].split(training.batch)
        for chosen in batches[:-1] if alone else batches:
            for group in optimiser.param_groups:
                group["lr"] = training.rate * factor(training.schedule, (round_number + step / total) / training.rounds)
            x = data.x[chosen.to(data.x.device)]  # (B, C, H, W)
            x = (augmented(x, rng) if training.augment else x).float() / 255
            with torch.random.fork_rng(enabled=drops_out):
                if drops_out:  # dropout knows only the global generator
                    torch.manual_seed(int(torch.randint(2**62, (1,), generator=rng)))
                gradient, loss = client.gradient(weights, x, data.y[chosen.to(data.y.device)])
            for name, value in weights.items():
                value.grad = gradient[name]
            optimiser.step()
            step += 1
            yield step / total, loss.item()


def factor(schedule: str, at: float) -> float:
    """What the learning rate is multiplied by when the share `at` of a training is done.

    cosine: up from 0 over the first tenth, then down to 0 on half a cosine. steps: a tenth after 3/8, 5/8 and 7/8 (Geiping et al. 2020).

    >>> [factor("cosine", at) for at in (0.05, 0.1, 0.55)], [round(factor("steps", at), 3) for at in (0, 0.4, 0.9)], factor("constant", 0.5)
    ([0.5, 1.0, 0.5], [1.0, 0.1, 0.001], 1.0)
    """
    if schedule == "cosine":
        return at / 0.1 if at < 0.1 else round((1 + math.cos(math.pi * (at - 0.1) / 0.9)) / 2, 12)
    if schedule == "steps":
        return 0.1 ** sum(at >= edge for edge in (3 / 8, 5 / 8, 7 / 8))
    return 1.0


def augmented(x: Tensor, rng: torch.Generator) -> Tensor:
    """Each picture (B, C, H, W) shifted by up to PADDING pixels, black coming in, and mirrored in half of the cases."""
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
    """Which pictures each client holds, as places (N / clients,): at random, or SHARDS runs of the pictures sorted by class.

    Source of the shards: McMahan et al. 2017, section 3 ("pathological non-IID partition").
    """
    rng = generator(training.seed, "partition")
    if training.clients > 1 and training.partition == "shards":
        shards = labels.argsort(stable=True).chunk(SHARDS * training.clients)
        order = torch.randperm(len(shards), generator=rng)
        return [torch.cat([shards[place] for place in places]) for places in order.chunk(training.clients)]
    return list(torch.randperm(len(labels), generator=rng).chunk(training.clients))


def average_states(sent: list[Params], counts: list[int]) -> Params:
    """The clients' states weighted by how many pictures each holds; BatchNorm's statistics too, its step counter is the first client's."""
    total = sum(counts)
    return {
        name: torch.stack([state[name] * (count / total) for state, count in zip(sent, counts, strict=True)]).sum(0)
        if value.is_floating_point()
        else value
        for name, value in sent[0].items()
    }


def stepped(weights: Params, mean: Params, model: nn.Module, rate: float) -> Params:
    """weights + rate (mean - weights) for the model's parameters; all else, and everything at rate 1, is the mean."""
    own = weights_of(model) if rate != 1 else {}
    return {name: weights[name] + rate * (value - weights[name]) if name in own else value for name, value in mean.items()}


@torch.no_grad()
def accuracy(model: nn.Module, data: Pictures, should_stop: Callable[[], bool] = lambda: False) -> float:
    """Share of pictures whose class the model names right, in eval mode. Raises StoppedError when `should_stop()` returns True."""
    model.eval()
    right = 0
    for x, y in zip(data.x.split(EVALUATED), data.y.split(EVALUATED), strict=True):
        if should_stop():
            raise StoppedError
        right += int((model(x.float() / 255).argmax(1) == y).sum())
    return right / len(data.y)


def copy_of(model: nn.Module) -> Params:
    """The model's whole state, copied."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _optimiser(model: nn.Module, training: TrainingRecipe) -> torch.optim.Optimizer:
    if training.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), training.rate, weight_decay=training.decay)
    return torch.optim.SGD(
        model.parameters(), training.rate, momentum=training.momentum, nesterov=training.momentum > 0, weight_decay=training.decay
    )
