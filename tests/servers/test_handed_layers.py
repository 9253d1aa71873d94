"""What the drawing of a handed-out model says of each layer is what the clients hold: compared with the models in their hands."""

from collections import OrderedDict

import pytest
import torch
from small_problems import IDS, cheated, handed_to, smooth
from torch import Tensor, nn

from leakage.engine.client import weights_of
from leakage.engine.handed_layers import CELLS, describe_layers, summary
from leakage.spec.experiment import Experiment, Part
from leakage.spec.tasks import HandedModel
from leakage.workers.handed_job import layers

THREE = Part(id="secure_aggregation", fields={"clients": 3})
CHECKED = (Part(id="new_layers"),)  # a client looks at its model where it has a check
ALIKE = {"loki": False, "inconsistent": False}  # whether all clients receive the same, for servers that tell clients apart
CHANGES = {  # of a server that hands out the agreed network: its layers that are not as agreed, in the settings of `cheated`
    "label_flip": ["linear"],
    "class_fishing": ["linear"],
    "feature_fishing": ["linear"],
    "inconsistent": ["linear1"],
    "traps": ["linear1"],
    "identity_kernels": ["conv1", "conv2"],
}


def asked(cheating: str, **fields: int) -> Experiment:
    """Return an experiment with this server, with some of its fields, and three phones."""
    given = {"server": Part(id=cheating, fields=fields), "size": 28, "channels": 1, "aggregation": THREE}
    return Experiment(**cheated(cheating) | given)


def row_counts(rows: Tensor, agreed: Tensor | None) -> tuple[int, int, int]:
    """Return how many rows are changed, are 0, and have one value throughout, one row after the other."""
    pairs = list(enumerate(rows.flatten(1) if rows.dim() > 1 else rows[:, None]))
    changed = sum(agreed is None or not torch.equal(row, agreed[number].flatten()) for number, row in pairs)
    return changed, sum(not row.any() for _, row in pairs), sum(len(row.unique()) == 1 for _, row in pairs)


@pytest.mark.parametrize("cheating", IDS["server"])
def test_each_layer_is_told_as_the_clients_hold_it(cheating: str) -> None:
    experiment = asked(cheating)
    held = handed_to(experiment.model_copy(update={"checks": CHECKED}), smooth(3, side=28))
    agreed, models = weights_of(held[0].agreed), [weights_of(one.model) for one in held]
    told = layers(HandedModel.of(experiment))
    assert [f"{layer.name}.{tensor.name}" for layer in told for tensor in layer.tensors] == list(models[0])
    for layer in told:
        names = {tensor.name: f"{layer.name}.{tensor.name}" for tensor in layer.tensors}
        if not set(names.values()) & set(agreed):
            assert layer.change == "added"
        else:
            equal = all(torch.equal(model[name], agreed[name]) for model in models for name in names.values())
            assert layer.change == ("same" if equal else "changed")
        for tensor in layer.tensors if layer.change != "same" else ():
            assert tensor.shape == tuple(models[0][names[tensor.name]].shape)
            assert sorted(client for copy in tensor.copies for client in copy.clients) == [1, 2, 3]
            for copy in tensor.copies:
                value = models[copy.clients[0] - 1][names[tensor.name]].detach()
                same = [number for number, model in enumerate(models, 1) if torch.equal(model[names[tensor.name]], value)]
                assert list(copy.clients) == same
                assert (copy.changed_rows, copy.zero_rows, copy.flat_rows) == row_counts(value, agreed.get(names[tensor.name]))
                assert copy.changed == (copy.changed_rows > 0) == any(copy.marks)
                assert copy.value == (float(value.flatten()[0]) if len(value.unique()) == 1 else None)
    assert all(not layer.differs for layer in told) == ALIKE.get(cheating, True)
    changed = [layer.name for layer in told if layer.change == "changed"]
    assert changed == CHANGES.get(cheating, []) or cheating in ("imprint", "imprint_sparse", "loki", "bisect", "first_layer")
    assert any(layer.change == "added" for layer in told) == (cheating not in CHANGES)


def test_a_flip_is_told_as_two_rows_that_have_changed_places() -> None:
    head = layers(HandedModel.of(asked("label_flip", guessed=3, rival=7)))[-1]
    assert [copy.moved for tensor in head.tensors for copy in tensor.copies] == [((3, 7), (7, 3))] * 2
    assert [copy.marks for tensor in head.tensors for copy in tensor.copies] == [tuple(row in (3, 7) for row in range(10))] * 2


def test_a_later_flip_leaves_the_first_round_as_agreed() -> None:
    later = layers(HandedModel.of(asked("label_flip", first_round=2)))
    assert {layer.change for layer in later} == {"same"}


def test_a_layer_behind_a_prefix_is_the_same_layer_and_a_missing_one_is_told() -> None:
    agreed = nn.Sequential(OrderedDict({"one": nn.Linear(2, 2), "two": nn.Linear(2, 2)}))
    handed = nn.Sequential(OrderedDict({"body": nn.Sequential(OrderedDict({"two": agreed.two}))}))
    told = describe_layers(agreed, handed, [weights_of(handed)])
    assert [(layer["name"], layer["change"]) for layer in told] == [("body.two", "same"), ("one", "removed")]


def test_a_summary_shows_the_largest_of_neighbours() -> None:
    rows = torch.zeros(4 * CELLS, 2 * CELLS)
    rows[5, 3], rows[6, 2], rows[-1, -1] = 1.0, -4.0, 16.0
    cells = torch.tensor(summary(rows))
    assert cells.shape == (CELLS, CELLS)
    assert cells.nonzero().tolist() == [[1, 1], [CELLS - 1, CELLS - 1]]
    assert (int(cells[1, 1]), int(cells[-1, -1])) == (-50, 100)
