"""The museum of papers: every number and verdict is recomputed, and whatever is broken is named with its paper, table and row."""

import json
import math
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from small_problems import CATALOG

from leakage.learn import paper_verdicts
from leakage.learn.claims import recompute
from leakage.learn.lessons import Claim
from leakage.learn.paper_checks import problems, write_todays_numbers
from leakage.learn.paper_data import VERDICTS, as_shown, museum_page
from leakage.learn.paper_rows import FILE, Museum, NumberRule, Paper, PaperRow, Unit, command_of, museum
from leakage.learn.paper_verdicts import basis_of, comparison, is_close, verdict_of
from leakage.settings import ROOT
from leakage.spec.experiment import SpecError, parse_as

RAW: dict[str, Any] = json.loads(FILE.read_text())


def parsed(raw: dict[str, Any]) -> Museum:
    return parse_as(json.dumps(raw), Museum, "a museum", most=math.inf)


def row_named(raw: dict[str, Any], id: str) -> dict[str, Any]:
    return next(row for paper in raw["papers"] for table in paper["tables"] for row in table["rows"] if row["id"] == id)


def claim(take: str = "a", stated: float = 0.0) -> Claim:
    return Claim.model_validate({"file": "assets/x.json", "rows": "", "where": {}, "take": take, "fold": "one", "is": stated})


def judged(rule: dict[str, Any], *, unit: Unit = "MSE", published: float | None = None, printed: str = "", **numbers: float) -> str:
    """The verdict of a row whose claims have these numbers, by the name of what they take."""
    raw = {
        "id": "one", "what": "", "unit": unit, "ours": claim("ours").model_dump(by_alias=True), "runs": claim().model_dump(by_alias=True),
        "rule": rule, "verdict": "", "published": published, "printed": printed,
    }  # fmt: skip
    row = PaperRow.model_validate(raw)
    paper = Paper.model_construct(tables=(), orders={})
    return verdict_of(row, paper, lambda asked: numbers[asked.take])


def test_every_row_holds_today_with_its_verdict() -> None:
    assert [problem.words for problem in problems(museum(), CATALOG)] == []
    assert sum(len(paper.rows) for paper in museum().papers) >= 71
    assert sum(len(paper.errata) for paper in museum().papers) == 11


@pytest.mark.parametrize(("fold", "value"), [("eq:seen", 1), ("eq:seen|hidden", 3), ("share:seen", 25.0), ("share:seen|hidden", 75.0)])
def test_equal_words_are_counted_or_a_share_of_all(fold: str, value: float, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "x.json").write_text(json.dumps({"runs": [{"word": word} for word in ("seen", "hidden", "hidden", "lost")]}))
    asked = claim().model_copy(update={"rows": "runs", "take": "word", "fold": fold})
    assert recompute(asked, root=tmp_path) == value


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("unit", "published", "close", "far"),
    [
        ("MSE", 0.01, 0.02, 0.0201),
        ("MSE", 0.01, 0.005, 0.0049),
        ("RMSE", 22.0, 44.0, 45.0),
        ("PSNR", 18.0, 21.0, 21.1),
        ("SSIM", 0.06, 0.15, 0.17),
        ("count", 15, 14, 13),
        ("share", 20.0, 34.9, 35.1),
    ],
)
def test_close_numbers_are_reproduced_and_far_ones_are_stronger_or_differ(unit: Unit, published: float, close: float, far: float) -> None:
    assert is_close(published, close, unit)
    assert not is_close(published, far, unit)
    number = {"kind": "number"}
    assert judged(number, unit=unit, published=published, ours=close) == "reproduced"
    stronger = (far < published) == (unit in ("MSE", "RMSE"))  # a small error is a strong attack; elsewhere a large number is
    assert judged(number, unit=unit, published=published, ours=far) == ("stronger" if stronger else "differs")


@pytest.mark.parametrize(("cause", "verdict"), [(8.0, "differs"), (17.0, "explained"), (30.0, "explained")])
def test_a_cause_explains_only_if_its_own_number_is_close_or_stronger(cause: float, verdict: str) -> None:
    paper = next(paper for paper in museum().papers if paper.id == "inverting-gradients")
    row = next(row for row in paper.rows if row.id == "ig-1-trained")  # published: 18.08 dB
    assert isinstance(row.rule, NumberRule)
    other = next(other for other in paper.rows if other.id == row.rule.cause)
    assert verdict_of(row, paper, lambda asked: cause if asked == other.ours else asked.stated) == verdict


@pytest.mark.parametrize(("successes", "verdict"), [(0, "held so far"), (1, "differs"), (2, "overturned"), (3, "overturned")])
def test_a_claim_of_protection_falls_when_half_of_the_runs_succeed(successes: int, verdict: str) -> None:
    claims = {name: claim(name).model_dump(by_alias=True) for name in ("successes", "runs")}
    rule = {"kind": "protection", "measure": "seen", **claims}
    assert judged(rule, printed="hidden", ours=1.0, successes=successes, runs=4) == verdict


@pytest.mark.parametrize(("unprotected", "verdict"), [(0, ""), (1, "held so far")])
def test_an_attack_that_fails_without_the_protection_too_has_tested_nothing(unprotected: int, verdict: str) -> None:
    claims = {name: claim(name).model_dump(by_alias=True) for name in ("successes", "runs", "unprotected")}
    rule = {"kind": "protection", "measure": "seen", **claims}
    assert judged(rule, printed="hidden", ours=1.0, successes=0, runs=4, unprotected=unprotected) == verdict


def test_a_drop_of_accuracy_is_compared_with_the_published_drop() -> None:
    rule = {"kind": "drop", "published_without": 98.0, "without": claim("without").model_dump(by_alias=True)}
    assert judged(rule, unit="accuracy", published=97.5, ours=93.5, without=95.0) == "reproduced"  # 1.5 points beside 0.5
    assert judged(rule, unit="accuracy", published=97.5, ours=93.4, without=95.0) == "differs"


@pytest.mark.parametrize(
    ("relation", "margin", "ours", "verdict"),
    [
        ("less than", 3, 6.9, "reproduced"),
        ("less than", 3, 7.1, "differs"),
        ("more than", 3, 13.1, "reproduced"),
        ("more than", 3, 12.9, "differs"),
        ("no less than", 0, 10.0, "reproduced"),
        ("at most", 0, 10.0, "reproduced"),
        ("at most", 0, 10.1, "differs"),
    ],
)
def test_a_statement_is_tested_against_our_number(relation: str, margin: float, ours: float, verdict: str) -> None:
    rule = {"kind": "statement", "relation": relation, "than": 10.0, "margin": margin}
    assert judged(rule, unit="PSNR", printed="much more", ours=ours) == verdict


def test_an_order_must_hold_in_the_paper_and_here() -> None:
    paper = next(paper for paper in museum().papers if paper.id == "r-gap")
    net_a = next(row for row in paper.rows if row.id == "r-gap-3-a")
    assert verdict_of(net_a, paper, lambda asked: asked.stated) == "same conclusion"
    assert verdict_of(net_a, paper, lambda asked: 1.0 if asked == net_a.ours else asked.stated) == "differs"  # A above the others


def test_decibels_are_subtracted_and_errors_divided() -> None:
    rows = {row.id: row for paper in museum().papers for row in paper.rows}
    assert comparison(rows["ig-1-lenet"]) == "+1.1 dB"  # 19.1 beside 18
    assert comparison(rows["r-gap-1-dlg-cifar10"]) == "× 2.9"  # 0.145 beside 0.05
    assert comparison(rows["ada-1-lenet"]) == "drop of 1.05, published 0.34"  # 95.11 - 94.06
    assert comparison(rows["soteria-naive"]) == ""
    assert basis_of(rows["soteria-naive"], museum().papers[0]) == "tested: less than 17.3, by 3 at least"
    assert paper_verdicts.difference(0.06, 0.02, "SSIM") == "\N{MINUS SIGN}0.04"
    assert as_shown(0.00022, "MSE") == "0.00022"


# ---------------------------------------------------------------- what is broken is named


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """All that the museum reads, where a test may break it."""
    for name in ("benchmarks/results", "benchmarks/published"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "assets").mkdir()
    for file in (ROOT / "assets").glob("*.json"):
        shutil.copy(file, tmp_path / "assets")
    return tmp_path


def named(raw: dict[str, Any], root: Path = ROOT) -> list[tuple[str, str, str]]:
    return [(problem.paper[:5], problem.row, problem.sentence) for problem in problems(parsed(raw), CATALOG, root=root)]


def test_a_result_file_that_changed_or_is_gone_is_named(copied: Path) -> None:
    file = copied / "benchmarks/results/inverting_gradients_lenet.json"
    body = json.loads(file.read_text())
    for run in body["runs"]:
        run["result"]["psnr"] += 1
    file.write_text(json.dumps(body))
    found = named(RAW, copied)
    assert [row for _, row, _ in found] == ["ig-1-lenet", "ig-1-lenet-0.001"]
    assert "19.1 is stated" in found[0][2]
    file.unlink()
    assert all("is no file" in sentence for _, _, sentence in named(RAW, copied))


def test_a_key_that_is_gone_a_verdict_and_a_command_are_named(copied: Path) -> None:
    raw = deepcopy(RAW)
    row_named(raw, "r-gap-9-every")["ours"]["take"] = "mse.[0.0003]"
    row_named(raw, "idlg-labels")["verdict"] = "overturned"
    row_named(raw, "ig-6-160")["options"] = "--width 160 --step 97"
    (copied / "benchmarks/published/admm_overturned.py").unlink()
    (copied / "benchmarks/published/bias_attack.py").write_text('save("other", {})')
    found = dict((row, sentence) for _, row, sentence in named(raw, copied))
    assert found["r-gap-9-every"] == "assets/width_noise.json: it has no mse.[0.0003]."
    assert found["idlg-labels"] == "the rule says reproduced; overturned is stated."
    assert found["admm-naive"] == "there is no benchmarks/published/admm_overturned.py."
    assert found["ig-5-exact"] == "benchmarks/published/bias_attack.py does not write benchmarks/results/bias_attack.json."
    assert found["ig-6-160"] == "benchmarks/published/hundred_pictures.py has no option --step."
    assert len(found) == 4 + 4  # the report has four rows


def test_a_recorded_run_or_settings_that_are_gone_are_named() -> None:
    raw = deepcopy(RAW)
    row_named(raw, "dlg-lenet")["run"] = "r99"
    row_named(raw, "precode-naive")["experiment"]["attack"]["fields"] = {"steps": "many"}
    found = dict((row, sentence) for _, row, sentence in named(raw))
    assert found["dlg-lenet"] == "there is no recorded run r99."
    assert found["precode-naive"].startswith("its experiment is not valid:")


@pytest.mark.parametrize(
    ("id", "change", "sentence"),
    [
        ("ig-1-lenet", {"unit": "MSE"}, "result.psnr is compared as mse, it is psnr"),
        ("ig-1-lenet", {"published": None, "printed": ""}, "a verdict needs what the paper published"),
        ("ig-1-lenet", {"published": None, "printed": "good"}, "the rule number compares with a published number"),
        ("ig-1-lenet", {"run": "r02"}, "one is enough"),
        ("ig-1-lenet", {"rule": {"kind": "order", "order": "nowhere"}}, "it is not in the order nowhere"),
        ("ig-1-lenet", {"rule": {"kind": "number", "cause": "nobody"}}, "there is no row nobody"),
        ("ig-1-lenet", {"rule": {"kind": "number", "cause": "ig-1-trained-0.1"}}, "needs the same published number and unit"),
        ("ig-1-trained-0.1", {"rule": {"kind": "number", "cause": "ig-1-trained"}}, "needs the same published number and unit"),
        ("ig-1-lenet", {"id": "dlg-lenet"}, "used twice: dlg-lenet"),
        ("ig-1-lenet", {"verdict": "fine"}, "verdict"),
    ],
)
def test_a_row_that_says_nothing_is_refused_with_its_name(id: str, change: dict[str, Any], sentence: str) -> None:
    raw = deepcopy(RAW)
    row_named(raw, id).update(change)
    with pytest.raises(SpecError, match=sentence.replace("(", "\\(")):
        parsed(raw)


def test_the_command_of_a_row_has_the_options_that_compute_it() -> None:
    rows = {row.id: row for paper in museum().papers for row in paper.rows}
    assert command_of(rows["ig-6-160"]) == "python benchmarks/published/hundred_pictures.py --width 160 --steps 97"
    assert command_of(rows["r-gap-1-dlg-cifar10"]) == "python benchmarks/published/r_gap_tables.py"


def test_todays_numbers_and_verdicts_can_be_written(tmp_path: Path) -> None:
    raw = deepcopy(RAW)
    broken = row_named(raw, "ig-1-lenet")
    broken["ours"]["is"], broken["verdict"] = 44.4, "differs"
    file = tmp_path / "papers.json"
    file.write_text(json.dumps(raw))
    write_todays_numbers(parsed(raw), file)
    assert json.loads(file.read_text()) == RAW


# ---------------------------------------------------------------- the page


def test_the_page_shows_a_broken_row_as_a_sentence_and_counts_it_nowhere() -> None:
    raw = deepcopy(RAW)
    row_named(raw, "ig-1-lenet")["ours"]["is"] = 44.4
    page, whole = museum_page(parsed(raw), None), museum_page(museum(), None)
    row = next(row for paper in page["papers"] for table in paper["tables"] for row in table["rows"] if row["id"] == "ig-1-lenet")
    assert "44.4 is stated" in row["problem"]
    counts = [{verdict["word"]: verdict["count"] for verdict in each["verdicts"]} for each in (page, whole)]
    assert counts[0] == {**counts[1], "reproduced": counts[1]["reproduced"] - 1}
    assert sum(whole["ways"].values()) == whole["rows"]
    assert list(counts[1]) == list(VERDICTS)
