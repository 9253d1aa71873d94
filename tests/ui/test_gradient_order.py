"""The Lab's pictures of a data set in the order of their gradients' norms: asked of a worker, shared, and never in the way of the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from digits_data_set import write_digits
from page_visits import Open, fine, words
from streamlit.testing.v1 import AppTest

from leakage.data.checkpoints import find
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.spec.tasks import GradientNorms
from leakage.ui.lab import chooser
from leakage.ui.lab.gradient_order import LONGEST, NOT_MEASURED, SHORTEST, USUAL, WAITING
from leakage.workers.norms_job import norms

ASKED = {"source": "mnist", "pictures": "mnist:0", "size": "28", "channels": "1", "model": "mlp"}
FIRST = chooser.PER_PAGE
USUALLY = [f"mnist:{number}" for number in range(FIRST)]
CHECKPOINT = "lenet-mnist@12"
Shown = list[str]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The names of the pictures that the page offers, in order."""
    names: Shown = []

    def draw(cards: list[dict[str, str]], *_: Any, **__: Any) -> None:
        names[:] = [card["id"] for card in cards]

    monkeypatch.setattr(chooser, "picker", draw)
    return names


@pytest.fixture(autouse=True)
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of data sets, with scikit-learn's digits where MNIST is looked for."""
    folder = write_digits(tmp_path / "digits")
    monkeypatch.setenv("LEAKAGE_DATA", str(folder))
    return folder


def choose(at: AppTest, order: str) -> AppTest:
    """Choose an order of the pictures."""
    at = at.selectbox(key="order").set_value(order).run()
    fine(at)
    return at


def with_the_chosen(ids: list[str]) -> list[str]:
    """Return the names of the first of these pictures; the chosen one, number 0, stands before them where it is not among them."""
    names = [f"mnist:{id}" for id in ids[:FIRST]]
    return names if "mnist:0" in names else ["mnist:0", *names]


@pytest.mark.parametrize("simple", [False, True], ids=["expert", "simple"])
def test_the_pictures_stand_by_their_gradients_as_soon_as_a_worker_has_measured(
    door: Service, visit: Open, work: Callable[[], None], shown: Shown, *, simple: bool
) -> None:
    at = visit(itself=simple, source="mnist", pictures="mnist:0")
    assert shown == USUALLY
    assert door.store.queue() == []  # the usual order needs no worker
    at = choose(at, LONGEST)
    assert WAITING in words(at)
    assert shown == USUALLY
    (run,) = door.store.queue()
    task = run.experiment_as(GradientNorms)
    assert (run.kind, task.source, task.count, task.model.id, task.checkpoint) == ("norms", "mnist", 200, "lenet", "")
    work()
    fine(at.run())
    assert WAITING not in words(at)
    found = norms(task)
    assert len(found) == 200
    assert shown == with_the_chosen(sorted(found, key=found.__getitem__, reverse=True))
    longest, shortest = max(found.values()), min(found.values())
    assert f"The first 200 test pictures, by the length of the gradient of each: {longest:.3g} to {shortest:.3g}." in words(at)
    choose(at, SHORTEST)
    assert shown == with_the_chosen(sorted(found, key=found.__getitem__))
    choose(at, USUAL)
    assert shown == USUALLY
    assert door.store.queue() == []  # both orders come from one measurement
    assert door.mine(owner_of("me")) == []


def test_another_seed_is_measured_anew_and_another_visitor_shares(
    door: Service, visit: Open, work: Callable[[], None], shown: Shown
) -> None:
    at = choose(visit(**ASKED), LONGEST)
    work()
    fine(at.run())
    first = [*shown]
    choose(visit(who="somebody else", **ASKED), LONGEST)
    assert shown == first != USUALLY
    assert door.store.queue() == []
    fine(at.number_input(key="seed").set_value(8).run())
    assert WAITING in words(at)
    (run,) = door.store.queue()
    assert run.experiment_as(GradientNorms).seed == 8


def test_after_another_model_was_chosen_the_weights_of_the_former_are_not_asked_for(door: Service, visit: Open) -> None:
    at = choose(visit(source="mnist", pictures="mnist:0", size="28", channels="1", checkpoint=CHECKPOINT), LONGEST)
    (run,) = door.store.queue()
    task = run.experiment_as(GradientNorms)
    assert (task.checkpoint, task.weights) == (CHECKPOINT, find(CHECKPOINT)[1].sha256[:12])
    fine(at.selectbox(key="model").set_value("mlp").run())
    assert NOT_MEASURED not in words(at)
    assert [run.experiment_as(GradientNorms).checkpoint for run in door.store.queue()] == [CHECKPOINT, ""]


def test_where_the_model_does_not_fit_a_sentence_says_so_and_nothing_is_queued(door: Service, visit: Open, shown: Shown) -> None:
    at = choose(visit(**{**ASKED, "model": "vgg16"}), LONGEST)
    assert NOT_MEASURED in words(at)
    assert "needs pictures of at least 32 pixels, given was 28." in words(at)
    assert shown == USUALLY
    assert door.store.queue() == []


def test_a_measurement_that_failed_can_be_asked_for_again(
    door: Service, visit: Open, work: Callable[[], None], shown: Shown, digits: Path
) -> None:
    at = choose(visit(**ASKED), SHORTEST)
    file = digits / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    content = file.read_bytes()
    file.write_bytes(content[:1000])
    work()
    file.write_bytes(content)
    fine(at.run())
    assert NOT_MEASURED in words(at)
    assert "damaged or cut short" in words(at)
    assert shown == USUALLY
    fine(at.button(key="measure-again").click().run())
    assert WAITING in words(at)
    work()
    fine(at.run())
    assert shown != USUALLY
    assert "damaged" not in words(at)


def test_compare_and_other_sources_offer_no_order(door: Service, visit: Open) -> None:
    assert [box.key for box in visit(source="gallery").selectbox if box.key == "order"] == []
    assert [box.key for box in visit("pages/compare.py", source="mnist").selectbox if box.key == "order"] == []
    assert door.store.queue() == []
