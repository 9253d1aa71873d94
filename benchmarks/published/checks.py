"""Every check of a received model on honest networks (false alarms) and on the networks of every server that changes the model (hits).

Honest: all stages of the shipped trained models and 20 untrained networks, with batches of 1, 8 and 16 test pictures of the data set of the
network (untrained: CIFAR-10, or MNIST for networks for digits). The round before is the stage before, or the initial weights; two other
clients received the same model. Servers: on the first of MODELS that they accept, untrained, with four clients in secure aggregation, who
have 1, 8 or 16 CIFAR-10 test pictures each; two rounds at least are watched. A draw is a hit if the check trips in one of the rounds.
`number` is the median over the draws of the largest number of a round, `round` the first round in which a draw was a hit. Thresholds are
the defaults. "head_rows, published" also compares with the agreed network's initial weights. The server label_flip exchanges rows from the
first round on by default, and then only published weights show it; its other row begins in round 2.
D-SNR is not defined for a single picture, so that its number is empty there.

    python benchmarks/published/checks.py [--draws 6]        about 20 minutes on one core; goes on where it was stopped
"""

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, Fields, say, table
from torch import Tensor, nn

from leakage.data.checkpoints import cards
from leakage.data.images import datasets
from leakage.engine.check import CheckReading
from leakage.engine.client import weights_of
from leakage.engine.core import Check, Handed, Params, generator
from leakage.engine.loading import ids
from leakage.engine.observe import inspection_of, observe, ready
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import federation, load_checkpoint, network, plugin, untrained

BATCHES = (1, 8, 16)
CLIENTS = 4
SHAPE = (3, 32, 32)  # of CIFAR-10
PUBLISHED = "head_rows, published"  # beside the initial weights on which the phones agreed
CHECKS = {**{id: Part(id=id) for id in ids("check")}, PUBLISHED: Part(id="head_rows", fields={"published": True})}
GREY = ("fcn3", "mnist_cnn")  # for digits
UNTRAINED: list[tuple[str, Fields]] = [
    ("lenet", {}),
    ("lenet", {"activation": "leaky_relu", "bias": False, "initialisation": "default"}),
    ("mlp", {}),
    ("mlp", {"width": 1024, "depth": 1}),
    ("fcn3", {}),
    ("mnist_cnn", {}),
    ("cnn6", {}),
    ("cnn6", {"second": 20}),
    ("convnet", {}),
    ("convnet", {"norm": "group", "initialisation": "kaiming_normal"}),
    ("he_resnet", {}),
    ("resnet", {}),
    ("resnet18_imagenet", {}),
    ("vgg16", {"units": 16}),
    ("custom", {}),
    ("rgap_net", {"net": "A"}),
    ("rgap_net", {"net": "B"}),
    ("rgap_net", {"net": "C"}),
    ("rgap_net", {"net": "D"}),
    ("rgap_net", {"net": "E"}),
]
MODELS: list[tuple[str, Fields]] = [
    ("lenet", {}),
    ("convnet", {}),
    ("mlp", {}),
    ("custom", {"network": "conv 3@12 p1 - conv 3@12 p1 - linear 500", "activation": "relu", "bias": True}),
]
FIELDS: dict[str, list[Fields]] = {"label_flip": [{}, {"first_round": 2}]}  # of servers that have more rows than one
NONE_ALONE = "Each server here trips a check that looks at values: none is seen by new_layers or same_for_all alone."
ADDING = {"new_layers", "same_for_all"}  # checks that look at no value of a weight


@dataclass(frozen=True)
class Honest:
    """A network that an honest server hands out."""

    name: str
    trained: bool
    model: nn.Module
    agreed: nn.Module
    earlier: tuple[Params, ...]
    source: str


def honest_networks() -> Iterator[Honest]:
    """Yield all stages of the trained models, and the untrained networks."""
    for card in cards().values():
        part = Part(id=card.model, fields=card.fields)
        agreed = untrained(part, card.image_shape, card.num_classes, seed=card.training["seed"]).eval()
        earlier = (weights_of(agreed),)
        for stage in card.stages:
            model = untrained(part, card.image_shape, card.num_classes, seed=0).eval()
            load_checkpoint(model, f"{card.id}@{stage.rounds}")
            yield Honest(f"{card.id}@{stage.rounds}", True, model, agreed, earlier, card.data)
            earlier = (weights_of(model),)
    for seed, (id, fields) in enumerate(UNTRAINED):
        source, shape = ("mnist", (1, 28, 28)) if id in GREY else ("cifar10", (3, 32, 32))
        model = untrained(Part(id=id, fields=fields), shape, 10, seed=seed).eval()
        yield Honest(" ".join([id, *map(str, fields.values())]), False, model, model, (), source)


def pictures(source: str, count: int, draw: int) -> list[int]:
    """Return the numbers of `count` test pictures of a data set, by chance."""
    held = datasets()[source].rows()
    numbers: list[int] = torch.randperm(len(held.labels), generator=generator(draw, "truth"))[:count].tolist()
    return numbers


def batch(source: str, numbers: list[int]) -> tuple[Tensor, Tensor]:
    """Return pictures (B, C, H, W) and labels (B,)."""
    held = datasets()[source].rows()
    x = torch.from_numpy(held.pixels[numbers]).permute(0, 3, 1, 2).contiguous().float() / 255
    return x, torch.from_numpy(held.labels[numbers]).long()


def summary(check: Check, numbers: list[float]) -> dict[str, Any]:
    """Return how many of these numbers trip the check, and their median and largest; None where it is not defined."""
    defined = [number for number in numbers if not math.isnan(number)]
    return {
        "alarms": sum(check.trips(number) for number in numbers),
        "of": len(defined),
        "median": statistics.median(defined) if defined else None,
        "largest": max(defined) if defined else None,
    }


def rates(net: Honest, draws: int) -> dict[str, dict[str, Any]]:
    """Return for each check and size of a batch how often the check trips on an honest network."""
    found: dict[str, dict[str, Any]] = {name: {} for name in CHECKS}
    for size in BATCHES:
        batches = [batch(net.source, pictures(net.source, size, draw)) for draw in range(draws)]
        received = [Handed(net.model, net.agreed, x, y, net.earlier, [weights_of(net.model)] * 2) for x, y in batches]
        for name, part in CHECKS.items():
            check = plugin("check", part)
            found[name][str(size)] = summary(check, [check.measure(handed) for handed in received])
    return found


def experiment_with(server: Part, numbers: list[int], draw: int) -> Experiment:
    """Return the experiment of a server with the first of MODELS that it accepts; raise SpecError if it accepts none of them."""
    known, reasons = plugin_catalog.describe(), list[str]()
    for id, fields in MODELS:
        try:
            experiment = Experiment(
                model=Part(id=id, fields=fields),
                server=server,
                aggregation=Part(id="secure_aggregation", fields={"clients": CLIENTS}),
                pictures=tuple(Picture(source="cifar10", id=str(number)) for number in numbers),
                rounds=max(2, known.servers.get(server.id).rounds),
                seed=draw,
            ).resolve(known)
            ready(network(experiment, SHAPE), federation(experiment), torch.zeros(len(numbers), *SHAPE))
        except ValueError as error:  # also a SpecError
            reasons.append(str(error))
        else:
            return experiment
    raise SpecError(" ".join(dict.fromkeys(reasons)))


def readings(server: Part, size: int, draw: int) -> dict[str, list[CheckReading]]:
    """Return what each check finds on what a server hands to clients with `size` pictures each, round by round."""
    numbers = pictures("cifar10", CLIENTS * size, draw)
    (x, y), experiment = batch("cifar10", numbers), experiment_with(server, numbers, draw)
    setting = replace(federation(experiment), checks=tuple(plugin("check", part) for part in CHECKS.values()), refuse=False)
    agreed = network(experiment, SHAPE)
    inspection = inspection_of(agreed, setting, x)
    assert inspection is not None
    observe(ready(agreed, setting, x), x, y, setting, num_classes=experiment.num_classes, inspection=inspection)
    return {name: inspection.readings[index :: len(CHECKS)] for index, name in enumerate(CHECKS)}


def hits(server: Part, draws: int) -> dict[str, dict[str, Any]]:
    """Return for each check and number of pictures how often the check trips on a server."""
    result: dict[str, dict[str, Any]] = {name: {} for name in CHECKS}
    for size in BATCHES:
        every = [readings(server, size, draw) for draw in range(draws)]
        for name in CHECKS:
            rounds = [draw[name] for draw in every]
            largest = [max((one.number for one in draw if not math.isnan(one.number)), default=math.nan) for draw in rounds]
            defined = [number for number in largest if not math.isnan(number)]
            result[name][str(size)] = {
                "hits": sum(any(one.tripped for one in draw) for draw in rounds),
                "of": len(defined),
                "number": statistics.median(defined) if defined else None,
                "round": min((one.round for draw in rounds for one in draw if one.tripped), default=None),
            }
    return result


def stored(book: Book, asked: dict[str, Any], measure: Callable[[], dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the rows of a network or a server, a row for each check, measured unless they are stored."""
    rows = {name: book.known({**asked, "check": name}) for name in CHECKS}
    if not all(rows.values()):
        begun = time.monotonic()
        book.runs = [run for run in book.runs if {name: run.get(name) for name in asked} != asked]
        rows = {name: {"threshold": plugin("check", CHECKS[name]).threshold, **found} for name, found in measure().items()}
        book.runs += [{**asked, "check": name, "result": row} for name, row in rows.items()]
        book.save()
        say(f"{', '.join(map(str, asked.values()))}: {time.monotonic() - begun:.0f} s")
    return {name: row for name, row in rows.items() if row}


def rate(rows: list[dict[str, Any]], size: int, counted: str) -> str:
    """Return how many draws trip a check, of all draws for which it is defined."""
    of = sum(row[str(size)]["of"] for row in rows)
    return f"{sum(row[str(size)][counted] for row in rows)} of {of}" if of else "not defined"


def blind_spots(servers: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return which servers are seen by the checks in ADDING alone, beside published weights alone, or by no check."""
    seen_by = {
        server: {name for name, row in rows.items() if any(row[str(size)]["hits"] for size in BATCHES)} for server, rows in servers.items()
    }
    alone = [server for server, found in seen_by.items() if found and found <= ADDING]
    published = [server for server, found in seen_by.items() if found == {PUBLISHED}]
    unseen = [server for server, found in seen_by.items() if not found]
    sentences = [f"Seen by {' or '.join(sorted(ADDING))} alone: {', '.join(alone)}." if alone else NONE_ALONE]
    sentences += [f"Seen only beside published initial weights: {', '.join(published)}."] if published else []
    sentences += [f"Seen by no check: {', '.join(unseen)}."] if unseen else []
    return " ".join(sentences)


def main() -> None:
    """Measure what is not in the results yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=6)
    draws = parser.parse_args().draws
    torch.set_num_threads(1)
    book = Book("checks", __doc__)
    honest: dict[bool, list[dict[str, dict[str, Any]]]] = {True: [], False: []}
    for net in honest_networks():
        asked = {"network": net.name, "trained": net.trained, "draws": draws}
        honest[net.trained].append(stored(book, asked, lambda net=net: rates(net, draws)))  # type: ignore[misc]
    servers = {}
    for id in ids("server"):
        for fields in FIELDS.get(id, [{}]):
            name = " ".join([id, *(f"{field} {value}" for field, value in fields.items())])
            part = Part(id=id, fields=fields)
            servers[name] = stored(book, {"server": name, "draws": draws}, lambda part=part: hits(part, draws))  # type: ignore[misc]
    sentence = blind_spots(servers)
    book.save(blind_spots=sentence)
    say()
    heads = [f"{kind}, B {size}" for kind in ("trained", "untrained") for size in BATCHES]
    cells = [[rate([rows[name] for rows in honest[kind]], size, "alarms") for kind in (True, False) for size in BATCHES] for name in CHECKS]
    table(["alarms under an honest server", *heads], [[name, *row] for name, row in zip(CHECKS, cells, strict=True)])
    for server, rows in servers.items():
        say()
        sizes = [f"hits, B {size}" for size in BATCHES]
        numbers = [[rows[name][str(size)]["number"] for size in BATCHES] for name in CHECKS]
        cells = [[name, *(rate([rows[name]], size, "hits") for size in BATCHES)] for name in CHECKS]
        found = [[*row, *("" if one is None else one for one in own)] for row, own in zip(cells, numbers, strict=True)]
        table([server, *sizes, *(f"number, B {size}" for size in BATCHES)], found)
    say()
    say(sentence)


if __name__ == "__main__":
    main()
