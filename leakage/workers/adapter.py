"""Conversion of an Experiment, which is plain data, into the objects of the engine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from leakage.data.checkpoints import find, verified
from leakage.engine.chain import TwoClasses
from leakage.engine.core import Observation
from leakage.engine.devices import best_device, device_for
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.imitation import Imitation
from leakage.engine.loading import load as load_plugin
from leakage.engine.observe import observe as observe_model
from leakage.engine.observe import ready
from leakage.engine.weights import put, unpack
from leakage.engine.weights import untrained as drawn
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.play import PER_SECOND, PreparedAttack, Private, prepare_attack
from leakage.evaluation.play import play as play_prepared
from leakage.evaluation.pools import Origin, kind_of
from leakage.evaluation.referee import Frame
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.class_examples import with_examples
from leakage.workers.generator_adapter import with_generator
from leakage.workers.learned_adapter import with_learned
from leakage.workers.private_pictures import load
from leakage.workers.step_choice import choose_step

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def plugin(kind: str, part: Part) -> Any:
    """Return the plug-in of a kind, such as "attack", with the id and fields of `part`. Raises ValueError if a field is out of range."""
    return load_plugin(kind, part.id)(**part.fields)


def federation(experiment: Experiment) -> Federation:
    """Return the federation of an experiment: its protocol, protections, rounds and attacker."""
    granted = ThreatModel(**experiment.assume.model_dump(exclude={"accomplice", "examples"}), accomplice=_accomplice(experiment))
    aggregation = plugin("protocol", experiment.aggregation) if experiment.aggregation else None
    defenses = [plugin("defense", part) for part in experiment.defenses]
    protocol = plugin("protocol", experiment.protocol)
    first_round = Federation.of(protocol, defenses, granted, seed=experiment.seed, aggregation=aggregation)
    server = plugin("server", experiment.server) if experiment.server else None
    return replace(
        first_round,
        rounds=experiment.rounds,
        attacked_round=experiment.attacked_round,
        server=server,
        checks=tuple(plugin("check", part) for part in experiment.checks),
        refuse=experiment.refuse,
    )


def _accomplice(experiment: Experiment) -> tuple[Tensor, Tensor] | None:
    """Return picture (1, C, H, W) and label (1,) of the client that works with the attacker; None if there is no such client."""
    picture = experiment.assume.accomplice
    return load(experiment.model_copy(update={"pictures": (picture,)}), {}) if picture else None


def network(experiment: Experiment, image_shape: tuple[int, int, int]) -> nn.Module:
    """Return the experiment's model for pictures (C, H, W), with its trained weights, or with weights drawn by the seed."""
    outputs = 1 if experiment.task != "classes" else experiment.num_classes
    model = untrained(experiment.model, image_shape, outputs, seed=experiment.seed)
    if experiment.task != "classes":
        model.add_module("two", TwoClasses(experiment.loss))  # our models are sequences
    if experiment.checkpoint:
        load_checkpoint(model, experiment.checkpoint)
    return choose_step(model)


def untrained(part: Part, image_shape: tuple[int, int, int], num_classes: int, *, seed: int) -> nn.Module:
    """Return the model with the id and fields of `part`, for pictures (C, H, W), with weights drawn by `seed`, not by the global RNG."""
    return drawn(plugin("model", part), image_shape, num_classes, seed=seed)


def load_checkpoint(model: nn.Module, name: str) -> None:
    """Put the weights of a trained model into `model`, in place.

    Args:
        model: an untrained model of the same kind.
        name: "id@rounds": the trained model, and the number of training rounds after which the weights were stored.

    Raises:
        CheckpointError: the weights are damaged, or do not fit.
    """
    put(model, unpack(verified(*find(name)), name), name)


def initial_model(experiment: Experiment, x: Tensor) -> nn.Module:
    """Return the model that the client receives in the first round, on the device of x and in the precision of x."""
    model = network(experiment, (x.shape[1], x.shape[2], x.shape[3]))
    return ready(model, federation(experiment), x, batch_norm=experiment.batch_norm)


def observe(experiment: Experiment, x: Tensor, y: Tensor) -> Observation:
    """Return what the server has after it received the update that clients compute from pictures x (B, C, H, W) and labels y (B,)."""
    return observe_model(initial_model(experiment, x), x, y, federation(experiment), num_classes=experiment.num_classes)


def predicted_labels(experiment: Experiment, x: Tensor) -> Tensor:
    """Return the classes (B,), 0 or 1, that a model with one output predicts for x (B, C, H, W), or the opposite (task "flipped")."""
    with torch.no_grad():
        predicted: Tensor = initial_model(experiment, x)(x).argmax(1)
    return 1 - predicted if experiment.task == "flipped" else predicted


def origins(experiment: Experiment, uploads: Mapping[str, bytes] | None = None) -> list[Origin]:
    """Return the origin of each private picture: its source and id, and for an upload its kind and its file.

    Args:
        experiment: the experiment.
        uploads: id of an upload in the experiment -> its file.
    """

    def origin(picture: Picture) -> Origin:
        if picture.source != "upload":
            return Origin(picture.source, picture.id)
        return Origin(picture.source, picture.id, kind_of(picture.label or 0), (uploads or {}).get(picture.id, b""))

    return [origin(picture) for picture in experiment.pictures]


def prepare(
    experiment: Experiment,
    *,
    uploads: Mapping[str, bytes] | None = None,
    device: torch.device | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> PreparedAttack:
    """Load the private pictures, compute the client's update, and score the baselines: pictures that do not depend on the private ones.

    Args:
        experiment: a resolved experiment.
        uploads: id of an upload in the experiment -> its file.
        device: where to compute; None: the best device of this machine.
        should_stop: called before every local step of the client.

    Raises:
        StoppedError: `should_stop()` returned True.
    """
    precision = PRECISIONS[experiment.precision]
    device = device_for(precision, device or best_device())
    x, classes = (tensor.to(device) for tensor in load(experiment, uploads or {}))
    private = x.to(precision)
    y = classes if experiment.task == "classes" else predicted_labels(experiment, private)
    prepared = prepare_attack(
        network(experiment, (x.shape[1], x.shape[2], x.shape[3])),
        Private(private, y, experiment.num_classes, experiment.batch_norm),
        federation(experiment),
        plugin("attack", experiment.attack),
        lambda: make_baselines(origins(experiment, uploads), x.cpu(), classes.cpu(), seed=experiment.seed),
        should_stop=should_stop,
    )
    seen = with_examples(prepared.seen, experiment, x)
    seen = with_learned(seen, prepared.federation) if prepared.attack.learned else seen
    return replace(prepared, seen=with_generator(seen, prepared.attack))


def play(
    experiment: Experiment,
    *,
    prepared: PreparedAttack | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    per_second: float = PER_SECOND,
) -> Iterator[Frame]:
    """Run the attack of an experiment, and yield its frames (guesses with their scores).

    Args:
        experiment: a resolved experiment.
        prepared: the prepared experiment; None: it is prepared here.
        should_stop: called at every step.
        per_second: the largest number of frames a second.
    """
    yield from play_prepared(prepared or prepare(experiment, should_stop=should_stop), should_stop=should_stop, per_second=per_second)


def batchable(experiment: Experiment) -> bool:
    """Return whether an experiment can be computed in one batched optimization with others that are `same_model_and_attack`.

    That is so if the attack and its imitation of the client can be batched, and if no protection or earlier round changes the model.
    """
    setting = federation(experiment)
    return plugin("attack", experiment.attack).batchable and Imitation(setting).batchable and setting.attacks_initial_model
