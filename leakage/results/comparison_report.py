"""A comparison as one HTML file that opens without a network: no script, no address it would load anything from."""

import base64
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image

from leakage.results.arms import Arm, data
from leakage.results.comparison import Row, differs, only_naive
from leakage.results.comparison_file import CLOSES, OPENS
from leakage.results.exports import saved
from leakage.runs.events import AttackEnd
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.threat_model import assumptions

STYLE = Path(__file__).with_suffix(".css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8b4513")  # Okabe and Ito 2008, the last ones ours
POINTS = 300  # of a curve
WIDE, HIGH, LEFT, LOW = 720, 300, 48, 36  # the drawing, and its margins on the left and below
HEAD = ("Arm", "Attacker", "Verdict", "PSNR", "SSIM", "LPIPS", "Rank", "Labels right", "Accuracy", "Epsilon")
OWN = (
    "This file shows a private picture: its owner brought it to this program, which deletes it after 7 days. "
    "This copy stays until you delete it. Think before you pass it on. To run the comparison again, bring the same picture."
)
GRANTED = "An adaptive attacker imitates what the phone does as well as we know how; one who knows a better imitation may see more."
NEVER = (
    "A failed attack is no protection. It says what this attack found with these settings, and nothing of other attacks or of more tries.",
    "A score counts only beside the one of a grey picture, which knows nothing of the private one. Close to it, nothing was found.",
    "The rank tells pictures apart within one line-up. Among other pictures the same guess may rank higher or lower.",
)
PRICE = "The accuracy is that of another training with the same protection, on other pictures. It is not that of the model attacked here."
BOUND = "Epsilon bounds what the sent numbers can tell of one picture. It holds for these settings, and says nothing of other rounds."


def page(arms: Sequence[Arm], known: Catalog) -> str:
    """The whole file. Its data can be read back by `comparison_file.experiments`."""
    names = ", ".join(dict.fromkeys(arm.row.title for arm in arms))
    warnings = [OWN] * any(arm.own for arm in arms) + only_naive([arm.row for arm in arms])
    apart, alike = differs([arm.experiment for arm in arms], known)
    body = [
        "<h1>What can the server see of the private picture?</h1>",
        f"<p>{len(arms)} {'attack' if len(arms) == 1 else 'attacks'} side by side: {escape(names)}. {_when(arms)}</p>",
        *(f'<p class="warning">{escape(sentence)}</p>' for sentence in warnings),
        _section("The pictures", _figures(arms)),
        _section("What each attack found", _table(arms) + _verdicts(arms)),
        _section("How close, step by step", _curves(arms)),
        _section("What differs", _list(apart) if apart else "<p>Nothing.</p>"),
        _section("What is equal", _list(alike)),
        _section("What each result assumes", "".join(_assumed(arm, known) for arm in arms)),
        _section("What this does not prove", _list(_limits(arms))),
        _section("To run it again", _recipe(arms, known)),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>{escape(names)}</title>'
        f"<style>{STYLE.read_text()}</style></head><body><main>\n{chr(10).join(body)}\n</main>\n{_embedded(arms, known)}\n</body></html>\n"
    )


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{title}</h2>{inside}</section>" if inside else ""


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _when(arms: Sequence[Arm]) -> str:
    ended = [arm.run.finished for arm in arms if arm.run.finished]
    still = sum(not arm.run.finished for arm in arms)
    words = [f"Computed until {time.strftime('%Y-%m-%d %H:%M', time.gmtime(max(ended)))} UTC."] if ended else []
    return " ".join([*words, f"{still} not finished yet."] if still else words)


# ---------------------------------------------------------------- pictures


def _figures(arms: Sequence[Arm]) -> str:
    """Every set of private pictures, followed by what was found of it."""
    figures = []
    for _, group in groupby(arms, key=lambda arm: (arm.experiment.pictures, arm.experiment.size, arm.experiment.channels)):
        same = list(group)
        if private := next((arm.private for arm in same if arm.private), None):
            figures.append(
                _figure(private, "The private picture" if len(same[0].experiment.pictures) == 1 else "The private pictures", "private")
            )
        figures += [_figure(arm.guess, arm.row.name, "") for arm in same if arm.guess]
    return f'<div class="figures">{"".join(figures)}</div>' if figures else ""


def _figure(picture: Image.Image, words: str, kind: str) -> str:
    address = "data:image/png;base64," + base64.b64encode(saved(picture, "PNG")).decode()
    return f'<figure class="{kind}"><img src="{address}" alt="{escape(words)}"><figcaption>{escape(words)}</figcaption></figure>'


# ---------------------------------------------------------------- numbers


def _table(arms: Sequence[Arm]) -> str:
    lines = [[arm.row.title, arm.row.voice, _ended(arm.row), *_scores(vars(arm.row))] for arm in arms]
    greys = list({json.dumps(arm.row.grey): arm for arm in arms if arm.row.grey}.values())
    for arm in greys:
        which = "" if len(greys) == 1 else f", for {arm.row.name}"
        lines.append([f"A grey picture{which}", "none", "baseline", *_scores(arm.row.grey)])
    head = "".join(f'<th scope="col">{words}</th>' for words in HEAD)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>' for first, *rest in lines
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _ended(row: Row) -> str:
    """The verdict, or how the run stands."""
    return f"{row.verdict}, stopped early" if row.verdict and row.status == "cancelled" else row.verdict or row.status


def _scores(found: Mapping[str, Any]) -> list[str]:
    forms = {
        **{"psnr": "{:.1f} dB", "ssim": "{:z.2f}", "lpips": "{:.2f}", "rank": "{:g}"},
        **{"label_accuracy": "{:.0%}", "accuracy": "{:.1%}", "epsilon": "{:.2f}"},
    }
    return [form.format(value) if (value := found.get(name)) is not None else "–" for name, form in forms.items()]


def _verdicts(arms: Sequence[Arm]) -> str:
    told = [f"{arm.row.name}: {arm.row.words}" for arm in arms if arm.row.words]
    failed = [f"{arm.row.name}: {arm.run.message}" for arm in arms if arm.run.message]
    ends = [arm.run.outcome(AttackEnd) for arm in arms]
    rule = next((f"<p>{escape(end.verdict.rule)}</p>" for end in ends if end and end.verdict), "")
    return _list(told + failed) + rule


def _curves(arms: Sequence[Arm]) -> str:
    """PSNR over steps as a drawing: a colour for each title, broken lines for naive attackers, a thin line for grey."""
    curves = {arm.row.run: _thinned(arm.curve) for arm in arms if arm.curve}
    if not curves:
        return ""
    greys = {round(arm.row.grey["psnr"], 2) for arm in arms if "psnr" in arm.row.grey}
    last = max(step for curve in curves.values() for step, _ in curve) or 1
    top = 10 * (max([*greys, *(psnr for curve in curves.values() for _, psnr in curve)]) // 10 + 1)
    colour = dict(zip(dict.fromkeys(arm.row.title for arm in arms), COLOURS * len(arms), strict=False))

    def at(step: float, psnr: float) -> str:
        return f"{LEFT + (WIDE - LEFT - 8) * step / last:.1f},{(HIGH - LOW) * (1 - max(0.0, psnr) / top) + 4:.1f}"

    drawn, legend = [], []
    for tick in range(0, int(top) + 1, 10):
        x, y = at(0, tick).split(",")
        drawn.append(f'<path class="rule" d="M{x},{y}H{WIDE}"/><text x="{LEFT - 6}" y="{y}" text-anchor="end" dy="4">{tick} dB</text>')
    for part in (0, last / 2, last) if last > 1 else (0, last):
        x, y = at(part, 0).split(",")
        drawn.append(f'<text x="{x}" y="{float(y) + 18}" text-anchor="{"end" if part == last else "middle"}">{part:g}</text>')
    drawn.append(f'<text x="{WIDE}" y="{HIGH - 2}" text-anchor="end">steps of the attack</text>')
    for psnr in greys:
        drawn.append(f'<path class="grey" d="M{at(0, psnr)}L{at(last, psnr)}"><title>A grey picture: {psnr:.1f} dB</title></path>')
    for arm in (arm for arm in arms if arm.row.run in curves):
        look = f'stroke="{colour[arm.row.title]}"' + (' stroke-dasharray="5 4"' if arm.row.voice == "naive" else "")
        points, name = [at(*point) for point in curves[arm.row.run]], escape(arm.row.name)
        x, y = points[-1].split(",")
        end = f'<circle cx="{x}" cy="{y}" r="3" fill="{colour[arm.row.title]}"/>'
        drawn.append(f'<g><title>{name}</title><polyline {look} points="{" ".join(points)}"/>{end}</g>')
        legend.append(f'<li><svg width="34" height="10" aria-hidden="true"><path {look} d="M0,5H34"/></svg> {name}</li>')
    about = "PSNR over the steps of each attack; the thin line is what a grey picture scores."
    return (
        f'<svg class="curves" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{about}">{"".join(drawn)}</svg>'
        f'<ul class="legend">{"".join(legend)}</ul><p>{about} Broken: the naive attacker.</p>'
    )


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most about POINTS of them, the last among them."""
    return [*curve[: -1 : max(1, len(curve) // POINTS)], curve[-1]]


# ---------------------------------------------------------------- words


def _assumed(arm: Arm, known: Catalog) -> str:
    """The ledger of one arm."""
    try:
        end = arm.run.outcome(AttackEnd)
        told = assumptions(arm.experiment, known, arm.meta, end.note if end else {})
    except CatalogError as error:  # a plug-in that is gone since
        return f"<p>{escape(arm.row.name)}: {escape(str(error))}</p>"
    cells = "".join(
        f'<tr><th scope="row">{escape(what)}</th><td>{escape(tag)}</td><td>{escape(holds)}</td></tr>' for tag, what, holds in told
    )
    return f'<details><summary>{escape(arm.row.name)}</summary><div class="wide"><table>{cells}</table></div></details>'


def _limits(arms: Sequence[Arm]) -> list[str]:
    """What must not be concluded."""
    pictures = {picture for arm in arms for picture in arm.experiment.pictures}
    seeds = sorted({arm.experiment.seed for arm in arms})
    of = "one picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    drawn = f"one seed ({seeds[0]})" if len(seeds) == 1 else f"{len(seeds)} seeds ({', '.join(map(str, seeds))})"
    return [
        f"These are {len(arms)} runs on {of} with {drawn}. Another picture or another seed may come out differently.",
        *NEVER,
        *[GRANTED] * any(arm.row.voice == "adaptive" for arm in arms),
        *[PRICE] * any(arm.row.accuracy is not None for arm in arms),
        *[BOUND] * any(arm.row.epsilon is not None for arm in arms),
    ]


def _recipe(arms: Sequence[Arm], known: Catalog) -> str:
    """Seeds, versions and papers."""
    held = [
        [
            arm.row.name,
            str(arm.experiment.seed),
            arm.meta.device if arm.meta else "–",
            ", ".join(map(" ".join, arm.meta.versions.items())) if arm.meta else "",
        ]
        for arm in arms
    ]
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in held)
    head = "".join(f'<th scope="col">{words}</th>' for words in ("Arm", "Seed", "Device", "Versions"))
    used = {(kind, part.id) for arm in arms for kind, part in arm.experiment.parts()}
    papers = "".join(
        f'<li><a rel="noreferrer" href="{escape(entry.source)}">{escape(entry.title)}</a></li>'
        for entry in known.entries
        if (entry.kind, entry.id) in used and entry.source.startswith("https://")
    )
    return (
        "<p>This file holds its own recipe. Open it on the page Compare of the same program, and all is run again.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"<p>Where it is from:</p><ul>{papers}</ul>"
    )


def _embedded(arms: Sequence[Arm], known: Catalog) -> str:
    """The data as JSON that no browser runs; its "<" is written so that nothing in it can end the element."""
    return OPENS + json.dumps(data(arms, known)).replace("<", "\\u003c") + CLOSES
