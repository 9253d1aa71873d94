"""The run that measures the gradients of single pictures at a model's weights, by which the Lab orders the pictures of a data set."""

from collections.abc import Callable, Sequence

import torch

from leakage.data.images import datasets
from leakage.engine.client import single_gradients, weights_of
from leakage.engine.stopping import StoppedError
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.tasks import GradientNorms
from leakage.workers.adapter import initial_model, predicted_labels
from leakage.workers.private_pictures import load


def norms(task: GradientNorms, should_stop: Callable[[], bool] = lambda: False) -> dict[str, float]:
    """Return the norm of the gradient of each of the first test pictures of a data set, by the picture's id.

    Args:
        task: a task of which the model has all its fields.
        should_stop: called after every picture.

    Raises:
        PictureError: the data set is missing or damaged.
        StoppedError: `should_stop()` returned True.
    """
    pictures = [Picture(source=task.source, id=item.id) for item in datasets()[task.source].items(0, task.count)]
    found = gradient_norms(task.experiment, pictures, should_stop)
    return {picture.id: norm for picture, norm in zip(pictures, found, strict=True)}


def gradient_norms(experiment: Experiment, pictures: Sequence[Picture], should_stop: Callable[[], bool] = lambda: False) -> list[float]:
    """Return the Euclidean norm, over all parameters, of the gradient of each picture alone.

    Args:
        experiment: a resolved experiment without protections; its model in the first round is taken, not its pictures.
        pictures: N pictures of the gallery or of data sets.
        should_stop: called after every picture.

    Raises:
        StoppedError: `should_stop()` returned True.
    """
    x, y = load(experiment.model_copy(update={"pictures": tuple(pictures)}), {})  # (N, C, H, W), (N,)
    if experiment.task != "classes":
        y = torch.cat([predicted_labels(experiment, one) for one in x.split(1)])
    model, found = initial_model(experiment, x[:1]), list[float]()
    for gradient in single_gradients(model, weights_of(model), x, y):
        if should_stop():
            raise StoppedError
        found.append(float(torch.cat([part.flatten() for part in gradient.values()]).norm()))
    return found
