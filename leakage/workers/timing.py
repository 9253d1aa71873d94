"""How long one replay takes on this machine: what a run will cost before it starts, and how many threads it should use."""

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import Model, Observation, Params
from leakage.engine.loading import ids, load
from leakage.engine.matching import cosine_distance

REPEATS, ENOUGH = 3, 0.3  # times, seconds
LARGE = 50_000_000  # numbers: a model with more is not measured ahead, it would take gigabytes from a machine that only waits
WORTH = 1.25  # more threads must make a replay this many times as fast; else the cores are left to others


def measure(device: torch.device) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield, model by model with default fields and without those above LARGE, its id and the seconds of a replay with its derivative.

    The first number is for 1, the second for 8 pictures of 3x32x32. On a CPU it is processor time of one thread: what else the machine does
    at that moment would be in every estimate from then on.
    """
    if device.type == "cpu":
        torch.set_num_threads(1)
    for name in ids("model"):
        plugin: Model = load("model", name)()
        with torch.device("meta"):  # shapes without numbers
            size = sum(value.numel() for value in plugin.build((3, 32, 32), 10).parameters())
        if size <= LARGE:
            with torch.random.fork_rng(devices=[]):
                model = plugin.build((3, 32, 32), 10).to(device).eval()
            yield name, (_replays(model, 1, device), _replays(model, 8, device))


def fitting_threads(seen: Observation, most: int, starts: int = 1) -> int:
    """Set and return the number of threads for this replay: `most` if that is at least WORTH times as fast as 1 thread, else 1."""
    seconds = []
    for threads in (1, most):
        torch.set_num_threads(threads)
        seconds.append(_guesses(seen, starts))
    chosen = most if seconds[0] > WORTH * seconds[1] else 1
    torch.set_num_threads(chosen)
    return chosen


def lanes_cost(seen: Observation, count: int) -> float:
    """Return how many times as long as one guess so many guesses take that are replayed together, on one thread: at least 1.

    `count` or more where they would be no faster together than one after the other.
    """
    torch.set_num_threads(1)
    clock = _clock(seen.device)
    alone = _guesses(seen, 1, clock)
    if alone > ENOUGH:  # no small network: together it would be no faster, and take as many times the memory
        return float(count)
    together = min(_guesses(seen, count, clock) for _ in range(2))  # twice: the first ever takes a second to get ready
    return max(1.0, together / alone)


def _clock(device: torch.device) -> Callable[[], float]:
    """Return the clock to measure with: on a CPU that of processor time, which other processes do not lengthen."""
    return time.process_time if device.type == "cpu" else time.perf_counter


def _guesses(seen: Observation, count: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Measure the seconds for so many guesses of the pictures, replayed at once."""
    x = torch.rand(seen.batch.shape, device=seen.device, dtype=seen.dtype)
    replay = seen.gradient if count == 1 else lambda x, y: {n: g[0] for n, g in seen.gradients(x.expand(count, *x.shape), y).items()}
    return _seconds(replay, seen.as_gradient(), x, torch.zeros(seen.batch.size, dtype=torch.long, device=seen.device), clock)


def _replays(model: nn.Module, batch: int, device: torch.device) -> float:
    x = torch.rand(batch, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
    weights, client, y = weights_of(model), gradient_client(model), torch.arange(batch, device=device)
    return _seconds(lambda guess, labels: client(weights, guess, labels, {})[0], client(weights, x, y, {})[0], x, y, _clock(device))


def _seconds(
    replay: Callable[[Tensor, Tensor], Params], update: Params, x: Tensor, y: Tensor, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Measure the seconds of a replay of (x, y), its distance from `update` and the derivative: best of REPEATS, or as ENOUGH allows."""
    distance, x = cosine_distance(update), x.clone().requires_grad_()
    taken = []
    for _ in range(1 + REPEATS):  # the first warms up
        began = clock()
        (gradient,) = torch.autograd.grad(distance(replay(x, y)), x)
        gradient.sum().item()  # wait for the device
        taken.append(clock() - began)
        if sum(taken) > ENOUGH:
            break
    return min(taken[1:] or taken)
