"""The time that a replay of the client takes on this machine, for estimates of runs and for the choice of the number of threads."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from leakage.attacks._adam import replays
from leakage.engine.core import Model, Observation
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.lanes import MatchedUpdate
from leakage.engine.loading import ids, load
from leakage.engine.matching import distance
from leakage.engine.observe import observe, ready
from leakage.workers.step_choice import choose_step

REPEATS, ENOUGH = 3, 0.3  # replays that are timed, and seconds after which no further replay is timed
LARGE = 50_000_000  # parameters; a larger model is not measured in advance, since it would fill gigabytes of an idle machine
WORTH = 1.25  # the speed-up from which several threads are used; below, the cores are left to other runs


def measure(device: torch.device) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the id of each model, and the seconds of a replay, for 1 and for 8 pictures of 3x32x32.

    A replay computes the model's gradient for a guess, the distance of this gradient, and the derivative of the distance by the guess.

    Models have their default fields; models above LARGE are left out. On a CPU the seconds are processor time of one thread, so that other
    programs on the machine do not distort all later estimates.
    """
    if device.type == "cpu":
        torch.set_num_threads(1)
    for name in ids("model"):
        plugin: Model = load("model", name)()
        with torch.device("meta"):  # shapes without numbers
            size = sum(value.numel() for value in plugin.build((3, 32, 32), 10).parameters())
        if size <= LARGE:
            with torch.random.fork_rng(devices=[]):
                model = choose_step(plugin.build((3, 32, 32), 10)).to(device)
            yield name, (_time_model(model, 1, device), _time_model(model, 8, device))


def searches(seen: Observation, attack: Mapping[str, Any]) -> bool:
    """Return whether an attack with these fields replays the client again and again on a CPU, so that the number of threads matters."""
    return seen.device.type == "cpu" and "steps" in attack


def fitting_threads(seen: Observation, most: int, attack: Mapping[str, Any], *, clock: Callable[[], float] = time.perf_counter) -> int:
    """Set and return torch's number of threads: `most` if a replay is then more than WORTH times as fast as with 1 thread, else 1.

    A replay computes the gradient for a guess, its distance from the received gradient, and the derivative of this distance.

    Args:
        seen: what the server has, with the model.
        most: the largest number of threads.
        attack: fields of the attack: "starts" says how many guesses are replayed at once.
        clock: returns the time in seconds.
    """
    starts = int(attack.get("starts", 1))
    seconds = []
    for threads in (1, most) if most > 1 else ():
        torch.set_num_threads(threads)
        seconds.append(_time_guesses(seen, starts, clock))
    chosen = most if seconds and seconds[0] > WORTH * seconds[1] else 1
    torch.set_num_threads(chosen)
    return chosen


def lanes_cost(seen: Observation, count: int) -> float:
    """Return the time of replaying `count` guesses at once, divided by the time of replaying one guess, on one thread: at least 1.

    To replay a guess is to compute its gradient, the distance from the received gradient, and the derivative of this distance.

    A result of `count` or more says that replaying the guesses at once is no faster than one after the other.
    """
    torch.set_num_threads(1)
    clock = _clock(seen.device)
    single = _time_guesses(seen, 1, clock)
    if single > ENOUGH:  # not a small network: replays at once would be no faster, and take `count` times the memory
        return float(count)
    batched = min(_time_guesses(seen, count, clock) for _ in range(2))  # twice: the very first takes an extra second
    return max(1.0, batched / single)


def _clock(device: torch.device) -> Callable[[], float]:
    """Return the clock to measure with: processor time on a CPU, which other processes do not lengthen, else wall-clock time."""
    return time.process_time if device.type == "cpu" else time.perf_counter


def _time_guesses(seen: Observation, count: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of computing the gradients for `count` guesses at once, their distances, and the derivatives of these.

    It is the shortest of up to REPEATS times.
    """
    x = (
        torch.rand(seen.batch.shape, generator=torch.Generator().manual_seed(0))
        .to(seen.device, seen.dtype)
        .expand(count, *seen.batch.shape)
    )
    y = torch.zeros(seen.batch.size, dtype=torch.long, device=seen.device)
    matched = MatchedUpdate([seen], [distance("cosine", seen.as_gradient())], y.expand(count, -1), lambda x: [replays(seen, x, y)])
    times = []
    for _ in range(1 + REPEATS):  # the first is a warm-up
        began = clock()
        _, derivative = matched.derivative(x)
        derivative.sum().item()  # wait for the device
        times.append(clock() - began)
        if sum(times) > ENOUGH:
            break
    return min(times[1:] or times)


def _time_model(model: nn.Module, batch: int, device: torch.device) -> float:
    """Return the seconds of a replay of a client that sends the gradient of `batch` pictures."""
    x = torch.rand(batch, 3, 32, 32, generator=torch.Generator().manual_seed(0)).to(device)
    plain = Federation.of(load("protocol", "fedsgd")(), [], ThreatModel(), seed=0)
    seen = observe(ready(model, plain, x), x, torch.arange(batch, device=device), plain, num_classes=10)
    return _time_guesses(seen, 1, _clock(device))
