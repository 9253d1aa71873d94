"""A link to a comparison that is prepared: protections as frameworks offer them."""

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
    """What follows the "?" of the page's address."""
    own = prepared().compare.deployed
    arms = ",".join([NONE, *(key_of((part,), known) for part in own.presets.values())])
    return f"{lab_query(own.experiment, known)}&{urlencode({'differs': 'protection', 'voices': 'both', 'arms': arms}, safe=',:;=')}"


def render_deployed(known: Catalog) -> None:
    """The link, and beside it what it compares."""
    own = prepared().compare.deployed
    names = "; ".join(own.presets)
    address = f"{base()}/compare?{deployed_query(known)}"
    st.link_button(ours(own.title), address, icon=":material/compare:", type="tertiary", help=f"{ours(own.help)} {escape(names)}.")
