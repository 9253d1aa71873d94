"""A picture taken with the camera of the visitor's device, beside the uploads: browsers allow it on secure addresses only."""

from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.settings import settings
from leakage.ui.common.markdown import escape

TITLE = "Camera"
LOCAL = ("localhost", "127.0.0.1", "::1")


def take_picture(key: str) -> UploadedFile | None:
    """The camera behind a button, and the picture that was taken; or a sentence that says why there is none."""
    seen = urlsplit(st.context.url or "")
    if seen.scheme != "https" and seen.hostname not in LOCAL:
        st.caption("No camera here: browsers hand it to secure addresses only (https, or localhost). Upload a picture instead.")
        return None
    with st.popover("Take a picture", icon=":material/photo_camera:", width="stretch"):
        picture = st.camera_input("Take a picture", key=key, label_visibility="collapsed")
        life = escape(settings().upload_life)
        st.caption(f"It goes to {escape(seen.netloc)}, which runs this page, and is kept there for {life} at most.")
    return picture
