"""The page Training: train a model, centrally or in a federation, with or without protection, for the Lab to attack."""

from typing import Any, Literal, TypeAlias

import streamlit as st

from leakage.data.datasets import TITLES
from leakage.runs.service import service
from leakage.spec.catalog import Catalog
from leakage.spec.tasks import Training
from leakage.ui.common import forms
from leakage.ui.common.markdown import escape
from leakage.ui.common.more_data import show_missing
from leakage.ui.training import attackers, training_view, under_way

Data: TypeAlias = Literal["digits", "mnist", "cifar10"]
DATA: dict[Data, str] = {
    "digits": "Handwritten digits that ship with the program: 1,500 for training, 297 for testing; 28 px, grey.",
    "mnist": "Handwritten digits, 28 px, grey.",
    "cifar10": "Animals and vehicles, 32 px, colour.",
}
SPLITS: dict[Literal["iid", "shards"], str] = {"iid": "At random", "shards": "Pictures of about two classes on each phone"}
OPTIMISERS = {"sgd": "Training steps that partly repeat the step before (SGD with momentum)", "adam": "Adam"}
SCHEDULES = ("cosine", "steps", "constant")
DEFAULT = Training()
SMALL_BATCH = 16  # for the few digits that ship with the program: an epoch then has 94 steps


def settings(known: Catalog) -> Training | None:
    """Draw the cards for model, pictures, training and protection, and return the training; None where it cannot run."""
    with st.container(border=True, gap="small", key="step-1"):
        st.markdown("**1 · The model**")
        model = forms.choose(known, "model", "Model")
    with st.container(border=True, gap="small", key="step-2"):
        st.markdown("**2 · The pictures that the model learns from**")
        missing = [name for name in DATA if training_view.missing(name)]
        here = [name for name in DATA if name not in missing or name == st.session_state.get("data")]
        first: Data = "mnist" if "mnist" in here else "digits"
        data = st.segmented_control("Data set", here, default=first, required=True, format_func=TITLES.__getitem__, key="data")
        problem = training_view.missing(data)
        st.caption(escape(problem or DATA[data]))
        show_missing(missing)
    with st.container(border=True, gap="small", key="step-3"):
        st.markdown("**3 · Who trains**")
        rounds = st.number_input("Rounds", 1, 1000, 5, key="rounds", help="After each round the model is tested on the test pictures.")
        clients = st.number_input(
            "Clients",
            1,
            100,
            1,
            key="clients",
            help="With 1 phone, all pictures are in one place (central training). With more, each phone trains on its part of the "
            "pictures, and the server averages the models that the phones send (FedAvg).",
        )
        partition: Literal["iid", "shards"] = "iid"
        local_epochs = 1
        if clients > 1:
            partition = st.segmented_control(
                "How the pictures are shared out among the phones",
                list(SPLITS),
                default="iid",
                required=True,
                format_func=SPLITS.__getitem__,
                key="split",
            )
            local_epochs = st.number_input("How often a phone goes through its pictures in a round (epochs)", 1, 20, 1, key="local_epochs")
        fine = fine_settings(data)
    with st.container(border=True, gap="small", key="step-4"):
        st.markdown("**4 · Protection**")
        defense = forms.choose(known, "defense", "Protection")
        if defense:
            st.caption(
                "Train one model with this protection and one model without it, all else equal: the difference in "
                "accuracy is the cost of the protection."
            )
    if problem or not model:
        return None
    return Training(
        model=model,
        data=data,
        rounds=rounds,
        clients=clients,
        partition=partition,
        local_epochs=local_epochs,
        defenses=(defense,) if defense else (),
        **fine,
    )


def fine_settings(data: str) -> dict[str, Any]:
    """Draw the recipe of the training behind a button, and return the fields of the Training that it sets."""
    with st.popover("Recipe", icon=":material/tune:", key="recipe"):
        optimiser = st.selectbox("Optimiser", list(OPTIMISERS), key="optimiser", format_func=OPTIMISERS.__getitem__)
        return {
            "optimiser": optimiser,
            "rate": st.number_input(
                "Learning rate", 0.00001, 10.0, 0.1 if optimiser == "sgd" else 0.001, format="%g", key=f"rate-{optimiser}"
            ),
            "batch": st.number_input("Batch size", 1, 1024, SMALL_BATCH if data == "digits" else DEFAULT.batch, key=f"batch-{data}"),
            "server_rate": st.number_input(
                "How far the server moves the model (step size)",
                0.0001,
                10.0,
                1.0,
                format="%g",
                key="server-rate",
                help="How far the server moves the model towards the average of the updates. With 1 it moves to the average (FedAvg). "
                "The protection AdaDefense sends numbers of about 1 or -1, so it needs a far smaller step: try 0.01.",
            ),
            "schedule": st.selectbox("Size of the training steps (learning rate) over time", SCHEDULES, key="schedule"),
            "augment": st.toggle("Shift and mirror pictures at random", data == "cifar10", key=f"augment-{data}"),
            "pictures": st.number_input("Number of training pictures (0: all)", 0, 60_000, 0, 1000, key="training-pictures"),
            "seed": st.number_input("Random start (seed)", 0, 2**31 - 1, DEFAULT.seed, key="training-seed"),
        }


def start(task: Training | None) -> None:
    """Draw the Train button, and below it the training of an attacker's network; begin the training when pressed."""
    with st.container(key="run-bar"):
        if st.button("Train", type="primary", icon=":material/play_arrow:", width="stretch", disabled=task is None) and task:
            under_way.begin(task)
        attackers.ask(task)


def page() -> None:
    """Draw the whole page, from top to bottom."""
    st.markdown("#### How well does a model learn? Does a trained model leak less?")
    known = service().catalog()
    if known is None:
        st.caption("Getting ready. Come back in a few seconds.")
        return
    left, right = st.columns([0.3, 0.7], gap="medium")
    with left:
        start(settings(known))
    with right:
        run = st.query_params.get("run")
        if run:
            training_view.show(run)
        else:
            st.info(
                "Choose a model and a data set, press **Train**, and watch. Then attack the model as it was after "
                "1, 5 or all rounds of training."
            )
        training_view.shelf(known)
        attackers.shelf(known)


page()
