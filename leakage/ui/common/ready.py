"""Waiting for the plug-ins: after an update the dispatcher needs some seconds to write them down."""

import time

import streamlit as st

from leakage.runs.service import service
from leakage.spec.catalog import Catalog

PATIENCE = 30.0  # seconds to wait for the dispatcher


def catalog() -> Catalog | None:
    """The plug-ins as data, waited for where need be; None, with a sentence on the page, when nobody writes them down.

    Waiting here, instead of drawing a page without widgets, keeps the settings that are in the address.
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
