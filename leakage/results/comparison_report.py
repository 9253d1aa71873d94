"""A comparison as one HTML file that opens without a network: it has no script, and loads nothing from an address."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup
from PIL import Image

from leakage.data.images import saved
from leakage.frontend.markup import render
from leakage.results import check_table
from leakage.results.accuracy_cost import EPSILONS, epsilon_words, heading
from leakage.results.comparison import Row, only_naive
from leakage.results.comparison_file import CLOSES, OPENS
from leakage.results.differences import differs
from leakage.results.run_assumptions import run_assumptions
from leakage.results.variant_results import VariantResult, data
from leakage.runs.events import AttackEnd
from leakage.settings import settings
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.declarations import Travels
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import Row as Assumed

STYLE = Path(__file__).with_suffix(".css")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8b4513")  # Okabe, Ito 2008, and more
POINTS = 300  # of a curve; less than twice as many stay
WIDE, HIGH, LEFT, LOW = 720, 300, 48, 36  # the drawing, and its margins on the left and below
HEAD = ("Variant", "Attacker", "Verdict", "PSNR", "SSIM", "LPIPS", "Rank", "Labels found out")
OWN = (
    "This file shows a private picture: its owner brought it to this program, which deletes it after {}. "
    "This copy stays until you delete it. Think before you pass it on. To run the comparison again, bring the same picture."
)
GRANTED = "An adaptive attacker imitates what the phone does as well as this program can. With a better imitation it may see more."
NEVER = (
    "A failed attack is no protection. It says what this attack found with these settings, and nothing of other attacks or of more runs.",
    "Compare every score with that of a grey picture, which does not depend on the private picture. A score close to it says little.",
    "The rank tells pictures apart within one line-up. Among other pictures the same guess may rank higher or lower.",
)
OTHER_TRAINING = (
    "The accuracy is that of a training of the same model behind the same protection, on the data and for the rounds that its column "
    'names. It is not that of the update attacked here. Where it says "too few trainings", seeds alone may make such a difference.'
)
BOUND = (
    "The privacy budget (epsilon) bounds what an attacker can learn about one picture, or about all pictures of a phone where the "
    "protection says so, at delta 1e-5 or less. The budget of what was sent holds for these settings and says nothing of other rounds; it "
    "is not assumed that pictures were drawn at random. The budget of the training is stated as it was trained (every picture once in "
    "each pass), and as it would be if every batch were drawn at random, which no training here does. ∞: no noise, or above 200, where a "
    "number says nothing."
)


def page(variants: Sequence[VariantResult], known: Catalog) -> str:
    """Write the report as HTML. `comparison_file.experiments` reads its data back."""
    apart, alike = differs([variant.experiment for variant in variants], known)
    return render(
        "results/comparison_report.html.jinja",
        style=Markup(STYLE.read_text()),
        question=question([variant.experiment for variant in variants], known),
        names=", ".join(dict.fromkeys(variant.row.title for variant in variants)),
        count=len(variants),
        when=_when(variants),
        warnings=[OWN.format(settings().upload_life)] * any(variant.shows_upload for variant in variants)
        + only_naive([variant.row for variant in variants]),
        figures=_figures(variants),
        score_heads=[*HEAD, *_cost_heads(variants)],
        scores=_table(variants),
        verdicts=_verdict_sentences(variants),
        checked=check_table.check_table([variant.row for variant in variants]),
        check_note=check_table.NOTE,
        rule=next((end.verdict.rule for variant in variants if (end := variant.run.outcome(AttackEnd)) and end.verdict), ""),
        curves=_curves(variants),
        apart=apart,
        alike=alike,
        assumed=[_assumed(variant, known) for variant in variants],
        limits=_limits(variants),
        recipe=_recipe(variants),
        papers=_papers(variants, known),
        embedded=_embedded(variants, known),
    )


def question(experiments: Sequence[Experiment], known: Catalog) -> str:
    """Return the question that heads the report; it names the receiver of the updates if all variants have the same receiver."""
    aggregations = [known.protocols.find(each.aggregation.id) if each.aggregation else None for each in experiments]
    receivers = {aggregation.travels.receiver if aggregation else Travels.receiver for aggregation in aggregations}
    return f"What can {receivers.pop()} see of the private picture?" if len(receivers) == 1 else "What can be seen of the private picture?"


def _when(variants: Sequence[VariantResult]) -> str:
    ended = [variant.run.finished for variant in variants if variant.run.finished]
    still = sum(not variant.run.finished for variant in variants)
    words = [f"Computed until {time.strftime('%Y-%m-%d %H:%M', time.gmtime(max(ended)))} UTC."] if ended else []
    return " ".join([*words, f"{still} not finished yet."] if still else words)


# ---------------------------------------------------------------- pictures


def _figures(variants: Sequence[VariantResult]) -> list[dict[str, str]]:
    """List the figures: every set of private pictures, followed by its reconstructions."""
    figures = []

    def private_pictures(variant: VariantResult) -> tuple[object, ...]:
        return variant.experiment.pictures, variant.experiment.size, variant.experiment.channels

    for _, group in groupby(variants, key=private_pictures):
        same = list(group)
        if private := next((variant.private for variant in same if variant.private), None):
            words = "The private picture" if len(same[0].experiment.pictures) == 1 else "The private pictures"
            figures.append(_figure(private, words, kind="private"))
        figures += [_figure(variant.guess, variant.row.name) for variant in same if variant.guess]
    return figures


def _figure(picture: Image.Image, words: str, *, kind: str = "") -> dict[str, str]:
    return {"png": base64.b64encode(saved(picture, "PNG")).decode(), "words": words, "kind": kind}


# ---------------------------------------------------------------- numbers


def _table(variants: Sequence[VariantResult]) -> list[list[str]]:
    """List the rows of the table of scores: every variant, then the baselines of a grey picture."""
    heads = _cost_heads(variants)
    lines = [
        [
            variant.row.title,
            variant.row.attacker,
            outcome_words(variant.row),
            *_scores(vars(variant.row)),
            *_costs(variant.row)[: len(heads)],
        ]
        for variant in variants
    ]
    greys = list({json.dumps(variant.row.grey): variant for variant in variants if variant.row.grey}.values())
    for variant in greys:
        which = "" if len(greys) == 1 else f", for {variant.row.name}"
        lines.append([f"A grey picture{which}", "none", "baseline", *_scores(variant.row.grey), *["–"] * len(heads)])
    return lines


def outcome_words(row: Row) -> str:
    """Describe the result of a run: the verdict, and, if the attack came to no final answer, how it ended or stands."""
    words = [row.verdict] if row.verdict else []
    return ". ".join(words if row.answered else [*words, row.ended])


def _scores(scores: Mapping[str, Any]) -> list[str]:
    forms = {
        **{"psnr": "{:.1f} dB", "ssim": "{:z.2f}", "lpips": "{:.2f}", "rank": "{:g}"},
        "label_accuracy": "{:.0%}",
    }
    return [form.format(value) if (value := scores.get(name)) is not None else "–" for name, form in forms.items()]


def _cost_heads(variants: Sequence[VariantResult]) -> list[str]:
    """List the headings of the columns on accuracy cost; those on epsilon are left out if no protection promises an epsilon."""
    return [heading([variant.row.cost for variant in variants]), "Against no protection", *(EPSILONS if _promised(variants) else ())]


def _promised(variants: Sequence[VariantResult]) -> bool:
    """Return whether at least one protection of these variants promises an epsilon."""
    return any(epsilon is not None for variant in variants for epsilon in variant.row.cost.epsilons(variant.row.epsilon))


def _costs(row: Row) -> list[str]:
    accuracy = row.cost.blank if row.accuracy is None else f"{row.accuracy:.1%}"
    return [accuracy, row.cost.difference or "–", *map(epsilon_words, row.cost.epsilons(row.epsilon))]


def _verdict_sentences(variants: Sequence[VariantResult]) -> list[str]:
    """List the reasons of the verdicts, then how each run ended that came to no final answer."""
    reasons = [f"{variant.row.name}: {variant.row.words}" for variant in variants if variant.row.words]
    unanswered = [variant.row for variant in variants if variant.run.finished and not variant.row.answered]
    return [*reasons, *(f"{row.name}: {row.ended.removesuffix('.')}." for row in unanswered)]


def _curves(variants: Sequence[VariantResult]) -> dict[str, Any] | None:
    """Return the drawing of PSNR over steps for the template; None if no run has a curve.

    Every title has a colour. Naive attackers have broken lines, and the baselines of a grey picture thin lines.
    """
    curves = {variant.row.run: _thinned(variant.curve) for variant in variants if variant.curve}
    if not curves:
        return None
    greys = {round(variant.row.grey["psnr"], 2) for variant in variants if "psnr" in variant.row.grey}
    last = max(step for curve in curves.values() for step, _ in curve) or 1
    top = 10 * (max([*greys, *(psnr for curve in curves.values() for _, psnr in curve)]) // 10 + 1)
    colour = dict(zip(dict.fromkeys(variant.row.title for variant in variants), COLOURS * len(variants), strict=False))

    def at(step: float, psnr: float) -> tuple[str, str]:
        return f"{LEFT + (WIDE - LEFT - 8) * step / last:.1f}", f"{(HIGH - LOW) * (1 - max(0.0, psnr) / top) + 4:.1f}"

    def mark(step: float, psnr: float, words: str, *, below: int = 0) -> dict[str, str]:
        x, y = at(step, psnr)
        return {"x": x, "y": str(float(y) + below), "words": words}

    lines = []
    for variant in (variant for variant in variants if variant.row.run in curves):
        points = [at(*point) for point in curves[variant.row.run]]
        line = {"name": variant.row.name, "colour": colour[variant.row.title], "broken": variant.row.attacker == "naive"}
        lines.append({**line, "points": [",".join(point) for point in points], "x": points[-1][0], "y": points[-1][1]})
    return {
        **{"width": WIDE, "height": HIGH, "left": LEFT, "lines": lines},
        "rules": [mark(0, tick, f"{tick} dB") for tick in range(0, int(top) + 1, 10)],
        "steps": [mark(part, 0, f"{part:g}", below=18) for part in ((0, last / 2, last) if last > 1 else (0, last))],
        "greys": [{"start": ",".join(at(0, psnr)), "end": ",".join(at(last, psnr)), "words": f"{psnr:.1f} dB"} for psnr in greys],
    }


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Thin a curve to less than twice POINTS points, with the last point among them."""
    return [*curve[: -1 : max(1, len(curve) // POINTS)], curve[-1]]


# ---------------------------------------------------------------- words


def _assumed(variant: VariantResult, known: Catalog) -> tuple[str, list[Assumed], str]:
    """Return a variant's name, its assumptions and an empty string; where a plug-in is gone, the name, an empty list and the reason."""
    try:
        return variant.row.name, run_assumptions(variant.experiment, known, variant.meta, variant.run.outcome(AttackEnd)), ""
    except CatalogError as error:  # a plug-in that is gone since
        return variant.row.name, [], str(error)


def _limits(variants: Sequence[VariantResult]) -> list[str]:
    """List sentences on what must not be concluded from the comparison."""
    pictures = {picture for variant in variants for picture in variant.experiment.pictures}
    seeds = sorted({variant.experiment.seed for variant in variants})
    of = "one picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    drawn = f"one seed ({seeds[0]})" if len(seeds) == 1 else f"{len(seeds)} seeds ({', '.join(map(str, seeds))})"
    return [
        f"These are {len(variants)} runs on {of} with {drawn}. Another picture or another seed may come out differently.",
        *NEVER,
        *[GRANTED] * any(variant.row.attacker == "adaptive" for variant in variants),
        *[OTHER_TRAINING] * any(variant.row.accuracy is not None for variant in variants),
        *[BOUND] * _promised(variants),
    ]


def _recipe(variants: Sequence[VariantResult]) -> list[tuple[str, str, str, str]]:
    """List the name, seed, device and versions of every run."""
    return [
        (
            variant.row.name,
            str(variant.experiment.seed),
            variant.meta.environment.device if variant.meta else "–",
            ", ".join(map(" ".join, variant.meta.environment.versions.items())) if variant.meta else "",
        )
        for variant in variants
    ]


def _papers(variants: Sequence[VariantResult], known: Catalog) -> list[tuple[str, str]]:
    """List the titles and addresses of the sources of all plug-ins that were used."""
    ids = {(kind, part.id) for variant in variants for kind, part in variant.experiment.parts()}
    entries = [entry for entry in known.entries if (entry.kind, entry.id) in ids]
    return [(entry.title, entry.source) for entry in entries if entry.source.startswith("https://")]


def _embedded(variants: Sequence[VariantResult], known: Catalog) -> Markup:
    """Return the data as a JSON element that browsers do not run; "<" is escaped so that no text can end the element."""
    return Markup(OPENS + json.dumps(data(variants, known)).replace("<", "\\u003c") + CLOSES)
