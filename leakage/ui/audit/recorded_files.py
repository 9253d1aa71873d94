"""The step of the page Audit that takes the files of a recorded update: sent, checked in a process with limits, and their card read."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from leakage.data.errors import UpdateFileError
from leakage.data.update_files import check_update
from leakage.runs.service import service
from leakage.runs.update_sets import ARCHIVE
from leakage.spec.audit_task import AuditTask
from leakage.spec.experiment import SpecError
from leakage.spec.json_reading import parse_as
from leakage.spec.update_card import FILE as CARD
from leakage.spec.update_card import UpdateCard
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner
from leakage.ui.components.sender import sender

SET, CHECKED = "audit.set", "audit.checked"  # in session state: the set of files; what was checked last, with what was wrong
RECORD = """\
import numpy

def save(path, model):
    numpy.savez(path, **{name: value.cpu().numpy() for name, value in model.state_dict().items()})

save("before.npz", model)
...  # the client trains the model as always
save("after.npz", model)
"""
HOW = (
    "Save the weights of the client's model before and after its training, as files for NumPy (.npz) or safetensors. In PyTorch, these "
    "lines do it. The guide `docs/import_updates.md` of this program has the lines for Flower and NVFlare, and says what a card is."
)


@dataclass(frozen=True)
class RecordedFiles:
    """The files of an update that can be read: their set, a text that changes with them, and the card among them."""

    name: str
    stamp: str
    card: UpdateCard


def take_up(run_id: str | None) -> AuditTask | None:
    """Put the files of this visitor's audit into the chooser of a new session, so that it can be run again with another card.

    Returns:
        The audit whose files are in the chooser; None if these are other files.
    """
    state, run = st.session_state, service().look(run_id) if run_id else None
    if run is None or run.kind != "audit" or not service().may_cancel(run.id, owner()):
        return None
    task = run.experiment_as(AuditTask)
    return task if state.setdefault(SET, task.files) == task.files else None


def choose_files() -> RecordedFiles | None:
    """Draw the chooser; return the files once an update is complete and can be read, and say before that what is missing or wrong."""
    sets, state = service().updates, st.session_state
    name = state.get(SET)
    if name is None or not (sets.is_open(name, owner()) or sets.has_runs(name)):
        name = state[SET] = sets.open(owner())
    files, closed = sets.files(name), sets.has_runs(name)
    sender(name, files, key="sender", closed=closed)
    if closed:
        st.button("Choose other files", key="other-files", icon=":material/folder_open:", on_click=open_new_set)
    if not files:
        with st.popover("How do I record an update?", icon=":material/help:", type="tertiary", key="how-to-record"):
            st.markdown(HOW)
            st.code(RECORD, language="python", wrap_lines=True)
        return None
    if lacking := missing_file(set(files)):
        st.caption(escape(lacking))
        return None
    folder = sets.path(name)
    stamp = stamp_of(folder)
    if state.get(CHECKED, ("",))[0] != stamp:
        with st.spinner("Checking the files"):
            state[CHECKED] = (stamp, *examine(folder))
    _, problem, card = state[CHECKED]
    if problem:
        st.error(escape(problem))
        return None
    return RecordedFiles(name, stamp, card)


def open_new_set() -> None:
    """Begin with no files; those of the last run stay with that run."""
    st.session_state[SET] = service().updates.open(owner())


def missing_file(files: set[str]) -> str:
    """Return a sentence on the file that an update lacks; "" if it is complete."""
    if ARCHIVE in files:
        return ""
    roles = {file.split(".")[0] for file in files if file != CARD}
    if not roles:
        return "The card needs an update beside it: add the weights before and after the training, their difference, or a gradient."
    if roles == {"before"}:
        return "Still missing: the weights after the training."
    if "before" not in roles:  # the network of this page is untrained
        return "Still missing: the weights before the training, with which attacks compute."
    return ""


def stamp_of(folder: Path) -> str:
    """Return a text that changes with the files of a folder."""
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    return " ".join([folder.name, *(f"{name}:{stat.st_size}:{stat.st_mtime_ns}" for name, stat in stats)])


def examine(folder: Path) -> tuple[str, UpdateCard]:
    """Check the files of an update, and return what is wrong ("" if nothing is) and the card among them (empty if there is none)."""
    try:
        return "", parse_as(check_update(folder), UpdateCard, "a card")
    except (UpdateFileError, SpecError) as error:
        return str(error), UpdateCard()
