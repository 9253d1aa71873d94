"""The pictures of a data set in the order of their gradients' norms, in the Lab; a worker measures the norms."""

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st

from leakage.data.checkpoints import CheckpointError
from leakage.data.images import Item, PictureError, datasets
from leakage.runs.events import GradientNormsEnd
from leakage.runs.run_request import version_of_weights
from leakage.runs.service import service
from leakage.runs.store import OPEN
from leakage.spec.catalog import Catalog, CatalogError
from leakage.spec.experiment import Experiment, SpecError
from leakage.spec.lab_settings import experiment_of
from leakage.spec.tasks import GradientNorms
from leakage.ui.common import forms
from leakage.ui.common.markdown import Markdown, escape
from leakage.ui.lab import measured
from leakage.ui.lab.client_choice import has_batch_norm

KEY = "order"  # in session state
USUAL, LONGEST, SHORTEST = "", "longest", "shortest"
ORDERS = {USUAL: "As in the data set", LONGEST: "Longest gradient first", SHORTEST: "Shortest gradient first"}
HELP = (
    "The chosen network computes the gradient of each of the first 200 test pictures, one picture alone, without a protection. If the "
    "network is sure of the right class, the gradient is short (a small Euclidean norm). Geiping et al. (2020, figure 9) asked whether "
    "such pictures leak less. Our benchmark attacked pictures at both ends on a trained ResNet. Without noise both ends scored below a "
    "grey picture. With noise of a fixed size, the attack lost the labels of the short gradients, but not of the long ones. "
    "A picture that you have chosen stands first if it would not be among those shown."
)
WAITING = "The gradients are measured now. The pictures stand as in the data set until then."
NOT_MEASURED = "The gradients were not measured, so the pictures stand as in the data set."


def choose_order(source: str, known: Catalog) -> list[Item]:
    """Draw the choice of an order for the pictures of a data set, and return the pictures in the order of their gradients' norms.

    The result is empty where the visitor chose the usual order, and while the norms are not there; a sentence then says why.

    Args:
        source: the name of a data set on this machine.
        known: the catalog of plug-ins.
    """
    order = st.selectbox(
        "Order of the pictures", list(ORDERS), format_func=ORDERS.__getitem__, key=KEY, help=HELP, persist_state=forms.KEPT
    )
    if order == USUAL:
        return []
    try:
        experiment = _experiment(source, known)
        task = GradientNorms.of(experiment, version_of_weights(experiment)).resolve(known)
        run = measured.ask(task)
        if run and run.status not in (*OPEN, "done") and st.button("Measure again", key="measure-again", icon=":material/refresh:"):
            run = service().look(service().measure(task, measured.OWNER))
    except (SpecError, CatalogError, CheckpointError) as error:
        st.caption(_refused(str(error)))
        return []
    if run and run.status in OPEN:
        measured.wait(run.id, WAITING)
    elif run and run.status == "done" and (end := run.outcome(GradientNormsEnd)):
        return _in_order(source, task.count, end.norms, longest=order == LONGEST)
    else:
        st.caption(_refused(run.message if run else ""))
    return []


def _experiment(source: str, known: Catalog) -> Experiment:
    """Return the experiment of the Lab's settings with a picture of a data set. Raises CatalogError.

    Settings that do not belong to the chosen model are left out, as in the widgets, which are drawn below and correct them later.
    """
    picture = forms.DEFAULT.pictures[0].model_copy(update={"source": source, "id": "0"})
    asked = experiment_of({str(key): value for key, value in st.session_state.items()}, (picture,), known)
    fitting: dict[str, Any] = {"outputs": 0} if asked.task != "classes" else {"loss": forms.DEFAULT.loss}
    if asked.checkpoint not in forms.trainings(asked.model):
        fitting["checkpoint"] = forms.UNTRAINED
    if not has_batch_norm(asked.model.fields):
        fitting["batch_norm"] = forms.DEFAULT.batch_norm
    return asked.model_copy(update=fitting)


def _in_order(source: str, count: int, norms: Mapping[str, float | None], *, longest: bool) -> list[Item]:
    """Return the first pictures of a data set by their norms, those without a finite norm last, and draw the ends of the order.

    Args:
        source: the name of the data set.
        count: how many pictures were measured.
        norms: id of a picture -> norm of its gradient.
        longest: whether the longest gradient comes first.
    """

    def place(item: Item) -> float:
        norm = norms.get(item.id)
        return math.inf if norm is None else -norm if longest else norm

    try:
        items = sorted(datasets()[source].items(0, count), key=place)
    except PictureError as error:
        st.caption(_refused(str(error)))
        return []
    ends = sorted((norm for norm in norms.values() if norm is not None), reverse=longest)
    if ends:
        st.caption(f"The first {len(items):d} test pictures, by the length of the gradient of each: {ends[0]:.3g} to {ends[-1]:.3g}.")
    return items


def _refused(why: str) -> Markdown:
    """Return the sentence that the pictures stand in their usual order, and why."""
    return Markdown(f":material/warning: {NOT_MEASURED} {escape(why)}")
