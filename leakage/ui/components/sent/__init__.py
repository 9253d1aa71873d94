"""A small picture of what a phone sends and what it keeps, for any protocol; and the words for what travels."""

import html
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from leakage.spec.fields import Travels
from leakage.spec.threat_model import counted

HERE = Path(__file__).parent
FEET, ROWS = 8, 4  # footsteps and phones that are drawn at most
ROAD = (158, 288)  # from the phone to the server


def words(travels: Travels, phones: int = 1) -> str:
    """What the server receives, to stand in a sentence."""
    return f"the sum of {phones} phones" if phones > 1 else f"the {travels.what}"


def show(travels: Travels, *, phones: int, steps: int | None) -> None:
    """The picture on the page; a rerun with the same choices changes nothing."""
    _component()(key="sent", data={"picture": picture(travels, phones=phones, steps=steps)})


def picture(travels: Travels, *, phones: int = 1, steps: int | None = None) -> str:
    """The picture as SVG with a text alternative. `steps`: local steps of a phone, None where it does not train by itself."""
    label = "sum only" if phones > 1 else travels.what
    parts = _several(phones, travels, steps) if phones > 1 else _one(travels, steps)
    middle = (ROAD[0] + ROAD[1]) / 2
    parts += [_text(middle, 26, label, "gle-what"), *_server(), _text(middle, 80, "is sent", "gle-quiet")]
    said = html.escape(told(travels, phones=phones, steps=steps))
    return f'<svg viewBox="0 0 340 84" role="img" aria-label="{said}">{"".join(parts)}</svg>'


def told(travels: Travels, *, phones: int = 1, steps: int | None = None) -> str:
    """The same as a sentence."""
    who = f"Each of {phones} phones" if phones > 1 else "The phone"
    did = "" if steps is None else f", takes {counted(steps, 'local step')}{', pulled back as on a leash,' if travels.leash else ''}"
    kept = f" and its {travels.kept}" if travels.kept else ""
    what = f"the server gets the sum of {phones} updates only" if phones > 1 else f"only the {travels.what} travels to the server"
    return f"{who} keeps its pictures{kept}{did}; {what}."


def _one(travels: Travels, steps: int | None) -> list[str]:
    """One phone with its pictures, its steps and what it hides; and the road from it."""
    right = 150
    parts = ['<rect class="gle-shell" x="1" y="4" width="150" height="60" rx="9"/>', *_photo(13, 12, 30), *_lock(28, 49)]
    if travels.kept:
        right = 112
        parts += [
            '<rect class="gle-dual" x="112" y="14" width="33" height="40" rx="4"/>',
            _text(128.5, 30, travels.kept),
            *_lock(128.5, 38),
        ]
    if steps is None:
        parts.append(_text((46 + right) / 2, 38, travels.alone, "gle-quiet"))
    else:
        parts += _feet(steps, 58, right - 10, 30)
        parts.append(_text((46 + right) / 2, 55, counted(steps, "local step").replace("local " if travels.kept else "", ""), "gle-quiet"))
    if travels.leash:
        parts.append(f'<path class="gle-leash" d="M56 30{"".join(f"q2.5 {7 if bend % 2 else -7} 5 0" for bend in range(16))}"/>')
        parts.append('<circle class="gle-inside" cx="55" cy="30" r="2.6"/>')
    return [*parts, _text(76, 80, "stays on the phone", "gle-quiet"), *_road(ROAD[0])]


def _several(phones: int, travels: Travels, steps: int | None) -> list[str]:
    """Some phones whose arrows meet in a sum; and the road from there."""
    rows, parts = min(phones, ROWS), list[str]()
    top = 36 - (17 * rows - 3) / 2
    for row in range(rows):
        y = top + 17 * row
        parts.append(f'<rect class="gle-shell" x="1" y="{y:g}" width="98" height="14" rx="4"/>')
        parts += [*_photo(6, y + 2, 10), *_lock(26, y + 3.5), *(_feet(min(steps, 5), 40, 66, y + 7, size=0.7) if steps else [])]
        parts += [_text(82, y + 10.5, travels.kept)] if travels.kept else []
        parts.append(f'<path class="gle-way" d="M101 {y + 7:g}C120 {y + 7:g} 118 36 134 36"/>')
        way = f'style="--way:32px;--down:{29 - y:g}px" x="102" y="{y + 4:g}"'
        parts.append(f'<rect class="gle-parcel gle-first" {way} width="8" height="6" rx="1.5"/>')
    parts.append('<circle class="gle-sum" cx="144" cy="36" r="9"/>' + _text(144, 40, "Σ", "gle-what"))
    return [*parts, _text(64, 82, f"{phones} phones, pictures stay", "gle-quiet"), *_road(ROAD[0])]


def _photo(x: float, y: float, side: float) -> list[str]:
    """A picture: a hill and a sun."""
    peaks = ((0.36, -0.5), (0.26, 0.3), (0.14, -0.14), (0.18, 0.34))
    hill = f"M{x + 1:g} {y + side - 1:g}l" + " ".join(f"{side * right:g} {side * down:g}" for right, down in peaks) + "z"
    return [
        f'<rect class="gle-photo" x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" rx="2"/>',
        f'<path class="gle-inside" d="{hill}"/>',
        f'<circle class="gle-inside" cx="{x + side * 0.74:g}" cy="{y + side * 0.27:g}" r="{side * 0.11:g}"/>',
    ]


def _lock(x: float, y: float) -> list[str]:
    return [
        f'<path class="gle-shackle" d="M{x - 2.5:g} {y + 3:g}v-1.6a2.5 2.5 0 0 1 5 0v1.6"/>',
        f'<rect class="gle-lock" x="{x - 4:g}" y="{y + 3:g}" width="8" height="6" rx="1.2"/>',
    ]


def _feet(steps: int, start: float, end: float, y: float, *, size: float = 1.0) -> list[str]:
    """Footsteps, one per local step as far as they fit, that appear one after the other."""
    shown = min(steps, FEET)
    gap = (end - start) / max(shown, 2)
    return [
        f'<ellipse class="gle-foot" style="--at:{1500 * number // shown}" cx="{start + gap * (number + 0.5):.1f}" '
        f'cy="{y + size * (4 if number % 2 else -4):g}" rx="{3.4 * size:g}" ry="{1.9 * size:g}"/>'
        for number in range(shown)
    ]


def _road(start: float) -> list[str]:
    way = ROAD[1] - start - 16
    return [
        f'<path class="gle-way gle-road" d="M{start} 36H{ROAD[1] - 3}"/>',
        f'<path class="gle-way" d="M{ROAD[1] - 6} 32l5 4-5 4"/>',
        f'<rect class="gle-parcel" style="--way:{way}px" x="{start}" y="31" width="13" height="10" rx="2"/>',
    ]


def _server() -> list[str]:
    slabs = [f'<rect class="gle-slab" x="294" y="{y}" width="42" height="16" rx="3"/>' for y in (9, 28, 47)]
    lamps = [f'<circle class="gle-quiet" cx="301" cy="{y}" r="1.8"/>' for y in (17, 36, 55)]
    return [*slabs, *lamps, _text(315, 80, "the server", "gle-quiet")]


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html.escape(text)}</text>'


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    """Register once per process, as the stage."""
    read = partial(Path.read_text, encoding="utf-8")
    parts = {kind: read(HERE / f"sent.{kind}") for kind in ("html", "css", "js")}
    return st.components.v2.component("gle_sent", **parts, isolate_styles=False)
