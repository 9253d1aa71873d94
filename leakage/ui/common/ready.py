"""Wait for the catalog of plug-ins: after an update the dispatcher needs some seconds to write it."""

import time

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog

PATIENCE = 30.0  # seconds to wait for the dispatcher


def catalog() -> Catalog | None:
    """Return the catalog of plug-ins; wait for it at most `PATIENCE` seconds, then show an error on the page and return None.

    A page that waits keeps the settings in its address; a page that is drawn without widgets would lose them.
    """
    if known := service().catalog():
        return known
    deadline = time.monotonic() + PATIENCE
    with st.spinner("Getting the attacks and models ready. This takes a few seconds after an update."):
        while (known := service().catalog()) is None and time.monotonic() < deadline:
            time.sleep(0.1)
    if known is None:
        st.error("The attacks and models are not ready: the dispatcher does not answer. See dispatch.log in LEAKAGE_HOME, then reload.")
    return known
