"""The table of a comparison: a line for every arm, naive and adaptive beside each other, and first what a grey picture scores."""

import html
from collections.abc import Callable, Sequence
from statistics import mean

import plotly.graph_objects as go

from leakage.results.comparison import HIDDEN, Row, sentence_case
from leakage.ui.common.figures import against_accuracy

SHORT = {"recognisable": "seen", "partly recognisable": "partly", "not recognisable": "hidden"}
SHARES = {"recognisable": 1.0, "partly recognisable": 0.5, HIDDEN: 0.0}  # how much of a cell's colour
STATES = {"queued": "waiting", "running": "running …", "failed": "failed", "cancelled": "stopped"}
VOICES = ("naive", "adaptive")
DASH = "–"
COLUMNS: dict[str, tuple[str, Callable[[Row], str]]] = {  # title -> what it is, and how it is read
    "Verdict": (
        "Could the picture be picked out of a line-up, and is it better than pictures that know nothing?",
        lambda row: verdict(row),
    ),
    "PSNR": ("How close the stolen picture is, in decibels: higher leaks more.", lambda row: number(row.psnr, 1)),
    "SSIM": ("How alike the shapes are, up to 1: higher leaks more.", lambda row: number(row.ssim, 2)),
    "LPIPS": ("How different it looks, 0 for equal: lower leaks more.", lambda row: number(row.lpips, 2)),
    "Rank": ("Place of the private picture in a line-up of 100: 1 leaks most.", lambda row: number(row.rank, 0)),
    "Label": ("Classes named right.", lambda row: DASH if row.label_accuracy is None else f"{row.label_accuracy:.0%}"),
}
NOTE = """“–”: not measured, or not defined. Accuracy: of a model trained with this protection by one short recipe for all, where that was
measured; in more rounds some catch up, see “Measured beforehand”. ε: of differential privacy, where a protection gives one. Where the phone
does nothing that could be imitated, one run stands for both attackers."""
MATRIX_NOTE = """PSNR in decibels: higher leaks more. Coloured: recognisable; paler: partly. Framed: the protection hides the picture from
the naive attacker alone."""
Arms = dict[str, dict[str, Row]]  # title -> voice -> its run


def arms_of(rows: Sequence[Row]) -> Arms:
    """The runs of each arm by voice, in the order of the arms."""
    arms: Arms = {}
    for row in rows:
        arms.setdefault(row.title, {})[row.voice] = row
    return arms


def table(rows: Sequence[Row]) -> str:
    """The table as HTML, with what is known so far."""
    heard = [voice for voice in VOICES if any(row.voice == voice for row in rows)] or ["both"]
    wide = len(heard)
    groups = "".join(
        f'<th scope="colgroup" colspan="{wide}" title="{html.escape(what)}">{name}</th>' for name, (what, _) in COLUMNS.items()
    )
    head = f"<tr><th>Arm</th>{groups}<th>Accuracy</th><th>ε</th></tr>"
    if wide > 1:
        head += f"<tr><th></th>{''.join(f'<th>{voice}</th>' for voice in heard) * len(COLUMNS)}<th></th><th></th></tr>"
    lines = [_grey([row.grey for row in rows], wide)]
    lines += [_line(title, found, heard) for title, found in arms_of(rows).items()]
    body = "".join(lines)
    return (
        f'<div class="gle-wide"><table class="gle-ledger gle-counts gle-compared"><thead>{head}</thead><tbody>{body}</tbody></table></div>'
    )


def _grey(greys: Sequence[dict[str, float]], wide: int) -> str:
    """What a grey picture scores; the lowest and the highest where the arms have different pictures."""
    digits, cells = {"PSNR": 1, "SSIM": 2, "LPIPS": 2, "Rank": 0}, []
    for name in COLUMNS:
        values = sorted(grey[name.lower()] for grey in greys if name.lower() in grey)
        ends = dict.fromkeys(number(value, digits[name]) for value in (values[:1] + values[-1:]))
        cells.append(" to ".join(ends) or (DASH if name in digits else ""))
    inside = "".join(f'<td colspan="{wide}">{cell}</td>' for cell in cells)
    return f'<tr class="gle-baseline"><th scope="row">A grey picture</th>{inside}<td></td><td></td></tr>'


def _line(title: str, found: dict[str, Row], heard: Sequence[str]) -> str:
    cells = []
    for _, read in COLUMNS.values():
        if "both" in found:
            cells.append(f'<td colspan="{len(heard)}">{read(found["both"])}</td>')
        else:
            cells += [f"<td>{read(found[voice]) if voice in found else DASH}</td>" for voice in heard]
    any_row = next(iter(found.values()))
    priced = DASH if any_row.accuracy is None else f"{any_row.accuracy:.1%}"
    epsilon = next((row.epsilon for row in found.values() if row.epsilon is not None), None)
    words, runs = html.escape(sentence_case(title)), ",".join(dict.fromkeys(row.run for row in found.values()))
    first = f'<th scope="row"><a href="/?run={runs}" target="_self" title="Open in the lab">{words}</a></th>'
    return f"<tr>{first}{''.join(cells)}<td>{priced}</td><td>{number(epsilon, 1)}</td></tr>"


def matrix(rows: Sequence[Row]) -> str:
    """Protections down, attacks across, as HTML: the PSNR of each attacker, coloured by the verdict; how a run stands until it has one."""
    stacks, attacks = (list(dict.fromkeys(words)) for words in ([row.protection for row in rows], [row.attack for row in rows]))
    heard = [voice for voice in VOICES if any(row.voice == voice for row in rows)] or ["both"]
    found = {(row.protection, row.attack, row.voice): row for row in rows}
    groups = "".join(f'<th scope="colgroup" colspan="{len(heard)}">{html.escape(attack)}</th>' for attack in attacks)
    head = f"<tr><th>Protection</th>{groups}</tr>"
    if len(heard) > 1:
        head += f"<tr><th></th>{''.join(f'<th>{voice}</th>' for voice in heard) * len(attacks)}</tr>"

    def cells(stack: str, attack: str) -> str:
        mine = {voice: found.get((stack, attack, voice)) for voice in (*heard, "both")}
        if mine["both"]:
            return _cell(mine["both"], colspan=len(heard))
        naive, knowing = mine.get("naive"), mine.get("adaptive")
        fooled = naive is not None and naive.hidden and knowing is not None and knowing.verdict != HIDDEN
        return "".join(_cell(mine[voice], framed=fooled and voice == "adaptive") for voice in heard)

    body = "".join(
        f'<tr><th scope="row">{html.escape(sentence_case(stack))}</th>{"".join(cells(stack, attack) for attack in attacks)}</tr>'
        for stack in stacks
    )
    return f'<div class="gle-wide"><table class="gle-ledger gle-counts gle-matrix"><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _cell(row: Row | None, *, framed: bool = False, colspan: int = 1) -> str:
    if row is None or row.psnr is None or row.verdict is None:
        return f'<td colspan="{colspan}">{verdict(row) if row else DASH}</td>'
    early = STATES["cancelled"] if row.status == "cancelled" else ""
    return heat(row.psnr, SHARES.get(row.verdict, 0.0), words=f"{row.name}: {row.words}", below=early, framed=framed, colspan=colspan)


def heat(psnr: float, share: float, *, words: str, below: str = "", framed: bool = False, colspan: int = 1) -> str:
    """A cell with a PSNR, as strongly coloured as `share` from 0 to 1 says; framed where a protection fools the naive attacker alone."""
    return (
        f'<td colspan="{colspan}" title="{html.escape(words)}"><span class="gle-heat"{" data-framed" if framed else ""} '
        f'style="--share:{share:.2f}">{psnr:.1f}</span>{f"<br><small>{below}</small>" if below else ""}</td>'
    )


def verdict(row: Row) -> str:
    """The verdict as a coloured word, or how the run stands."""
    if row.verdict is None:
        return f"<small>{STATES.get(row.status, row.status)}</small>"
    word, why, early = html.escape(row.verdict), html.escape(row.words or ""), row.status == "cancelled"
    said = f'<span class="gle-said" data-word="{word}" title="{why}">{SHORT.get(row.verdict, word)}</span>'
    return f"{said}<br><small>{STATES['cancelled']}</small>" if early else said


def number(value: float | None, digits: int) -> str:
    """A number as it stands in the table."""
    return DASH if value is None else f"{value:z.{digits}f}"


def price(rows: Sequence[Row]) -> go.Figure | None:
    """Leakage against accuracy of every protection whose accuracy is known; None while there are not two.

    Leakage: the PSNR that the strongest attacker reaches, over seeds and the like the mean.
    """
    accuracies = {row.protection: row.accuracy for row in rows if row.accuracy is not None}
    points = []
    for protection, accuracy in accuracies.items():
        attackers: dict[tuple[str, str, str], list[float]] = {}
        for row in rows:
            if row.protection == protection and row.psnr is not None:
                attackers.setdefault((row.voice, row.attack, row.answer), []).append(row.psnr)
        if attackers:
            points.append((accuracy, max(map(mean, attackers.values())), protection))
    if len(points) < 2:
        return None
    return against_accuracy(points, rows[0].grey.get("psnr"), what="leaks to the strongest attacker (dB)")
