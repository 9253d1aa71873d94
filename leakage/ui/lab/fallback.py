"""A run without the event stream, if a network blocks it: the page reads the store twice a second and contains the pictures."""

import base64

import streamlit as st

from leakage.frontend.markup import render
from leakage.runs.endings import how_it_stands
from leakage.runs.events import AttackEnd
from leakage.runs.service import service
from leakage.runs.store import OPEN
from leakage.ui.common.markdown import escape


@st.fragment(run_every=0.5)
def show(run_id: str) -> None:
    """Draw a run: the private pictures, the newest reconstruction or the final one, and the curve of PSNR."""
    run = service().look(run_id)
    frames = service().frames(run_id)
    pictured = [frame for frame in frames if frame.picture]
    if run and run.status not in OPEN and not pictured:
        st.caption(escape(how_it_stands(run)))
        return
    if run is None or not pictured:
        st.caption("Waiting for the first picture.")
        return
    end = run.outcome(AttackEnd)
    newest = next((frame for frame in pictured if end and frame.seq == end.answer), pictured[-1])
    psnr = "unknown" if newest.scores.psnr is None else f"{newest.scores.psnr:.1f} dB"
    st.caption(
        "Something on the way to this browser holds back the live pictures, so the page asks for new pictures twice a second instead."
    )
    left, right = st.columns(2)
    left.html(_picture(service().private(run_id), "The private pictures"))
    right.html(_picture(service().sheet(run_id, newest.seq), f"What the attacker sees, step {newest.step}"))
    judged = [f"**{escape(end.verdict.word)}**"] if end and end.verdict else []
    st.markdown(", ".join([escape(how_it_stands(run)), *judged, f"PSNR **{psnr}**", f"gradient distance {newest.loss or 0:.3g}"]))
    st.line_chart([{"step": frame.step, "PSNR (dB)": frame.scores.psnr} for frame in frames], x="step", y="PSNR (dB)", height=180)


def _picture(png: bytes | None, caption: str) -> str:
    return render("ui/lab/fallback.html.jinja", caption=caption, data=base64.b64encode(png or b"").decode())
