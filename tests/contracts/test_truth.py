"""No attacker can reach private pictures and labels from what the server holds; a plug-in that kept them is found."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from reachable_truth import leaks, reached
from small_problems import IDS, LABELS, RELU, cheated, handed_to, observed, prepared, protected, short, smooth, using

from leakage.engine.arranged import Bins
from leakage.engine.check import CheckReading
from leakage.engine.core import DoesNotApplyError, Handed, Observation, Protocol, Round, Server, generator
from leakage.engine.inspection import Inspection
from leakage.engine.observe import ready
from leakage.evaluation.play import Private
from leakage.spec.experiment import MAX_CHECKS, Assumptions, Experiment, Part
from leakage.spec.fields import KINDS
from leakage.workers.adapter import network, plugin
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


# ---------------------------------------------------------------- a server that cheats: its secret and the truth stay apart


def asked(server: str, *checks: str, clients: int = 1) -> Experiment:
    """Return an experiment with this server; the clients only report what their checks find."""
    sum_of = {"aggregation": Part(id="secure_aggregation", fields={"clients": clients})} if clients > 1 else {}
    settings = {**cheated(server), **sum_of, "checks": tuple(Part(id=id) for id in checks[:MAX_CHECKS]), "refuse": False}
    return Experiment(size=28, channels=1, **settings)


def of_type(root: object, *types: type) -> list[str]:
    """Return where `root` reaches an object of these types."""
    return [path for path, thing in reached(root) if isinstance(thing, types)]


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("cheating", IDS["server"])
def test_what_a_cheating_server_holds_has_neither_pictures_nor_labels_nor_findings_of_checks(cheating: str, clients: int) -> None:
    x = smooth(3, side=28)
    seen = prepared(asked(cheating, *IDS["check"], clients=clients), x).seen
    assert leaks(seen, x, LABELS) == []
    assert of_type(seen, CheckReading, Handed, Inspection, Private) == []
    assert [type(round) for round in seen.received.history] == [Round] * asked(cheating).rounds


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("cheating", IDS["server"])
def test_the_secret_of_a_server_is_reached_from_no_client_and_from_no_truth(cheating: str, clients: int) -> None:
    x, experiment = smooth(3, side=28), asked(cheating, *IDS["check"], clients=clients)
    attack, handed = prepared(experiment, x), handed_to(experiment, x)
    client = attack.federation.client(ready(network(experiment, tuple(x.shape[1:])), attack.federation, x))
    truth = Private(x, LABELS, 10)
    assert of_type((client, handed, truth), Bins) == []
    assert of_type((handed, truth), Server, Observation, Round) == []
    assert len(handed) == attack.federation.aggregation.members
    assert (attack.seen.secret is None) == (of_type(attack.seen, Bins) == [])  # the walk sees it where it is


@pytest.mark.parametrize("cheating", IDS["server"])
def test_a_server_learns_the_earlier_rounds_as_they_arrived_and_nothing_else(cheating: str, plant: Callable[..., Part]) -> None:
    x = smooth(3)
    listening = plant("listens", LISTENS.format(server=cheating), kind="server")
    seen = observed(x, **{**cheated(cheating), "server": listening, "rounds": 3, "attacked_round": 2})
    heard = type(plugin("server", listening)).heard
    assert [len(history) for _, _, history, _ in heard] == [0, 1, 2]
    assert [id(round) for round in heard[-1][2]] == [id(round) for round in seen.received.history[:2]]
    assert of_type(heard, Handed, Inspection, Observation, CheckReading) == []
    assert leaks(heard, x, LABELS) == []


# ---------------------------------------------------------------- planted: plug-ins that keep what they must not

HEAD = '''
"""Planted by a test."""
from leakage.engine.core import Check, Protocol, Server
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


LISTENS = """
from leakage.engine.loading import load
class Listens(load("server", "{server}")):
    heard = []
    def hand_out(self, model, weights, history, rng):
        self.heard.append((model, weights, history, rng))
        return super().hand_out(model, weights, history, rng)
"""
SPYING_SERVERS = {
    "a_layer_that_remembers": """
from torch import nn
class Remembering(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.kept = model, []
    def forward(self, x):
        self.kept.append(x.detach().clone())
        return self.model(x)
class Spy(Server):
    def rebuild(self, model, image_shape, members):
        return Remembering(model)
""",
    "a_hook": """
class Spy(Server):
    def rebuild(self, model, image_shape, members):
        kept = []
        model.register_forward_pre_hook(lambda layer, inputs: kept.append(inputs[0].detach() * 1))
        return model
""",
}
SPYING_CHECK = """
class Spy(Check):
    title = "Keeps the pictures"
    kept = []
    def measure(self, handed):
        self.kept.append(handed.x * 1)
        return 0.0
"""
BOASTING_SERVER = """
from leakage.engine.arranged import Bins
class Boast(Server):
    def rebuild(self, model, image_shape, members):
        model.arranged = Bins("0", cumulative=True)
        return model
"""


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Part]]:
    """Puts a plug-in where the engine finds it, for one test; a protocol also gets the method that it needs."""
    planted = []

    def put(name: str, text: str, *, kind: str = "protocol") -> Part:
        (tmp_path / f"{name}.py").write_text(HEAD.lstrip() + text + (TAIL if kind == "protocol" else ""))
        package = importlib.import_module(f"leakage.{KINDS[kind]}")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        planted.append(f"{package.__name__}.{name}")
        return Part(id=name)

    yield put
    for module in planted:
        sys.modules.pop(module, None)


@pytest.mark.parametrize("name", SPYING_SERVERS)
def test_a_server_that_keeps_the_pictures_is_caught(name: str, plant: Callable[..., Part]) -> None:
    x = smooth(3)
    assert leaks(observed(x, model=RELU, server=plant(name, SPYING_SERVERS[name], kind="server")), x, LABELS)


def test_a_check_that_keeps_the_pictures_is_caught(plant: Callable[..., Part]) -> None:
    x = smooth(3, side=28)
    plant("spying_check", SPYING_CHECK, kind="check")
    assert leaks(prepared(asked("imprint", "spying_check"), x).seen, x, LABELS)


def test_a_server_that_shows_its_secret_to_the_clients_is_caught(plant: Callable[..., Part]) -> None:
    boasting = asked("imprint", "new_layers").model_copy(update={"server": plant("boasting", BOASTING_SERVER, kind="server")})
    assert of_type(handed_to(boasting, smooth(3, side=28)), Bins)


@pytest.mark.parametrize("name", KEEPERS)
def test_a_protocol_that_keeps_the_truth_is_caught(name: str, plant: Callable[..., Part]) -> None:
    x = smooth(3)
    assert leaks(observed(x, protocol=plant(name, KEEPERS[name])), x, LABELS)


def test_an_update_that_carries_autograds_graph_is_cut_off_from_it(plant: Callable[..., Part]) -> None:
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
