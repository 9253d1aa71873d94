"""Conversion of a Training, which is plain data, into the objects that the engine trains."""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from leakage.data.checkpoints import Card, Stage
from leakage.data.images import Rows, datasets, training_pictures
from leakage.engine import accounting, federated_training
from leakage.engine.client import weights_of
from leakage.engine.client_protections import Protection, change_model, order_protections
from leakage.engine.federated_training import Pictures, Progress, State, TrainingError
from leakage.engine.recipe import TrainingRecipe
from leakage.runs.event_parts import TrainingPrivacy, finite
from leakage.spec.experiment import Part
from leakage.spec.gaussian_privacy import DELTA
from leakage.spec.tasks import Training
from leakage.workers.adapter import load_checkpoint, plugin, untrained


def recipe_of(training: Training) -> TrainingRecipe:
    """Return the fields of a training that the engine needs."""
    return TrainingRecipe(**{field.name: getattr(training, field.name) for field in fields(TrainingRecipe)})


def protections(training: Training) -> tuple[Protection, ...]:
    """Return the protections of a training in the order in which they act."""
    return order_protections([plugin("defense", part) for part in training.defenses])


def load(training: Training) -> tuple[Pictures, Pictures]:
    """Return the training's pictures and all test pictures of its data set.

    Raises:
        PictureError: the data set is not on this machine.
        TrainingError: the training needs more pictures than this machine has.
    """
    train_set = _tensors(training_pictures(training.data))
    if training.pictures:
        if training.pictures > len(train_set.y):
            raise TrainingError(f"pictures: this machine has {len(train_set.y)} training pictures of {training.data}, asked were more.")
        train_set = Pictures(train_set.x[: training.pictures], train_set.y[: training.pictures])
    return train_set, _tensors(datasets()[training.data].rows())


def _tensors(rows: Rows) -> Pictures:
    return Pictures(torch.from_numpy(rows.pixels.copy()).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(rows.labels.copy()))


def build(training: Training) -> nn.Module:
    """Return the untrained model, with the changes that protections make to it; the training's seed draws both."""
    model = untrained(training.model, training.image_shape, training.num_classes, seed=training.seed)
    return change_model(model, protections(training), seed=training.seed)


def train(
    training: Training,
    train_set: Pictures,
    test_set: Pictures,
    *,
    device: torch.device,
    start: State | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Progress]:
    """Build the model, train it, and yield its progress: see `federated_training.train`."""
    model = build(training).to(device)
    yield from federated_training.train(
        recipe_of(training), model, train_set, test_set, protections=protections(training), start=start, should_stop=should_stop
    )


def accuracy_of(card: Card, stage: Stage, device: torch.device) -> float:
    """Return the accuracy, 0 to 1, of a trained model on all test pictures of its data set.

    Args:
        card: the trained model.
        stage: the weights, stored after a number of training rounds.
        device: where to compute.

    Raises:
        CheckpointError: the weights are damaged.
        PictureError: the data set is not on this machine.
    """
    model = untrained(Part(id=card.model, fields=card.fields), card.image_shape, card.num_classes, seed=0)
    load_checkpoint(model, f"{card.id}@{stage.rounds}")
    return federated_training.accuracy(model.to(device), _tensors(datasets()[card.data].rows()).to(device))


def privacy(training: Training, pictures: int) -> TrainingPrivacy | None:
    """Return the privacy budget of a training by its first protection that promises one; None if no protection does.

    The budget is that of the client with the fewest pictures, since a batch is the largest fraction of that client's pictures.

    Args:
        training: the training.
        pictures: the number of pictures that all clients have together.
    """
    fewest = min(len(part) for part in federated_training.partition(torch.zeros(pictures), recipe_of(training)))
    weights = weights_of(build(training)).values()
    for protection in sorted(protections(training), key=lambda protection: protection.index):
        defense = protection.defense
        local = defense.stage == "gradient"  # otherwise the defense acts once per round, on the update of all pictures
        passes = training.rounds * (training.local_epochs if local else 1)
        steps, rate = (passes * math.ceil(fewest / training.batch), min(1.0, training.batch / fewest)) if local else (passes, 1.0)
        noise_multiplier = defense.effective_noise_multiplier(len(weights))
        pure = defense.pure_epsilon(sum(value.numel() for value in weights))
        if pure is not None:  # epsilons of pure differential privacy add up, and sampling is not counted
            sampled, unsampled, delta = pure * steps, pure * passes, 0.0
        elif noise_multiplier is not None:
            sampled, unsampled = accounting.epsilon(noise_multiplier, steps, sample_rate=rate), accounting.epsilon(noise_multiplier, passes)
            delta = DELTA
        else:
            continue
        bounds = {"sampled": sampled, "unsampled": unsampled, "delta": delta}
        return TrainingPrivacy(**bounds, rate=rate, steps=steps, uses=passes, whom=defense.privacy_unit())
    return None


def privacy_facts(training: Training, pictures: int) -> dict[str, Any] | None:
    """Return the privacy budget of a training for its model card; None if no protection promises one.

    The keys: epsilon (as trained), epsilon_if_sampled (if batches had been drawn at random), delta, unit, uses, steps, rate (see
    `TrainingPrivacy`), assumption and words (sentences). If the budget cannot be computed: epsilon (None) and words alone.
    """
    try:
        budget = privacy(training, pictures)
    except accounting.AccountantError as error:
        return {"epsilon": None, "words": str(error)}
    if budget is None:
        return None
    epsilons = ["above 200" if value is None or math.isinf(value) else f"{value:.2f}" for value in (budget.unsampled, budget.sampled)]
    passes = f"each picture takes part in {budget.uses} noisy sum{'' if budget.uses == 1 else 's'}, and the noise stays secret"
    drawn = f"{epsilons[1]} had each of {budget.steps} batches been drawn at random (rate {budget.rate:.3g})"
    return {
        "epsilon": finite(budget.unsampled),
        "epsilon_if_sampled": finite(budget.sampled),
        "delta": budget.delta,
        "unit": budget.whom,
        "uses": budget.uses,
        "steps": budget.steps,
        "rate": budget.rate,
        "assumption": passes,
        "words": f"Privacy budget: epsilon {epsilons[0]} at delta {budget.delta:g}, for {budget.whom}; {passes} ({drawn}).",
    }
