"""Label flipping: the gradient of the flipped network is that of the honest network with swapped labels and swapped rows."""

import pytest
import torch
from small_problems import RELU, precision, relative, smooth

from leakage.engine.client import gradient_client
from leakage.engine.core import Observation, Params
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe

X, Y = smooth(4, seed=3).double(), torch.tensor([2, 7, 1, 2])
FLIP = Part(id="label_flip", fields={"guessed": 2, "rival": 7})


def seen_by(server: Part | None, y: torch.Tensor = Y, **settings: object) -> Observation:
    with precision(torch.float64):
        return observe(Experiment(**{"model": RELU, "server": server} | settings), X, y)


def swapped(gradient: Params) -> Params:
    """Return a gradient with rows 2 and 7 of the last layer swapped, each written by hand."""
    order = [0, 1, 7, 3, 4, 5, 6, 2, 8, 9]
    return {name: value[order] if name.startswith("linear.") else value for name, value in gradient.items()}


def test_the_gradient_is_the_honest_one_with_labels_and_rows_swapped() -> None:
    flipped, honest = seen_by(FLIP), seen_by(None, torch.tensor([7, 2, 1, 7]))
    assert relative(flipped.update, swapped(honest.update)) < 1e-12
    assert relative(flipped.update, seen_by(None).update) > 0.1  # and not the gradient of the true labels


def test_the_rows_of_two_classes_are_swapped_and_all_else_stays() -> None:
    flipped, honest = seen_by(FLIP).received.weights, seen_by(None).received.weights
    expected = swapped(honest)
    assert all(torch.equal(flipped[name], expected[name]) for name in honest)
    assert not torch.equal(flipped["linear.weight"], honest["linear.weight"])


def test_classes_are_swapped_from_the_first_round_that_was_asked_for() -> None:
    late = Part(id="label_flip", fields={**FLIP.fields, "first_round": 3})
    rounds = seen_by(late, rounds=4).received.history
    base, expected = rounds[0].weights, swapped(rounds[0].weights)
    assert torch.equal(rounds[1].weights["linear.bias"], base["linear.bias"])
    for seen in rounds[2:]:
        assert all(torch.equal(seen.weights[name], expected[name]) for name in base)


def test_a_single_output_changes_its_sign() -> None:
    flipped, honest = (seen_by(server, Y % 2, task="two") for server in (Part(id="label_flip"), None))
    assert torch.equal(flipped.received.weights["linear.weight"], -honest.received.weights["linear.weight"])
    gradient, _ = gradient_client(honest.model)(honest.received.weights, X, 1 - Y % 2, {})
    for name in gradient:
        sign = -1 if name.startswith("linear.") else 1
        torch.testing.assert_close(flipped.update[name], sign * gradient[name], rtol=1e-10, atol=1e-14)


def test_a_class_that_the_network_does_not_have_is_refused_before_the_run() -> None:
    known = plugin_catalog.describe()
    with pytest.raises(SpecError, match=r"server label_flip\.rival: allowed is 0 to 9, the classes of the network; given was 10"):
        Experiment(server=Part(id="label_flip", fields={"rival": 10})).resolve(known)
    with pytest.raises(ValueError, match="Label flip names class 10, and this network has the classes 0 to 9"):
        seen_by(Part(id="label_flip", fields={"rival": 10}))
