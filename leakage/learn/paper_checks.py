"""Checks the museum of papers: every number is recomputed from its result file, every verdict from its rule, every way to repeat exists."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from leakage.learn import recordings
from leakage.learn.claims import corrected, prints_equal, recompute
from leakage.learn.lessons import Claim
from leakage.learn.paper_rows import FILE, Museum, Paper, PaperRow, script_of
from leakage.learn.paper_verdicts import verdict_of
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError, parse

RULE_CLAIMS = ("than", "successes", "runs", "unprotected", "without")  # fields of rules that may be claims


class Problem(NamedTuple):
    """What is wrong with a row: the page shows the sentence in place of the number."""

    paper: str
    item: str
    row: str
    sentence: str

    @property
    def words(self) -> str:
        """A sentence that names paper, item and row."""
        return f"{self.paper}, {self.item}, {self.row}: {self.sentence}"


def problems(found: Museum, known: Catalog | None, *, root: Path = ROOT) -> Iterator[Problem]:
    """Yield what is wrong with the rows of the museum; nothing if all numbers, verdicts and ways to repeat are right.

    Args:
        found: The museum.
        known: The installed plug-ins, which the settings of the rows need; None if these shall not be checked.
        root: The folder with result files and commands.
    """
    for paper in found.papers:
        for table in paper.tables:
            for row in table.rows:
                if sentence := problem_of(row, paper, known, root=root):
                    yield Problem(paper.title, table.item, row.id, sentence)


def problem_of(row: PaperRow, paper: Paper, known: Catalog | None, *, root: Path = ROOT) -> str:
    """Return what is wrong with a row as a sentence; empty if nothing is."""
    try:
        for claim in claims_of(row):
            today = recompute(claim, root=root)
            if not prints_equal(claim.stated, today):
                return f"{claim.file} gives {today!r} for {claim.take}; {claim.stated} is stated."
        verdict = verdict_of(row, paper, lambda claim: recompute(claim, root=root))
    except (SpecError, LookupError, TypeError, ValueError, OSError) as error:
        return f"{row.ours.file}: {error}"
    if verdict != row.verdict:
        return f"the rule says {verdict or 'nothing'}; {row.verdict or 'nothing'} is stated."
    return _unrepeatable(row, known, root)


def _unrepeatable(row: PaperRow, known: Catalog | None, root: Path) -> str:
    """Return why a row cannot be run again, as a sentence; empty if it can."""
    script, result = root / script_of(row), Path(row.ours.file).stem
    if not script.is_file():
        return f"there is no {script_of(row)}."
    text = script.read_text(encoding="utf-8")
    if not re.search(rf"[\"/]{result}(\.json)?\"", text):
        return f"{script_of(row)} does not write {row.ours.file}."
    for option in row.options.split():
        if option.startswith("-") and f'"{option}"' not in text:
            return f"{script_of(row)} has no option {option}."
    if row.run and not (recordings.FOLDER / f"{row.run}.json").is_file():
        return f"there is no recorded run {row.run}."
    try:
        experiment = experiment_of(row)
        if experiment and known:
            experiment.resolve(known)
    except SpecError as error:
        return f"its experiment is not valid: {error}"
    return ""


def experiment_of(row: PaperRow) -> Experiment | None:
    """Return the settings with which the Lab computes one picture of a row; None if it has none. Raises SpecError."""
    return parse(dict(row.experiment)) if row.experiment else None


def write_todays_numbers(found: Museum, file: Path = FILE) -> None:
    """Write today's numbers and verdicts into papers.json, and leave all else as it is."""
    raw = json.loads(file.read_text(encoding="utf-8"))
    for paper, paper_raw in zip(found.papers, raw["papers"], strict=True):
        rows = [row for table in paper_raw["tables"] for row in table.get("rows", ())]
        for row, row_raw in zip(paper.rows, rows, strict=True):
            for claim, claim_raw in zip(claims_of(row), _claims_in(row_raw), strict=True):
                claim_raw["is"] = corrected(claim.stated, recompute(claim))
            row_raw["verdict"] = verdict_of(row, paper, recompute)
    file.write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def claims_of(row: PaperRow) -> list[Claim]:
    """Return all claims of a row: our number, the mean, what a grey picture scores, the number of runs, and those that its rule uses."""
    found = [row.ours, row.mean, row.grey, row.runs, *(getattr(row.rule, name, None) for name in RULE_CLAIMS)]
    return [claim for claim in found if isinstance(claim, Claim)]


def _claims_in(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON of the same claims, in the same order."""
    found = [raw["ours"], raw.get("mean"), raw.get("grey"), raw["runs"], *(raw["rule"].get(name) for name in RULE_CLAIMS)]
    return [claim for claim in found if isinstance(claim, dict)]
