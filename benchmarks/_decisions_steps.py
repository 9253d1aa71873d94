"""The sections of benchmarks/decisions.py about a search's step: by autograd, by formula, compiled, as a list of calls."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any

from _decisions_engine import ROOT, Fields, Row

from leakage.settings import AUTOGRAD, FORMULA

MANY = 32  # lists of calls that a process may keep

# ---------------------------------------------------------------- 0020: derivatives by formula

STEPPED: tuple[tuple[str, str, Fields, int, int, int], ...] = (  # title, model, its fields, guesses, pictures, steps in a row
    ("LeNet", "lenet", {}, 1, 1, 60),
    ("LeNet", "lenet", {}, 8, 1, 20),
    ("LeNet", "lenet", {}, 1, 8, 30),
    ("ConvNet-16", "convnet", {}, 1, 1, 8),
    ("ResNet18-16", "resnet", {}, 1, 1, 6),
    ("ConvNet-64", "convnet", {"width": 64}, 1, 1, 2),
)


def formula() -> list[Row]:
    """Measure the milliseconds of a step of Inverting Gradients, processor time of one thread, by autograd and by formula in turn.

    Python makes the calls of the formula here.
    """
    keep_lists(0)
    rows: list[Row] = []
    for title, model, fields, guesses, pictures, steps in STEPPED:
        runs = {}
        for way in (AUTOGRAD, FORMULA):
            os.environ["LEAKAGE_STEP"] = way
            runs[way] = begun(model, fields, guesses, pictures)
        rows.append({"network": title, "guesses": guesses, "pictures": pictures, **in_turn(runs, steps)})
    return rows


# ---------------------------------------------------------------- 0021: compiled steps

COMPILED_STEPS = (("LeNet", "lenet", 1, 1, 100), ("LeNet", "lenet", 8, 1, 20), ("LeNet", "lenet", 1, 8, 30), ("MLP", "mlp", 1, 1, 30))


def compiled() -> list[Row]:
    """Measure the milliseconds of a step of Inverting Gradients, processor time of one thread, by formula and compiled in turn.

    The steps are compiled first, in a new home.
    """
    keep_lists(MANY)
    rows: list[Row] = []
    with TemporaryDirectory() as home:
        os.environ["LEAKAGE_HOME"], took = home, list[float]()
        start = time.perf_counter()
        while subprocess.run([sys.executable, "-m", "leakage.workers.compile_step"], cwd=ROOT).returncode == 0:
            took.append(time.perf_counter() - start)
            start = time.perf_counter()
        for title, model, guesses, pictures, steps in COMPILED_STEPS:
            runs = {}
            for compile, way in (("0", FORMULA), ("1", "compiled")):
                os.environ["LEAKAGE_COMPILE"] = compile
                runs[way] = begun(model, {}, guesses, pictures)
                assert ("derivatives by" in next(runs[way]).note) == (compile == "1")
            rows.append({"network": title, "guesses": guesses, "pictures": pictures, **in_turn(runs, steps)})
    return [*rows, {"network": "seconds to compile one step", "formula, ms": None, "compiled, ms": 1e3 * statistics.median(took)}]


# ---------------------------------------------------------------- 0025: lists of calls


def recorded() -> list[Row]:
    """Measure the milliseconds of a step of Inverting Gradients, processor time of one thread, its calls made by Python and from a list."""
    os.environ["LEAKAGE_COMPILE"] = "0"
    rows: list[Row] = []
    for title, model, guesses, pictures, steps in COMPILED_STEPS:
        runs = {}
        for most, way in ((0, "Python"), (MANY, "list")):
            keep_lists(most)
            runs[way] = begun(model, {}, guesses, pictures)
        rows.append({"network": title, "guesses": guesses, "pictures": pictures, **in_turn(runs, steps)})
    return rows


# ---------------------------------------------------------------- common


def keep_lists(most: int) -> None:
    """Forget this process's lists of calls, and let it record at most so many."""
    from leakage.engine import recorded_step

    recorded_step.MOST = most
    recorded_step._lists.clear()


def begun(model: str, fields: Fields, guesses: int, pictures: int) -> Iterator[Any]:
    """Return a search of Inverting Gradients in one thread, three steps after its beginning."""
    import torch

    from leakage.engine.core import generator
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers.adapter import observe, plugin

    torch.set_num_threads(1)
    attack = plugin("attack", Part(id="inverting_gradients", fields={"steps": 24_000, "starts": guesses}))
    x = torch.rand(pictures, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    seen = observe(Experiment(model=Part(id=model, fields=fields)), x, torch.arange(pictures) % 10)
    assert seen.replay.formula is not None
    assert seen.replay.formula.exists() == (os.environ.get("LEAKAGE_STEP") != AUTOGRAD)
    run: Iterator[Any] = attack.run(seen, generator(1, "attack"))
    for _ in range(3):
        next(run)
    return run


def in_turn(runs: Mapping[str, Iterator[Any]], steps: int) -> Row:
    """Return the milliseconds of a step of two searches, processor time, and the first's as a multiple of the second's.

    Each figure is the median of nine windows of so many steps; the searches take turns.
    """
    took: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(9):
        for way, run in runs.items():
            start = time.process_time()
            for _ in range(steps):
                next(run)
            took[way].append(1e3 * (time.process_time() - start) / steps)
    ratios = [slow / fast for slow, fast in zip(*took.values(), strict=True)]
    return {**{f"{way}, ms": statistics.median(times) for way, times in took.items()}, "ratio": statistics.median(ratios)}


SECTIONS: tuple[Callable[[], list[Row]], ...] = (formula, compiled, recorded)
