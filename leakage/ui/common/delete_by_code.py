"""Delete an upload, and all runs that used it, by the code of the upload: for visitors with a browser that has lost the cookie."""

import streamlit as st

from leakage.runs.service import service
from leakage.runs.upload_codes import CodeError
from leakage.ui.common.markdown import escape
from leakage.ui.common.session import owner

TYPED, DONE, WRONG = "upload-code", "upload-code-told", "upload-code-wrong"  # in session state


def show() -> None:
    """Draw the popover with the field for the code, and report what the last code has deleted or why it was refused."""
    popover = st.popover("Delete an uploaded picture by its code", icon=":material/key:", type="tertiary")
    with popover, st.form("delete-by-code", border=False):
        st.text_input("The code that was shown beside the picture", key=TYPED, placeholder="7k2m-x9qd-04tw", max_chars=40)
        st.caption("Every run that used the picture is deleted at once, with all its pictures and files, also in other browsers.")
        st.form_submit_button("Delete", type="primary", on_click=_delete)
        if done := st.session_state.pop(DONE, ""):
            st.success(escape(done))
        if wrong := st.session_state.pop(WRONG, ""):
            st.error(escape(wrong))


def _delete() -> None:
    state = st.session_state
    try:
        deleted = service().codes.delete(state[TYPED], owner())
    except CodeError as error:
        state[WRONG] = str(error)
        return
    for name in ("uploads", "upload_titles"):
        state.get(name, {}).pop(deleted.upload, None)
    runs = f"{deleted.runs} run{'s' * (deleted.runs > 1)} that used this picture, with all pictures and files"
    state[DONE] = f"Deleted: {runs}." if deleted.runs else "No run here used this picture: there was nothing to delete."
    state[TYPED] = ""
