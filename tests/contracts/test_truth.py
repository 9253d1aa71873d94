"""No attacker can reach private pictures and labels from what the server holds; a plug-in that kept them is found."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from reachable_truth import leaks, reached
from small_problems import IDS, LABELS, observed, protected, short, smooth, using

import leakage.protocols
from leakage.engine.core import DoesNotApplyError, Observation, Protocol, generator
from leakage.spec.experiment import Assumptions, Part
from leakage.workers.adapter import plugin
from leakage.workers.generator_adapter import with_generator

PROTECTIONS = [(), *((Part(id=name),) for name in IDS["defense"])]


@pytest.mark.pairwise("attack", "protection")  # the server holds the same of a protection whichever attack looks at it
@pytest.mark.parametrize("attack", IDS["attack"])
@pytest.mark.parametrize("protocol", IDS["protocol"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda parts: parts[0].id if parts else "none")
@pytest.mark.long
def test_no_attack_can_reach_the_pictures_nor_labels_that_were_not_granted(
    attack: str, protocol: str, known: bool, protection: tuple[Part, ...]
) -> None:
    x = smooth(3)
    settings = {"attack": short(attack), **using(protocol), **protected(*protection)}
    attacker = plugin("attack", settings["attack"])
    seen = with_generator(observed(x, **settings, assume=Assumptions(adaptive=known)), attacker)
    running = attacker.run(seen, generator(1, "attack"))
    assert (
        sum(isinstance(thing, torch.Tensor) for _, thing in reached(seen)) >= 8
    )  # it does look: weights and update have four tensors each
    first = None
    with suppress(DoesNotApplyError):  # to this network, or to what is left of an update: it looked, all the same
        first = next(running)
    assert leaks((seen, attacker, running, first), x, LABELS) == []


@pytest.mark.parametrize("protocol", ["fedavg", "fedadmm"])
def test_neither_rounds_nor_granted_statistics_hold_the_pictures(protocol: str) -> None:
    x = smooth(3, channels=3, side=28)
    model = Part(id="convnet", fields={"width": 4})
    seen = observed(x, model=model, protocol=Part(id=protocol), rounds=3, attacked_round=3, assume=Assumptions(statistics="exact"))
    assert seen.granted.statistics
    assert len(seen.received.history) == 3
    assert leaks(seen, x, LABELS) == []


@pytest.mark.parametrize("protocol", IDS["protocol"])
def test_granted_labels_are_a_copy_and_the_only_thing_that_is_given_away(protocol: str) -> None:
    x = smooth(3)
    seen = observed(x, **using(protocol), assume=Assumptions(labels=True))
    assert leaks(seen, x, LABELS) == ["it.granted.labels equals y"]  # equals, not is: other memory


# ---------------------------------------------------------------- planted: plug-ins that keep what they must not

HEAD = '''
"""Planted by a test."""
from leakage.engine.core import Protocol
'''
TAIL = """
    def to_gradient(self, update, seen):
        return update
"""
KEEPERS = {
    "class_list": """
class Hoarder(Protocol):
    kept = []
    def client(self, gradient, step_rng=None):
        def send(weights, x, y, state):
            self.kept.append(x)
            return gradient(weights, x, y, state)
        return send
""",
    "shared_closure": """
def remembering():
    kept = []
    def client(self, gradient, step_rng=None):
        def send(weights, x, y, state):
            kept.append(x.clone())
            return gradient(weights, x, y, state)
        return send
    return client
class Hoarder(Protocol):
    client = remembering()
""",
    "default_argument": """
class Hoarder(Protocol):
    def client(self, gradient, step_rng=None, kept={}):
        def send(weights, x, y, state):
            kept.setdefault("first", x.numpy().copy())
            return gradient(weights, x, y, state)
        return send
""",
    "labels_in_the_instance": """
class Hoarder(Protocol):
    def client(self, gradient, step_rng=None):
        def send(weights, x, y, state):
            if "kept" not in vars(self):
                object.__setattr__(self, "kept", y.tolist())
            return gradient(weights, x, y, state)
        return send
""",
    "module_global": """
KEPT = []
def remember(x):
    KEPT.append(x * 1)
class Hoarder(Protocol):
    def client(self, gradient, step_rng=None):
        def send(weights, x, y, state):
            remember(x)
            return gradient(weights, x, y, state)
        return send
""",
}


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Part]]:
    """Puts a protocol where the catalog finds it, for one test."""
    planted = []

    def put(name: str, text: str) -> Part:
        (tmp_path / f"{name}.py").write_text(HEAD.lstrip() + text + TAIL)
        monkeypatch.setattr(leakage.protocols, "__path__", [*leakage.protocols.__path__, str(tmp_path)])
        planted.append(f"leakage.protocols.{name}")
        return Part(id=name)

    yield put
    for module in planted:
        sys.modules.pop(module, None)


@pytest.mark.parametrize("name", KEEPERS)
def test_a_protocol_that_keeps_the_truth_is_caught(name: str, plant: Callable[[str, str], Part]) -> None:
    x = smooth(3)
    assert leaks(observed(x, protocol=plant(name, KEEPERS[name])), x, LABELS)


def test_an_update_that_carries_autograds_graph_is_cut_off_from_it(plant: Callable[[str, str], Part]) -> None:
    carrier = plant(
        "carries_a_graph",
        """
class Sends(Protocol):
    def client(self, gradient, step_rng=None):
        def send(weights, x, y, state):
            update, state = gradient(weights, x, y, state)
            scale = x.clone().requires_grad_().square().sum()  # autograd saves the clone
            return {name: g * scale for name, g in update.items()}, state
        return send
""",
    )
    x = smooth(3)
    seen = observed(x, protocol=carrier)
    assert not any(value.requires_grad for value in seen.received.update.values())
    assert leaks(seen, x, LABELS) == []


class _Holder:
    def __init__(self, secret: object) -> None:
        self.secret = secret

    def method(self) -> None: ...


def _graph(x: torch.Tensor) -> torch.Tensor:
    return (x.clone().requires_grad_() ** 2).sum()  # autograd has saved the clone


def _generator(x: torch.Tensor):
    yield 1
    yield x


def _started(x: torch.Tensor):
    running = _generator(x)
    next(running)
    return running


HIDING_PLACES = {
    "an attribute": _Holder,
    "a bound method": lambda x: _Holder(x).method,
    "a builtin's list": lambda x: [x].append,
    "a partial": lambda x: partial(print, sep=[x]),
    "a dict in a tuple": lambda x: ({"a": x},),
    "a default argument": lambda x: lambda y=x: y,
    "a view": lambda x: x[0, 0, 1:],
    "an array inside a larger one": lambda x: np.concatenate([np.zeros(5), x.double().numpy().ravel()]),
    "one picture of the batch": lambda x: x[1].clone(),
    "autograd's graph": _graph,
    "a running generator": _started,
    "a gradient": lambda x: _with_gradient(x),
}


def _with_gradient(x: torch.Tensor) -> torch.Tensor:
    leaf = torch.zeros_like(x).requires_grad_()
    leaf.grad = x.clone()
    return leaf


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_the_walk_finds_a_picture_in(place: str) -> None:
    x = smooth(3)
    assert leaks(HIDING_PLACES[place](x), x, LABELS)


def test_the_walk_finds_labels_as_certain_probabilities() -> None:
    certain = torch.nn.functional.one_hot(LABELS, 10).float()
    assert leaks([certain], smooth(3), LABELS) == ["it-> equals y"]


def test_the_walk_opens_plugin_classes_but_no_others() -> None:
    things = [thing for _, thing in reached(plugin("protocol", Part(id="fedsgd")))]
    assert Protocol in things
    assert Observation not in things
    assert object not in things
