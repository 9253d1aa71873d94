"""The model that a server hands out, as a drawing in the Lab: a worker looks at it, because the web process has no torch."""

from leakage.runs.events import HandedModelEnd
from leakage.runs.store import OPEN
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, SpecError, clients_of
from leakage.spec.tasks import HandedModel
from leakage.ui.components import sent
from leakage.ui.components.sent.handed_model import drawing
from leakage.ui.lab import measured

WAITING = "The layers that the server hands out are drawn here in a moment."


def show(experiment: Experiment | None, known: Catalog, *, key: str) -> None:
    """Draw the layers of the model that the experiment's server hands out; nothing without a server, or if it does not fit the model.

    Args:
        experiment: the experiment, with or without the defaults of its plug-ins.
        known: the catalog of plug-ins.
        key: a key for the drawing, unique on the page.
    """
    if experiment is None or experiment.server is None:
        return
    try:
        task = HandedModel.of(experiment.resolve(known))
        run = measured.ask(task)
    except SpecError:  # the Run button says why these settings cannot be run
        return
    if run and (end := run.outcome(HandedModelEnd)):
        sent.draw(drawing(end.layers, clients_of(task.aggregation, known)), key=key)
    elif run and run.status in OPEN:
        measured.wait(run.id, WAITING)
