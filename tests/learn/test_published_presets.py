"""Presets and stories that show a claim of a paper: their rows, their recordings, and every number recomputed from the stored pictures."""

import json
import re
from typing import Any

import numpy as np
import pytest
from small_problems import CATALOG

from leakage.learn import recordings
from leakage.learn.expectations import score_of
from leakage.learn.lessons import TOKEN
from leakage.learn.paper_rows import museum
from leakage.learn.planned import planned_run
from leakage.learn.tokens import fill_run_numbers
from leakage.networks.grammar import parse, unroll
from leakage.networks.k_curve import twin
from leakage.networks.rank import analyse
from leakage.settings import ROOT
from leakage.spec.experiment import SpecError
from leakage.spec.prepared import Preset, RecordedComparison, prepared
from leakage.ui.common.published import published_table

PAGES: list[Preset | RecordedComparison] = [*prepared().presets, *prepared().compare.stories]
TOLD = [told for told in PAGES if told.numbers]
EACH = pytest.mark.parametrize("told", TOLD, ids=lambda told: told.title)


def test_four_claims_of_papers_are_told_beside_the_lessons() -> None:
    names = [told.name if isinstance(told, Preset) else told.title for told in TOLD]
    assert names == ["width-noise", "twin", "place", "DLG, iDLG and ADMM, step by step"]


@EACH
def test_a_number_is_that_of_the_stored_pictures(told: Preset | RecordedComparison) -> None:
    """PSNR = -10 log10 of the mean squared difference of private picture and answer; a stored pixel is rounded to 1 of 255 shades."""
    for run, name in (token.split(".") for token in TOKEN.findall(told.numbers) if not token.endswith(".twin")):
        private, *_, answer = (rows[0] / 255 for rows in recordings.pictures_of(run))
        shown = {"psnr": answer, "grey": np.full_like(private, 0.5)}.get(name)
        moved = [np.roll(answer, (down, right), (0, 1)) for down in range(32) for right in range(32)] if name == "shifted" else [shown]
        found = -10 * np.log10(max(1e-10, min(np.square(one - private).mean() for one in moved)))  # at most 100 dB
        assert float(fill_run_numbers(f"{{{run}.{name}}}")) == pytest.approx(found, abs=0.3)


@EACH
def test_the_recordings_are_of_todays_settings(told: Preset | RecordedComparison) -> None:
    for name in told.recorded:
        assert recordings.load(name).experiment_digest == planned_run(name).experiment.resolve(CATALOG).digest()


@EACH
def test_a_row_stands_beside_the_recordings_as_the_museum_has_it(told: Preset | RecordedComparison) -> None:
    drawn = published_table(told)
    assert drawn.count("<tr>") == (1 + len(told.rows) if told.rows else 0)
    known = {row.id: row for paper in museum().papers for row in paper.rows}
    for id in told.rows:
        assert f'/papers#{id}">' in drawn
        assert known[id].what in drawn.replace("&#39;", "'")
        assert f"<td>{known[id].verdict}</td>" in drawn
    assert not re.search(r"[{}]", drawn)


def test_rows_of_the_museum_play_the_recordings_of_their_claims() -> None:
    runs = {row.id: row.run for paper in museum().papers for row in paper.rows}
    told = {"r-gap-9-every": "s02", "r-gap-5-net-a": "s04", "idlg-dlg-cifar100": "s05"}
    assert {id: runs[id] for id in told} == told


def test_a_token_of_no_recording_and_a_row_of_no_paper_are_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"^\{s01\.colour\} is none of psnr, "):
        fill_run_numbers("It has {s01.colour}.")
    with pytest.raises(SpecError, match=r"has no row 'nowhere'"):
        published_table(TOLD[0].model_copy(update={"rows": ("nowhere",)}))


def test_the_wide_network_shows_what_the_narrow_one_does_not_through_the_same_noise() -> None:
    narrow, wide = (recordings.load(name) for name in ("s01", "s02"))
    assert narrow.experiment.defenses == wide.experiment.defenses
    assert (wide.word, score_of(wide, "psnr") > wide.grey + 20) == ("recognizable", True)
    assert score_of(narrow, "psnr") < narrow.grey


def test_the_narrow_network_lacks_equations_in_its_second_layer_and_the_wide_one_in_none() -> None:
    """These are the networks of benchmarks/published/width_noise.py, of which the row of the museum tells."""
    networks = [str(recordings.load(name).experiment.model.fields["network"]) for name in ("s01", "s02")]
    narrow, wide = (analyse(unroll(parse(network), (3, 32, 32), 1)) for network in networks)
    assert narrow.critical is not None
    assert (narrow.critical.name, narrow.index, wide.index) == ("conv2", 1434, -5016)
    rows = json.loads((ROOT / "assets" / "width_noise.json").read_text())["rows"]
    assert [row["network"] for row in rows if row["wider"] == "every layer" and row["times"] in (1, 4)] == networks


def test_a_twin_sends_the_same_gradient_and_a_search_beside_it_ends_there() -> None:
    note: Any = recordings.load("s04").notes[-1][1]
    assert note["distance of the twin"] < 1e-4  # relative; the phone computes with 24 bits
    assert fill_run_numbers("{s04.twin}") == "1.7 × 10⁻⁵"
    assert note["end from the twin"] < note["start from the twin"] / 100
    other = twin("cross-entropy", note["mu"])
    assert other is not None
    times = max(other, note["mu"]) / min(other, note["mu"])  # a picture a x has the margin a mu
    assert f"its twin, {times:.3g} times as bright, shown dimmed" in recordings.load("s04").views[-1][1]


def test_only_circular_padding_lets_the_picture_wander() -> None:
    zeros, circular = (recordings.load(name) for name in ("s06", "s07"))
    assert score_of(zeros, "registered_psnr") - score_of(zeros, "psnr") < 0.5
    assert score_of(circular, "registered_psnr") - score_of(circular, "psnr") > 2
    assert score_of(circular, "psnr") < circular.grey < score_of(zeros, "psnr")


def test_the_strip_of_dlg_idlg_and_admm_ends_as_the_museum_says() -> None:
    """A success of the report's attacks is an MSE of at most 0.01, thus 20 dB and more."""
    dlg, idlg, reported, repaired = (recordings.load(name) for name in prepared().compare.stories[0].recorded)
    assert [score_of(run, "psnr") >= 20 for run in (dlg, idlg, reported, repaired)] == [True, True, False, True]
    assert score_of(reported, "psnr") < reported.grey


@pytest.mark.parametrize("name", ["s06", "s07"])
def test_a_long_search_keeps_as_many_points_as_planned_with_its_first_and_its_last_step(name: str) -> None:
    planned, recording = planned_run(name), recordings.load(name)
    steps = recording.columns["step"]
    assert (len(steps), len(recording.film.places)) == (planned.points, planned.frames)
    assert (steps[0], steps[-1], recording.end.answer) == (1, planned.experiment.attack.fields["steps"], planned.points - 1)
