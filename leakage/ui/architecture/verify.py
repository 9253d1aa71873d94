"""Test the prediction: attack the network of the page by equations (R-GAP) and by search, and show both beside the prediction."""

from typing import Any

import streamlit as st

from leakage.data.images import gallery
from leakage.networks.grammar import Block, Linear, Pool, write
from leakage.networks.rank_verdict import Verdict
from leakage.runs.endings import how_it_stands
from leakage.runs.events import AttackEnd
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.spec.prepared import Search, prepared
from leakage.ui.architecture import counts as counts
from leakage.ui.architecture.editor import Given, key
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape, link
from leakage.ui.common.session import owner
from leakage.ui.components.live import Shown, stage

GROUP = "verify"
TASKS = {1: "flipped", 10: "classes"}  # outputs -> the task; the gallery's pictures have 10 classes
ACTIVATIONS = {"sigmoid": "Sigmoid (smooth)", "leaky_relu": "LeakyReLU"}
SHALLOW = 3  # most layers before the outputs for which DLG is the default: sigmoids of deeper networks pass on next to no gradient
MAX_SECONDS = 180
WHY = (
    "A network computes in stages (layers). An attack that guesses and compares (DLG) needs smooth layers: if the picture changes a "
    "little, the results of each layer change gradually, not suddenly. But if a network has many smooth layers, the gradient's numbers for "
    "the first layers are almost 0. For networks of many layers another attack (Inverting Gradients) finds more; it can do without smooth "
    "layers, so it gets another kind (LeakyReLU). It asks whether the numbers of two gradients stand in the same proportion to each other, "
    "not how large they are."
)
ABOUT = (
    "Runs two attacks on this network with random weights: one solves equations (R-GAP), the other guesses and "
    "compares. The guessing attack knows the class of the picture, as in its paper."
)
Runs = list[tuple[Run, Experiment]]  # R-GAP if it applies, then the search


def render_offer(given: Given, verdict: Verdict) -> None:
    """Draw the button that attacks the network, the settings of these attacks, and the runs that the page's address (URL) names."""
    if given.batch > 1 or given.outputs not in TASKS:
        st.caption(
            "To see attacks on this network, choose 1 picture in one gradient, and give the network 10 answers or 1 answer (outputs)."
        )
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Check these counts: attack the network",
            on_click=start,
            args=(given,),
            icon=":material/play_arrow:",
            type="primary",
            help=ABOUT,
        )
        with st.popover(
            "", icon=":material/tune:", help="Picture, attack, and how the small parts (units) of the network react (activation)"
        ):
            settings(given)
    if refused := st.session_state.pop(key("refused"), ""):
        st.error(escape(refused))
    if runs := runs_in_address(given):
        result(runs, verdict)


def settings(given: Given) -> None:
    """Draw the choice of picture, activation function and optimization attack; the defaults follow the depth of the network."""
    state, first = st.session_state, first_search(given)
    if key("activation") not in state or state.get(key("depth")) != first.title:  # widgets that were not drawn for a while are forgotten
        state[key("depth")] = first.title
        state[key("activation")], state[key("search")] = first.activation, first.attack.id
    names = {item.id: item.title for item in gallery()}
    st.selectbox("Picture", list(names), format_func=names.__getitem__, key=key("picture"))
    st.segmented_control("Activation", list(ACTIVATIONS), format_func=ACTIVATIONS.__getitem__, required=True, key=key("activation"))
    offered = {id: search.title for id, search in searches().items()}
    st.segmented_control("Search", list(offered), format_func=lambda id: escape(offered[id]), required=True, key=key("search"), help=WHY)


def first_search(given: Given) -> Search:
    """Return the default optimization attack: of the two in assets/prepared.json the first for a shallow network, else the second."""
    smooth = sum(not isinstance(step, Linear) for step in given.steps) <= SHALLOW
    return prepared().verify.searches[0 if smooth else 1]


def searches() -> dict[str, Search]:
    """Return the optimization attacks that the page offers: id of the attack -> its title, attack and best activation function."""
    return {search.attack.id: search for search in prepared().verify.searches}


def attacks(given: Given, picture: str, activation: str, search: str) -> list[Experiment]:
    """Return the experiments on this network with all defaults filled in.

    Args:
        given: the network.
        picture: the id of a gallery picture.
        activation: the id of the activation, see ACTIVATIONS.
        search: the id of the optimization attack, a key of `searches`.

    Returns:
        First R-GAP, which is left out if the network has max pooling; then the optimization attack.

    Raises:
        SpecError: the catalog is not ready, or an experiment is not valid.
    """
    known = service().catalog()
    if known is None:
        raise SpecError("The attacks are not ready yet. Try again in a few seconds.")
    return [experiment.resolve(known) for experiment in questions(given, picture, activation, search)]


def questions(given: Given, picture: str, activation: str, search: str) -> list[Experiment]:
    """Return the experiments of `attacks` without the defaults of the plug-ins."""
    plain = not any(isinstance(step, Block | Pool) for step in given.steps)
    r_gap = Experiment.model_validate(
        {
            "pictures": (Picture(source="gallery", id=picture),),
            "model": Part(id=prepared().verify.network.id, fields={"network": write(given.steps), "activation": activation}),
            "task": TASKS[given.outputs],
            "size": given.shape[1],
            "channels": given.shape[0],
            "attack": prepared().verify.equations if plain else prepared().verify.jointly,
            "precision": "float64",
            "max_seconds": MAX_SECONDS,
        }
    )
    search_settings: dict[str, Any] = {"attack": searches()[search].attack, "precision": "float32", "assume": Assumptions(labels=True)}
    applies = not any(isinstance(step, Pool) and step.kind == "max" for step in given.steps)
    return ([r_gap] if applies else []) + [r_gap.model_copy(update=search_settings)]


def start(given: Given) -> None:
    """Queue the attacks and put their ids into the address."""
    state = st.session_state
    try:
        experiments = attacks(given, state[key("picture")], state[key("activation")], state[key("search")])
        st.query_params["run"] = ",".join(service().submit(experiment, owner(), group=GROUP) for experiment in experiments)
    except SpecError as error:
        state[key("refused")] = str(error)


def runs_in_address(given: Given) -> Runs:
    """Return the runs of the address if they attack this network as `attacks` would; else remove them from the address."""
    address = st.query_params.get("run", "")
    runs = [run for id in address.split(",")[:2] if (run := service().look(id)) and run.kind == "attack"]
    pairs = [(run, run.experiment_as(Experiment)) for run in runs]
    if pairs and pairs[-1][1].attack.id in searches():
        search = pairs[-1][1]
        try:
            expected = attacks(given, search.pictures[0].id, str(search.model.fields.get("activation")), search.attack.id)
        except SpecError:
            expected = []
        if expected == [experiment for _, experiment in pairs]:
            return pairs
    if address:
        st.query_params.pop("run")
    return []


def result(runs: Runs, verdict: Verdict) -> None:
    """Draw both attacks live, and beside them the prediction and the results once both have ended."""
    if not any(run.status in OPEN for run, _ in runs):
        st.markdown(summary(runs, verdict))
    stage([Shown(run.id, title) for (run, _), title in zip(runs, titles(runs), strict=True)], key="verified")
    if any(run.status in OPEN for run, _ in runs):
        watch([run.id for run, _ in runs])


@st.fragment(run_every=1.0)
def watch(ids: list[str]) -> None:
    """Draw the page again once all attacks have ended."""
    if all((run := service().look(id)) is None or run.status not in OPEN for id in ids):
        st.rerun()


def titles(runs: Runs) -> list[str]:
    """Return a title for each run: R-GAP, or the title of its optimization attack."""
    title_of = {id: f"{search.title}: search" for id, search in searches().items()}
    return [title_of.get(experiment.attack.id, "R-GAP: solve equations") for _, experiment in runs]


def summary(runs: Runs, verdict: Verdict) -> Markdown:
    """Return what the counts of equations predict and what the attacks reached, in a few lines, with the attacks' assumptions."""
    results = [] if len(runs) > 1 else ["The attack R-GAP does not apply"]
    for (run, _), title in zip(runs, titles(runs), strict=True):
        end = run.outcome(AttackEnd)
        facts = [f"{end.scores.psnr:.1f} dB"] if end and end.scores.psnr is not None else []
        facts += [end.verdict.word] if end and end.verdict else []
        facts += [] if end and end.ending and end.ending.how == "answer" else [how_it_stands(run)]
        results.append(f"{title.split(':')[0]} {', '.join(facts)}")
    meta = service().meta(runs[0][0].id)
    grey = meta.judging.baselines.get("grey") if meta else None
    baseline = f", a grey picture {grey.psnr:.1f} dB" if grey and grey.psnr is not None else ""
    searched = runs[-1][1]
    fields = searched.attack.fields
    names = {item.id: item.title for item in gallery()}
    steps = f"{fields['steps']} steps" + (f" a start, {fields['restarts']} starts at most" if "restarts" in fields else "")
    activation = ACTIVATIONS[str(searched.model.fields["activation"])]
    assumed = f"{names[searched.pictures[0].id]}, {activation}, random weights, seed {searched.seed}; the search knows the class, {steps}"
    lab = link(Markdown("Open both runs on the page Lab"), f"{base()}/?run={','.join(run.id for run, _ in runs)}")
    predicted = (
        f"**Predicted:** {escape(verdict.headline)}. Would the attack R-GAP alone find the picture? Answer: {escape(verdict.recursion)}."
    )
    measured = f"{escape(', '.join(results))}{escape(baseline)}"
    return Markdown(f"{predicted}  \n**Measured:** {measured}. {lab}  \n:small[{escape(assumed)}.]")
