"""Trained attackers (networks that learn to undo updates): the button that trains one, its progress and result, all on this machine."""

import math
from urllib.parse import quote

import plotly.graph_objects as go
import streamlit as st

from leakage.data.datasets import TITLES
from leakage.data.inverters import InverterCard, inverters
from leakage.results.durations import duration
from leakage.runs.events import InverterEnd
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.catalog import Catalog
from leakage.spec.prepared import prepared
from leakage.spec.tasks import InverterTraining, Training
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.training import under_way

HELP = (
    "The attacker trains a network that turns the updates of phones into pictures (Learning to Invert). This network sees thousands "
    "of other pictures, each with the update that the chosen protection makes of it. The model on the phones stays untrained. "
    "Afterwards the lab can attack with this network."
)
RECIPES = (
    "The size of the network that learns to turn updates back into pictures. Our network is small and trains in two to six minutes; with "
    "the protection Soteria, in a quarter of an hour. The other network has layers with as many numbers as those of the published network "
    "(Wu et al. 2023) and, like it, goes through the pictures 200 times. Both have fewer layers than the published network, and see a "
    "summary of each update."
)


def title(task: InverterTraining, known: Catalog) -> str:
    """Return a line that names the attacker's model, protections and data set."""

    def name(kind: str, id: str) -> str:
        return entry.short if (entry := known.of(kind).find(id)) else id

    behind = " and ".join(name("defense", part.id) for part in task.defenses) or "no protection"
    return f"Attacker trained to turn updates of {name('model', task.model.id)} ({behind}) into pictures, on {TITLES[task.data]}"


def ask(training: Training | None) -> None:
    """Draw a menu of recipes and a button that trains an attacker.

    Args:
        training: the chosen training of a model; the attacker learns to undo updates of this model behind its protections. None if the
            settings are not valid.
    """
    recipes = prepared().training.attackers
    chosen = st.selectbox("Size of the attacker's network", recipes, key="attacker-recipe", help=RECIPES)
    data = training.data if training and training.data != "digits" else None
    if training and not data:
        st.caption(
            "The digits that ship with this program are too few to train an attacker on. Choose another data set of "
            "pictures: MNIST or CIFAR-10."
        )
    if st.button("Train an attacker", icon=":material/school:", width="stretch", disabled=not data, help=HELP) and training and data:
        task = InverterTraining(model=training.model, data=data, defenses=training.defenses, seed=training.seed)
        under_way.begin(InverterTraining.model_validate({**dict(task), **recipes[chosen]}))


def render(run: Run) -> None:
    """Draw the training of an attacker: headline, progress, curve, and what to do next."""
    task, progress = run.experiment_as(InverterTraining), service().progress(run.id)
    end, known = run.outcome(InverterEnd), service().catalog()
    st.markdown(f"**{escape(headline(run, end))}**")
    if known:
        st.caption(escape(title(task, known)))
    done = progress[-1].done if progress else 0
    standing = f"Pass {done:.0f} of {task.epochs} through the pictures" if progress else "Computing what the phone sends for each picture"
    st.progress(min(1.0, done / task.epochs), text=escape(run.message or (f"Finished after {duration(end.seconds)}." if end else standing)))
    values = [(event.done, event.loss) for event in progress if event.loss and event.done]
    if values:
        chart = go.Figure(go.Scatter(x=[x for x, _ in values], y=[decibels(loss) for _, loss in values], mode="lines+markers"))
        if end and end.mse_mean:
            annotation = "the average picture, made without any update"
            chart.add_hline(decibels(end.mse_mean), line_dash="dot", line_color="#888", annotation_text=annotation)
        chart.update_layout(height=340, margin={"l": 10, "r": 10, "t": 10, "b": 10}, xaxis_title="epoch", yaxis_title="PSNR (dB)")
        st.plotly_chart(chart, key="attacker-curve", config={"displayModeBar": False})
    with st.container(horizontal=True, vertical_alignment="center"):
        under_way.stop_button(run)
        if end and (card := inverters().get(end.inverter or "")):
            st.link_button("Attack with this network in the lab", lab_link(card), icon=":material/science:", type="primary")


def headline(run: Run, end: InverterEnd | None) -> str:
    """Return what the attacker reaches beside the mean picture, or how the training stands."""
    if run.status == "failed":
        return run.message
    if end and end.mse and end.mse_mean:
        return (
            f"{decibels(end.mse):.1f} dB on pictures that it never saw; the average picture, made without any update, "
            f"reaches {decibels(end.mse_mean):.1f} dB"
        )
    if run.status not in OPEN:
        return "Stopped: nothing of this attacker is kept"
    return under_way.waiting(run, "An attacker is being trained")


def lab_link(card: InverterCard) -> str:
    """Return the address of the lab with the model, protection and pictures that this attacker was trained for."""
    model, fields = card.model["id"], card.model["fields"]
    query = "".join(f"&{model}.{name}={quote(str(value))}" for name, value in fields.items())
    for part in card.defenses[:1]:
        query += f"&defense={part['id']}" + "".join(f"&{part['id']}.{name}={quote(str(value))}" for name, value in part["fields"].items())
    shape = f"&size={card.image_shape[1]}&channels={card.image_shape[0]}&seed={card.seed}"
    attack = next((entry.id for entry in service().ready().attacks if entry.learned), "")
    return f"{base()}/?model={model}{query}{shape}&source={card.data}&attack={attack}"


def shelf(known: Catalog) -> None:
    """List every trained attacker on this machine, with what it reaches and a link to the lab."""
    cards = sorted(inverters().items())
    if not cards:
        return
    st.markdown("**Attackers trained on this machine** (Learning to Invert)")
    for _, card in cards:
        reached = f"{decibels(card.mse):.1f} dB on {card.held_out} pictures of {TITLES[card.data]} that it never saw"
        weights = f"trained ({card.checkpoint})" if card.checkpoint else f"untrained, seed {card.seed}"
        sentence = f"({weights}): {reached}; the average picture, made without any update, {decibels(card.mse_mean):.1f} dB."
        classes = ", ".join(f"{label}: {decibels(mse):.1f}" for label, mse in enumerate(card.mse_of_class) if mse > 0)
        details = f"Closeness by class, in dB: {classes}. Trained in {duration(card.seconds)}."
        name = title(InverterTraining.model_validate(card.training), known)
        st.markdown(f"- **{escape(name)}** {escape(sentence)} {link(Markdown('Attack with it'), lab_link(card))}", help=escape(details))


def decibels(mse: float) -> float:
    """Return the PSNR in dB of a mean squared error of pictures in [0, 1]."""
    return -10 * math.log10(mse)
