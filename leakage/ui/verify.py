"""Prediction and result together: the network of the page, attacked by equations (R-GAP) and by search, side by side under the counts."""

import streamlit as st

from leakage.network import Linear, write
from leakage.pictures import gallery
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec import Assumptions, Experiment, Part, Picture, SpecError
from leakage.ui import architecture as counts
from leakage.ui.editor import Given, key
from leakage.ui.live import Shown, stage
from leakage.ui.session import owner

GROUP = "verify"
TASKS = {1: "flipped", 10: "classes"}  # outputs -> the task; the gallery's pictures have 10 classes
BENDS = {"sigmoid": "Sigmoid (smooth)", "leaky_relu": "LeakyReLU"}
SEARCHES = {
    "idlg": ("DLG", Part(id="idlg", fields={"steps": 100, "tries": 3})),
    "inverting_gradients": ("Inverting Gradients", Part(id="inverting_gradients", fields={"steps": 1000})),
}
SHALLOW = 3  # so many layers before the outputs: deeper, sigmoids pass next to no gradient on, and DLG loses its way
MAX_SECONDS = 180
WHY = (
    "DLG needs smooth layers, and deep smooth networks pass next to no gradient on: Inverting Gradients on LeakyReLU then searches better."
)
ABOUT = "Runs both on this network with random weights; the search is told the class, as in the paper."


def offer(given: Given, said: counts.Verdict) -> None:
    """The button with its settings; below it, once pressed, both attacks live and what came of the prediction."""
    if given.batch > 1 or given.outputs not in TASKS:
        st.caption("To see attacks on this network, choose a batch of 1, and 10 outputs or 1.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Verify: attack this network", on_click=start, args=(given,), icon=":material/play_arrow:", type="primary", help=ABOUT)
        with st.popover("", icon=":material/tune:", help="Picture, activation and search"):
            settings(given)
    if refused := st.session_state.pop(key("refused"), ""):
        st.error(refused)
    runs = shown(given)
    if runs:
        result(runs, said)


def settings(given: Given) -> None:
    """What is attacked, and how it is searched; the defaults follow the depth of the network."""
    smooth = sum(not isinstance(step, Linear) for step in given.steps) <= SHALLOW
    state = st.session_state
    if state.get(key("depth")) != smooth:
        state[key("depth")] = smooth
        state[key("bend")], state[key("search")] = ("sigmoid", "idlg") if smooth else ("leaky_relu", "inverting_gradients")
    names = {item.id: item.title for item in gallery()}
    st.selectbox("Picture", list(names), format_func=names.__getitem__, key=key("picture"))
    st.segmented_control("Activation", list(BENDS), format_func=BENDS.__getitem__, required=True, key=key("bend"))
    st.segmented_control("Search", list(SEARCHES), format_func=lambda id: SEARCHES[id][0], required=True, key=key("search"), help=WHY)


def start(given: Given) -> None:
    """Submit both attacks and put them into the address."""
    state = st.session_state
    r_gap = Experiment.model_validate(
        {
            "pictures": (Picture(source="gallery", id=state[key("picture")]),),
            "model": Part(id="custom", fields={"network": write(given.steps), "activation": state[key("bend")]}),
            "task": TASKS[given.outputs],
            "size": given.shape[1],
            "channels": given.shape[0],
            "attack": Part(id="r_gap"),
            "precision": "float64",
            "max_seconds": MAX_SECONDS,
        }
    )
    _, search = SEARCHES[state[key("search")]]
    searched = r_gap.model_copy(update={"attack": search, "precision": "float32", "assume": Assumptions(labels=True)})
    try:
        st.query_params["run"] = ",".join(service().submit(experiment, owner(), group=GROUP) for experiment in (r_gap, searched))
    except SpecError as error:
        state[key("refused")] = str(error)


def shown(given: Given) -> list[tuple[Run, Experiment]]:
    """The two runs of the address, if they are of this network."""
    runs = [run for id in st.query_params.get("run", "").split(",")[:2] if (run := service().look(id)) and run.kind == "attack"]
    found = [(run, Experiment.model_validate_json(run.experiment)) for run in runs]
    now = (write(given.steps), given.shape, TASKS.get(given.outputs))
    same = [
        (asked.model.fields.get("network"), (asked.channels, asked.size, asked.size), asked.task) == now and len(asked.pictures) == 1
        for _, asked in found
    ]
    return found if len(found) == 2 and all(same) else []


def result(runs: list[tuple[Run, Experiment]], said: counts.Verdict) -> None:
    """The prediction beside what both attacks reached, once they have ended, and both live."""
    if not any(run.status in OPEN for run, _ in runs):
        st.markdown(came(runs, said))
    stage([Shown(run.id, title) for (run, _), title in zip(runs, titles(runs), strict=True)], key="verified")
    if any(run.status in OPEN for run, _ in runs):
        watch([run.id for run, _ in runs])


@st.fragment(run_every=1.0)
def watch(ids: list[str]) -> None:
    """Once both have ended, the page is drawn again."""
    if all((run := service().look(id)) is None or run.status not in OPEN for id in ids):
        st.rerun()


def titles(runs: list[tuple[Run, Experiment]]) -> list[str]:
    """By equations, and by which search."""
    return ["R-GAP: solve equations" if asked.attack.id == "r_gap" else f"{SEARCHES[asked.attack.id][0]}: search" for _, asked in runs]


def came(runs: list[tuple[Run, Experiment]], said: counts.Verdict) -> str:
    """Prediction and result in one line."""
    reached = []
    for (run, _), title in zip(runs, titles(runs), strict=True):
        psnr = ((run.result or {}).get("scores") or {}).get("psnr")
        reached.append(f"{title.split(':')[0]} {'failed' if psnr is None else f'{psnr:.1f} dB'}")
    meta = service().meta(runs[0][0].id) or {}
    grey = ((meta.get("baselines") or {}).get("grey") or {}).get("psnr")
    baseline = f" (a grey picture: {grey:.1f} dB)" if grey is not None else ""
    link = f"[Open both in the lab](/?run={','.join(run.id for run, _ in runs)})"
    return f"**Predicted:** {said.headline}. R-GAP alone: {said.recursion}.  \n**Measured:** {', '.join(reached)}{baseline}. {link}"
