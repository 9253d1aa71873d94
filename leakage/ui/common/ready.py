"""Wait for the catalog of plug-ins: after an update the dispatcher needs some seconds to write it."""

import time

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog, read_fault
from leakage.ui.common.markdown import escape

PATIENCE = 30.0  # seconds to wait for the dispatcher
LOOK = 0.5  # seconds between two checks whether a broken plug-in was corrected


def catalog() -> Catalog | None:
    """Return the catalog of plug-ins; wait for it at most `PATIENCE` seconds, then show an error on the page and return None.

    While a plug-in is broken, the page says so, and waits until the plug-in is corrected. A page that waits keeps the settings in its
    address; a page that is drawn without widgets would lose them.
    """
    if known := service().catalog():
        return known
    message, path = st.empty(), service().config.catalog
    while True:
        fault, deadline = "", time.monotonic() + PATIENCE
        with st.spinner("Getting the attacks and models ready. This takes a few seconds after an update."):
            while (known := service().catalog()) is None and not (fault := read_fault(path)) and time.monotonic() < deadline:
                time.sleep(0.1)
        if known is None and not fault:
            message.error(
                "The attacks and models are not ready: the program that starts them (dispatcher) does not answer. Read the file "
                "dispatch.log in the folder LEAKAGE_HOME, then reload this page."
            )
        if known or not fault:
            return known
        while fault := read_fault(path):
            message.error(escape(fault))  # Streamlit ends the script here if the visitor has left
            time.sleep(LOOK)
        message.empty()
