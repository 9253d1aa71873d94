"""The precomputed results of every attacker: a table for each scene (protections by attacks), and a sentence for each attacker."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakage.frontend.markup import render
from leakage.results.differences import sentence_case
from leakage.results.precomputed import Cell, Duel, Line, MeasuredScene, leak_count, scenes, seen_words
from leakage.spec.catalog import Catalog
from leakage.spec.words import counted, format_value
from leakage.ui.common.markdown import Markdown, escape
from leakage.ui.compare.table import TableCell, heat

NAIVE, ADAPTIVE = "naive", "adaptive"
DASH = "–"
USUAL = (
    "A phone with one small colour picture (CIFAR-10) and an untrained small network (LeNet), or four such phones whose updates are added "
    "up. For one attack (R-GAP) the phone computes and sends more precise numbers (64 bits). Two slow attacks (GRNN and CI-Net) were run "
    "with two pictures, and against eight protections at one strength each (–: not run)."
)
EXPLAINED = (
    "{about} Each cell says how close the guess came, in decibels (PSNR): the mean of {tries} runs ({pictures}, "
    "{seeds}). The colour of a cell says how many pictures are recognizable, or singled out in a line-up. A grey picture scores "
    "{grey:.1f} dB. Several attackers know what the phone does; “adaptive” here means the strongest of them. {settings} {rounds} **A cell "
    "has a frame if the naive attacker shows none of the pictures, and the adaptive attacker shows some.**"
)
ROUNDS = (
    "An attacker that combines rounds of training watches {} rounds in which the server sends the same model. All other "
    "attackers watch one round."
)


def show(known: Catalog) -> None:
    """Draw a precomputed table of protections by attacks (the visitor chooses which), and sentences on every attacker of one protection."""
    tables = {scene.title: scene for scene in scenes(known)}
    names = list(tables)
    chosen = st.segmented_control("Scene", names, default=names[0], required=True, format_func=escape, key="measured-scene")
    scene = tables[chosen]
    st.markdown(explanation(scene, known))
    st.html(matrix_table(scene.lines, known))
    for note in (*puzzles(scene.lines, known), *left_out(scene, known)):
        st.caption(escape(note))
    titles = {line.title: line for line in scene.lines if not line.refused}
    stack = st.selectbox("Every attacker against one protection, in words", titles, key=f"measured-stack-{names.index(chosen)}")
    st.markdown("\n".join(f"- {escape(sentence)}" for sentence in in_words(titles[stack], known)))


def explanation(scene: MeasuredScene, known: Catalog) -> Markdown:
    """Explain what a cell of a precomputed table shows, as Markdown."""
    recipe = scene.recipe
    cells = [duel.naive for line in scene.lines for duel in line.duels.values() if duel.naive and "psnr" in duel.naive]
    runs = [cell["runs"] for cell in cells]
    settings = "; ".join(f"{known.attacks.get(id).short}: {_settings(fields)}" for id, fields in recipe["attacks"].items() if fields)
    text = EXPLAINED.format(
        about=escape(scene.about or USUAL),
        tries=escape(" to ".join(map(str, sorted({min(runs), max(runs)})))),
        pictures=escape(counted(recipe["pictures"], "picture")),
        seeds=escape(counted(recipe["seeds"], "seed")),
        rounds=escape(ROUNDS.format(recipe["watched"]) if recipe["watched"] > 1 else ""),
        grey=float(cells[0]["grey_psnr"]),
        settings=escape(f"{settings}."),
    )
    return Markdown(text)


def _settings(fields: dict[str, Any]) -> str:
    """Return the settings of an attack that differ from its defaults, as a phrase.

    >>> _settings({"steps": 1500, "polish": 20})
    'steps 1500, polish 20'
    """
    return ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in fields.items())


def left_out(scene: MeasuredScene, known: Catalog) -> list[str]:
    """Return a sentence for each attack that is missing in a precomputed table, with the reason."""
    return [f"{known.attacks.get(id).short} is not in this table: {why}." for id, why in scene.left_out.items()]


def puzzles(lines: Sequence[Line], known: Catalog) -> list[str]:
    """Return why an adaptive attacker does worse than a naive one, for each protection in the table where it does."""
    ids = [part.id for line in lines if any(duel.backfires for duel in line.duels.values()) for part in line.stack]
    entries = [known.defenses.find(id) for id in dict.fromkeys(ids)]
    return [entry.backfires for entry in entries if entry and entry.backfires]


def in_words(line: Line, known: Catalog) -> list[str]:
    """Return a sentence for every attacker of a protection."""
    return [
        f"{known.attacks.get(attack).title}. {describe(cell, known)}"
        for attack, duel in line.duels.items()
        for cell in (duel.naive, *duel.knowing.values())
        if cell
    ]


def matrix_table(lines: Sequence[Line], known: Catalog) -> str:
    """Return the table as HTML: a row for each protection, and for each attack the naive and the adaptive attacker."""
    attacks = list(dict.fromkeys(attack for line in lines for attack in line.duels))
    return render(
        "ui/compare/matrix.html.jinja",
        attackers=(NAIVE, ADAPTIVE),
        attacks=[known.attacks.get(id).short for id in attacks],
        lines=[{"title": line.title, "refused": line.refused, "cells": _cells(line, attacks, known)} for line in lines],
    )


def _cells(line: Line, attacks: Sequence[str], known: Catalog) -> list[TableCell]:
    return [] if line.refused else [cell for attack in attacks for cell in _duel(line.duels.get(attack), known)]


def _duel(duel: Duel | None, known: Catalog) -> list[TableCell]:
    """Return the table cells of one attack against one protection: naive and adaptive attacker, or a wide cell for both."""
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
    """Describe one attacker's result in a sentence."""
    name = sentence_case(known.strategy_title(cell["who"]))
    if "psnr" not in cell:
        return f"{name}: {cell.get('same') or cell.get('absent') or cell.get('refused')}."
    low, high = cell["interval"]
    comparison = f" This attacker comes less close than the naive attacker: {cell['below']}." if "below" in cell else ""
    return (
        f"{name}: {cell['psnr']:.1f} dB, SSIM {cell['ssim']:.2f}, {seen_words(cell)} ({100 * low:.0f} to {100 * high:.0f} % with 95 % "
        f"confidence), first of the line-up {100 * cell['identified']:.0f} %, labels found {100 * cell['labels']:.0f} %.{comparison}"
    )
