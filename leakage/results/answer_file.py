"""The files of an answer: JSON that asks the same again, and a page to print."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup
from PIL import Image

from leakage.results.answer import ANOTHER, Answer, alternatives, answer, is_about, not_tried, scenario_words, who
from leakage.results.arms import Arm, data, gather
from leakage.results.comparison_report import OWN, outcome_words
from leakage.results.exports import Made, saved
from leakage.results.markup import render
from leakage.results.worst_case import reach_of
from leakage.runs.store import Store
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import SpecError
from leakage.spec.question import Question, parse_question

STYLE = Path(__file__).with_suffix(".css")
PAPER = ("organisation", "date", "decision")
HEADS = ("Attack", "Seed", "What it came to", "PSNR", "A grey picture", "Place in the line-up", "Computed on")
LONGEST = 200  # characters of a free text


def make(store: Store, ids: Sequence[str], name: str, known: Catalog, given: Mapping[str, str]) -> Made | None:
    """answer.html or answer.json of these runs; None for another name, or where no run is left. Raises SpecError.

    given   question: as JSON; organisation, date and decision: free text for the page
    """
    asked = parse_question(given.get("question", ""))
    arms = gather(store, ids, known)
    if not arms or name not in ("answer.html", "answer.json"):
        return None
    runs = [arm.run for arm in arms]
    if not is_about(asked, runs, known):
        raise SpecError("These runs answer another question than this one. Open the answer by its link, and print it from there.")
    told = answer(store, runs, known, gone=len(set(ids)) - len(arms))
    if name == "answer.json":
        found = {
            "question": asked.model_dump(mode="json"),
            "answer": {"word": told.word, "people": told.people, "total": told.total, "inapplicable": told.idle},
        }
        return Made("application/json", json.dumps({**found, **data(arms, known)}, indent=2).encode())
    return Made("text/html", page(asked, told, arms, known, store, {name: given.get(name, "")[:LONGEST] for name in PAPER}).encode())


def question(text: str) -> Question:
    """The question of such a file. Raises SpecError."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is no answer file: expected JSON, and {error}.") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("question"), dict):
        raise SpecError("This is no answer file: expected an object with a question.")
    return parse_question(raw["question"])


def page(asked: Question, told: Answer, arms: Sequence[Arm], known: Catalog, store: Store, paper: Mapping[str, str]) -> str:
    """The answer as one HTML page: summary first, scenario, who decides, limits, then the numbers. It loads nothing."""
    return render(
        "results/answer_file.html.jinja",
        style=Markup(STYLE.read_text()),
        told=told,
        best=who(told.best) if told.best and told.best.shows else "",
        scenario=scenario_words(asked, known),
        paper=[(name.capitalize(), text) for name, text in paper.items()],
        own=OWN if any(arm.own for arm in arms) else "",
        figures=_figures(arms),
        limits=not_tried(asked, told, known),
        alternatives=alternatives(asked, store, known),
        heads=HEADS,
        rows=[_numbers(arm) for arm in arms],
        another=ANOTHER,
        made=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    )


def _figures(arms: Sequence[Arm]) -> list[tuple[str, str, str]]:
    """Of every group of people the private pictures and the guess that shows most, as PNG, with its words."""
    best: dict[str, Arm] = {}
    for arm in arms:
        group = str(arm.experiment.pictures)
        if group not in best or reach_of(arm.row) > reach_of(best[group].row):
            best[group] = arm
    return [
        (_png(arm.private), _png(arm.guess), f"{who(arm.row)}: {outcome_words(arm.row)}")
        for arm in best.values()
        if arm.private and arm.guess
    ]


def _png(picture: Image.Image) -> str:
    return base64.b64encode(saved(picture, "PNG")).decode()


def _numbers(arm: Arm) -> list[str]:
    """One attack: which one, its seed, what it came to, in numbers, and those of a grey picture."""
    psnr, grey, rank = arm.row.psnr, arm.row.grey.get("psnr"), arm.row.rank
    return [
        who(arm.row),
        str(arm.experiment.seed),
        outcome_words(arm.row),
        "–" if psnr is None else f"{psnr:.1f} dB",
        "–" if grey is None else f"{grey:.1f} dB",
        "–" if rank is None else f"{rank:g}",
        "" if arm.meta is None else arm.meta.device,
    ]
