"""Of the precomputed results those of every attacker: a table for each scene, protections down, attacks across; and in words."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.differences import sentence_case
from leakage.results.precomputed import Cell, Duel, Line, MeasuredScene, leak_count, scenes, seen_words
from leakage.spec.catalog import Catalog
from leakage.spec.threat_model import counted, format_value
from leakage.ui.common.markdown import Markdown, escape
from leakage.ui.compare.table import TableCell, heat

NAIVE, KNOWING = "naive", "adaptive"
DASH = "–"
USUAL = (
    "One CIFAR-10 picture in a gradient of an untrained LeNet, or four of as many phones added up. For R-GAP the phone computes and sends "
    "numbers of 64 bits. GRNN and CI-Net, which are slow, were played with two pictures, and behind eight protections of one strength "
    "each (–: not played)."
)
EXPLAINED = """{about} Each cell: PSNR in decibels, the mean of {tries} runs ({pictures}, {seeds}), coloured by how many are recognizable
or singled out; a grey picture scores {grey:.1f} dB. Adaptive: the strongest of those who know what the phone does; below, what they do.
{settings} {rounds} **Framed: the naive attacker shows none of them, who knows what the phone does shows some.**"""
ROUNDS = "Who puts rounds together watches {} of a server that stands still; nowhere else more than one."


def show(known: Catalog) -> None:
    """The tables of protections and attacks, one at a time."""
    tables = {scene.title: scene for scene in scenes(known)}
    names = list(tables)
    chosen = st.segmented_control("Scene", names, default=names[0], required=True, format_func=escape, key="measured-scene")
    scene = tables[chosen]
    st.markdown(explanation(scene, known))
    st.html(matrix_table(scene.lines, known))
    for words in (*puzzles(scene.lines, known), *left_out(scene, known)):
        st.caption(escape(words))
    titles = {line.title: line for line in scene.lines if not line.refused}
    stack = st.selectbox("Every attacker of one protection, in words", titles, key=f"measured-stack-{names.index(chosen)}")
    st.markdown("\n".join(f"- {escape(sentence)}" for sentence in in_words(titles[stack], known)))


def explanation(scene: MeasuredScene, known: Catalog) -> Markdown:
    """What its cells are, as Markdown."""
    recipe = scene.recipe
    played = [duel.naive for line in scene.lines for duel in line.duels.values() if duel.naive and "psnr" in duel.naive]
    runs = [cell["runs"] for cell in played]
    settings = "; ".join(f"{known.attacks.get(id).short}: {_settings(fields)}" for id, fields in recipe["attacks"].items() if fields)
    told = EXPLAINED.format(
        about=escape(scene.about or USUAL),
        tries=escape(" to ".join(map(str, sorted({min(runs), max(runs)})))),
        pictures=escape(counted(recipe["pictures"], "picture")),
        seeds=escape(counted(recipe["seeds"], "seed")),
        rounds=escape(ROUNDS.format(recipe["watched"]) if recipe["watched"] > 1 else ""),
        grey=float(played[0]["grey_psnr"]),
        settings=escape(f"{settings}."),
    )
    return Markdown(told)


def _settings(fields: dict[str, Any]) -> str:
    """What of an attack is not as usual.

    >>> _settings({"steps": 1500, "polish": 20})
    'steps 1500, polish 20'
    """
    return ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items())


def left_out(scene: MeasuredScene, known: Catalog) -> list[str]:
    """Which attacks are not in it, and why."""
    return [f"{known.attacks.get(id).short} is not in this table: {why}." for id, why in scene.left_out.items()]


def puzzles(lines: Sequence[Line], known: Catalog) -> list[str]:
    """Why knowing of a protection does worse, wherever it does."""
    ids = [part.id for line in lines if any(duel.backfires for duel in line.duels.values()) for part in line.stack]
    found = [known.defenses.find(id) for id in dict.fromkeys(ids)]
    return [entry.backfires for entry in found if entry and entry.backfires]


def in_words(line: Line, known: Catalog) -> list[str]:
    """A sentence for every attacker of a protection."""
    return [
        f"{known.attacks.get(attack).title}. {describe(cell, known)}"
        for attack, duel in line.duels.items()
        for cell in (duel.naive, *duel.knowing.values())
        if cell
    ]


def matrix_table(lines: Sequence[Line], known: Catalog) -> str:
    """As HTML: a line for every protection, for each attack the naive attacker and the one who knows."""
    attacks = list(dict.fromkeys(attack for line in lines for attack in line.duels))
    return render(
        "ui/compare/matrix.html.jinja",
        attackers=(NAIVE, KNOWING),
        attacks=[known.attacks.get(id).short for id in attacks],
        lines=[{"title": line.title, "refused": line.refused, "cells": _cells(line, attacks, known)} for line in lines],
    )


def _cells(line: Line, attacks: Sequence[str], known: Catalog) -> list[TableCell]:
    return [] if line.refused else [it for attack in attacks for it in _duel(line.duels.get(attack), known)]


def _duel(duel: Duel | None, known: Catalog) -> list[TableCell]:
    """The naive attacker's cell and that of who knows the protection."""
    if duel is None or duel.naive is None:
        return [TableCell(text=DASH)] * 2
    if "psnr" not in duel.naive:  # this attack was refused here
        return [TableCell(text=DASH, title=describe(duel.naive, known), span=2)]
    if not duel.knowing:  # no protection: there is nothing to know
        return [_cell(duel.naive, known, span=2)]
    others = " ".join(describe(cell, known) for cell in duel.knowing.values())
    if duel.best is None:
        same = any("same" in cell for cell in duel.knowing.values())
        return [_cell(duel.naive, known), TableCell(text="same" if same else DASH, title=others)]
    return [_cell(duel.naive, known), _cell(duel.best, known, framed=duel.only_naive, words=others)]


def _cell(cell: Cell, known: Catalog, *, words: str = "", framed: bool = False, span: int = 1) -> TableCell:
    return heat(cell["psnr"], leak_count(cell) / cell["runs"], title=words or describe(cell, known), framed=framed, span=span)


def describe(cell: Cell, known: Catalog) -> str:
    """One attacker's result in a sentence."""
    who = sentence_case(known.strategy_title(cell["who"]))
    if "psnr" not in cell:
        return f"{who}: {cell.get('same') or cell.get('absent') or cell.get('refused')}."
    low, high = cell["interval"]
    below = f" Less than who does not know of it: {cell['below']}." if "below" in cell else ""
    return (
        f"{who}: {cell['psnr']:.1f} dB, SSIM {cell['ssim']:.2f}, {seen_words(cell)} ({100 * low:.0f} to {100 * high:.0f} % with 95 % "
        f"confidence), first of the line-up {100 * cell['identified']:.0f} %, labels found out {100 * cell['labels']:.0f} %.{below}"
    )
