"""The lessons: their rhythm, their words, and every number recomputed from its result file."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_problems import CATALOG

from leakage.learn import claims, recordings
from leakage.learn.lessons import (
    FOLDER,
    LONGEST,
    TOKEN,
    GuessBeat,
    Lesson,
    RevealBeat,
    TextBeat,
    TryBeat,
    find_lesson,
    lessons,
    parse_lesson,
)
from leakage.learn.paper_rows import museum
from leakage.learn.planned import plan
from leakage.learn.reader_data import DASH, fill_numbers
from leakage.learn.tokens import value_of
from leakage.settings import ROOT
from leakage.spec.aliases import LAB_RUN
from leakage.spec.experiment import SpecError
from leakage.spec.prepared import prepared

OUTCOME = re.compile(r"without|recogni|fail|come back|comes back|found|lost|\bdb\b")  # what comes of a run; a title says what is played
EACH = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.id)


def changed(id: str, change: dict[str, Any]) -> str:
    """A lesson's file with other fields."""
    return json.dumps(json.loads((FOLDER / f"{id}.json").read_text()) | change)


# ---------------------------------------------------------------- what is in them


def test_there_are_twelve_and_their_files_are_called_as_they_are() -> None:
    assert [lesson.id for lesson in lessons()] == [file.stem for file in sorted(FOLDER.glob("[0-9]*.json"))]
    assert [lesson.id[:2] for lesson in lessons()] == [f"{number:02}" for number in range(1, 13)]
    assert sum(lesson.minutes for lesson in lessons()) == 118


@EACH
def test_a_beat_is_short_enough_to_be_read_aloud(lesson: Lesson) -> None:
    assert [(place, len(beat.text.split())) for place, beat in enumerate(lesson.beats) if len(beat.text.split()) > LONGEST] == []


@EACH
def test_a_guess_comes_before_its_reveal_and_nothing_is_shown_in_between(lesson: Lesson) -> None:
    kinds = [type(beat) for beat in lesson.beats if not isinstance(beat, TextBeat)]
    assert kinds.count(GuessBeat) >= 1
    assert all(kinds[place + 1] is RevealBeat for place, kind in enumerate(kinds) if kind is GuessBeat)
    assert all(kinds[place - 1] is GuessBeat for place, kind in enumerate(kinds) if kind is RevealBeat)
    assert lesson.beats[0].kind == "text"
    assert lesson.beats[-1].kind == "takeaway"
    assert [beat.kind for beat in lesson.beats].count("takeaway") == 1


@EACH
def test_no_title_of_a_run_says_the_answer_of_the_guess_it_is_seen_beside(lesson: Lesson) -> None:
    for place, beat in enumerate(lesson.beats):
        if not isinstance(beat, GuessBeat):
            continue
        right = next(option.text for option in beat.options if option.right)
        told = " ".join(earlier.text for earlier in lesson.beats[: place + 1])  # a word that was said before gives nothing away
        said = set(re.findall(r"\w{5,}", right.lower())) - set(re.findall(r"\w+", told.lower()))
        seen = [recordings.load(name).title.lower() for earlier in lesson.beats[:place] for name in earlier.plays]
        assert [title for title in seen if said & set(re.findall(r"\w+", title))] == []
        assert [title for title in seen if OUTCOME.search(title)] == []


def test_the_text_beside_the_eight_pictures_does_not_say_what_becomes_of_them() -> None:
    watch, reveal = (find_lesson("03-labels").beats[place].text for place in (1, 3))
    assert "{r03.psnr}" not in watch
    assert "{r03.psnr}" in reveal
    assert not re.search("noise|fail", watch)


@EACH
def test_a_question_has_one_right_answer_and_a_reason_for_each(lesson: Lesson) -> None:
    for beat in lesson.beats:
        if isinstance(beat, GuessBeat):
            assert [option.right for option in beat.options].count(True) == 1
            assert all(option.text and option.why.endswith((".", "?")) for option in beat.options)
            assert beat.text.endswith(("?", "..."))


def test_right_answers_are_spread_over_the_places() -> None:
    guesses = [beat for lesson in lessons() for beat in lesson.beats if isinstance(beat, GuessBeat)]
    places = [[option.right for option in beat.options].index(True) for beat in guesses]
    assert [places.count(place) for place in range(4)] == [4, 5, 3, 0]


@EACH
def test_runs_and_grids_are_planned(lesson: Lesson) -> None:
    named = {token.partition(".")[0] for _, text in lesson.texts() for token in TOKEN.findall(text) if "." in token}
    expected = {name for one in lesson.expects for name in (one.run, one.over) if name}
    assert {*lesson.runs, *named, *expected} <= set(plan().runs)
    assert set(lesson.grids) <= set(plan().grids)


def test_nothing_is_recorded_that_neither_a_lesson_nor_a_page_shows() -> None:
    pages = {LAB_RUN, *prepared().recordings, *(row.run for paper in museum().papers for row in paper.rows if row.run)}
    named = pages | {token.partition(".")[0] for lesson in lessons() for _, text in lesson.texts() for token in TOKEN.findall(text)}
    assert set(plan().refused) <= pages
    assert set(plan().runs) - {name for lesson in lessons() for name in lesson.runs} - named == set()
    assert set(plan().grids) == {name for lesson in lessons() for name in lesson.grids}


@EACH
def test_what_a_try_calls_its_knobs_and_its_axes_is_there(lesson: Lesson) -> None:
    for beat in lesson.beats:
        if isinstance(beat, TryBeat):
            grid = plan().grids[beat.grid]
            assert set(beat.words) <= {knob.name for knob in grid.knobs}
            assert beat.plot == (grid.plot is not None)


def test_only_pictures_of_the_gallery_are_shown_and_no_faces_of_people_who_were_not_asked() -> None:
    asked = [run.experiment for run in (*plan().runs.values(), *plan().refused.values())]
    asked += [grid.experiment(cell) for grid in plan().grids.values() for cell in grid.cells()]
    shown = {(picture.source, picture.id) for experiment in asked for picture in experiment.pictures}
    assert {source for source, _ in shown} == {"gallery"}
    assert [id for _, id in shown if id.startswith("face")] == []


def test_every_run_and_every_cell_can_be_asked_for_today() -> None:
    assert [name for name, run in plan().runs.items() if not run.experiment.resolve(CATALOG).digest()] == []
    digests = {name: [grid.experiment(cell).resolve(CATALOG).digest() for cell in grid.cells()] for name, grid in plan().grids.items()}
    assert [name for name, found in digests.items() if len(set(found)) != len(found)] == [], "two cells ask the same"
    assert all(len(found) <= 80 for found in digests.values())


# ---------------------------------------------------------------- claims


@EACH
def test_every_claim_is_recomputed_to_its_last_printed_digit(lesson: Lesson) -> None:
    """When one is off: `python -m leakage learn --claims --write`, then read its sentences again."""
    checked = claims.check(lesson)
    assert len(checked) == len(lesson.claims)
    assert [one.words for one in checked if not one.holds] == []


@EACH
def test_every_claim_stands_in_a_sentence_and_every_token_is_known(lesson: Lesson) -> None:
    found = {token for _, text in lesson.texts() for token in TOKEN.findall(text)}
    assert set(lesson.claims) - found == set(), "a claim that nobody reads"
    recorded = [token for token in found if "." in token]
    assert {token for token in found if "." not in token} <= set(lesson.claims)
    assert all(re.fullmatch(r"r\d\d\.(psnr|mse|ssim|rank|entries|weights|grey|word)", token) for token in recorded)


@EACH
def test_a_printed_text_has_no_braces_and_no_unit_twice(lesson: Lesson) -> None:
    missing = {name for name in plan().runs if not (FOLDER / "runs" / f"{name}.json").exists()}
    for where, text in lesson.texts():
        if not any(token.partition(".")[0] in missing for token in TOKEN.findall(text)):
            words = fill_numbers(text, lesson)
            assert words.count(DASH) == text.count(DASH), where  # none stands for a number that is missing
            assert not re.search(r"[{}]|dB dB|% %|% per cent", words), where


@EACH
def test_a_figure_has_a_file_with_points(lesson: Lesson) -> None:
    for figure in lesson.figures:
        points, level = claims.load_figure(figure)
        assert len(points) >= 3
        assert all(len(values) == len(figure.y) == len(figure.y_titles) for _, values in points)
        assert (level is None) == (not figure.line)


@EACH
def test_a_figure_is_drawn_from_what_its_file_says_today(lesson: Lesson) -> None:
    """When it is not: `make learn ARGS=--write`."""
    assert [claims.load_figure(figure) for figure in lesson.figures] == [claims.draw(figure) for figure in lesson.figures]


def test_a_planted_fault_is_found_and_names_lesson_claim_file_and_value(tmp_path: Path) -> None:
    lesson = find_lesson("11-overturned")
    file = tmp_path / "benchmarks" / "results" / "admm_overturned.json"
    file.parent.mkdir(parents=True)
    content = json.loads((ROOT / "benchmarks" / "results" / file.name).read_text())
    recovered = next(run for run in content["runs"] if run["attack"] == "... both repaired" and run["result"]["mse"] <= 0.01)
    recovered["result"]["mse"] = 0.2
    file.write_text(json.dumps(content))
    off = [one for one in claims.check(lesson, root=tmp_path) if not one.holds]
    assert [one.words for one in off] == [
        "lesson 11-overturned, claim both: stated is 13, benchmarks/results/admm_overturned.json gives 12"
    ]


def test_a_claim_without_its_rows_or_its_file_is_refused_by_name(tmp_path: Path) -> None:
    lesson = find_lesson("11-overturned")
    with pytest.raises(SpecError, match=r"^lesson 11-overturned, claim plain, benchmarks/results/admm_overturned.json: .* is no file in"):
        claims.check(lesson, root=tmp_path)
    plain = lesson.claims["plain"]
    astray = lesson.model_copy(update={"claims": {"plain": plain.model_copy(update={"where": {"attack": "another"}})}})
    with pytest.raises(SpecError, match=r"^lesson 11-overturned, claim plain, .*: no row where \{'attack': 'another'\}"):
        claims.check(astray)
    outside = lesson.model_copy(update={"claims": {"plain": plain.model_copy(update={"file": "assets/../pyproject.toml"})}})
    with pytest.raises(SpecError, match="is no file in benchmarks/results/ or assets/"):
        claims.check(outside)


def test_what_was_found_is_written_with_as_many_digits(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "11-overturned.json", tmp_path)
    before = json.loads((tmp_path / "11-overturned.json").read_text())
    off = claims.Checked("11-overturned", "both", "a file", 13, 12.0)
    assert list(claims.correct_claims([off], tmp_path)) == [tmp_path / "11-overturned.json"]
    before["claims"]["both"]["is"] = 12
    assert json.loads((tmp_path / "11-overturned.json").read_text()) == before


@pytest.mark.parametrize(
    ("stated", "found", "holds", "renewed"),
    [
        (54.7, 54.6512, True, 54.7),
        (54.7, 54.64, False, 54.6),
        (10, 10.0, True, 10),
        (10, 9.4, False, 9),
        (0.0, 1e-30, True, 0.0),
        (7.4e-05, 7.449e-05, True, 7.4e-05),
        (7.4e-05, 8.2e-05, False, 8.2e-05),
        (1.5e-30, 1.46e-30, True, 1.5e-30),
        (0.16, 0.0016, False, 0.0016),
        (100, 99.6, True, 100),
    ],
)
def test_the_last_printed_digit_counts(stated: float, found: float, holds: bool, renewed: float) -> None:
    assert claims.prints_equal(stated, found) == holds
    assert claims.corrected(stated, found) == renewed
    assert claims.prints_equal(claims.corrected(stated, found), found)


def test_lesson_9_says_of_cnn6_d_what_the_page_architecture_says() -> None:
    """The whole gradient has full rank, and Verify's search recognizes the picture: too few equations of one layer end R-GAP alone."""
    runs = json.loads((ROOT / "benchmarks" / "results" / "jacobian_rank.json").read_text())["runs"]
    (found,) = [run for run in runs if run["name"] == "CNN6-d"]
    assert found["gradient"]["rank"] == found["gradient"]["unknowns"]
    assert found["verify"]["inverting_gradients"]["word"] == "recognizable"
    assert found["layers"]["conv2"] == find_lesson("09-solve").claims["rank"].stated


def test_errors_that_a_lesson_holds_against_each_other_are_of_one_kind() -> None:
    """Lesson 9 set clamped errors beside the paper's, which are not: all of its errors are those of the answers as found."""
    claimed = [claim for claim in find_lesson("09-solve").claims.values() if claim.file == "benchmarks/results/r_gap_tables.json"]
    assert {claim.take for claim in claimed} == {"result.scores.mse_norm"}
    assert len(claimed) == 4


# ---------------------------------------------------------------- a file that is wrong


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"minutes": 30}, r"lesson 01-gradient: minutes: input should be less than or equal to 15; given was 30\."),
        ({"about": "x"}, r"lesson 01-gradient: about: "),
        ({"beats": [{"kind": "song", "text": "La."}] * 3}, r"lesson 01-gradient: beats\.0: .*'song'"),
        ({"beats": [{"kind": "play", "text": "Look.", "runs": []}] * 3}, r"lesson 01-gradient: beats\.0\.play\.runs: "),
        ({"beats": [{"kind": "play", "text": "Look.", "runs": ["r01"], "stop": "soon"}] * 3}, r"beats\.0\.play\.stop: .*'soon'"),
        ({"worksheet": [["Why?", "Because."]]}, r"lesson 01-gradient: worksheet: "),
    ],
)
def test_a_wrong_lesson_is_refused_in_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        parse_lesson(changed("01-gradient", change), "01-gradient")


def test_a_token_that_nothing_stands_for_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"^lesson 01-gradient: \{nothing\} is neither a claim"):
        value_of("nothing", find_lesson("01-gradient"))
    with pytest.raises(SpecError, match=r"^lesson 01-gradient: \{r01\.colour\} is neither a claim"):
        value_of("r01.colour", find_lesson("01-gradient"))
    with pytest.raises(SpecError, match=r"^There is no lesson '99-none'"):
        find_lesson("99-none")
