"""The files of an answer: JSON that asks the same question again, and a page to print."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from leakage.data.images import saved
from leakage.frontend.markup import render
from leakage.results import comparison_file
from leakage.results.accuracy_cost import epsilon_words
from leakage.results.advice import DEMANDS, RESIDUAL, TITLES
from leakage.results.alternatives import about_rows, alternatives
from leakage.results.answer import Answer, answer
from leakage.results.answer_words import attack_and_attacker, lines, not_tried, scenario_words
from leakage.results.asking import is_about, is_control, matches
from leakage.results.best_of_each import best_of_each
from leakage.results.comparison_report import OWN, outcome_words
from leakage.results.exports import Download
from leakage.results.promise import Promise, promise_before
from leakage.results.variant_results import VariantResult, data, gather
from leakage.results.worst_case import reach_of
from leakage.runs.store import Store
from leakage.settings import settings
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.question import Question, in_words_of, parse_question

STYLE = Path(__file__).with_suffix(".css")
PAPER = ("organisation", "date", "decision")
HEADS = (
    *("Attack", "Attacker", "Protection", "Seed", "What it came to"),
    *("PSNR", "A grey picture", "Place in the line-up (1: picked out)", "Labels"),
)
LONGEST = 200  # characters of a free text


def make(store: Store, ids: Sequence[str], name: str, known: Catalog, given: Mapping[str, str]) -> Download | None:
    """Return answer.html or answer.json of these runs; None for another name, or if none of the runs exists any more.

    Args:
        store: the runs.
        ids: the ids of the runs of the answer.
        name: the name of the file.
        known: the plug-ins.
        given: `question`, as JSON; `organisation`, `date` and `decision`, free text for the page.

    Raises:
        SpecError: the question is not valid, or the runs answer another question.
    """
    asked = parse_question(given.get("question", ""))
    variants = gather(store, ids, known)
    if not variants or name not in ("answer.html", "answer.json"):
        return None
    runs = [variant.run for variant in variants]
    if not is_about(asked, runs, known):
        raise SpecError("These runs answer another question than this one. Open the answer by its link, and print it from there.")
    result = answer(store, runs, known, gone=len(set(ids)) - len(variants))
    if name == "answer.json":
        content = {"question": asked.model_dump(mode="json"), "answer": _figures_of(result, asked, known)}
        return Download("application/json", json.dumps({**content, **data(variants, known)}, indent=2).encode())
    paper = {name: given.get(name, "")[:LONGEST] for name in PAPER}
    return Download("text/html", page(asked, result, variants, known, store, paper).encode())


def _figures_of(result: Answer, asked: Question, known: Catalog) -> dict[str, Any]:
    """Return the numbers of an answer as JSON."""
    control, labels, promise = result.control, result.labels, promise_before(asked, known) or result.promise
    return {
        "word": result.word,
        "people": result.people,
        "total": result.total,
        "inapplicable": result.idle,
        "control": {"recognized": control.seen, "total": control.total} if control else None,
        "labels": {"named": labels.named, "total": labels.total, "blind": labels.blind} if labels else None,
        "epsilon": _epsilon(promise, asked.uploads) if promise else None,
        "stronger": result.stronger,
    }


def _epsilon(promise: Promise, uploads: int) -> dict[str, Any]:
    return {"value": epsilon_words(promise.epsilon(uploads)), "uploads": uploads, "delta": promise.delta, "whom": promise.unit}


def question(text: str) -> Question:
    """Return the question in an answer file; raise SpecError if `text`, its content, is no answer file."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"This is no answer file: expected JSON, and {error}.") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("question"), dict):
        raise SpecError("This is no answer file: expected an object with a question.")
    return parse_question(raw["question"])


def parse_experiments(text: str, known: Catalog) -> list[Experiment]:
    """Return the experiments of an answer file, so that the same runs can be repeated.

    The list is empty if the file names no experiments, if the question is about uploaded pictures, or if the experiments answer another
    question.

    Raises:
        SpecError: an experiment cannot be run here.
    """
    asked = question(text)
    if not json.loads(text).get("experiments") or asked.who == "own":
        return []
    experiments = comparison_file.experiments(text, known)
    return experiments if matches(asked, experiments, known) else []


def page(asked: Question, result: Answer, variants: Sequence[VariantResult], known: Catalog, store: Store, paper: Mapping[str, str]) -> str:
    """Write the answer as one HTML page that loads nothing from a network.

    The summary and the decision come first, then the scenario, the findings, the limits and the numbers.

    Args:
        asked: the question.
        result: its answer.
        variants: the runs of the answer, with their pictures and scores.
        known: the plug-ins.
        store: the runs, for trainings on this machine.
        paper: free text for the head of the page, by name: organisation, date and decision.
    """
    main = next(variant for variant in variants if not _is_control(variant, variants))
    measured = alternatives(main.experiment, store, known, lambda text: in_words_of(asked, text))
    return render(
        "results/answer_file.html.jinja",
        style=Markup(STYLE.read_text()),
        answer=result,
        headline=in_words_of(asked, result.headline),
        scenario=scenario_words(asked, known),
        lines=lines(result, asked, known),
        paper=[(name.capitalize(), text) for name, text in paper.items()],
        own=OWN.format(settings().upload_life) if any(variant.shows_upload for variant in variants) else "",
        figures=_figures(variants),
        limits=not_tried(asked, result, known),
        demands=[(in_words_of(asked, words), TITLES[lesson]) for words, lesson in DEMANDS],
        residual=[(in_words_of(asked, words), TITLES[lesson]) for words, lesson in RESIDUAL],
        alternatives=sorted(measured, key=lambda alternative: not alternative.chosen),
        recipe=next((row.cost.recipe for row in measured if row.cost.recipe), ""),
        devices=", ".join(dict.fromkeys(variant.meta.environment.device for variant in variants if variant.meta)),
        heads=HEADS,
        rows=[_numbers(variant) for variant in variants if variant.run.started],
        idle=sum(not variant.run.started for variant in variants),
        another=about_rows(asked),
        made=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    )


def _is_control(variant: VariantResult, variants: Sequence[VariantResult]) -> bool:
    return is_control(variant.experiment, [other.experiment for other in variants])


def _figures(variants: Sequence[VariantResult]) -> list[tuple[str, str, str]]:
    """List the figures of the page: the private pictures and their reconstruction as PNG (base64), and a caption.

    For each group of pictures, the figures are of the run that shows most and of the control that shows most.
    """
    groups = (((variant.experiment.pictures, _is_control(variant, variants)), variant) for variant in variants)
    best = best_of_each(groups, lambda variant: reach_of(variant.row))
    return [
        (
            _png(variant.private),
            _png(variant.guess),
            f"{'Control, protection off. ' if control else ''}{attack_and_attacker(variant.row)}: {outcome_words(variant.row)}",
        )
        for (_, control), variant in best.items()
        if variant.private and variant.guess
    ]


def _png(picture: Image.Image) -> str:
    return base64.b64encode(saved(picture, "PNG")).decode()


def _numbers(variant: VariantResult) -> list[str]:
    """Return the cells of an attack's row in the table of the page, in the order of HEADS."""
    row = variant.row
    grey, checks = row.grey.get("psnr"), ["checks of the model"] if variant.experiment.checks else []
    return [
        f"{row.attack} ({row.server})" if row.server else row.attack,
        "" if row.attacker == "both" else row.attacker,
        ", ".join([*([row.protection] if variant.experiment.defenses or not checks else []), *checks]),
        str(variant.experiment.seed),
        outcome_words(row),
        "–" if row.psnr is None else f"{row.psnr:.1f}\u00a0dB",
        "–" if grey is None else f"{grey:.1f}\u00a0dB",
        "–" if row.rank is None else f"{row.rank:g}",
        "–" if row.label_accuracy is None else f"{row.label_accuracy:.0%}",
    ]
