"""Ranks measured on demand: a button under the table of counts, its progress, and what was measured: into the counts, and in words."""

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

HOW = "Measured for random weights and a random derivative, in float64: the singular values above 10⁻¹² times the largest."
AGREE = "The formula, where there is one, agrees."
BLOCKS = "Blocks with a skip are only counted."
ASK = "Measure the ranks"
TOO_LARGE = "The whole gradient of this network is too large to be measured here."


@dataclass(frozen=True)
class Seen:
    """The run that measures a network, and its ranks so far: what one drawing of the page goes by from top to bottom."""

    run: Run | None
    ranks: dict[str, int | None]
    gradient: GradientRank | None = None

    @property
    def measured(self) -> int:
        """How many ranks there are so far."""
        return len(self.ranks) + (self.gradient is not None)


def ranks_task(given: Given) -> Ranks:
    """The measurement of this network."""
    size, channels = given.shape[1], given.shape[0]
    return Ranks.model_validate({"network": write(given.steps), "size": size, "channels": channels, "outputs": given.outputs})


def look(given: Given) -> Seen:
    """What is measured of this network, for one picture; the run is read first, so one that has ended has all its ranks."""
    run = service().measurement(ranks_task(given), owner()) if given.batch == 1 else None
    return Seen(run, service().ranks(run.id), service().gradient_rank(run.id)) if run else Seen(None, {})


def measured(found: Analysis, seen: Seen) -> Analysis:
    """The counts with what was measured."""
    return found.with_measured({name: rank for name, rank in seen.ranks.items() if rank is not None})


def render_gradient(found: Analysis, seen: Seen) -> None:
    """What is known of the whole gradient, or that it is not."""
    if seen.gradient is None:
        st.caption(whole_gradient.NOT_YET)
        return
    head, *more, limits = whole_gradient.sentences(found, seen.gradient)
    st.markdown(head, help=whole_gradient.HELP)
    st.markdown("  \n".join(more))
    st.caption(limits)


def render_offer(given: Given, found: Analysis, seen: Seen) -> None:
    """The button, or how far the measurement is, or how it was made."""
    wanted = ranks_task(given)
    layers = wanted.layers
    if given.batch > 1:
        st.caption("Ranks can be measured for one picture: choose a batch of 1.")
        return
    names = {row.name: layer_phrase(row, given.steps) for row in found.rows}
    run = seen.run
    if run and run.status in OPEN:
        watch(run.id, names, known_ranks=seen.measured)
    elif wanted.seconds and (run is None or run.status != "done"):
        if run:
            st.caption(escape(run.message))
        ask(wanted)
    elif run and layers:
        st.caption(escape(how(found)))
    if not wanted.directions:
        st.caption(TOO_LARGE)
    if large := [names[layer.name] for layer in layers if too_large(layer)]:
        st.caption(f"Too large to be measured here: {escape(', '.join(large))}.")
    for row in found.rows:
        if row.measured is not None and row.rank not in (None, row.measured):
            words = f"The formula gives a rank of {row.rank:,} in {names[row.name]}, the measurement {row.measured:,}"
            st.warning(f"{escape(words)}. They should agree: some singular values may be too small to be told from 0.")


def how(found: Analysis) -> str:
    """How it was measured, whether the formula agrees, and what was not."""
    both = [row.rank == row.measured for row in found.rows if None not in (row.rank, row.measured)]
    blocks = any(row.kind == "block" for row in found.rows)
    return " ".join([HOW, *([AGREE] if both and all(both) else []), *([BLOCKS] if blocks else [])])


def ask(wanted: Ranks) -> None:
    """The button."""
    if st.button(f"{ASK} (about {escape(duration(wanted.seconds))})", icon=":material/straighten:", key="measure-ranks"):
        try:
            service().measure(wanted, owner())
        except SpecError as error:
            st.error(escape(error))
        else:
            st.rerun()


@st.fragment(run_every=1.0)
def watch(run_id: str, names: dict[str, str], known_ranks: int) -> None:
    """A measurement that goes on; when it has another rank than the `known_ranks` ones, or has ended, the whole page is drawn again."""
    run = service().look(run_id)
    if run is None or run.status not in OPEN or Seen(run, service().ranks(run_id), service().gradient_rank(run_id)).measured > known_ranks:
        st.rerun()
    turns, moved = service().turns(run_id), service().moved(run_id)
    place = service().place(run_id).position
    done, words = 0.0, f"Waiting: {place} in the queue" if place else "Measuring"
    if moved:
        done = moved.done / moved.directions
        words = f"Measuring the whole gradient, {moved.done:,} of {moved.directions:,} directions"
    elif turns:
        last = turns[-1]
        done, words = (last.number - 1) / last.layers, f"Measuring {names[last.name]}, {last.number} of {last.layers}"
    st.progress(done, text=escape(words))
    if service().may_cancel(run_id, owner()):
        st.button("Stop", on_click=service().cancel, args=(run_id, owner()), icon=":material/stop:", key="stop-ranks")
