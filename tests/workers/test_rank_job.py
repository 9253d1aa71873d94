"""Ranks from the page's request to the result: real workers, shared and deleted like other runs."""

import pytest
from home_processes import Place, until

from leakage.runs.store import Run
from leakage.spec.tasks import Ranks

pytestmark = pytest.mark.processes

SMALL = Ranks(network="conv 4@1 - block 4 - mean", size=28, channels=1)


def measured(dispatcher: Place, ranks: Ranks) -> Run:
    return dispatcher.finished(dispatcher.service.measure(ranks, "me"))


def test_ranks_are_measured_by_a_worker_layer_by_layer(dispatcher: Place) -> None:
    run = measured(dispatcher, SMALL)
    assert (run.kind, run.status, run.message) == ("rank", "done", "")
    assert run.result is not None
    assert run.result["ranks"] == {"conv1": 16 + 625 - 1}
    assert run.estimate == SMALL.seconds
    found = dispatcher.service.gradient_rank(run.id)
    assert found is not None
    assert run.result["gradient"] == found.model_dump(mode="json")
    assert (found.unknowns, found.sent) == (784, 16 + (36 + 144 + 4) + 40)  # fewer numbers than pixels
    assert 0 < found.rank <= found.sent
    told = [(event["kind"], event["name"]) for event in dispatcher.store.events([run.id], 0) if "name" in event]
    assert told == [("turn", "conv1"), ("rank", "conv1")]
    assert dispatcher.service.ranks(run.id) == {"conv1": 16 + 625 - 1}


def test_a_layer_that_is_too_large_has_no_rank(dispatcher: Place) -> None:
    run = measured(dispatcher, Ranks(network="conv 3@2 /2 - mean 4 - conv 3@1", size=224, channels=1))
    assert run.result is not None
    assert dispatcher.service.ranks(run.id) == run.result["ranks"] == {"conv1": None, "conv3": 2 * 9 + 625 - 1}
    assert run.result["whole"]


def test_equal_ranks_are_shared_and_go_with_the_last_who_asked(dispatcher: Place) -> None:
    ranks = SMALL.model_copy(update={"seed": 2})
    run = measured(dispatcher, ranks)
    service = dispatcher.service
    assert service.measurement(ranks, "you") == service.look(run.id)
    assert service.mine("you") == []
    assert service.measure(ranks, "you") == run.id
    service.delete(run.id, "me")
    assert service.measurement(ranks, "me") == service.look(run.id) is not None
    service.delete(run.id, "you")
    assert service.look(run.id) is None
    assert service.measurement(ranks, "you") is None


def test_what_was_measured_before_the_time_limit_is_kept_and_asked_again_it_starts_anew(dispatcher: Place) -> None:
    many = Ranks(network=" - ".join(["conv 3@1 p1"] * 58), size=28, channels=1, max_seconds=6)  # some tenths of a second each
    run = measured(dispatcher, many)
    assert run.status == "cancelled"
    assert run.message == "Stopped after 6 s, the limit for one run; the ranks so far are shown."
    assert run.result is not None
    assert 0 < len(run.result["ranks"]) < 58
    again = dispatcher.service.measure(many, "me")
    assert again != run.id
    assert dispatcher.service.measurement(many, "you") is None  # what goes on, or was not finished, is its owner's
    dispatcher.service.cancel(again, "me")
    until(lambda: (found := dispatcher.service.look(again)) and found.status == "cancelled", what="it has stopped")
