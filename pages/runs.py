"""The runs of this browser: look again, share, delete."""

import time

import streamlit as st

from leakage.results.markup import render
from leakage.runs.endings import how_it_stands
from leakage.runs.events import AttackEnd, TrainingEnd
from leakage.runs.service import service
from leakage.runs.store import Run
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import Ranks, Training
from leakage.ui.common import explain
from leakage.ui.common.base_path import base
from leakage.ui.common.session import delete_all, owner


def attack_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """How it ended, what it was, and its page."""
    end, how = run.outcome(AttackEnd), how_it_stands(run)
    if end and end.scores.psnr is not None and end.verdict:
        how += f" · {end.verdict.word}, PSNR {end.scores.psnr:.1f} dB"
    return how, explain.title(Experiment.model_validate_json(run.experiment), known), f"{base()}/?run={run.id}"


def training_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """The same of a training."""
    end = run.outcome(TrainingEnd)
    reached = end.accuracy if end else None
    how = how_it_stands(run) + ("" if reached is None else f" · accuracy {reached:.1%}")
    return how, explain.training_title(Training.model_validate_json(run.experiment), known), f"{base()}/training?run={run.id}"


def ranks_row(run: Run, _known: Catalog) -> tuple[str, str, str]:
    """The same of ranks that were measured."""
    asked = Ranks.model_validate_json(run.experiment)
    found = [rank for rank in service().ranks(run.id).values() if rank is not None]
    whole = " and the whole gradient" if service().gradient_rank(run.id) else ""
    how = f"{how_it_stands(run)} · {len(found)} of {len(asked.layers)} layers{whole} measured"
    return how, explain.ranks_title(asked), explain.ranks_link(asked)


ROWS = {"attack": attack_row, "train": training_row, "rank": ranks_row}


def row(run: Run, known: Catalog) -> None:
    """One run: what, when, how it ended."""
    how, title, link = ROWS[run.kind](run, known)
    when = time.strftime("%d %b %H:%M", time.localtime(run.created))
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            if run.result and run.kind == "attack":
                st.html(render("ui/common/mini.html.jinja", address=f"{base()}/api/runs/{run.id}/final.png"), width="content")
            st.markdown(f"[**{title}**]({link})  \n{when} · {how}", width="content")
        st.button(
            "Delete",
            key=f"delete-{run.id}",
            icon=":material/delete:",
            type="tertiary",
            on_click=service().delete,
            args=(run.id, owner()),
        )


def page() -> None:
    """The whole page, top to bottom."""
    st.markdown("#### The runs of this browser")
    known = service().catalog()
    if known is None:
        st.caption("Getting ready. Come back in a few seconds.")
        return
    mine = service().mine(owner())
    if not mine:
        st.info("No runs yet. Choose pictures in the lab and press Run.")
        return
    delete_all()
    for run in mine:
        row(run, known)
    st.caption(explain.PROMISE)


page()
