"""The downloads of a comparison: a table, its data, its pictures, and a report that opens without a network."""

import json
from collections.abc import Callable, Sequence

from PIL import Image, ImageDraw

from leakage.data.images import saved
from leakage.results import comparison_report
from leakage.results.differences import HONEST
from leakage.results.exports import GAP, WIDE, Download, table
from leakage.results.lettering import wrapped
from leakage.results.variant_results import VariantResult, data, gather, without_infinity
from leakage.runs.event_parts import CheckFacts
from leakage.runs.store import Store
from leakage.spec.catalog import Catalog
from leakage.spec.check_words import number_words, telling
from leakage.spec.words import INAPPLICABLE, REFUSED

COLUMN = 192  # screen pixels of a variant's pictures; fewer if the whole would become wider than exports.WIDE
LINE = 14  # screen pixels of a line of text
INK = ImageDraw.Draw(Image.new("RGB", (1, 1)))  # measures text
SCORES = ["psnr", "ssim", "lpips", "rank", "label_accuracy", "epsilon", "accuracy"]
COST = ["accuracy_of", "accuracy_seeds", "accuracy_difference", "epsilon_training", "epsilon_training_sampled"]
GREY = ["psnr", "ssim", "lpips", "rank"]


def make(store: Store, ids: Sequence[str], name: str, known: Catalog) -> Download | None:
    """Return the file of `comparison.EXPORTS` with this name for these runs; None for another name, or if there is nothing to show."""
    maker, variants = MAKERS.get(name), gather(store, ids, known)
    return maker(variants, known) if maker and variants else None


def _table(variants: list[VariantResult], _known: Catalog) -> Download:
    of_grey, of_run = [f"grey_{name}" for name in GREY], ["checks", "seed", "run", "server"]
    checks = list(dict.fromkeys(reading.check for variant in variants for reading in variant.row.readings))
    of_checks = [f"{check}{about}" for check in checks for about in ("", "_threshold", "_alarm")]
    head = ["arm", "attacker", "status", "ended", "verdict", *SCORES, *COST, *of_grey, *of_run, *of_checks]

    def line(variant: VariantResult) -> list[object]:
        row = variant.row
        scores = [without_infinity(getattr(row, name)) for name in SCORES]
        cost = [row.cost.recipe if row.cost.accuracies else row.cost.blank, len(row.cost.accuracies) or None, row.cost.difference]
        cost += [without_infinity(row.cost.unsampled), without_infinity(row.cost.sampled)]
        grey = [row.grey.get(name) for name in GREY]
        word = INAPPLICABLE if row.inapplicable else REFUSED if row.refused else row.verdict
        last = [row.checks, variant.experiment.seed, row.run, row.server or HONEST]
        found = [value for check in checks for value in _reading(telling(row.readings, check))]
        return [row.title, row.attacker, row.status, row.ended, word, *scores, *cost, *grey, *last, *found]

    return table(head, map(line, variants))


def _reading(reading: CheckFacts | None) -> list[object]:
    """Return the number of a check, its threshold, and whether it tripped ("yes" or "no"); blanks if it was not used."""
    return [number_words(reading), reading.threshold, "yes" if reading.tripped else "no"] if reading else [None] * 3


def _data(variants: list[VariantResult], known: Catalog) -> Download:
    return Download("application/json", json.dumps(data(variants, known), indent=2, allow_nan=False).encode())


def _report(variants: list[VariantResult], known: Catalog) -> Download:
    return Download("text/html", comparison_report.page(variants, known).encode())


def _pictures(variants: list[VariantResult], _known: Catalog) -> Download | None:
    """Draw a column for each variant: the private pictures, the reconstructions, the name and the result. None without pictures."""
    shown = [variant for variant in variants if variant.private and variant.guess]
    if not shown:
        return None
    side = min(COLUMN, (WIDE - GAP) // len(shown) - GAP)
    columns = [_column(variant, side) for variant in shown]
    page = Image.new("RGB", (GAP + len(columns) * (side + GAP), GAP + max(column.height for column in columns)), "white")
    for number, column in enumerate(columns):
        page.paste(column, (GAP + number * (side + GAP), GAP))
    return Download("image/png", saved(page, "PNG"))


def _column(variant: VariantResult, side: int) -> Image.Image:
    pictures = [_fitted(picture, side) for picture in (variant.private, variant.guess) if picture]
    psnr = [] if variant.row.psnr is None else [f"{variant.row.psnr:.1f} dB"]
    name, outcome = (wrapped(words, side, INK.textlength) for words in (variant.row.name, comparison_report.outcome_words(variant.row)))
    lines = [*name, *psnr, *outcome]
    tall = sum(picture.height + GAP for picture in pictures)
    column = Image.new("RGB", (side, tall + LINE * len(lines) + GAP), "white")
    for number, picture in enumerate(pictures):
        column.paste(picture, (0, number * (picture.height + GAP)))
    ink = ImageDraw.Draw(column)
    for number, line in enumerate(lines):
        ink.text((0, tall + number * LINE), line, fill="black")
    return column


def _fitted(picture: Image.Image, side: int) -> Image.Image:
    """Resize a picture to the width of a column: by a whole factor without smoothing if it is smaller, else by averaging."""
    scale = side // picture.width or side / picture.width
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.resize(size, Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.BOX)


MAKERS: dict[str, Callable[[list[VariantResult], Catalog], Download | None]] = {
    "comparison.html": _report,
    "table.csv": _table,
    "comparison.json": _data,
    "pictures.png": _pictures,
}
