"""Drawings of what a phone sends and keeps, for any protocol, and of the model that a server hands out; names of what is sent."""

from typing import Any

import streamlit as st

from leakage.frontend.markup import render
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.declarations import Travels
from leakage.spec.words import counted
from leakage.ui.components import ComponentRenderer, component

FEET, ROWS = 8, 4  # the most footsteps and the most phones that are drawn
ROAD = (158, 288)  # where the arrow from the phone to the receiver begins and ends


def words(travels: Travels, phones: int = 1, *, other_sums: str = "") -> str:
    """Return what arrives, as a noun for a sentence: the gradient of a phone, or a sum over several phones."""
    if phones == 1:
        return f"the {travels.what}"
    return f"sums over {phones} phones" if other_sums else f"the sum of {phones} phones"


def show(sender: ClientBehavior) -> None:
    """Draw on the page what clients send and what they keep; a rerun with the same choices changes nothing in the browser."""
    draw(picture(sender), key="sent")


def draw(markup: str, *, key: str) -> None:
    """Draw HTML or SVG of this folder's templates on the page."""
    _component()(key=key, data={"picture": markup})


def picture(sender: ClientBehavior) -> str:
    """Return the drawing of what clients send and keep, as SVG with a text alternative."""
    travels, phones, steps = sender.protocol.travels, sender.clients, sender.steps
    several = phones > 1
    return render(
        "ui/components/sent/sent.svg.jinja",
        description=describe(sender),
        road=ROAD,
        one=None if several else _one(travels, steps),
        several=_several(phones, travels, steps) if several else [],
        stays=_words(64, 82, f"{phones} phones, pictures stay", "gle-quiet")
        if several
        else _words(76, 80, "stays on the phone", "gle-quiet"),
        receiver=sender.receiver,
        has_server=sender.receiver == Travels.receiver,
        sends=_words(sum(ROAD) / 2, 26, ("sums" if sender.other_sums else "sum only") if several else travels.what, "gle-what"),
    )


def describe(sender: ClientBehavior) -> str:
    """Describe in a sentence what the phones keep and send."""
    travels, phones, steps = sender.protocol.travels, sender.clients, sender.steps
    clients = f"Each of {phones} phones" if phones > 1 else "The phone"
    steps_text = (
        ""
        if steps is None
        else f", takes {counted(steps, 'local step')}{', pulled back by the proximal term,' if travels.proximal else ''}"
    )
    kept_text = f" and its {travels.kept}" if travels.kept else ""
    also_sent = f", and {sender.other_sums}" if sender.other_sums else " only"
    sent = (
        f"{sender.receiver} gets the sum of {phones} updates{also_sent}" if phones > 1 else f"only the {travels.what} travels to the server"
    )
    return f"{clients} keeps its pictures{kept_text}{steps_text}; {sent}."


def _one(travels: Travels, steps: int | None) -> dict[str, Any]:
    """Return what the SVG template needs to draw a single phone: its pictures, its local steps and what it keeps."""
    right = 112 if travels.kept else 150
    middle = (46 + right) / 2
    if steps is None:
        caption = _words(middle, 38, travels.without_steps, "gle-quiet")
    else:
        caption = _words(middle, 55, counted(steps, "local step").replace("local " if travels.kept else "", ""), "gle-quiet")
    return {
        "photo": _photo(13, 12, 30),
        "lock": _lock(28, 49),
        "kept": {"words": _words(128.5, 30, travels.kept), "lock": _lock(128.5, 38)} if travels.kept else None,
        "feet": [] if steps is None else _feet(steps, 58, right - 10, 30),
        "did": caption,
        "proximal": travels.proximal,
    }


def _several(phones: int, travels: Travels, steps: int | None) -> list[dict[str, Any]]:
    """Return what the SVG template needs to draw each of several phones, at most ROWS of them."""
    rows = min(phones, ROWS)
    tops = [36 - (17 * rows - 3) / 2 + 17 * row for row in range(rows)]
    return [
        {
            "photo": _photo(6, y + 2, 10),
            "lock": _lock(26, y + 3.5),
            "feet": _feet(min(steps, 5), 40, 66, y + 7, size=0.7) if steps else [],
            "kept": _words(82, y + 10.5, travels.kept) if travels.kept else None,
            "top": f"{y:g}",
            "middle": f"{y + 7:g}",
            "down": f"{29 - y:g}",
            "parcel": f"{y + 4:g}",
        }
        for y in tops
    ]


def _photo(x: float, y: float, side: float) -> dict[str, Any]:
    """Return a photo with a hill and a sun."""
    peaks = ((0.36, -0.5), (0.26, 0.3), (0.14, -0.14), (0.18, 0.34))
    hill = f"{x + 1:g} {y + side - 1:g}l" + " ".join(f"{side * right:g} {side * down:g}" for right, down in peaks)
    sun = (f"{x + side * 0.74:g}", f"{y + side * 0.27:g}", f"{side * 0.11:g}")
    return {"x": f"{x:g}", "y": f"{y:g}", "side": f"{side:g}", "hill": hill, "sun": sun}


def _lock(x: float, y: float) -> dict[str, tuple[str, str]]:
    return {"shackle": (f"{x - 2.5:g}", f"{y + 3:g}"), "body": (f"{x - 4:g}", f"{y + 3:g}")}


def _feet(steps: int, start: float, end: float, y: float, *, size: float = 1.0) -> list[dict[str, str]]:
    """Return footsteps that appear one after the other, one for each local step, at most FEET."""
    count = min(steps, FEET)
    gap = (end - start) / max(count, 2)
    return [
        {
            "at": f"{1500 * number // count}",
            "x": f"{start + gap * (number + 0.5):.1f}",
            "y": f"{y + size * (4 if number % 2 else -4):g}",
            "rx": f"{3.4 * size:g}",
            "ry": f"{1.9 * size:g}",
        }
        for number in range(count)
    ]


def _words(x: float, y: float, text: str, kind: str = "") -> dict[str, str]:
    return {"x": f"{x:g}", "y": f"{y:g}", "text": text, "kind": kind}


@st.cache_resource(show_spinner=False)
def _component() -> ComponentRenderer:
    return component("gle_sent", "sent")
