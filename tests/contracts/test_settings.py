"""An experiment refuses before the run what the engine refuses, in the same words; the engine runs what it accepts."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from small_problems import CATALOG, FITTING, IDS, TINY, light, short, smooth
from torch import nn

from leakage.engine.arranged import Bins
from leakage.engine.core import generator
from leakage.engine.fed_client import FedClient
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.logit_layer import last_layer
from leakage.engine.observe import observe as observe_model
from leakage.engine.observe import ready
from leakage.spec.catalog import Entries
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.spec.refusals import LocalSteps
from leakage.spec.tasks import Training
from leakage.workers.adapter import federation, network, observe, plugin
from leakage.workers.training_adapter import build, protections, recipe_of

PICKY = [  # defenses that say what they need
    entry.id for entry in CATALOG.defenses if entry.needs or entry.needs_structure or entry.one_by_one or entry.needs_step
]
NETS = [  # every model with every norm that it can have
    Part(
        id=entry.id, fields={**light(entry.id).fields, **({"norm": norm} if norm else {}), **({"width": 4} if entry.id == "resnet" else {})}
    )
    for entry in CATALOG.models
    for norm in next((field.options for field in entry.fields if field.name == "norm"), ("",))
]


def of(pictures: int, **settings: Any) -> Experiment:
    return Experiment(pictures=(Picture(id="astronaut"),) * pictures, **settings)


def refused(task: Experiment | Training) -> str:
    """The sentence with which it is refused before it is run, or nothing."""
    try:
        task.resolve(CATALOG)
    except SpecError as error:
        return str(error)
    return ""


def met(experiment: Experiment, *, step: bool = True) -> str:
    """The sentence with which the engine refuses it, or nothing. Without `step` no gradient is computed."""
    x = smooth(len(experiment.pictures), experiment.channels, experiment.size)
    try:
        if step:
            seen = observe(experiment, x, torch.arange(len(x)) % 10)
            seen.replay.single(x, torch.arange(len(x)) % 10)
        else:
            setting = federation(experiment)
            setting.client(ready(network(experiment, tuple(x.shape[1:])), setting, x, batch_norm=experiment.batch_norm))
    except ValueError as error:
        return str(error)
    return ""


def agree(experiment: Experiment, *, step: bool = True) -> None:
    before, later = refused(experiment), met(experiment, step=step)
    assert bool(before) == bool(later), (before, later)
    if later and " needs a model whose " not in before and "Expected more than 1 value per channel" not in later:
        assert before == later  # the first also names models that would do; the last is torch's own, for one phone of several


# ---------------------------------------------------------------- protections and models


@pytest.mark.parametrize("model", NETS, ids=lambda part: f"{part.id}-{part.fields.get('norm', '')}")
@pytest.mark.long
def test_protections_with_needs_are_refused_where_the_engine_refuses_them(model: Part) -> None:
    modes = ("eval", "batch") if model.fields.get("norm") == "batch" else ("batch",)
    for defense, batch_norm in product(PICKY, modes):
        agree(of(1, model=model, batch_norm=batch_norm, defenses=(Part(id=defense),)), step=False)


def test_each_kind_of_refusal_is_met() -> None:
    normed, two = Part(id="convnet", fields={"width": 4}), (Part(id="dp_sgd"), Part(id="precode"))
    for experiment, words in (
        (of(1, model=normed, batch_norm="batch", defenses=two[:1]), "DP-SGD limits what each picture says alone"),
        (of(1, model=Part(id="resnet18_imagenet"), defenses=two[1:]), "PRECODE goes before a last linear layer"),
        (of(2, model=TINY, defenses=two), "Name PRECODE before it."),
        (of(1, model=Part(id="resnet18_imagenet"), batch_norm="batch"), "of 1 x 32 x 32 pixels one number per channel is left"),
        (of(1, defenses=(Part(id="fedkl"),)), "FedKL needs a model whose norm is batch"),
    ):
        assert words in refused(experiment)
        agree(experiment)
    agree(of(2, model=TINY, defenses=two[::-1]))  # in the other order it runs
    assert not refused(of(2, model=TINY, defenses=two[::-1]))


STEPS = [  # protocol, aggregation
    (Part(id="fedsgd"), None),
    (Part(id="fedavg", fields={"epochs": 1}), None),
    (Part(id="fedavg", fields={"epochs": 1, "mini_batch": 1}), None),
    (Part(id="fedavg", fields={"epochs": 1, "mini_batch": 3}), None),
    (Part(id="fedsgd"), Part(id="secure_aggregation", fields={"clients": 2})),
]


def steps(pictures: tuple[int, ...] = (1, 2, 4)) -> Iterator[tuple[int, dict[str, Any]]]:
    for count, (protocol, over) in product(pictures, STEPS):
        if over is None or count % 2 == 0:
            yield count, {"protocol": protocol, "aggregation": over}


def test_the_order_of_protections_counts_where_a_local_step_has_several_pictures() -> None:
    order = (Part(id="dp_sgd", fields={"noise_multiplier": 0.0}), Part(id="precode", fields={"size": 4}))
    found = []
    for count, sent in steps():
        experiment = of(count, model=TINY, defenses=order, **sent)
        agree(experiment)
        found.append(bool(refused(experiment)))
    assert any(found)
    assert not all(found)


@pytest.mark.long
def test_a_local_step_of_one_small_picture_has_no_statistics_of_its_own() -> None:
    model = Part(id="resnet18_imagenet")
    found = []
    for count, sent in steps((2,)):
        experiment = of(count, model=model, batch_norm="batch", **sent)
        agree(experiment)
        found.append(bool(refused(experiment)))
    assert found == [False, False, True, False, True]  # one by one, and one for each of two clients
    assert not refused(of(1, model=model, size=64, batch_norm="batch"))
    assert not met(of(1, model=model, size=64, batch_norm="batch"), step=False)


def test_local_steps_are_those_that_the_client_takes() -> None:
    for pictures, mini_batch in product(range(1, 8), range(9)):
        sizes = [len(part) for part in torch.arange(pictures).split(mini_batch or pictures)]
        assert LocalSteps.of(pictures, mini_batch, 32) == LocalSteps(min(sizes), max(sizes), 32)


# ---------------------------------------------------------------- labels


class NoLinear(nn.Sequential):
    """A network that ends in a convolution."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 10, 3), nn.Sigmoid(), nn.Conv2d(10, 10, 6), nn.Flatten())


@pytest.mark.parametrize("attack", IDS["attack"])
def test_who_reads_labels_says_so(attack: str) -> None:
    x, y = smooth(2), torch.tensor([3, 5])
    setting = Federation.of(plugin("protocol", Part(id="fedsgd")), [], ThreatModel(), seed=1)
    seen = observe_model(ready(NoLinear(), setting, x), x, y, setting, num_classes=10)
    seen = replace(seen, secret=Bins("0", cumulative=True))  # as if a server had built bins into the first layer
    with pytest.raises(ValueError, match="needs a linear last layer"):
        last_layer(seen)
    said = ""
    try:
        list(plugin("attack", short(attack, steps=1, starts=1, restarts=1)).run(seen, generator(1, "attack")))
    except ValueError as error:
        said = str(error)
    assert ("Grant the labels instead." in said) == CATALOG.attacks.get(attack).reads_labels
    models = tuple(entry.model_copy(update={"structure": ()}) for entry in CATALOG.models)
    bare = replace(CATALOG, models=Entries("model", models))
    asked = Experiment(attack=Part(id=attack))
    if said:
        with pytest.raises(SpecError, match="Grant the labels instead"):
            asked.resolve(bare)
    else:
        asked.resolve(bare)
    asked.model_copy(update={"assume": Assumptions(labels=True)}).resolve(bare)


# ---------------------------------------------------------------- trainings


@pytest.mark.parametrize("defenses", [(), ("dp_sgd",), ("precode", "dp_sgd"), ("dp_sgd", "precode"), ("fedkl",)], ids=str)
@pytest.mark.parametrize("model", [TINY, FITTING["fedkl"], Part(id="resnet18_imagenet")], ids=lambda part: part.id)
@pytest.mark.long
def test_a_training_is_refused_where_its_clients_would_refuse_it(model: Part, defenses: tuple[str, ...]) -> None:
    for batch in (1, 2):
        training = Training(model=model, batch=batch, defenses=tuple(Part(id=id) for id in defenses))
        said = ""
        try:
            net = build(training).train()
            client = FedClient(net, recipe_of(training), protections(training))
            client.gradient(dict(net.named_parameters()), smooth(batch, 1, 28), torch.zeros(batch, dtype=torch.long))
        except ValueError as error:
            said = str(error)
        assert bool(refused(training)) == bool(said), (batch, refused(training), said)


# ---------------------------------------------------------------- what is allowed and does nothing


def cautioned(**settings: Any) -> str:
    (words,) = warnings(Experiment(**settings).resolve(CATALOG), CATALOG) or [""]
    return words


NOISE, AVERAGE = (Part(id="gaussian_noise", fields={"scale": 0.1}),), Assumptions(strategy="average the rounds")


@pytest.mark.parametrize(("rounds", "attacked", "words"), [(1, 1, "only one is watched"), (3, 1, "the first is attacked"), (3, 2, "")])
def test_the_mean_over_one_round_is_what_arrived_and_that_is_said(rounds: int, attacked: int, words: str) -> None:
    settings = {"model": TINY, "defenses": NOISE, "rounds": rounds, "attacked_round": attacked}
    x, y = smooth(1), torch.tensor([7])
    plain, mean = (observe(Experiment(**settings, assume=assume), x, y).received.update for assume in (Assumptions(), AVERAGE))
    assert all(torch.equal(mean[name], plain[name]) for name in plain) == bool(words)
    assert words in cautioned(**settings, assume=AVERAGE)
    assert bool(cautioned(**settings, assume=AVERAGE)) == bool(words)
    assert cautioned(**settings) == cautioned(**settings, assume=Assumptions(adaptive=False, strategy="average the rounds")) == ""


def test_a_strategy_that_the_engine_passes_over_is_named_with_the_one_it_takes() -> None:
    over = Part(id="secure_aggregation", fields={"clients": 2})
    named = 0
    for entry, (protocol, aggregation), other in product(
        CATALOG.defenses, ((Part(id="fedsgd"), None), (Part(id="fedavg"), None), (Part(id="fedsgd"), over)), (None, "clipping", "ats")
    ):
        if entry.id == "fedkl" or other == entry.id:
            continue
        stack = (Part(id=entry.id), *([Part(id=other)] if other else []))
        for name, strategy in entry.strategies.items():
            experiment = of(
                2, model=TINY, protocol=protocol, aggregation=aggregation, defenses=stack, rounds=2, attacked_round=2,
                assume=Assumptions(strategy=name),
            )  # fmt: skip
            taken = federation(experiment).strategy_descriptions[0]
            (said,) = warnings(experiment.resolve(CATALOG), CATALOG) or [""]
            assert bool(said) == (taken != strategy.description), (stack, name, said)
            if said:
                (used,) = (own for own, what in entry.strategies.items() if what.description == taken)
                assert f"“{used}” is used instead" in said
                named += 1
    assert named > 5


# ---------------------------------------------------------------- everything with everything


@pytest.mark.grid
@pytest.mark.parametrize("first", IDS["defense"])
def test_any_two_protections_are_refused_where_the_engine_refuses_them(first: str) -> None:
    for second, (count, sent) in product(IDS["defense"], steps((1, 2, 4))):
        model = FITTING["fedkl"] if "fedkl" in (first, second) else TINY
        agree(of(count, model=model, size=28, channels=1, defenses=(Part(id=first), Part(id=second)), **sent))


@pytest.mark.grid
@pytest.mark.parametrize("model", NETS, ids=lambda part: f"{part.id}-{part.fields.get('norm', '')}")
def test_any_protection_on_any_model_is_refused_where_the_engine_refuses_it(model: Part) -> None:
    smallest = CATALOG.models.get(model.id).smallest
    for size, batch_norm, count, defense in product((28, 32), ("eval", "batch"), (1, 2), IDS["defense"]):
        if size >= smallest:
            agree(of(count, size=size, model=model, batch_norm=batch_norm, defenses=(Part(id=defense),)), step=defense != "soteria")
