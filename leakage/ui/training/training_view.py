"""A training on the page: the accuracy of the model after every round, during the training and afterwards, and where to attack it."""

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

GUESSING = 0.1  # accuracy of guessing among ten classes


def show(run_id: str) -> None:
    """Draw a training, again every second while it waits or runs.

    Args:
        run_id: the run of a model's or an attacker's training.
    """
    run = service().look(run_id)
    if run is not None and run.kind == "invert":
        under_way.show(run, attackers.render)
    elif run is None or run.kind != "train":
        st.warning(f"This training is not here: {gone.why([run_id])}. Choose settings and press Train.")
    else:
        under_way.show(run, render)


def render(run: Run) -> None:
    """Draw the training of a model: headline, progress, curves, and what to do next."""
    training = run.experiment_as(Training)
    events = service().progress(run.id)
    rounds = [event for event in events if isinstance(event, RoundEvent)]
    st.markdown(f"**{escape(headline(run, training, rounds))}**")
    done = events[-1].done / training.rounds if events else 0.0
    st.progress(min(1.0, done), text=escape(standing(run, training, events)))
    st.plotly_chart(figure(training, rounds, events), key="curves", config={"displayModeBar": False})
    actions(run)


def headline(run: Run, training: Training, rounds: list[RoundEvent]) -> str:
    """Return the accuracy that the model reaches beside that of guessing, or how the training stands."""
    if run.status == "failed":
        return run.message
    if not rounds:
        if run.status not in OPEN:
            return "Stopped before the first round of training had ended"
        return under_way.waiting(run, "The first round of training is under way")
    last = rounds[-1]
    right = f"{last.accuracy:.1%} accuracy on the test pictures (guessing: {GUESSING:.0%})"
    return f"After round {last.done:.0f} of {training.rounds}: {right}"


def standing(run: Run, training: Training, events: list[TrainingEvent]) -> str:
    """Return how the training ended, or about how long it will still take."""
    if run.status not in OPEN:
        return run.message or f"Finished after {duration(events[-1].seconds if events else 0)}."
    if len(events) < 2:
        return "Reading the pictures."
    first, last = events[0], events[-1]
    rate = (last.seconds - first.seconds) / max(last.done - first.done, 1e-9)
    return f"Round {int(last.done) + 1} of {training.rounds}, about {duration(rate * (training.rounds - last.done))} to go"


def figure(training: Training, rounds: list[RoundEvent], events: list[TrainingEvent]) -> go.Figure:
    """Plot accuracy above and loss below, over the rounds."""
    chart = go.Figure()
    steps = [event.done for event in rounds]
    chart.add_scatter(
        x=steps, y=[100 * event.accuracy for event in rounds], mode="lines+markers", name="accuracy", hovertemplate="%{y:.1f} %"
    )
    chart.add_scatter(
        x=[event.done for event in events],
        y=[event.loss for event in events],
        mode="lines",
        name="loss",
        yaxis="y2",
        hovertemplate="%{y:.3f}",
    )
    chart.add_hline(100 * GUESSING, line_dash="dot", line_color="#888", annotation_text="guessing", annotation_position="top right")
    chart.update_layout(
        height=420,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        showlegend=False,
        hovermode="x",
        xaxis={"title": "round", "range": [0, training.rounds], "anchor": "y2"},
        yaxis={"title": "accuracy on test pictures (%)", "domain": [0.42, 1], "range": [0, 100]},
        yaxis2={"title": "training loss", "domain": [0, 0.34], "rangemode": "tozero"},
        uirevision="same",
    )
    return chart


def actions(run: Run) -> None:
    """Offer to stop the training, to continue it, to attack the trained model, and to download the curves."""
    end = run.outcome(TrainingEnd)
    name = end.checkpoint if end else None
    with st.container(horizontal=True, vertical_alignment="center"):
        under_way.stop_button(run, "If you start the same training again, it goes on from the last full round.")
        if run.status in ("cancelled", "failed"):
            explanation = "The training continues from the last full round, with the same settings."
            st.button("Go on", on_click=go_on, args=(run,), icon=":material/play_arrow:", help=explanation)
        if name:
            st.link_button("Attack this model in the lab", lab_link(name), icon=":material/science:", type="primary")
        st.link_button("Curves (CSV)", f"{base()}/api/runs/{run.id}/curves.csv", icon=":material/download:", type="tertiary")


def go_on(run: Run) -> None:
    """Queue the same training again, which continues from its last full round, and open it."""
    under_way.begin(run.experiment_as(Training))


def missing(data: str) -> str:
    """Return what to do if the pictures of a data set are not on this machine; an empty string if they are."""
    try:
        training_files(data)
    except PictureError as error:
        return str(error)
    return "" if datasets()[data].is_available else datasets()[data].remedy


def lab_link(name: str) -> str:
    """Return the address of the lab with a checkpoint, its model and its picture size chosen."""
    try:
        card, _ = checkpoints.find(name)
    except checkpoints.CheckpointError:
        return f"{base()}/"
    fields = "".join(f"&{card.model}.{field}={quote(str(value))}" for field, value in card.fields.items())
    links = prepared().training
    attack_id = links.attack_of.get(card.model, links.attack)
    attack = "" if attack_id == forms.DEFAULTS["attack"] else f"&attack={attack_id}"
    return f"{base()}/?model={card.model}{fields}&checkpoint={name}&size={card.image_shape[1]}&channels={card.image_shape[0]}{attack}"


def shelf(known: Catalog) -> None:
    """List every trained model on this machine, with its accuracy and a link to the lab."""
    cards = checkpoints.cards()
    if not cards:
        return
    titles = {(entry.kind, entry.id): entry.short for entry in known.entries}
    st.markdown("**Trained models on this machine**")
    for id, card in cards.items():
        accuracies = ", ".join(f"{stage.accuracy:.1%} after {stage.rounds}" for stage in card.stages)
        titles_of_defenses = [titles.get(("defense", part["id"]), part["id"]) for part in card.training.get("defenses", ())]
        model, protection = titles.get(("model", card.model), card.model), "".join(f"with {name} " for name in titles_of_defenses)
        sentence = f"{protection}on {card.pictures:,} pictures of {card.trained_on}: accuracy {accuracies} {card.unit}s."
        attack = link(Markdown("Attack it"), lab_link(f"{id}@{card.stages[-1].rounds}"))
        st.markdown(f"- **{escape(model)}** {escape(sentence)} {attack}", help=escape(card.recipe))
