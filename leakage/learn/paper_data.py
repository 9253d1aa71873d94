"""The museum of papers as a page shows it: numbers as printed, verdicts, and how each row is repeated. No torch."""

import json
from collections.abc import Sequence
from typing import Any

from leakage.data.images import datasets
from leakage.learn.lab_link import lab_query
from leakage.learn.paper_checks import experiment_of, problem_of
from leakage.learn.paper_rows import Museum, NumberRule, Paper, PaperRow, Table, Unit, Verdict, command_of
from leakage.learn.paper_verdicts import FACTOR, WITHIN, basis_of, comparison
from leakage.learn.planned import planned_run
from leakage.learn.tokens import with_power
from leakage.settings import ROOT
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import SpecError

LONGEST = 600  # seconds: the Lab is not offered for what takes longer
VERDICTS: dict[Verdict, str] = {  # in the order of the page, each with what it says
    "overturned": "The paper claims protection; at least half of our runs succeed against it.",
    "held so far": "The paper claims protection; none of our runs succeeds, though they do without it. That is no proof.",
    "differs": "Our number is not close, and no second row shows why; or an order or a statement of the paper does not hold here; "
    "or fewer than half of our runs break the protection.",
    "explained": "Our number is not close. A second row removes the cause; its number is close, or better.",
    "stronger": "Our attack gets closer than the paper's. The row says what may be the reason.",
    "same conclusion": "The table is about an order. The rows have the same order in the paper and here, whatever the numbers are.",
    "reproduced": "Our number is close to the paper's, or what the paper says in words is true of it.",
}
ENDINGS: dict[Unit, str] = {"PSNR": " dB", "share": " %", "accuracy": " %"}


def museum_page(found: Museum, known: Catalog | None) -> dict[str, Any]:
    """Return all that the page shows: papers with tables and rows, the verdicts with their counts, and how many rows are repeated how."""
    checked = (ROOT / "benchmarks" / "results").is_dir()  # an installed package has no result files: its numbers were checked before
    papers = [_paper(paper, known, checked=checked) for paper in found.papers]
    rows = [row for paper in papers for table in paper["tables"] for row in table["rows"]]
    verdicts = [row["verdict"] for row in rows if not row["problem"]]
    ways = [row["way"] for row in rows]
    return {
        "papers": papers,
        "rows": len(rows),
        "compared": sum(1 for paper in papers if paper["tables"]),
        "verdicts": [{"word": word, "id": slug(word), "says": says, "count": verdicts.count(word)} for word, says in VERDICTS.items()],
        "missing": sum(len(paper["missing"]) for paper in papers),
        "ways": {way: ways.count(way) for way in ("run", "lab", "command")},
        "rules": RULES,
        "words": WORDS,
    }


def rows_of(found: Museum, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return some rows as the page shows them, in the order of their ids, each with "table": what the paper calls it, and its title.

    Raises:
        SpecError: there is no row of one of these ids.
    """
    rows = {
        row.id: _row(row, paper, None, checked=False) | {"table": f"{table.item}: {table.title}"}
        for paper in found.papers
        for table in paper.tables
        for row in table.rows
    }
    if missing := [id for id in ids if id not in rows]:
        raise SpecError(f"The museum of papers has no row {missing[0]!r}.")
    return [rows[id] for id in ids]


WORDS = {
    "DLG, iDLG": "The first attacks of this kind. They guess a picture and its label; iDLG reads the label from the gradient first.",
    "FedSGD, FedAvg": "Ways to train together: a phone sends the gradient of one batch (FedSGD), or the change after local steps (FedAvg).",
    "ADMM": "Another way to train together. A phone also keeps numbers that it does not send, its hidden state.",
    "search": "The attacker guesses a picture, computes its gradient, and changes the picture until the gradient is like that received. "
    "L-BFGS and Adam are ways to change it.",
    "closed form": "Equations give the picture without a search.",
    "batch": "The pictures from which a phone computes one gradient. The more there are, the more are mixed in it.",
    "label": "What a picture shows, as the number of a class. Some attackers are given it, some read it from the gradient.",
    "cosine distance": "How much two gradients differ in direction, whatever their lengths are.",
    "total variation (TV)": "How much neighbouring pixels differ. An attacker who looks for little of it gets smooth pictures.",
    "local steps": "A phone changes its network several times, and sends the change of the weights in place of a gradient.",
    "BatchNorm statistics": "The mean and the variance of the numbers that enter a BatchNorm layer. "
    "With them an attacker finds pictures more easily.",
    "condition number": "How much an error of the received numbers may grow when equations are solved with them.",
    "RA-index": "The rank analysis index of a network: the larger it is, the less exactly its equations give the picture.",
    "naive attacker": "Does not know of the protection, and attacks as if there were none.",
    "adaptive attacker": "Knows the protection, and imitates it for each guess.",
    "median": "The run in the middle, if all runs are sorted by their result. One lucky run does not change it.",
}
RULES = (  # what counts as reproduced, by unit
    ("MSE, RMSE and condition numbers", f"within a factor of {FACTOR:g}"),
    ("PSNR", f"within {WITHIN['PSNR']:g} dB"),
    ("SSIM", f"within {WITHIN['SSIM']:g}"),
    ("counts", f"within {WITHIN['count']:g}, which is much where there are three"),
    ("shares", f"within {WITHIN['share']:g} points"),
    ("accuracy", f"what the protection costs differs by at most {WITHIN['accuracy']:g} point"),
)


def slug(word: str) -> str:
    """Return a verdict as it stands in addresses."""
    return word.replace(" ", "-")


def _paper(paper: Paper, known: Catalog | None, *, checked: bool) -> dict[str, Any]:
    tables = [
        table.model_dump(include={"item", "title", "about"})
        | {"rows": [_row(row, paper, known, checked=checked) for row in table.rows], "figure": figure_of(table)}
        for table in paper.tables
    ]
    by = paper.authors if paper.year is None else f"{paper.authors}, {paper.year}"
    return {
        **{"id": paper.id, "title": paper.title, "by": by, "claim": paper.claim, "tables": tables},
        "errata": [erratum.model_dump() for erratum in paper.errata],
        "missing": [gap.model_dump() for gap in paper.missing],
    }


def figure_of(table: Table) -> str:
    """Return the chart of a table as JSON (the type Figure in `reader/figures.js`): published numbers beside ours; empty if it has none."""
    points = [[row.short or row.what, [row.published, row.ours.stated]] for row in table.rows if row.published is not None]
    if not table.chart or not points:
        return ""
    unit = ENDINGS.get(table.rows[0].unit, "").strip()
    files = ", ".join(dict.fromkeys(row.ours.file for row in table.rows))
    titles = {"x_title": table.chart, "y_titles": ["published", "ours"], "y_unit": unit or table.rows[0].unit}
    return json.dumps({**titles, "joined": False, "points": points, "line": None, "line_title": "", "file": files})


def _row(row: PaperRow, paper: Paper, known: Catalog | None, *, checked: bool) -> dict[str, Any]:
    problem = problem_of(row, paper, known) if checked else ""
    return {
        "id": row.id,
        "what": row.what,
        "published": row.printed or ("" if row.published is None else f"{with_power(f'{row.published:,g}')}{ENDINGS.get(row.unit, '')}"),
        "ours": as_shown(row.ours.stated, row.unit),
        "grey": as_shown(row.grey.stated, row.unit) if row.grey else "",
        "comparison": comparison(row),
        "runs": row.runs.stated,
        "verdict": row.verdict,
        "slug": slug(row.verdict),
        "cause": row.rule.cause if isinstance(row.rule, NumberRule) else None,
        "why": row.why,
        "basis": basis_of(row, paper),
        "mean": as_shown(row.mean.stated, row.unit) if row.mean else "",
        "file": row.ours.file,
        "problem": problem,
        **({"way": "command", "command": command_of(row)} if problem else _way(row, known)),
    }


def _way(row: PaperRow, known: Catalog | None) -> dict[str, Any]:
    """Return how a row is repeated: a recorded run to play, a link to the Lab or the reason why there is none, or a command."""
    command = command_of(row)
    if row.run:
        return {"way": "run", "run": row.run, "title": planned_run(row.run).title, "command": command}
    experiment = experiment_of(row)
    if experiment is None:
        return {"way": "command", "command": command}
    seconds = row.seconds or 0
    sources = {picture.source for picture in experiment.pictures} & datasets().keys()
    missing = [datasets()[name].title for name in sources if not datasets()[name].is_available]
    reason = f"needs the pictures of {missing[0]}" if missing else "takes over ten minutes" if seconds > LONGEST else ""
    return {"way": "lab", "lab": lab_query(experiment, known), "reason": reason, "seconds": seconds, "command": command}


def as_shown(number: float, unit: Unit) -> str:
    """Return a number with its unit, as the page prints it.

    >>> as_shown(5.79e-27, "MSE"), as_shown(17712, "condition"), as_shown(14, "PSNR"), as_shown(3, "count"), as_shown(0.0622, "SSIM")
    ('5.79 × 10⁻²⁷', '17,700', '14.0 dB', '3', '0.062')
    """
    match unit:
        case "MSE" | "condition" | "distance":
            text = f"{number:.3g}" if number < 100 else f"{float(f'{number:.3g}'):,.0f}"
        case "RMSE" | "SSIM":
            text = f"{number:.3g}" if unit == "RMSE" else f"{number:.3f}"
        case "PSNR" if float(number).is_integer():
            text = f"{number:.1f}"
        case _:
            text = f"{number:.4g}"
    return f"{with_power(text)}{ENDINGS.get(unit, '')}"
