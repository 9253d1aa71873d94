"""What a paper says beside what came out here: the rows of the museum of papers whose claim a preset or a story shows."""

import streamlit as st

from leakage.frontend.markup import render
from leakage.learn.paper_data import rows_of
from leakage.learn.paper_rows import museum
from leakage.learn.tokens import fill_run_numbers
from leakage.spec.prepared import Preset, RecordedComparison
from leakage.ui.common.base_path import base


def show(told: Preset | RecordedComparison) -> None:
    """Draw the numbers of the recordings as a sentence, and a table of the rows with published number, ours, and verdict."""
    if told.numbers or told.rows:
        st.html(published_table(told))


def published_table(told: Preset | RecordedComparison) -> str:
    """Return the sentence and the table as HTML. Raises SpecError if a row or a recording is missing."""
    numbers, rows = fill_run_numbers(told.numbers), rows_of(museum(), told.rows)
    return render("ui/common/published.html.jinja", numbers=numbers, rows=rows, papers=f"{base()}/papers")
