"""Measured ranks: the button on the architecture page, their result in table and verdict, and their place among the runs."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from page_visits import Open, fine, words
from streamlit.testing.v1 import AppTest

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import Analysis, analyse
from leakage.networks.rank_verdict import open_unknowns, verdict
from leakage.results.exports import make
from leakage.runs.events import RankEvent, RanksEnd
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.spec.tasks import Ranks
from leakage.ui.architecture.counts import sentences, shares, table
from leakage.ui.architecture.rank_view import AGREE, BLOCKS, TOO_LARGE, how
from leakage.ui.architecture.whole_gradient import NOT_YET, PROTECTIVE, extent, meaning, protective, rank_of
from leakage.workers import rank_job

ONE = "conv 4@1"  # 16 + 625 equations, one of which follows from the others
GREY = {"size": "28", "channels": "1"}


def press(at: AppTest, key: str = "measure-ranks") -> AppTest:
    at = at.button(key=key).click().run()
    fine(at)
    return at


def labels(at: AppTest) -> list[str]:
    return [button.label for button in at.button]


def one(**measured: int) -> Analysis:
    return analyse(unroll(parse(ONE), (1, 28, 28), 10)).with_measured(measured)


# ---------------------------------------------------------------- on the page


@pytest.mark.long
def test_a_press_measures_the_ranks_and_the_verdict_goes_by_them(look: Open, door: Service, work: Callable[[], None]) -> None:
    at = look(net=ONE, **GREY)
    assert "Layer by layer, not enough equations in layer conv1: at most 641 of 784 unknowns determined" in words(at)
    assert NOT_YET in words(at)
    at = press(at)
    assert "measure-ranks" not in [button.key for button in at.button]
    assert "Stop" in labels(at)
    work()
    at.run()
    fine(at)
    assert "Layer by layer, not enough equations in layer conv1: 640 of 784 unknowns determined" in words(at)
    assert "**144** equations are missing" in words(at)
    assert "measured on a network with random weights" in words(at)
    found = door.gradient_rank(door.mine(owner_of("me"))[0].id)
    assert found is not None
    assert f"**The whole gradient: {rank_of(found)}**" in words(at)
    assert (found.unknowns, found.sent) == (784, 16 + 10 * 625)
    assert "Stop" not in labels(at)
    assert "**144**" in words(look(net=ONE, **GREY))  # another visit: the same ranks
    assert "measure-ranks" in [button.key for button in look(net=ONE, outputs="3", **GREY).button]  # other outputs: another gradient
    assert "measure-ranks" in [button.key for button in look(net=ONE, channels="1").button]  # other pictures: others


def test_a_stopped_measurement_says_so_and_can_be_asked_for_again(look: Open, door: Service, work: Callable[[], None]) -> None:
    at = press(press(look(net=ONE, **GREY)), "stop-ranks")
    assert "Cancelled before it began." in words(at)
    press(at)
    work()
    assert "**144**" in words(at.run())


def test_a_measurement_that_the_time_limit_ended_says_so_and_shows_its_ranks(look: Open, door: Service) -> None:
    run = door.measure(Ranks(network=ONE, size=28, channels=1), owner_of("me"))
    door.store.claim("0:1")
    door.store.add_event(run, RankEvent(name="conv1", rank=640))
    door.store.finish(run, "cancelled", message="Stopped after 900 s, the limit for one run; the ranks so far are shown.")
    at = look(net=ONE, **GREY)
    assert "Stopped after 900 s" in words(at)
    assert "**144**" in words(at)
    assert "measure-ranks" in [button.key for button in at.button]


def test_a_run_that_ends_while_the_page_is_drawn_leaves_no_page_without_its_ranks(
    look: Open, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = press(look(net=ONE, **GREY))
    late = iter([work])

    def slow(*given: object) -> str:
        for end in late:
            end()
        return table(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("leakage.ui.architecture.counts.table", slow)
    at.run()
    fine(at)
    assert "**144**" in words(at)
    assert "640, measured" in "".join(str(element.proto) for element in at.get("html"))


def test_ranks_that_somebody_measured_are_shown_to_everybody(look: Open, door: Service, work: Callable[[], None]) -> None:
    run = door.measure(Ranks(network=ONE, size=28, channels=1), "somebody")
    at = look(net=ONE, **GREY)
    assert "Stop" not in labels(at)
    assert "measure-ranks" in [button.key for button in at.button]
    work()
    at.run()
    assert "**144**" in words(at)
    assert "measure-ranks" not in [button.key for button in at.button]
    assert door.mine(owner_of("me")) == []
    door.delete(run, "somebody")
    assert "**144**" not in words(at.run())


def test_ranks_of_an_older_version_are_not_shown(look: Open, door: Service, work: Callable[[], None]) -> None:
    run = door.look(door.measure(Ranks(network=ONE, size=28, channels=1), owner_of("me")))
    assert run is not None
    door.delete(run.id, owner_of("me"))
    door.store.add(replace(run, version="older"), {})
    work()
    at = look(net=ONE, **GREY)
    assert "**144**" not in words(at)
    assert "measure-ranks" in [button.key for button in at.button]


def test_without_a_catalog_the_page_asks_for_patience(look: Open) -> None:
    assert "Try again in a few seconds" in words(press(look(net=ONE, **GREY)))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"net": ONE, "batch": "2"}, "choose 1 picture in one gradient"),
        ({"net": "linear 100", "size": "224"}, TOO_LARGE),
    ],
)
def test_no_button_where_nothing_can_be_measured(look: Open, address: dict[str, str], sentence: str) -> None:
    at = look(**address)
    assert "measure-ranks" not in [button.key for button in at.button]
    assert sentence in words(at)


def test_a_layer_that_is_too_large_leaves_the_whole_gradient_to_be_measured(look: Open) -> None:
    at = look(net="conv 3@16 p1 - max 8", size="224", channels="1")
    assert "measure-ranks" in [button.key for button in at.button]
    assert "These layers are too large for their ranks to be measured here: layer conv1." in words(at)
    assert TOO_LARGE not in words(at)


# ---------------------------------------------------------------- the table and the bars


def test_the_table_says_what_was_measured() -> None:
    steps = parse(ONE)
    assert "<td>–</td><td>143, by counting</td>" in table(one(), steps)
    assert "<td>640, measured</td><td>144, measured</td>" in table(one(conv1=640), steps)
    row = one(conv1=640).rows[0]
    assert (row.rank, row.known, row.deficiency, open_unknowns(row)) == (None, 640, 144, 144)
    assert sum(shares(row)) == pytest.approx(100)
    assert "By themselves the equations of this layer determine 640 unknowns: 144 unknowns stay open." in sentences(row, "conv1")
    assert verdict(one(conv1=640), steps, 1).headline.endswith("conv1: 640 of 784 unknowns determined")


def test_the_words_under_the_table_say_whether_the_formula_agrees_and_what_was_only_counted() -> None:
    net_b = analyse(unroll(parse("conv 4@3 - block 3 - mean"), (3, 32, 32), 10))
    assert [AGREE in how(net_b.with_measured({"conv1": rank})) for rank in (2658, 2657)] == [True, False]
    assert AGREE not in how(one(conv1=640))
    assert [BLOCKS in how(found) for found in (net_b, one(conv1=640))] == [True, False]


def test_a_formula_that_agrees_stays_and_one_that_does_not_is_marked() -> None:
    found = analyse(unroll(parse("conv 4@3"), (3, 32, 32), 10))
    assert "<td>2,658, measured</td><td>414, exact</td>" in table(found.with_measured({"conv1": 2658}), parse("conv 4@3"))
    differs = '<td>2,658 <span class="gle-differs">measured 2,657</span></td><td>414, exact</td>'
    assert differs in table(found.with_measured({"conv1": 2657}), parse("conv 4@3"))


# ---------------------------------------------------------------- among the runs


@pytest.mark.long
def test_a_measurement_is_among_the_runs_and_not_taken_for_an_attack(door: Service, visit: Open, work: Callable[[], None]) -> None:
    run = door.measure(Ranks(network="conv 4@4", size=28, channels=1), owner_of("me"))
    work()
    address = "/architecture?net=conv%204%404&size=28&channels=1"
    listed = visit("pages/runs.py")
    fine(listed)
    assert f"[**Ranks of R-GAP's net A**]({address})" in words(listed)
    assert "1 of 1 layers and the whole gradient measured" in words(listed)
    lab = visit(run=run)
    fine(lab)
    assert f"(its rank). It was not an attack. [See the ranks on their own page]({address})" in words(lab)
    training = visit("pages/training.py", run=run)
    fine(training)
    assert make(door.store, run, "final.png") is None
    assert make(door.store, run, "curves.csv") is None
    assert make(door.store, run, "experiment.json") is not None
    press(visit("pages/runs.py"), f"delete-{run}")
    assert door.look(run) is None


def test_a_stop_in_the_middle_of_a_layer_keeps_the_ranks_before_it(door: Service) -> None:
    run = door.look(door.measure(Ranks(network="conv 4@1 - conv 4@1", size=28, channels=1), owner_of("me")))
    assert run is not None
    told = iter([False] * 5)  # before both layers, and before the three decompositions of the first
    result = rank_job.perform(door.store, run, lambda: next(told, True))
    assert (result.ranks, result.whole) == ({"conv1": 640}, False)
    assert [turn.name for turn in door.turns(run.id)] == ["conv1", "conv2"]
    assert door.ranks(run.id) == {"conv1": 640}


def test_of_a_linear_network_the_whole_gradient_has_full_rank(door: Service) -> None:
    """dL/dW = e x^T holds x: every pixel value moves it."""
    run = door.look(door.measure(Ranks(network="linear 2", size=28, channels=1), owner_of("me")))
    assert run is not None
    result = rank_job.perform(door.store, run, lambda: False)
    assert (result.ranks, result.whole) == ({}, True)
    assert result.gradient is not None
    assert (result.gradient.rank, result.gradient.unknowns, result.gradient.sent, result.gradient.exact) == (784, 784, 784 * 2 + 20, True)
    assert door.gradient_rank(run.id) == result.gradient
    last = door.moved(run.id)
    assert last is not None
    assert 0 < last.done <= last.directions == 784


def test_of_means_as_many_directions_are_left_as_there_are_means(door: Service) -> None:
    """Of 28 x 28 grey pixels the means of 4 x 4 are 49 numbers: no more can move the gradient behind them."""
    run = door.look(door.measure(Ranks(network="mean 4", size=28, channels=1, outputs=1), owner_of("me")))
    assert run is not None
    found = rank_job.perform(door.store, run, lambda: False).gradient
    assert found is not None
    assert (found.rank, found.unknowns, found.short) == (49, 784, True)
    assert meaning(found).startswith("There are 735 independent ways to change this picture a little")
    counted = analyse(unroll(parse("mean 4"), (1, 28, 28), 1))
    assert protective(counted, found)
    assert extent(counted, found) == PROTECTIVE.format("735", "784")


def test_a_stop_within_the_whole_gradient_keeps_the_ranks_of_the_layers(door: Service) -> None:
    run = door.look(door.measure(Ranks(network=ONE, size=28, channels=1), owner_of("me")))
    assert run is not None
    result = rank_job.perform(door.store, run, lambda: door.moved(run.id) is not None)
    assert (result.ranks, result.gradient, result.whole) == ({"conv1": 640}, None, False)
    assert door.gradient_rank(run.id) is None


def test_the_end_of_an_earlier_version_is_read_without_a_rank_of_the_whole_gradient() -> None:
    assert RanksEnd.model_validate({"ranks": {"conv1": 640}, "seconds": 2.5, "whole": True}).gradient is None
    assert Ranks.model_validate({"network": ONE, "size": 28, "channels": 1}).outputs == 10
