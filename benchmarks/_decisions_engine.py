"""The sections of benchmarks/decisions.py about attackers, scores and arithmetic: run here, or read from stored results."""

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]


def results_file(name: str) -> list[dict[str, Any]]:
    """Return the runs of a published benchmark, which were computed by benchmarks/published/NAME.py in minutes to hours."""
    runs: list[dict[str, Any]] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["runs"]
    return runs


# ---------------------------------------------------------------- 0005: naive and adaptive


def attackers() -> list[Row]:
    """Count the pictures found (mean squared error at most 0.01) on FedADMM by each attacker, from the results of admm_overturned."""
    rows: list[Row] = []
    runs = results_file("admm_overturned")
    for attack in dict.fromkeys(run["attack"] for run in runs):
        errors = [run["result"]["mse"] for run in runs if run["attack"] == attack]
        rows.append(
            {
                "attacker": attack,
                "found": sum(error <= 0.01 for error in errors),
                "of": len(errors),
                "median error": statistics.median(errors),
            }
        )
    return rows


# ---------------------------------------------------------------- 0012: which score


def scores() -> list[Row]:
    """Count the answers on which PSNR and the line-up of 100 disagree, from the results of matrix: all protections and attackers."""
    found = [run["result"] for run in results_file("matrix") if run["result"]["scores"].get("identified") is not None]
    first = [result["scores"]["identified"] == 1 for result in found]
    above = [result["psnr"] > result["grey_psnr"] for result in found]
    return [
        {
            "in the line-up": "first" if own else "not first",
            "PSNR beats a grey picture's": better,
            "answers": sum(one == own and two == better for one, two in zip(first, above, strict=True)),
        }
        for own in (True, False)
        for better in (True, False)
    ]


# ---------------------------------------------------------------- 0007, 0006: randomness and the truth


def played(seed: int, **settings: Any) -> tuple[float, float]:
    """Return PSNR and attack loss of the answer of a short attack on LeNet."""
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers import plugin_catalog
    from leakage.workers.adapter import play, prepare

    attack = Part(id="inverting_gradients", fields={"steps": 200})
    experiment = Experiment(model=Part(id="lenet", fields={"normalise": "cifar10"}), attack=attack, seed=seed, **settings)
    experiment = experiment.resolve(plugin_catalog.describe())
    *_, frame = play(experiment, prepared=prepare(experiment), per_second=1)
    return frame.scores["psnr"], frame.loss


def randomness() -> list[Row]:
    """Measure by how many dB a protection changes 8 seeds: each compared with the same seed, and with another seed's start."""
    from leakage.spec.experiment import Part

    seeds = range(1, 9)
    bare = [played(seed)[0] for seed in seeds]
    pruned = [played(seed, defenses=(Part(id="pruning", fields={"fraction": 0.3}),))[0] for seed in seeds]
    paired = [with_it - without for with_it, without in zip(pruned, bare, strict=True)]
    crossed = [with_it - without for with_it, without in zip(pruned, bare[1:] + bare[:1], strict=True)]
    return [
        {"difference of": how, "mean, dB": statistics.mean(found), "standard deviation, dB": statistics.stdev(found)}
        for how, found in (("equal seeds, the start is the same", paired), ("neighbouring seeds, it is not", crossed))
    ]


def truth() -> list[Row]:
    """Return the PSNR of two of 8 restarts: the one with the lowest attack loss, and the best by the private picture."""
    tries = [played(seed) for seed in range(1, 9)]
    by_loss = min(tries, key=lambda one: one[1])[0]
    return [
        {"chosen by": "lowest attack loss", "PSNR, dB": by_loss},
        {"chosen by": "the private picture", "PSNR, dB": max(psnr for psnr, _ in tries)},
    ]


# ---------------------------------------------------------------- 0008: several guesses at once

GUESSES = 8
Fields = dict[str, bool | int | float | str]  # of a Part
STAR: Fields = {"activation": "leaky_relu", "bias": False, "initialisation": "default"}  # LeNet* of R-GAP's table 2


def guesses() -> list[Row]:
    """Measure the milliseconds for the loss of 8 guesses and its gradient, on one thread, in three ways that agree."""
    import torch
    from torch.func import functional_call, grad, vmap
    from torch.nn import functional as F

    from leakage.engine.capabilities import capabilities_of, set_capabilities
    from leakage.engine.client import Gradient
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers import plugin_catalog
    from leakage.workers.adapter import prepare

    rows: list[Row] = []
    for name in ("lenet", "convnet"):
        prepared = prepare(Experiment(model=Part(id=name)).resolve(plugin_catalog.describe()), device=torch.device("cpu"))
        model = prepared.seen.model
        set_capabilities(model, replace(capabilities_of(model), formula=False))
        client = Gradient(model)
        weights: dict[str, torch.Tensor] = dict(model.named_parameters())
        target = {key: value.detach() for key, value in client(weights, prepared.x, prepared.y, {})[0].items()}
        x = torch.rand(GUESSES, *prepared.x.shape, generator=torch.Generator().manual_seed(1)).requires_grad_()

        def loss(gradient: dict[str, Any], target: dict[str, Any] = target) -> Any:
            return sum((gradient[key] - target[key]).square().sum() for key in target)

        def loop(x: Any = x, client: Any = client, weights: Any = weights, y: Any = prepared.y, loss: Any = loss) -> Any:
            return torch.cat([torch.autograd.grad(loss(client(weights, one, y, {})[0]), x)[0].sum(0, keepdim=True) for one in x])

        def forward(x: Any = x, client: Any = client, weights: Any = weights, y: Any = prepared.y, loss: Any = loss) -> Any:
            own = {key: value.expand(GUESSES, *value.shape) for key, value in weights.items()}
            labels = y[:, None].expand(-1, GUESSES)
            return torch.autograd.grad(loss(client.lanes(own, x.transpose(0, 1), labels, {})[0]), x)[0]

        def whole(x: Any = x, model: Any = model, weights: Any = weights, y: Any = prepared.y, loss: Any = loss) -> Any:
            def entropy(held: Any, one: Any) -> Any:
                return F.cross_entropy(functional_call(model, held, (one,)), y)

            plain = {key: value.detach() for key, value in weights.items()}
            return torch.autograd.grad(loss(vmap(grad(entropy), in_dims=(None, 0))(plain, x)), x)[0]

        ways: dict[str, Callable[[], Any]] = {"a loop": loop, "vmap of the forward pass": forward, "vmap of the gradient": whole}
        gradients = {way: run() for way, run in ways.items()}
        for way, found in gradients.items():
            gap = float((found - gradients["a loop"]).norm() / gradients["a loop"].norm())
            assert gap < 1e-3, f"{way} computes something else, by {gap}"
        took: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(15):  # in turn: whatever else the machine does meets all of them
            for way, run in ways.items():
                start = time.perf_counter()
                run()
                took[way].append(1e3 * (time.perf_counter() - start))
        rows += [{"model": name, "guesses": GUESSES, "way": way, "ms (median of 15)": statistics.median(took[way])} for way in ways]
    return rows


# ---------------------------------------------------------------- 0009: R-GAP's arithmetic


def r_gap() -> list[Row]:
    """R-GAP on LeNet* with one output: mean squared error by the client's precision (one picture), and by system (file of r_gap_tables)."""
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers import plugin_catalog
    from leakage.workers.adapter import play, prepare

    rows: list[Row] = []
    for sent in ("float32", "float64"):
        part = Part(id="lenet", fields=STAR)
        experiment = Experiment(model=part, attack=Part(id="r_gap"), task="flipped", precision=sent).resolve(plugin_catalog.describe())
        began = time.perf_counter()
        *_, frame = play(experiment, prepared=prepare(experiment), per_second=1)
        took = time.perf_counter() - began
        error = frame.scores["mse_norm"]
        rows.append({"model": "LeNet*", "client": sent, "system": "balanced", "pictures": 1, "mean squared error": error, "seconds": took})
    for model in ("LeNet*", "LeNet"):
        for method, sent in (("R-GAP", "float64"), ("as published", "float32")):
            asked = {"model": model, "method": method, "data": "cifar10"}
            runs = [run["result"] for run in results_file("r_gap_tables") if {name: run[name] for name in asked} == asked]
            rows.append(
                {
                    "model": model,
                    "client": sent,
                    "system": "balanced" if method == "R-GAP" else method,
                    "pictures": len(runs),
                    "mean squared error": statistics.mean(run["scores"]["mse_norm"] for run in runs),
                    "seconds": statistics.median(run["seconds"] for run in runs),
                }
            )
    return rows


# ---------------------------------------------------------------- 0019: a server that cheats


def servers() -> list[Row]:
    """Measure the milliseconds for 8 guesses of a sum of two clients, and the error of replaying the truth, by what a server changes."""
    import torch

    import leakage
    from leakage.engine.core import Params, Server

    class ForAll(Server):
        def hand_out(self, model: Any, weights: Params, history: Any, rng: Any) -> Params:
            return {name: 1.1 * weight for name, weight in weights.items()}

    class ForOne(Server):
        def single_out(self, model: Any, weights: Params, member: int, members: int) -> Params:
            return {name: 1.1 * weight for name, weight in weights.items()} if member == 0 else weights

    def squares(gradient: Params) -> torch.Tensor:
        return torch.stack([value.square().sum() for value in gradient.values()]).sum()

    rows: list[Row] = []
    x, y = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(1)), torch.arange(4)
    guesses = torch.rand(GUESSES, *x.shape, generator=torch.Generator().manual_seed(2))
    for changed, server in (("nothing", None), ("the weights of all clients", ForAll()), ("the weights of one client", ForOne())):
        model = lenet()
        seen = leakage.observe(model, x, y, server=server, aggregation=leakage.plugin("secure_aggregation", clients=2))
        took = []
        for _ in range(15):
            start, own = time.perf_counter(), guesses.clone().requires_grad_()
            torch.autograd.grad(squares(seen.gradients(own, y)), own)
            took.append(1e3 * (time.perf_counter() - start))
        replayed = seen.replay.single(x, y)
        apart = squares({name: replayed[name] - sent for name, sent in seen.update.items()}) / squares(seen.update)
        rows.append(
            {"the server changes": changed, "ms (median of 15)": statistics.median(took), "error of the replay": float(apart.sqrt())}
        )
    return rows


def bins() -> list[Row]:
    """Measure the processor seconds in which the attack `bins` reads 64 pictures of 3 x 32 x 32 from 256 bins, without their labels."""
    import torch

    from leakage.engine.core import generator
    from leakage.spec.experiment import Experiment, Part
    from leakage.workers.adapter import observe, plugin

    rows: list[Row] = []
    rng, attack = torch.Generator().manual_seed(1), plugin("attack", Part(id="bins"))
    x, y = (torch.rand(64, 3, 32, 32, generator=rng) / 4 + torch.rand(64, 1, 1, 1, generator=rng) * 3 / 4), torch.arange(64) % 10
    for server in ("imprint", "imprint_sparse", "bisect", "loki"):
        for phones in (1, 8):
            sums = Part(id="secure_aggregation", fields={"clients": phones}) if phones > 1 else None
            rounds = 4 if server == "bisect" else 1
            asked = Experiment(server=Part(id=server), aggregation=sums, rounds=rounds, attacked_round=rounds, model=Part(id="lenet"))
            took = []
            for _ in range(5):
                seen = observe(asked, x, y)
                start = time.process_time()
                for _ in attack.run(seen, generator(1, "attack")):
                    pass
                took.append(time.process_time() - start)
            rows.append({"server": server, "phones": phones, "seconds (median of 5)": statistics.median(took), "longest": max(took)})
    return rows


def lenet() -> Any:
    """Return an untrained LeNet for pictures of 3 x 32 x 32."""
    from leakage.spec.experiment import Part
    from leakage.workers.adapter import untrained

    return untrained(Part(id="lenet"), (3, 32, 32), 10, seed=1)


SECTIONS: tuple[Callable[[], list[Row]], ...] = (attackers, scores, truth, randomness, guesses, r_gap, servers, bins)
