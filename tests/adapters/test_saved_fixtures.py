"""Updates that real runs of Flower, NVFlare and PyTorch left can be read: their cards, their names and their numbers.

`tests/adapters/make_fixtures.py` made them. The same clients are trained here by hand.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from federated_clients import make_network, read_batch, train

from leakage.adapters.update_reader import read_update
from leakage.auditing.recorded_client import load_client
from leakage.spec.update_card import UpdateCard

FIXTURES = Path(__file__).with_name("fixtures")
FOLDERS = ["flower/round-1-client-0", "flower/round-1-client-1", "nameless", "nvflare/round-1-client-site-1"]
FOLDERS += ["nvflare/round-1-client-site-2", "plain_torch"]
EPOCHS = 2
ROUNDING = 1e-6  # of float32 weights of at most 1.5, by another version of torch or on another processor


def read(folder: str) -> tuple[UpdateCard, dict[str, dict[str, Any]]]:
    """Return the card of an update, and its arrays by their part and name."""
    parts = {path.stem: dict(np.load(path, allow_pickle=False)) for path in (FIXTURES / folder).glob("*.npz")}
    return UpdateCard.model_validate_json((FIXTURES / folder / "card.json").read_text()), parts


def trained_by_hand(client: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of the tiny network before and after a client has trained it."""
    model = make_network("tiny")
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    train(model, *read_batch("tiny", client, 1), EPOCHS)
    return before, {name: value.numpy() for name, value in model.state_dict().items()}


def assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=0, atol=ROUNDING)


def test_every_fixture_is_an_update_and_all_are_small() -> None:
    assert sorted(str(path.parent.relative_to(FIXTURES)) for path in FIXTURES.rglob("card.json")) == sorted(FOLDERS)
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*.*")) < 60_000


@pytest.mark.parametrize("client", [0, 1])
def test_the_weights_of_a_flower_client_are_those_that_it_received_and_sent(client: int) -> None:
    card, parts = read(f"flower/round-1-client-{client}")
    before, after = trained_by_hand(client)
    assert_equal(parts["before"], before)
    assert_equal(parts["after"], after)
    assert (card.framework, card.pictures.value, card.round.value, card.rate.state) == ("flower 1.42.0", 1, 1, "unknown")


@pytest.mark.parametrize("client", [0, 1])
def test_an_nvflare_client_sent_a_difference_and_the_number_of_its_steps(client: int) -> None:
    card, parts = read(f"nvflare/round-1-client-site-{client + 1}")
    before, after = trained_by_hand(client)
    assert_equal(parts["before"], before)
    assert_equal(parts["difference"], {name: value - before[name] for name, value in after.items()})
    assert (card.framework, card.steps.value, card.round.value, card.pictures.state) == ("nvflare 2.9.0", EPOCHS, 1, "unknown")


def test_a_list_has_numbers_for_names_in_the_order_of_the_state_dict_with_its_buffers() -> None:
    _, parts = read("nameless")
    before, after = trained_by_hand(0)
    assert_equal(parts["before"], {str(number): value for number, value in enumerate(before.values())})
    assert_equal(parts["after"], {str(number): value for number, value in enumerate(after.values())})


def test_the_state_dict_of_a_loop_has_the_buffers_of_batchnorm() -> None:
    card, parts = read("plain_torch")
    assert card.steps.value == parts["after"]["1.num_batches_tracked"] - parts["before"]["1.num_batches_tracked"] == 3
    said = (card.optimizer.value, card.rate.value, card.momentum.value, card.batch_norm.value, card.pictures.value)
    assert said == ("SGD", 0.1, 0.9, "batch", 2)
    model = make_network("tiny")
    assert_equal(parts["before"], {name: value.numpy() for name, value in model.state_dict().items()})
    train(model, *read_batch("tiny", 0, 2), 3, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    assert_equal(parts["after"], {name: value.numpy() for name, value in model.state_dict().items()})


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_update_is_matched_with_its_network(folder: str) -> None:
    _, parts = read(folder)
    model = make_network("tiny")
    client = load_client(read_update(FIXTURES / folder), model)
    state = dict(zip(model.state_dict(), parts["before"].values(), strict=True)) if folder == "nameless" else parts["before"]
    for name, weight in client.model.named_parameters():
        assert np.array_equal(weight.detach().numpy(), state[name])
    sent = parts.get("difference") or {
        name: parts["after"][key] - parts["before"][key] for name, key in zip(state, parts["after"], strict=True)
    }
    for name, value in client.sent.items():
        np.testing.assert_allclose(value.numpy(), sent[name], rtol=0, atol=1e-7)
    steps = {"plain_torch": 3, "flower": EPOCHS, "nameless": EPOCHS, "nvflare": EPOCHS}[folder.split("/")[0]]
    assert client.card.steps.value == steps  # read from BatchNorm's counter, or said by NVFlare
