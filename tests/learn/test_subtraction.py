"""Lesson 10, a server with seven of eight clients: the real sum minus theirs is the update of the eighth."""

import torch
from small_problems import CATALOG

from leakage.learn.planned import planned_run
from leakage.spec.experiment import Experiment
from leakage.workers.adapter import observe
from leakage.workers.private_pictures import load


def update(experiment: Experiment) -> dict[str, torch.Tensor]:
    """What the server receives."""
    x, y = load(experiment, {})
    return dict(observe(experiment, x, y).replay.simulator.update)


def test_the_sum_less_what_the_servers_own_phones_sent_is_the_update_of_the_eighth() -> None:
    summed = planned_run("r23").experiment.resolve(CATALOG)
    each = [summed.model_copy(update={"pictures": (picture,), "aggregation": None}) for picture in summed.pictures]
    victim, *servers = [update(one) for one in each]
    left = update(summed)
    for own in servers:
        left = {name: value - own[name] for name, value in left.items()}
    for name, value in left.items():
        assert (value - victim[name]).norm() < 1e-5 * victim[name].norm(), name  # eight additions in 32 bits
    assert all((value - victim[name]).norm() > victim[name].norm() / 100 for name, value in update(summed).items())


def test_m_phones_of_b_pictures_are_one_batch() -> None:
    """Of one gradient each: the mean over the sum is that of the whole batch."""
    summed = planned_run("r23").experiment.resolve(CATALOG)
    batch = update(summed.model_copy(update={"aggregation": None}))
    for name, value in update(summed).items():
        assert (value / 8 - batch[name]).norm() < 1e-5 * batch[name].norm(), name
