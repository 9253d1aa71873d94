"""The drawing of the layers that a server hands out, in the Lab: asked of a worker, shared, and in nobody's list of runs."""

import re
from collections.abc import Callable

import pytest
from page_visits import Open, fine, words
from small_problems import CATALOG

from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import HandedModel
from leakage.ui.components.sent.handed_model import drawing, headline
from leakage.ui.lab.handed_model_view import WAITING
from leakage.workers.handed_job import layers

FOUR = Part(id="secure_aggregation", fields={"clients": 4})


def told(server: str, clients: int = 4, **fields: object) -> tuple[str, str]:
    """Return the headline and the text of a drawing, without its markup."""
    aggregation = Part(id="secure_aggregation", fields={"clients": clients}) if clients > 1 else None
    pictures = (Picture(id="cat"),) * clients
    experiment = Experiment(pictures=pictures, server=Part(id=server, fields=fields), aggregation=aggregation).resolve(CATALOG)
    found = layers(HandedModel.of(experiment))
    return headline(found, clients), re.sub(r"\s*<[^>]*>\s*", "|", drawing(found, clients))


@pytest.mark.parametrize(
    ("cheating", "clients", "says", "shows"),
    [
        ("imprint", 4, "The server adds 2 layers. The 4 phones receive equal models.", "All weights are 0.00033."),
        ("imprint", 1, "The server adds 2 layers.", "Fully connected layer|3,072 → 256"),
        (
            "loki",
            4,
            "The server adds 3 layers. The 4 phones receive different models.",
            "Each phone receives numbers of its own; 13 of 16 rows",
        ),
        ("loki", 8, "The server adds 3 layers. The 8 phones receive different models.", "4 more phones receive a layer of their own."),
        ("inconsistent", 4, "The server changes the numbers of 1 layer. The 4 phones receive different models.", "Phone 1: as agreed."),
        (
            "inconsistent",
            4,
            "The server changes the numbers of 1 layer. The 4 phones receive different models.",
            "all constants are -1,000.",
        ),
        ("class_fishing", 1, "The server changes the numbers of 1 layer.", "9 of 10 rows are 0."),
        ("label_flip", 1, "The server changes the numbers of 1 layer.", "Rows and constants 0 and 1 have changed places."),
    ],
)
def test_a_drawing_says_in_words_what_was_changed(cheating: str, clients: int, says: str, shows: str) -> None:
    line, text = told(cheating, clients)
    assert line == says
    assert shows in text


def test_a_model_as_agreed_is_called_so() -> None:
    line, text = told("label_flip", 1, first_round=2)
    assert line == "In the first round the server hands out the model on which the phones agreed."
    assert "changed" not in text


def test_the_lab_asks_a_worker_and_draws_what_it_found(door: Service, visit: Open, work: Callable[[], None]) -> None:
    address = {"expert": "1", "batch": "4", "phones": "4", "server": "loki", "attack": "bins"}
    at = visit(**address)
    fine(at)
    assert WAITING in words(at)
    (waiting,) = door.store.queue()
    assert waiting.kind == "handed"
    again = visit(who="somebody else", **address)
    assert WAITING in words(again)
    assert [run.id for run in door.store.queue()] == [waiting.id]  # shared
    work()
    fine(at.run())
    assert WAITING not in words(at)
    assert door.mine(owner_of("me")) == []
    assert visit(**{**address, "server": "none", "attack": "idlg"}).exception == again.exception
    assert door.store.queue() == []  # an honest server hands out what was agreed


def test_a_server_that_does_not_fit_is_not_drawn(door: Service, visit: Open) -> None:
    at = visit(expert="1", server="inconsistent")  # it needs a sum over phones
    assert at.button(key="run-button").disabled
    assert door.store.queue() == []


def test_a_look_is_no_run_of_the_lab(door: Service, visit: Open) -> None:
    visit(expert="1", server="imprint", attack="bins")
    (look,) = door.store.queue()
    at = visit(run=look.id)
    fine(at)
    assert "This run is not here" in words(at)
