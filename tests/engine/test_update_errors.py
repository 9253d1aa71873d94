"""The size of a protection's errors as an adaptive attacker knows it, compared with the real errors."""

import pytest
import torch
from small_problems import CATALOG, IDS, observed, protected, smooth

from leakage.engine.core import AdaptiveStrategy, Defense, Observation, Params, StepRng
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.observe import observe, ready
from leakage.protocols.fedsgd import FedSGD
from leakage.spec.experiment import Assumptions, Part
from leakage.workers.adapter import plugin

STILL = {"protocol": Part(id="fedsgd", fields={"rate": 1e-6})}  # a server that hardly moves the weights
WATCHED = {**STILL, "rounds": 8, "attacked_round": 8}
AVERAGED = "average the rounds"
NOISE = Part(id="gaussian_noise", fields={"scale": 0.01})
WIDE = Part(id="mlp", fields={"width": 128, "depth": 1, "activation": "sigmoid"})  # 9,610 entries: sums of squares are known to 1.4 %


def squares(seen: Observation, errors: Params) -> float:
    """The sum of squared errors, as far as they count in comparisons."""
    every = {name: torch.ones_like(g) for name, g in seen.as_gradient().items()}
    shares = {name: seen.knowledge.entry_weights.get(name, one) for name, one in every.items()}
    return sum(float((errors[name] * shares[name] * every[name]).sum()) for name in errors)


def made(seen: Observation, x: torch.Tensor, y: torch.Tensor) -> float:
    """The sum of squared errors that the protection made: the difference from the replay of the true pictures."""
    replayed, target = seen.gradient(x, y), seen.as_gradient()
    return squares(seen, {name: (replayed[name] - g).detach().square() for name, g in target.items()})


def both(x: torch.Tensor, *defenses: Part, strategy: str = "", **settings: object) -> tuple[float, float]:
    """The sums of squared errors that the attacker expects, and that were made."""
    seen = observed(x, model=WIDE, defenses=defenses, assume=Assumptions(labels=True, strategy=strategy), **settings)
    assert seen.knowledge.errors is not None
    assert seen.granted.labels is not None
    return squares(seen, seen.knowledge.errors), made(seen, x, seen.granted.labels)


NOISY = {
    "Gaussian": (("gaussian_noise",), {}),
    "Laplacian": (("laplacian_noise",), {}),
    "DP-SGD": (("dp_sgd",), {}),
    "Fed-CDP": (("fed_cdp",), {}),
    "Flower's": (("flower_local_dp",), {}),
    "Gaussian, averaged": (("gaussian_noise",), {"strategy": AVERAGED, **WATCHED}),
    "Laplacian, averaged": (("laplacian_noise",), {"strategy": AVERAGED, **WATCHED}),
    "DP-SGD, averaged": (("dp_sgd",), {"strategy": AVERAGED, **WATCHED}),
    "Fed-CDP, averaged": (("fed_cdp",), {"strategy": AVERAGED, **WATCHED}),
    "Flower's, averaged": (("flower_local_dp",), {"strategy": AVERAGED, **WATCHED}),
    "one of two numbers, averaged": (("ldp_fl",), {"strategy": AVERAGED, **WATCHED}),
    "pruned": ((NOISE, Part(id="pruning", fields={"scope": "random", "fraction": 0.5})), {}),
    "some tensors kept": (("gaussian_noise", "exclude_vars"), {}),
    "twice": (("gaussian_noise", "laplacian_noise"), {}),
    "five local steps": (("gaussian_noise",), {"protocol": Part(id="fedavg")}),
    "momentum": (("gaussian_noise",), {"protocol": Part(id="fedavg", fields={"momentum": 0.9, "epochs": 3})}),
    "proximal": (("gaussian_noise",), {"protocol": Part(id="fedprox", fields={"proximal": 10.0, "rate": 0.01})}),
    "FedADMM": (("gaussian_noise",), {"protocol": Part(id="fedadmm", fields={"epochs": 3})}),
    "mini-batches": (("dp_sgd",), {"protocol": Part(id="fedavg", fields={"epochs": 2, "mini_batch": 2})}),
    "an update of weights": (("flower_local_dp",), {"protocol": Part(id="fedavg", fields={"rate": 0.01})}),
    "a sum of phones": (("dp_sgd",), {"aggregation": Part(id="secure_aggregation", fields={"clients": 3})}),
    "a ring": (("gaussian_noise",), {"aggregation": Part(id="ring_all_reduce", fields={"clients": 3, "clients_before": 2})}),
}


@pytest.mark.parametrize("case", NOISY)
def test_noise_is_expected_as_large_as_it_is(case: str) -> None:
    names, settings = NOISY[case]
    expected, real = both(smooth(3), *(own if isinstance(own, Part) else Part(id=own) for own in names), **settings)
    assert expected == pytest.approx(real, rel=0.1)
    assert real > 0


@pytest.mark.parametrize(("number", "rounding", "rounds"), [("fp16", "nearest", 1), ("bf16", "nearest", 1), ("int8", "stochastic", 8)])
def test_rounding_of_a_mean_is_expected_as_large_as_it_is(number: str, rounding: str, rounds: int) -> None:
    part = Part(id="low_precision", fields={"number": number, "rounding": rounding})
    expected, real = both(smooth(3), part, strategy=AVERAGED, **{**STILL, "rounds": rounds, "attacked_round": rounds})
    assert expected == pytest.approx(real, rel=0.1)


STRATEGIES = [(name, strategy) for name in IDS["defense"] for strategy in CATALOG.defenses.get(name).strategies]
SAID = {(names[0], settings.get("strategy", "")) for names, settings in NOISY.values() if isinstance(names[0], str)}
CHANGES_PICTURES = ("ats",)  # its errors are those of the changed pictures
LATENT = ("fedkl", "precode")  # exact where the attacker finds what the phone keeps


@pytest.mark.parametrize(("name", "strategy"), [pair for pair in STRATEGIES if pair[0] not in (*CHANGES_PICTURES, *LATENT)])
def test_what_is_called_exact_is_exact(name: str, strategy: str) -> None:
    x = smooth(3)
    seen = observed(x, **protected(Part(id=name)), **STILL, assume=Assumptions(labels=True, strategy=strategy))
    assert seen.granted.labels is not None
    if seen.knowledge.errors == {}:
        size = squares(seen, {name: g.square() for name, g in seen.as_gradient().items()})
        assert made(seen, x, seen.granted.labels) <= 1e-10 * size
    else:
        first = next(iter(CATALOG.defenses.get(name).strategies))
        assert seen.knowledge.errors is None or (name, "" if strategy == first else strategy) in SAID | {("low_precision", AVERAGED)}


def test_a_naive_attacker_does_not_know_how_large_they_are() -> None:
    x = smooth(1)
    assert observed(x, defenses=(NOISE,), assume=Assumptions(adaptive=False)).knowledge.errors is None
    assert observed(x, assume=Assumptions(adaptive=False)).knowledge.errors is None  # nor that there are none
    assert observed(x).knowledge.errors == {}


def test_what_was_drawn_is_not_known_only_how_large_it_is() -> None:
    seeds = [observed(smooth(1), defenses=(NOISE,), seed=seed) for seed in (1, 2)]
    assert all(float(value) == pytest.approx(1e-4) for seen in seeds for value in (seen.knowledge.errors or {}).values())
    assert not torch.equal(*(seen.received.update["linear1.weight"] for seen in seeds))


def test_a_protection_that_does_not_say_leaves_them_unknown() -> None:
    class Doubling(Defense):
        """Twice the gradient."""

        def defend(self, client, model: torch.nn.Module, step_rng: StepRng):
            return client

        def strategies(self) -> dict[str, AdaptiveStrategy]:
            return {"halve": AdaptiveStrategy("known: halved")}

    x, y = torch.rand(1, 1, 4, 4), torch.tensor([2])
    federation = Federation.of(FedSGD(), [Doubling()], ThreatModel(), seed=1)
    model = ready(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)), federation, x)
    assert observe(model, x, y, federation, num_classes=3).knowledge.errors is None


def test_of_noisy_entries_the_largest_are_not_any_ones_so_their_errors_are_not_known() -> None:
    assert observed(smooth(1), defenses=(NOISE, Part(id="pruning"))).knowledge.errors is None


def test_feedback_and_several_gradients_leave_what_pruning_did_unknown() -> None:
    x, owing = smooth(3), Part(id="pruning", fields={"feedback": True})
    assert observed(x, defenses=(owing,)).knowledge.errors == {}
    assert observed(x, defenses=(owing,), **{**WATCHED, "attacked_round": 2}).knowledge.errors is None
    assert observed(x, defenses=(Part(id="pruning"),), protocol=Part(id="fedavg")).knowledge.errors is None
    assert plugin("defense", owing).feedback
