"""The web server: navigation, our routes, the owner cookie, and a dispatcher beside it. No torch in this process."""

from streamlit import runtime

if not runtime.exists():  # started by `streamlit run`: this file is the ASGI application ...
    import streamlit as st

    from leakage.runs.server import lifespan, routes
    from leakage.ui.session import MIDDLEWARE

    app = st.App(__file__, routes=routes(), lifespan=lifespan, middleware=MIDDLEWARE)
else:  # ... and, inside it, the script of every page
    import streamlit as st

    from leakage.settings import ROOT

    st.set_page_config(page_title="Gradient Leakage Explorer", page_icon="🔎", layout="wide")
    st.html(ROOT / "assets" / "style.css")
    lab = st.Page("pages/lab.py", title="Lab", icon=":material/science:", default=True)
    runs = st.Page("pages/runs.py", title="Your runs", icon=":material/history:")
    st.navigation([lab, runs], position="top").run()
