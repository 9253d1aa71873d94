"""Ranks measured on demand: the button under the table of counts, the progress of the measurement, and its result."""

from dataclasses import dataclass

import streamlit as st

from leakage.networks.grammar import write
from leakage.networks.rank import Analysis
from leakage.networks.rank_cost import too_large
from leakage.networks.rank_verdict import layer_phrase
from leakage.results.durations import duration
from leakage.runs.event_parts import GradientRank
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.experiment import SpecError
from leakage.spec.tasks import Ranks
from leakage.ui.architecture import counts as counts
from leakage.ui.architecture import whole_gradient
from leakage.ui.architecture.editor import Given
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner

HOW = (
    "Each layer gives the attacker equations for the unknown numbers. The rank says how many of these equations do not follow from the "
    "others. The rank was measured on a network with random weights, in precise numbers (64 bits). An equation counts if it tells "
    "at least a trillionth (10⁻¹²) as much about the unknown numbers as the most telling one (singular values)."
)
AGREE = "Where a formula for the rank is known, it gives the same number as the measurement."
BLOCKS = "In blocks of layers with a shortcut (skip connection), equations are counted, and their rank is not measured."
ASK = "Measure the ranks"
TOO_LARGE = "The whole gradient of this network is too large for its rank to be measured here."


@dataclass(frozen=True)
class Seen:
    """The state of a measurement: its run, the ranks of the layers' equations so far, and the rank of the whole gradient.

    It is read once for a page, so that all parts of the page show the same state.
    """

    run: Run | None
    """The measurement, finished or not; None if this network has none."""
    ranks: dict[str, int | None]
    """Name of a layer -> its measured rank."""
    gradient: GradientRank | None = None
    """The rank of the whole gradient; None until it is measured."""

    @property
    def measured(self) -> int:
        """The number of ranks that have been measured so far."""
        return len(self.ranks) + (self.gradient is not None)


def ranks_task(given: Given) -> Ranks:
    """Return the task that measures the ranks of this network."""
    size, channels = given.shape[1], given.shape[0]
    return Ranks.model_validate({"network": write(given.steps), "size": size, "channels": channels, "outputs": given.outputs})


def look(given: Given) -> Seen:
    """Return the run that measures this network and its ranks so far; ranks exist for a batch of one picture.

    The run is read before the ranks, so that a run that has ended has all its ranks.
    """
    run = service().measurement(ranks_task(given), owner()) if given.batch == 1 else None
    return Seen(run, service().ranks(run.id), service().gradient_rank(run.id)) if run else Seen(None, {})


def measured(analysis: Analysis, seen: Seen) -> Analysis:
    """Return the analysis with the ranks that the measuring run has found so far filled in, by layer name."""
    return analysis.with_measured({name: rank for name, rank in seen.ranks.items() if rank is not None})


def render_gradient(analysis: Analysis, seen: Seen) -> None:
    """Draw sentences on the measured rank of the whole gradient with respect to the picture, or that it is not measured yet."""
    if seen.gradient is None:
        st.caption(whole_gradient.NOT_YET)
        return
    head, *more, limits = whole_gradient.sentences(analysis, seen.gradient)
    st.markdown(head, help=whole_gradient.HELP)
    st.markdown("  \n".join(more))
    st.caption(limits)


def render_offer(given: Given, analysis: Analysis, seen: Seen) -> None:
    """Draw the button that starts a measurement of ranks, the progress of the measurement, or how the ranks were measured."""
    task = ranks_task(given)
    layers = task.layers
    if given.batch > 1:
        st.caption(
            "How many equations add something new (the rank) can be measured for a single picture: choose 1 picture in one gradient."
        )
        return
    names = {row.name: layer_phrase(row, given.steps) for row in analysis.rows}
    run = seen.run
    if run and run.status in OPEN:
        watch(run.id, names, known_ranks=seen.measured)
    elif task.seconds and (run is None or run.status != "done"):
        if run:
            st.caption(escape(run.message))
        ask(task)
    elif run and layers:
        st.caption(escape(how(analysis)))
    if not task.directions:
        st.caption(TOO_LARGE)
    if too_large_names := [names[layer.name] for layer in layers if too_large(layer)]:
        st.caption(f"These layers are too large for their ranks to be measured here: {escape(', '.join(too_large_names))}.")
    for row in analysis.rows:
        if row.measured is not None and row.rank not in (None, row.measured):
            difference = f"The formula gives a rank of {row.rank:,} in {names[row.name]}, the measurement {row.measured:,}"
            st.warning(
                f"{escape(difference)}. The two ranks should be equal. They may differ because some measured numbers are so small that "
                "they were taken for 0."
            )


def how(analysis: Analysis) -> str:
    """Describe how the ranks were measured, whether the formula agrees, and which layers were not measured."""
    agreements = [row.rank == row.measured for row in analysis.rows if None not in (row.rank, row.measured)]
    blocks = any(row.kind == "block" for row in analysis.rows)
    return " ".join([HOW, *([AGREE] if agreements and all(agreements) else []), *([BLOCKS] if blocks else [])])


def ask(task: Ranks) -> None:
    """Draw the button that queues a measurement of ranks; its label says about how long it takes."""
    if st.button(f"{ASK} (about {escape(duration(task.seconds))})", icon=":material/straighten:", key="measure-ranks"):
        try:
            service().measure(task, owner())
        except SpecError as error:
            st.error(escape(error))
        else:
            st.rerun()


@st.fragment(run_every=1.0)
def watch(run_id: str, names: dict[str, str], known_ranks: int) -> None:
    """Draw the progress of a measurement.

    Draw the whole page again when it has ended or has more ranks than the page shows.

    Args:
        run_id: the measurement.
        names: name of a layer -> its name inside a sentence.
        known_ranks: the number of ranks that the page shows.
    """
    run = service().look(run_id)
    if run is None or run.status not in OPEN or Seen(run, service().ranks(run_id), service().gradient_rank(run_id)).measured > known_ranks:
        st.rerun()
    turns, movement = service().turns(run_id), service().moved(run_id)
    position = service().place(run_id).position
    done, status = 0.0, f"Waiting: {position} in the queue" if position else "Measuring"
    if movement:
        done = movement.done / movement.directions
        status = f"Measuring the whole gradient: {movement.done:,} of {movement.directions:,} changes of the picture are tried"
    elif turns:
        last = turns[-1]
        done, status = (last.number - 1) / last.layers, f"Measuring {names[last.name]}, layer {last.number} of {last.layers}"
    st.progress(done, text=escape(status))
    if service().may_cancel(run_id, owner()):
        st.button("Stop", on_click=service().cancel, args=(run_id, owner()), icon=":material/stop:", key="stop-ranks")
