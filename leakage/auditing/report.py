"""The report of an audit: one page of HTML, with the pictures or without, which loads nothing and has no script."""

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from markupsafe import Markup
from PIL import Image
from torch import Tensor

from leakage.auditing.audit_outcome import Outcome
from leakage.auditing.finding import Finding
from leakage.auditing.protection_effects import fastest
from leakage.frontend.markup import render
from leakage.spec.conclusion import UNPUBLISHED
from leakage.spec.words import INAPPLICABLE, NOT_SHOWN, PARTLY, RECOGNIZABLE, REFUSED, SINGLED_OUT, STATISTICS, counted

STYLE = Path(__file__).with_name("report.css")
SHOWN = 8  # pairs of pictures that are shown
LEGEND = (
    (RECOGNIZABLE, "Somebody who looks at the guess recognizes the picture. This is a leak."),
    (
        SINGLED_OUT,
        "By eye there may be little to see. But out of 100 pictures, the guess picks the private one. This is a leak too.",
    ),
    (PARTLY, "Shapes and colours are shown. Somebody who knows the picture may recognize it."),
    (NOT_SHOWN, "This attack, with this effort, showed nothing that luck does not explain. Another attack may show more."),
    (
        INAPPLICABLE,
        "The attack cannot work on such a model or update. It was not tried, so it says nothing.",
    ),
    ("adaptive, naive", "An adaptive attacker knows how the client trains and protects its update. A naive attacker does not."),
    (
        "dB (PSNR)",
        "How near a guess is to its picture: more is nearer, 100 is an exact copy. A grey picture is a guess without knowledge.",
    ),
    ("label", "The class that the network learns for a picture, such as a diagnosis."),
)
REPEAT_COMMAND = "gradient-leakage audit audit.json --out repeated"
REPEAT_CALL = 'leakage.audit(model, data, ..., repeat="audit.json")  # with the arguments of the first call'
PRIVATE = "This edition contains private pictures. Keep it to yourself; the edition without pictures, audit.html, is for passing on."
PUBLIC = "This edition has no pictures and no names of files, and is for passing on. The edition with pictures and audit.json are not."
LIMITS = (
    UNPUBLISHED,
    "Servers that leave clients out of a sum, or watch many rounds; and, unless “What was audited” says so, servers that change the model. "
    "A server that changes the model may read pictures off exactly.",
    "Other pictures, other rounds of training, more time. What an update gives away changes while the model is trained: audit the model of "
    "several rounds.",
)
DPIA = (  # Art. 35(7) GDPR: heading, what this report contributes
    (
        "a. Description of the processing, and its purposes",
        "The client and the model are described under “What was audited”. To be added: {}",
    ),
    ("b. Necessity and proportionality", "To be added: {}"),
    ("c. Risks to the rights and freedoms of the people in the pictures", "What attacks showed is under “What was found”. To be added: {}"),
    ("d. Measures against the risks", "What protections change is under “What protections would buy”. To be added: {}"),
)
TO_ADD = (
    "why the pictures are processed, by whom, and on what legal basis.",
    "why updates have to be shared, and whether fewer or none would do.",
    "who the people are, and what a disclosed picture would mean for them.",
    "which measures are taken, and who checks them.",
)


@dataclass(frozen=True)
class _Line:
    """A line of the table of attacks: an attack by an attacker, and what it showed in updates of each size."""

    title: str
    attacker: str
    cells: tuple[str, ...]


def report_page(audit: Outcome, *, pictures: bool, dpia: bool) -> str:
    """Return the report of an audit as HTML.

    Args:
        audit: the audit.
        pictures: whether the report shows private pictures and the names of their files.
        dpia: whether it has the headings of a data-protection impact assessment (Art. 35 GDPR), with room to write.
    """
    sizes = sorted({len(finding.pictures) for finding in audit.findings})
    return render(
        "auditing/report.html.jinja",
        style=Markup(STYLE.read_text()),  # our own file
        private=pictures,
        edition=PRIVATE if pictures else PUBLIC,
        audit=audit,
        answers=answers(audit),
        card=audit.card.rows,
        knows=knowledge(audit),
        sizes=[counted(size, "picture") for size in sizes],
        lines=_lines(audit, sizes),
        named=any(finding.attacker for finding in audit.findings),
        effect_attack=attack.title if (attack := fastest(audit.findings)) else "",
        repeat=REPEAT_COMMAND if "model" in audit.settings else REPEAT_CALL,
        best_shown=_best_shown(audit, pictures=pictures),
        legend=LEGEND,
        limits=LIMITS,
        dpia=[(heading, text.format(added)) for (heading, text), added in zip(DPIA, TO_ADD, strict=True)] if dpia else [],
        made=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    )


def answers(audit: Outcome) -> list[tuple[str, str]]:
    """Return the summary for readers who do not program, as questions and answers: what was seen, by whom, how, and what to do."""
    best = audit.findings[0] if audit.findings else None
    shown = best is not None and best.tried
    nothing = audit.headline if audit.word == REFUSED else "Nothing is known: no attack came to an answer."
    by = f"{best.title_with_attacker}, from an update of {counted(len(best.pictures), 'picture')}" if best and shown else "No attack"
    compared = ""
    if best and shown and best.psnr and best.grey is not None:
        mean = "" if len(best.psnr) == 1 else " on average"
        compared = f"; {sum(best.psnr) / len(best.psnr):.1f} dB{mean}, where a grey picture has {best.grey:.1f} dB"
    return [
        ("What was seen", audit.conclusion.seen if shown else nothing),
        ("By the size of the update", _by_size(audit)),
        ("Which pictures were attacked", _attacked(audit)),
        ("By whom", "The people running the server: they have the update, and the model that the client received."),
        ("By which attack", f"{by}{compared}."),
        ("At what effort", f"{_efforts(audit)} It took {_duration(audit.seconds)} on one machine."),
        ("To decide", audit.decision),
    ]


def _by_size(audit: Outcome) -> str:
    """Say what was seen in updates of each number of pictures; nothing if all updates have the same number."""
    seen = [
        f"{counted(size, 'picture')} in the update: {conclusion.recognized} of {conclusion.total} recognizable or singled out."
        for size, conclusion in audit.by_size.items()
    ]
    return " ".join(seen) if len(seen) > 1 else ""


def _attacked(audit: Outcome) -> str:
    """Say how many of the pictures were attacked, and where they come from."""
    attacked, given = len({number for finding in audit.findings for number in finding.pictures}), len(audit.sample.x)
    return audit.sample.origin if attacked in (0, given) else f"{attacked} of {given}. {audit.sample.origin}"


def _efforts(audit: Outcome) -> str:
    """Describe how many attempts came to an answer, and how many did not, by the reason."""
    words = [finding.word for finding in audit.findings if not finding.tried]
    others = "".join(f"; {words.count(word)} more: {word}" for word in dict.fromkeys(words))
    return f"{counted(len(audit.tried), 'attempt')} came to an answer{others}."


def knowledge(audit: Outcome) -> list[tuple[str, str]]:
    """Return the threat model: what the attackers have, as pairs of a topic and a description."""
    unread = any("labels known" in finding.attacker for finding in audit.findings)
    labels = "granted, because this model's update does not reveal them" if unread else "read from the update"
    protected = bool(audit.card.plugins["defenses"])
    return [
        ("The update", "yes, as the server receives it"),
        ("The model", "yes, the weights that the client received"),
        ("Size and number of the pictures", "yes"),
        ("The labels", "granted" if audit.card.labels else labels),
        ("The protections", "known to the adaptive attacker, unknown to the naive one" if protected else "there are none"),
        ("BatchNorm's statistics", STATISTICS[audit.card.statistics].sentence),
        ("Other pictures", audit.card.helpers),
    ]


def _lines(audit: Outcome, sizes: Sequence[int]) -> list[_Line]:
    """Return the table of attacks, the worst first: for each attack and attacker the worst finding in updates of each size."""
    best: dict[tuple[str, str], dict[int, Finding]] = {}
    for finding in audit.findings:  # the worst come first
        best.setdefault((finding.title, finding.attacker), {}).setdefault(len(finding.pictures), finding)
    return [_Line(title, attacker or "–", tuple(_cell(found.get(size)) for size in sizes)) for (title, attacker), found in best.items()]


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return "–"
    if not finding.psnr:
        return finding.word
    return f"{finding.word}, {max(finding.psnr):.1f} dB"


def _best_shown(audit: Outcome, *, pictures: bool) -> list[dict[str, str]]:
    """Return the pictures that were shown best, each once: its name, words, and with `pictures` the private one and the guess."""
    shown: dict[int, tuple[float, Finding, int]] = {}
    for finding in audit.findings:
        for place, number in enumerate(finding.pictures):
            if finding.psnr and (number not in shown or finding.psnr[place] > shown[number][0]):
                shown[number] = (finding.psnr[place], finding, place)
    chosen = sorted(shown.items(), key=lambda item: -item[1][0])[:SHOWN]
    rows = []
    for number, (psnr, finding, place) in chosen:
        words = f"{finding.each[place]}, {psnr:.1f} dB, by {finding.title_with_attacker}"
        row = {"name": f"Picture {number + 1}", "words": words, "private": "", "guess": ""}
        if pictures:
            assert finding.reconstruction is not None
            name = audit.sample.names[number]
            row["name"] += "" if name.isdigit() else f" ({name})"
            row |= {"private": _png(audit.sample.x[number]), "guess": _png(finding.reconstruction[place])}
        rows.append(row)
    return rows


def _png(picture: Tensor) -> str:
    """Return a picture (C, H, W) in [0, 1] as a PNG in base64; of other than 1 or 3 channels the first is shown."""
    pixels = (255 * picture.detach().cpu().float().clamp(0, 1)).round().byte().permute(1, 2, 0).numpy()
    pixels = pixels if pixels.shape[2] in (1, 3) else pixels[..., :1]
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels.squeeze(-1) if pixels.shape[2] == 1 else pixels)).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
