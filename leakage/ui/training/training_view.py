"""A training on the page: how good the model is after every round, live or later, and where to attack it."""

from urllib.parse import quote

import plotly.graph_objects as go
import streamlit as st

from leakage.data import checkpoints
from leakage.data.datasets import PictureError, datasets, training_files
from leakage.results.durations import duration
from leakage.runs.events import RoundEvent, TrainingEnd, TrainingEvent
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.prepared import prepared
from leakage.spec.tasks import Training
from leakage.ui.common import forms, gone
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.training import attackers, under_way

GUESSING = 0.1  # ten classes


def show(run_id: str) -> None:
    """The training of that id; drawn once a second while it moves."""
    run = service().look(run_id)
    if run is not None and run.kind == "invert":
        under_way.show(run, attackers.picture)
    elif run is None or run.kind != "train":
        st.warning(f"This training is not here: {gone.why([run_id])}. Choose settings and press Train.")
    else:
        under_way.show(run, picture)


def picture(run: Run) -> None:
    """Headline, curves, what to do next."""
    training = run.experiment_as(Training)
    words = service().progress(run.id)
    rounds = [told for told in words if isinstance(told, RoundEvent)]
    st.markdown(f"**{escape(headline(run, training, rounds))}**")
    done = words[-1].done / training.rounds if words else 0.0
    st.progress(min(1.0, done), text=escape(standing(run, training, words)))
    st.plotly_chart(figure(training, rounds, words), key="curves", config={"displayModeBar": False})
    actions(run)


def headline(run: Run, training: Training, rounds: list[RoundEvent]) -> str:
    """What has been reached, beside what guessing would."""
    if run.status == "failed":
        return run.message
    if not rounds:
        if run.status not in OPEN:
            return "Stopped before the first round had ended"
        return under_way.waiting(run, "The first round is under way")
    last = rounds[-1]
    right = f"{last.accuracy:.1%} accuracy on the test pictures (guessing: {GUESSING:.0%})"
    return f"After round {last.done:.0f} of {training.rounds}: {right}"


def standing(run: Run, training: Training, words: list[TrainingEvent]) -> str:
    """One line under the headline: how it ended, or how long it will take."""
    if run.status not in OPEN:
        return run.message or f"Finished after {duration(words[-1].seconds if words else 0)}."
    if len(words) < 2:
        return "Reading the pictures."
    first, last = words[0], words[-1]
    rate = (last.seconds - first.seconds) / max(last.done - first.done, 1e-9)
    return f"Round {int(last.done) + 1} of {training.rounds}, about {duration(rate * (training.rounds - last.done))} to go"


def figure(training: Training, rounds: list[RoundEvent], words: list[TrainingEvent]) -> go.Figure:
    """Accuracy above, loss below, on one axis of rounds."""
    made = go.Figure()
    steps = [told.done for told in rounds]
    made.add_scatter(x=steps, y=[100 * told.accuracy for told in rounds], mode="lines+markers", name="accuracy", hovertemplate="%{y:.1f} %")
    made.add_scatter(
        x=[told.done for told in words],
        y=[told.loss for told in words],
        mode="lines",
        name="loss",
        yaxis="y2",
        hovertemplate="%{y:.3f}",
    )
    made.add_hline(100 * GUESSING, line_dash="dot", line_color="#888", annotation_text="guessing", annotation_position="top right")
    made.update_layout(
        height=420,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        showlegend=False,
        hovermode="x",
        xaxis={"title": "round", "range": [0, training.rounds], "anchor": "y2"},
        yaxis={"title": "accuracy on test pictures (%)", "domain": [0.42, 1], "range": [0, 100]},
        yaxis2={"title": "training loss", "domain": [0, 0.34], "rangemode": "tozero"},
        uirevision="same",
    )
    return made


def actions(run: Run) -> None:
    """Stop it, attack what it learned, take the curves away."""
    end = run.outcome(TrainingEnd)
    name = end.checkpoint if end else None
    with st.container(horizontal=True, vertical_alignment="center"):
        under_way.stop_button(run, "The same training, started again, goes on.")
        if run.status in ("cancelled", "failed"):
            words = "From the last full round, with the same settings."
            st.button("Go on", on_click=go_on, args=(run,), icon=":material/play_arrow:", help=words)
        if name:
            st.link_button("Attack it in the lab", lab_link(name), icon=":material/science:", type="primary")
        st.link_button("Curves (CSV)", f"{base()}/api/runs/{run.id}/curves.csv", icon=":material/download:", type="tertiary")


def go_on(run: Run) -> None:
    """Ask for the same training again, and look at it."""
    under_way.begin(run.experiment_as(Training))


def missing(data: str) -> str:
    """What to do when the pictures of a data set are not on this machine; empty when they are."""
    try:
        training_files(data)
    except PictureError as error:
        return str(error)
    return "" if datasets()[data].is_available else datasets()[data].remedy


def lab_link(name: str) -> str:
    """The lab with this checkpoint and all that belongs to it chosen."""
    try:
        card, _ = checkpoints.find(name)
    except checkpoints.CheckpointError:
        return f"{base()}/"
    fields = "".join(f"&{card.model}.{field}={quote(str(value))}" for field, value in card.fields.items())
    links = prepared().training
    by = links.attack_of.get(card.model, links.attack)
    attack = "" if by == forms.DEFAULTS["attack"] else f"&attack={by}"
    return f"{base()}/?model={card.model}{fields}&checkpoint={name}&size={card.image_shape[1]}&channels={card.image_shape[0]}{attack}"


def shelf(known: Catalog) -> None:
    """Every trained model on this machine, with a way into the lab."""
    cards = checkpoints.cards()
    if not cards:
        return
    titles = {(entry.kind, entry.id): entry.short for entry in known.entries}
    st.markdown("**Trained models on this machine**")
    for id, card in cards.items():
        right = ", ".join(f"{stage.accuracy:.1%} after {stage.rounds}" for stage in card.stages)
        protected = [titles.get(("defense", part["id"]), part["id"]) for part in card.training.get("defenses", ())]
        model, behind = titles.get(("model", card.model), card.model), "".join(f"with {name} " for name in protected)
        what = f"{behind}on {card.pictures:,} pictures of {card.trained_on}: accuracy {right} {card.unit}s."
        attack = link(Markdown("Attack it"), lab_link(f"{id}@{card.stages[-1].rounds}"))
        st.markdown(f"- **{escape(model)}** {escape(what)} {attack}", help=escape(card.recipe))
