"""1000 experiments that no page writes: each is refused with a message or can be run, and the check is fast."""

import json
import random
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from small_problems import CATALOG

from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError, parse

COUNT = 1000
MOST_SECONDS = 30.0  # of CPU
MOST_LETTERS = 1000  # of a sentence; the longest lists all steps that a network can be written with
VALID = [
    Experiment(),
    Experiment(pictures=(Picture(id="chelsea"), Picture(source="upload", id="a1", label=0)), size=64, channels=1, model=Part(id="mlp")),
    Experiment(defenses=(Part(id="pruning", fields={"fraction": 0.5}), Part(id="gaussian_noise")), assume=Assumptions(labels=True)),
    Experiment(protocol=Part(id="fedavg", fields={"mini_batch": 1}), aggregation=Part(id="secure_aggregation"), rounds=3),
    Experiment(model=Part(id="custom"), attack=Part(id="r_gap"), task="two"),
    Experiment(pictures=(Picture(source="cifar100", id="17", label=99),), checkpoint="lenet@1", model=Part(id="convnet")),
]
VALUES: list[Any] = [None, True, -1, 0, 1, 2, 1.5, 1e308, -(10**30), 10**400, float("nan"), float("inf"), -float("inf")]
VALUES += ["", "none", "fedavg", "x" * 100_000, "a\nb\r\t\0", "\u202e", "\ud800", "💥" * 500, "{0}", "<b>", "'", "conv 3 8; " * 2000]
VALUES += [[], {}, [[]], [None] * 5000, [{"id": "x"}] * 300, {"id": "x", "fields": {"a": []}}, {str(n): n for n in range(3000)}, "DEEP"]
NAMES = ["x", "", "a\nb", "__class__", "x" * 50_000, "fields", "id", "version", "label", "\u2028", "💥", "adaptive", "model.id"]


def places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of it."""
    yield way
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, part in inside:
        yield from places(part, (*way, name))


def change(data: Any, rng: random.Random) -> Any:
    """The same with another value, one part less, more, or twice."""
    *way, name = rng.choice([place for place in places(data) if place])
    inside = data
    for step in way:
        inside = inside[step]
    how, value = rng.randrange(6), deepcopy(rng.choice(VALUES))
    if how == 0:
        del inside[name]
    elif how == 1 and isinstance(inside, dict):
        inside[rng.choice(NAMES)] = value
    elif how == 2 and isinstance(inside[name], list):
        inside[name] = inside[name] * rng.choice([2, 5, 200])
    elif how == 3 and isinstance(inside[name], dict):
        inside[name] = {**inside[name], "fields": {rng.choice([*NAMES, "steps", "share"]): value}}
    else:
        inside[name] = value
    return data


def text(number: int) -> str:
    """The experiment of that number as JSON."""
    rng = random.Random(number)
    data = json.loads(rng.choice(VALID).model_dump_json())
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if isinstance(data, dict) and data:
            data = change(data, rng)
    depth = rng.choice([2, 50, 200, 900, 100_000])
    written = json.dumps(data).replace('"DEEP"', "[" * depth + "]" * depth if rng.random() < 0.5 else '{"a":' * depth + "1" + "}" * depth)
    if number % 20 == 0:
        written = written[: rng.randrange(len(written))]
    if number % 20 == 1:  # the same part twice: the last one counts
        written = written[:-1] + "," + written[1:]
    if number % 20 == 2:
        written = written.replace("1", "9" * rng.choice([5, 400, 5000]))
    return written


def outcome(raw: str) -> Experiment | str:
    """The resolved experiment, or the sentence with which it is refused."""
    try:
        return parse(raw).resolve(CATALOG)
    except SpecError as error:
        return str(error)


@pytest.mark.long
def test_1000_experiments_are_each_a_sentence_or_can_be_run() -> None:
    refused, slowest = 0, 0.0
    for number in range(COUNT):
        raw = text(number)
        begun = time.process_time()
        found = outcome(raw)
        slowest = max(slowest, time.process_time() - begun)
        if isinstance(found, str):
            refused += 1
            assert found.endswith("."), (number, found)
            assert found.isprintable(), (number, found)
            assert len(found) <= MOST_LETTERS, (number, found)
    assert slowest < MOST_SECONDS
    assert COUNT / 2 < refused < COUNT  # else nothing was changed, or everything was spoiled


@pytest.mark.parametrize(
    "raw",
    [
        '{"pictures": [' + ",".join(["1"] * 1_000_000) + "]}",
        '{"attack": {"id": "dlg", "fields": {' + ",".join(f'"{n}": []' for n in range(200_000)) + "}}}",
        '{"model": {"id": "custom", "fields": {"network": "' + "conv 3 8; " * 500_000 + '"}}}',
        '{"defenses": ' + json.dumps([{"id": "pruning"}] * 100_000) + "}",
        "{" + ",".join(f'"{n}": 1' for n in range(500_000)) + "}",
    ],
    ids=["pictures", "settings", "a network", "protections", "unknown names"],
)
@pytest.mark.long
def test_a_file_of_megabytes_is_refused_at_once(raw: str) -> None:
    begun = time.process_time()
    found = outcome(raw)
    assert isinstance(found, str)
    assert len(found) <= MOST_LETTERS
    assert time.process_time() - begun < MOST_SECONDS
