"""The sections of benchmarks/decisions.py about a search's step: by autograd, by formula, compiled."""

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
    """Measure the milliseconds of a step of Inverting Gradients, processor time of one thread, by autograd and by formula in turn."""
    import torch

    from leakage.engine.core import generator
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers.adapter import observe, plugin

    torch.set_num_threads(1)
    rows: list[Row] = []
    for title, model, fields, guesses, pictures, steps in STEPPED:
        attack = plugin("attack", Part(id="inverting_gradients", fields={"steps": 24_000, "starts": guesses}))
        x = torch.rand(pictures, 3, 32, 32, generator=torch.Generator().manual_seed(1))
        runs = {}
        for way in (AUTOGRAD, FORMULA):
            os.environ["LEAKAGE_STEP"] = way
            seen = observe(Experiment(model=Part(id=model, fields=fields)), x, torch.arange(pictures) % 10)
            assert seen.replay.formula is not None
            assert seen.replay.formula.exists() == (way == FORMULA)
            runs[way] = attack.run(seen, generator(1, "attack"))
            for _ in range(3):
                next(runs[way])
        took = in_turn(runs, steps)
        ratio = statistics.median(slow / fast for slow, fast in zip(took[AUTOGRAD], took[FORMULA], strict=True))
        times = {f"{way}, ms": statistics.median(took[way]) for way in runs}
        rows.append({"network": title, "guesses": guesses, "pictures": pictures, **times, "ratio": ratio})
    return rows


# ---------------------------------------------------------------- 0021: compiled steps

COMPILED_STEPS = (("LeNet", "lenet", 1, 1, 100), ("LeNet", "lenet", 8, 1, 20), ("LeNet", "lenet", 1, 8, 30), ("MLP", "mlp", 1, 1, 30))


def compiled() -> list[Row]:
    """Measure the milliseconds of a step of Inverting Gradients, processor time of one thread, by formula and compiled in turn.

    The steps are compiled first, in a new home.
    """
    import torch

    from leakage.engine.core import generator
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers.adapter import observe, plugin

    torch.set_num_threads(1)
    rows: list[Row] = []
    with TemporaryDirectory() as home:
        os.environ["LEAKAGE_HOME"], took = home, list[float]()
        start = time.perf_counter()
        while subprocess.run([sys.executable, "-m", "leakage.workers.compile_step"], cwd=ROOT).returncode == 0:
            took.append(time.perf_counter() - start)
            start = time.perf_counter()
        for title, model, guesses, pictures, steps in COMPILED_STEPS:
            attack = plugin("attack", Part(id="inverting_gradients", fields={"steps": 24_000, "starts": guesses}))
            x, runs = torch.rand(pictures, 3, 32, 32, generator=torch.Generator().manual_seed(1)), {}
            for compile, way in (("0", "formula"), ("1", "compiled")):
                os.environ["LEAKAGE_COMPILE"] = compile
                seen = observe(Experiment(model=Part(id=model)), x, torch.arange(pictures) % 10)
                runs[way] = attack.run(seen, generator(1, "attack"))
                assert [("derivatives by" in next(runs[way]).note) for _ in range(3)] == [compile == "1"] * 3
            times = in_turn(runs, steps)
            ratio = statistics.median(slow / fast for slow, fast in zip(times["formula"], times["compiled"], strict=True))
            middle = {f"{way}, ms": statistics.median(values) for way, values in times.items()}
            rows.append({"network": title, "guesses": guesses, "pictures": pictures, **middle, "ratio": ratio})
    return [*rows, {"network": "seconds to compile one step", "formula, ms": None, "compiled, ms": 1e3 * statistics.median(took)}]


def in_turn(runs: Mapping[str, Iterator[Any]], steps: int) -> dict[str, list[float]]:
    """Return the milliseconds of a step, processor time, of nine windows of so many steps of each search, the searches in turn."""
    took: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(9):
        for way, run in runs.items():
            start = time.process_time()
            for _ in range(steps):
                next(run)
            took[way].append(1e3 * (time.process_time() - start) / steps)
    return took


SECTIONS: tuple[Callable[[], list[Row]], ...] = (formula, compiled)
