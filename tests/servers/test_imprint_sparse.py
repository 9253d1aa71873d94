"""The sparse imprint: each row answers to one bin, so that the pictures come back after several local steps too."""

from itertools import pairwise

import pytest
import torch
from brightness_bins import LAW, added_up, alone, batch, found, narrow_edges, seen_by, sorting
from small_problems import CATALOG, RELU, few_units, observed, refuse_large_pictures, smooth

import leakage
from leakage.engine.core import Params
from leakage.spec.experiment import Part

SPARSE = sorting("imprint_sparse")
EDGES = narrow_edges(16)
STEPS = [{"epochs": 1}, {"epochs": 5}, {"epochs": 3, "mini_batch": 2}]  # of FedAvg, with its local learning rate of 1e-4


@pytest.mark.parametrize("size", [1, 4, 9, 20])
def test_exactly_the_pictures_that_are_alone_in_their_bins_come_back(size: int) -> None:
    x, y = batch(size)
    assert torch.equal(found(seen_by(SPARSE, x, y), x), alone(x, EDGES))
    assert size != 9 or 0 < int(alone(x, EDGES).sum()) < 9  # some are alone, and some share a bin


def test_a_found_picture_stands_at_its_own_place_also_where_a_picture_outside_of_the_bins_is_brighter() -> None:
    x = torch.tensor([0.95, 0.7]).view(2, 1, 1, 1) + 0.04 * smooth(2)  # 0.5 + 1.6 * 0.15 = 0.74 is the upper edge of the last bin
    asked = {"server": leakage.plugin("imprint_sparse", bins=16, **LAW), "attack": "bins"}
    pictures = leakage.attack(few_units(6), x.clamp(0, 1), torch.tensor([3, 7]), **asked).reconstruction
    assert (pictures[0] == 0.5).all()
    assert float((pictures[1] - x[1]).abs().max()) < 1e-4


@pytest.mark.parametrize("steps", STEPS)
def test_several_local_steps_give_the_same_pictures(steps: dict[str, int]) -> None:
    x, y = batch(8)
    assert torch.equal(found(seen_by(SPARSE, x, y, protocol=Part(id="fedavg", fields=steps)), x), alone(x, EDGES))


def test_a_sum_over_phones_gives_the_same_pictures_as_one_phone_with_all_of_them() -> None:
    x, y = batch(8)
    assert torch.equal(found(seen_by(SPARSE, x, y, **added_up(4)), x), found(seen_by(SPARSE, x, y), x))


def test_a_unit_rises_from_0_to_1_across_its_own_bin() -> None:
    levels = torch.tensor([(below + above) / 2 for below, above in pairwise(EDGES)], dtype=torch.float64)
    grey = levels.view(-1, 1, 1, 1).expand(-1, 1, 8, 8)
    block = seen_by(SPARSE, *batch(1)).model.get_submodule("imprint_sparse")
    units = block.on(block.sort(block.flat(grey)))  # (16 levels, 16 units)
    expected = torch.ones(16, 16).tril(-1) + torch.eye(16) / 2
    assert torch.allclose(units, expected.double(), rtol=0, atol=1e-6)


def test_pictures_outside_of_all_bins_are_lost() -> None:
    x, y = batch(4)
    wanted = (EDGES[0] - 0.02, (EDGES[3] + EDGES[4]) / 2, (EDGES[9] + EDGES[10]) / 2, EDGES[-1] + 0.02)
    x = torch.stack([(picture - picture.mean()) * 0.05 + brightness for picture, brightness in zip(x, wanted, strict=True)])
    assert found(seen_by(SPARSE, x, y), x).tolist() == [False, True, True, False]


def test_the_row_of_a_bin_stays_the_same_if_a_picture_in_another_bin_changes() -> None:
    x, y = batch(2)
    wanted = [(EDGES[number] + EDGES[number + 1]) / 2 for number in (3, 9)]
    x = torch.stack([(picture - picture.mean()) * 0.05 + brightness for picture, brightness in zip(x, wanted, strict=True)])
    other = torch.stack([x[0], x[1].flip(1)])

    def rows(server: str) -> tuple[Params, Params]:
        first, second = (seen_by(sorting(server), pictures, y).update[f"{server}.sort.weight"] for pictures in (x, other))
        return first, second

    sparse = rows("imprint_sparse")
    assert sparse[0][3].any()
    assert torch.equal(sparse[0][3], sparse[1][3])
    assert not torch.equal(sparse[0][9], sparse[1][9])
    cumulative = rows("imprint")  # row 3 of the imprint answers to both pictures
    assert not torch.equal(cumulative[0][3], cumulative[1][3])


def test_the_server_adds_what_it_claims_and_leaves_all_other_parameters_alone() -> None:
    x, _ = batch(2)
    honest, changed = observed(x.float(), model=RELU), observed(x.float(), model=RELU, server=SPARSE)
    assert CATALOG.servers.get("imprint_sparse").changes == "architecture"
    added = set(changed.received.weights) - set(honest.received.weights)
    assert added == {f"imprint_sparse.{layer}.{part}" for layer in ("sort", "mix") for part in ("weight", "bias")}
    assert all(torch.equal(changed.received.weights[name], weight) for name, weight in honest.received.weights.items())


def test_a_layer_that_is_too_large_gets_a_sentence_before_the_run_and_in_the_python_interface() -> None:
    words = r"Sparse imprint would have 25\.2 million weights with 1,024 units; allowed are 20 million, which is 813 units"
    refuse_large_pictures(Part(id="imprint_sparse", fields={"bins": 1024}), words)
