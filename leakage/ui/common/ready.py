"""Wait for the catalog of plug-ins: after an update the dispatcher needs some seconds to write it."""

import time

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog, read_fault
from leakage.ui.common.markdown import escape

PATIENCE = 30.0  # seconds to wait for the dispatcher
LOOK = 0.1  # seconds between two looks for the catalog
NOT_READY = (
    "The attacks and models are not ready: the program that starts them (dispatcher) does not answer. Read the file "
    "dispatch.log in the folder LEAKAGE_HOME, then reload this page."
)


def catalog() -> Catalog | None:
    """Return the catalog of plug-ins; wait for it at most `PATIENCE` seconds, then show an error on the page and return None.

    While a plug-in is broken, the page names it, and waits until it is corrected. A page that waits keeps the settings in its address; a
    page that is drawn without widgets would lose them.
    """
    if known := service().catalog():
        return known
    message, path, fault, deadline = st.empty(), service().config.catalog, "", time.monotonic() + PATIENCE
    with st.spinner("Getting the attacks and models ready. After a new version of this website was installed, this takes a few seconds."):
        while (known := service().catalog()) is None and time.monotonic() < deadline:
            if (now := read_fault(path)) != fault:
                message.error(escape(now)) if now else message.empty()
            fault, deadline = now, time.monotonic() + PATIENCE if now else deadline
            time.sleep(LOOK)
    if known is None:
        message.error(NOT_READY)
    return known
