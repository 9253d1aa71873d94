"""A picture from the camera of the visitor's device, as one more upload. Browsers allow the camera on secure addresses only."""

from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from leakage.settings import settings
from leakage.ui.common.markdown import escape

TITLE = "Camera"
LOCAL = ("localhost", "127.0.0.1", "::1")


def take_picture(key: str) -> UploadedFile | None:
    """Draw the camera behind a button, and return the picture that was taken.

    On an address without https, other than localhost, draw a sentence that says why there is no camera, and return None.
    """
    shown = urlsplit(st.context.url or "")
    if shown.scheme != "https" and shown.hostname not in LOCAL:
        st.caption(
            "The camera does not work here: browsers allow it on secure addresses only (https, or localhost). Upload a picture instead."
        )
        return None
    with st.popover("Take a picture", icon=":material/photo_camera:", width="stretch"):
        picture = st.camera_input("Take a picture", key=key, label_visibility="collapsed")
        life = escape(settings().upload_life)
        st.caption(f"The picture goes to {escape(shown.netloc)}, which runs this page, and is kept there for {life} at most.")
    return picture
