"""A recorded step repeats the calls of the formula, with the same digits, for every run of its kind."""

import gc
import weakref
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.data.images import gallery
from leakage.engine import recorded_step
from leakage.engine.client import weights_of
from leakage.engine.compilable_step import CompilableStep
from leakage.engine.core import Params, generator
from leakage.engine.formula_reader import formula_of
from leakage.engine.lanes import MatchedUpdate
from leakage.engine.matching import distance
from leakage.engine.recorded_step import record
from leakage.engine.whole_distance import WholeDistance
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import plugin, prepare
from leakage.workers.plugin_catalog import describe

SHAPE, CLASSES = (3, 12, 12), 5
NETWORKS: list[tuple[str, dict[str, object]]] = [
    ("lenet", {}),
    ("lenet", {"normalise": "cifar10"}),
    ("lenet", {"activation": "relu"}),
    ("lenet", {"activation": "leaky_relu"}),
    ("lenet", {"activation": "tanh"}),
    ("mlp", {"width": 8}),
    ("custom", {}),
    ("custom", {"network": "conv 3@4 p1 - max 2 - conv 3@4 norm - mean 2"}),
    ("custom", {"network": "conv 3@4 p1 - block 4 - mean", "activation": "relu"}),
    ("fcn3", {}),
]


@pytest.fixture(autouse=True)
def no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without lists, and leave those of other tests as they were."""
    monkeypatch.setattr(recorded_step, "_lists", {})


def step_of(
    name: str, fields: dict[str, object], kind: str = "cosine", seed: int = 1, dtype: torch.dtype = torch.float32
) -> CompilableStep:
    """The step of a network with the weights, and the received gradient, that a seed gives."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = plugin("model", Part(id=name, fields=fields)).build(SHAPE, CLASSES).to(dtype).eval()
        target: Params = {key: torch.randn_like(value) for key, value in weights_of(model).items()}
    compared = distance(kind, target)
    assert isinstance(compared, WholeDistance)
    formula = formula_of(model, SHAPE)
    return CompilableStep(formula, formula.fold(weights_of(model)), compared, scaled=False)


def guesses(lanes: int, pictures: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = generator(seed, "guesses")
    return torch.rand((lanes, pictures, *SHAPE), generator=rng), torch.randint(CLASSES, (lanes, pictures), generator=rng)


def plainly(step: CompilableStep, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        return step(step.numbers, x, y)


def equal(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(("name", "fields"), NETWORKS, ids=lambda value: str(value))
@pytest.mark.parametrize("kind", ["cosine", "squared", "absolute"])
def test_one_list_serves_other_weights_updates_and_pictures_with_equal_digits(name: str, fields: dict[str, object], kind: str) -> None:
    for lanes, pictures in ((1, 1), (1, 2), (3, 1)):
        for seed in (1, 2, 3):
            step, (x, y) = step_of(name, fields, kind, seed), guesses(lanes, pictures, seed)
            repeat = record(step, x, y)
            assert repeat is not None
            assert equal(repeat(x), plainly(step, x, y))
            other, _ = guesses(lanes, pictures, seed + 10)
            assert equal(repeat(other), plainly(step, other, y))
    assert len(recorded_step._lists) == 3, "one for each number of guesses and pictures"


def test_probabilities_and_normalizations_have_lists_of_their_own() -> None:
    x, y = guesses(1, 2, 1)
    soft = torch.rand((1, 2, CLASSES), generator=generator(1, "soft")).softmax(2)
    kinds: list[dict[str, object]] = [{}, {"normalise": "cifar10"}]
    for fields, labels in product(kinds, (y, soft)):
        step = step_of("lenet", fields)
        repeat = record(step, x, labels)
        assert repeat is not None
        assert equal(repeat(x), plainly(step, x, labels))
    assert len(recorded_step._lists) == 4


def test_some_entries_may_count_more_than_others_and_in_double_precision() -> None:
    step, (x, y) = step_of("lenet", {}, "squared"), guesses(1, 1, 1)
    weighted = replace(step.distance, weights=torch.rand(step.distance.goal.shape, generator=generator(1, "weights")))
    step = CompilableStep(step.formula, step.folded, weighted, scaled=False)
    repeat = record(step, x, y)
    assert repeat is not None
    assert equal(repeat(x), plainly(step, x, y))
    double = step_of("lenet", {}, dtype=torch.float64)
    repeat = record(double, x.double(), y)
    assert repeat is not None
    assert equal(repeat(x.double()), plainly(double, x.double(), y))


def test_a_list_keeps_nothing_of_the_run_that_it_was_recorded_for() -> None:
    step, (x, y) = step_of("lenet", {}), guesses(1, 1, 1)
    kept = [weakref.ref(step), weakref.ref(step.distance.goal), *(weakref.ref(at.weight) for at in step.folded if at)]
    assert record(step, x, y) is not None
    assert all(one() is not None for one in kept)
    del step
    gc.collect()
    assert [one() for one in kept] == [None] * len(kept)
    assert list(recorded_step._lists.values()) != [None]


def test_without_torchscript_python_makes_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.jit, "trace")
    assert record(step_of("lenet", {}), *guesses(1, 1, 1)) is None


def test_a_large_network_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_step, "LARGEST", 1000)
    assert record(step_of("lenet", {}), *guesses(1, 1, 1)) is None


def test_pictures_may_lie_in_memory_in_any_way() -> None:
    """Strides and offsets are constants of the list, so that a view would be read at wrong places."""
    step, (x, y) = step_of("custom", {"network": "conv 3@4"}), guesses(2, 2, 1)
    repeat = record(step, x, y)
    assert repeat is not None
    for view in (torch.cat([x, x])[2:], x.mT.contiguous().mT):
        assert equal(repeat(view), plainly(step, x, y))


def test_the_library_s_convolutions_are_not_recorded() -> None:
    step, (x, y) = step_of("convnet", {}), guesses(2, 8, 1)
    assert record(step, x, y) is None
    assert record(step, x, y) is None, "asked again"


def test_there_are_no_more_lists_than_a_process_may_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_step, "MOST", 1)
    assert record(step_of("convnet", {}), *guesses(2, 8, 1)) is None, "it has no list, and takes the place of none"
    step = step_of("lenet", {})
    assert record(step, *guesses(1, 1, 1)) is not None
    assert record(step, *guesses(2, 1, 1)) is None
    assert record(step, *guesses(1, 1, 2)) is not None, "the first is kept"


@pytest.mark.parametrize(("starts", "schedule"), list(product((1, 3), ("steps", "coarse first"))))
def test_a_search_ends_with_equal_pixels_with_and_without_lists(starts: int, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part(id="inverting_gradients", fields={"steps": 20, "starts": starts, "schedule": schedule})
    chosen = Experiment(attack=part, model=Part(id="lenet")).resolve(describe())
    answers, lists = list[Tensor](), list[int]()
    for most in (32, 0):
        monkeypatch.setattr(recorded_step, "MOST", most)
        monkeypatch.setattr(recorded_step, "_lists", {})
        scene, attack = prepare(chosen, device=torch.device("cpu")), plugin("attack", chosen.attack)
        assert isinstance(attack, InvertingGradients)
        *_, last = attack.run(scene.seen, generator(1, "attack"))
        assert "derivatives by" not in last.note
        answers.append(last.x)
        lists.append(len(recorded_step._lists))
    assert lists == [1, 0]
    assert torch.equal(*answers)


@pytest.mark.parametrize(("least", "direct"), [(None, True), (0.0, False), (1.0, False)])
def test_gradients_that_a_protection_changes_have_no_list_though_it_keeps_short_or_long_ones(least: float | None, direct: bool) -> None:
    """A clipping that returns a short gradient as it is, for one, is no identity."""
    scene = prepare(Experiment(model=Part(id="lenet")).resolve(describe()), device=torch.device("cpu"))

    def to_gradient(update: Params) -> Params:
        longest = max(float(value.abs().max()) for value in update.values())
        return update if longest == least or least is None else {name: 2 * value for name, value in update.items()}

    seen = replace(scene.seen, replay=replace(scene.seen.replay, to_gradient=to_gradient))
    matched = MatchedUpdate([seen], [distance("cosine", seen.as_gradient())], torch.zeros((1, 1), dtype=torch.long), lambda x: [])
    assert (matched.step_for(torch.rand(1, 1, 3, 32, 32)) is not None) == direct


def test_a_loop_of_several_runs_ends_with_equal_pixels_with_and_without_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Part(id="inverting_gradients", fields={"steps": 20})
    chosen = [Experiment(attack=part, model=Part(id="lenet"), pictures=(Picture(id=one.id),)).resolve(describe()) for one in gallery()[:3]]
    answers, lists = list[list[Tensor]](), list[int]()
    for most in (32, 0):
        monkeypatch.setattr(recorded_step, "MOST", most)
        monkeypatch.setattr(recorded_step, "_lists", {})
        scenes = [prepare(one, device=torch.device("cpu")) for one in chosen]
        attack = plugin("attack", chosen[0].attack)
        rngs = [generator(number, "attack") for number in range(3)]
        last = dict(attack.run_batched([scene.seen for scene in scenes], rngs))
        answers.append([last[lane].x for lane in range(3)])
        lists.append(len(recorded_step._lists))
    assert lists == [1, 0]
    assert all(torch.equal(one, other) for one, other in zip(*answers, strict=True))
