"""A link to a prepared comparison of protections as federated-learning frameworks offer them."""

from urllib.parse import urlencode

import streamlit as st

from leakage.learn.lab_link import lab_query
from leakage.results.defense_keys import key_of
from leakage.spec.catalog import Catalog
from leakage.spec.lab_settings import NONE
from leakage.spec.prepared import prepared
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import escape, ours


def deployed_query(known: Catalog) -> str:
    """Return the query of the address (URL) that opens the comparison of protections as frameworks offer them; "?" is left out."""
    settings = prepared().compare.deployed
    arms = ",".join([NONE, *(key_of((part,), known) for part in settings.presets.values())])
    variants = urlencode({"differs": "protection", "voices": "both", "arms": arms}, safe=",:;=")
    return f"{lab_query(settings.experiment, known)}&{variants}"


def render_deployed(known: Catalog) -> None:
    """Draw the link to the comparison of protections as frameworks offer them; its tooltip names the protections."""
    settings = prepared().compare.deployed
    names = "; ".join(settings.presets)
    address = f"{base()}/compare?{deployed_query(known)}"
    st.link_button(
        ours(settings.title), address, icon=":material/compare:", type="tertiary", help=f"{ours(settings.help)} {escape(names)}."
    )
