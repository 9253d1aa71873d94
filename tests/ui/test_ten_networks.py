"""Ten networks with measured ranks and attacks: no sentence of the architecture page contradicts their results."""

import json
from typing import Any

import pytest
from page_visits import Open, fine, words
from streamlit.testing.v1 import AppTest

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import Analysis, analyse
from leakage.networks.rank_verdict import lacks_equations, verdict
from leakage.runs.event_parts import GradientRank
from leakage.runs.events import GradientRankEvent, RankEvent, RanksEnd
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.settings import ROOT
from leakage.spec.tasks import Ranks
from leakage.spec.words import CUT_SHORT, VERDICTS
from leakage.ui.architecture.editor import Given
from leakage.ui.architecture.verify import first_search, questions
from leakage.ui.architecture.whole_gradient import MEANS_FULL, protective, rank_of

ROWS = json.loads((ROOT / "benchmarks" / "results" / "jacobian_rank.json").read_text())["runs"]
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
POOLS = "conv 3@32 p1 - max 2 - conv 3@64 p1 - max 2 - conv 3@128 p1 - max 2 - mean - linear 128"
FAILED = VERDICTS[-1]


def counted(row: dict[str, Any]) -> Analysis:
    """The counts with the measured ranks, as the page has them."""
    found = analyse(unroll(parse(row["network"]), tuple(row["shape"]), 10))
    return found.with_measured({name: rank for name, rank in row["layers"].items() if rank is not None})


def whole(row: dict[str, Any]) -> GradientRank:
    return GradientRank.model_validate(row["gradient"])


def shown(row: dict[str, Any]) -> bool:
    """Whether an attack of Verify shows the picture, or a part of it."""
    return any(end["word"] != FAILED for end in row["verify"].values())


def page(row: dict[str, Any], look: Open, door: Service) -> AppTest:
    """The page when the ranks of this row have been measured."""
    channels, size, _ = row["shape"]
    run = door.measure(Ranks.model_validate({"network": row["network"], "size": size, "channels": channels}), owner_of("me"))
    door.store.claim("0:1")
    for name, rank in row["layers"].items():
        door.store.add_event(run, RankEvent(name=name, rank=rank))
    door.store.add_event(run, GradientRankEvent(measured=whole(row)))
    door.store.finish(run, "done", result=RanksEnd(ranks=row["layers"], seconds=1.0, whole=True, gradient=whole(row)))
    at = look(net=row["network"], size=str(size), channels=str(channels))
    fine(at)
    return at


def test_the_table_has_the_network_of_three_poolings_and_nine_others_five_of_them_with_an_index_above_0() -> None:
    first, *others = ROWS
    assert (first["network"], len(others)) == (POOLS, 9)
    assert first["index"] > 0
    assert sum(row["index"] > 0 for row in others) == 5
    assert (first["gradient"]["rank"], first["gradient"]["unknowns"]) == (3072, 3072)
    assert shown(first)


@EVERY
def test_a_row_is_of_its_network_and_was_verified_as_the_page_does_it(row: dict[str, Any]) -> None:
    shape = tuple(row["shape"])
    assert row["index"] == counted(row).index
    assert row["gradient"]["unknowns"] == shape[0] * shape[1] * shape[2]
    assert whole(row).rank <= min(row["gradient"]["unknowns"], row["gradient"]["sent"])
    given = Given(parse(row["network"]), shape, 10, 1, "unit")  # type: ignore[arg-type]
    first = first_search(given)
    asked = questions(given, "astronaut", first.activation, first.attack.id)
    assert [one.attack.id for one in asked] == list(row["verify"])
    assert {one.model.fields["activation"] for one in asked} == {end["activation"] for end in row["verify"].values()}
    assert all(end["word"] in (*VERDICTS, CUT_SHORT) for end in row["verify"].values())


@EVERY
def test_no_sentence_of_the_page_contradicts_the_row(row: dict[str, Any], look: Open, door: Service) -> None:
    text, found, rank = words(page(row, look, door)), counted(row), whole(row)
    steps = parse(row["network"])
    said = verdict(found, steps, 1)
    assert f"**The whole gradient: {rank_of(rank)}**" in text
    assert f"rank {rank.rank:,} of {rank.unknowns:,}" in rank_of(rank)
    assert said.headline.startswith("Layer by layer, ")
    assert said.headline in text
    assert "hatever attack" not in text
    assert (MEANS_FULL in text) == (rank.rank == rank.unknowns)
    assert ("leave the gradient the same" in text) == (rank.rank < rank.unknowns)
    assert ("**Protective of" in text) == (lacks_equations(found) and rank.rank < rank.unknowns) == protective(found, rank)
    assert ("**Not protective**" in text) == (lacks_equations(found) and rank.rank == rank.unknowns)
    if rank.rank < rank.unknowns:
        assert f"There are {rank.unknowns - rank.rank:,} independent ways to change this picture a little" in text
        assert f"The other {rank.rank:,} ways change the gradient, and may be enough to recognize the picture" in text
    if lacks_equations(found):
        assert "It says nothing of attacks that match the whole gradient at once" in text
        assert "the equations suffice" not in said.headline
    for one in rank.above:
        assert f"{one.directions:,} can be told from noise" in text
        assert one.directions <= rank.rank


@EVERY
def test_what_the_page_says_of_r_gap_agrees_with_what_it_came_to(row: dict[str, Any]) -> None:
    recursion, ended = verdict(counted(row), parse(row["network"]), 1).recursion, row["verify"].get("r_gap")
    assert recursion.startswith("no") == (ended is None)
    if ended and recursion == "yes":
        assert ended["word"] == VERDICTS[0]
    if ended and ended["word"] == FAILED:
        assert recursion.startswith("only in part, it has to guess in layer")
