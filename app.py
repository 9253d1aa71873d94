"""The web server: navigation, our routes, the owner cookie, and a dispatcher beside it. No torch in this process."""

from streamlit import runtime

if not runtime.exists():  # `streamlit run` started this file: it is the ASGI application
    import sys

    import streamlit as st
    from streamlit.runtime.pages_manager import PagesManager

    from leakage.runs.broken_home import BrokenHomeError, in_plain_words
    from leakage.runs.connections import StoreError
    from leakage.runs.private_home import keep_private
    from leakage.settings import settings
    from leakage.ui.common.base_path import base
    from leakage.ui.common.uploaded_files import count_files
    from leakage.web.server import lifespan, middleware, routes, store_trouble

    PagesManager.uses_pages_directory = False  # else the first visit to a server, by a link to a page, lacks the navigation
    try:
        keep_private(settings())  # before the program writes anything
        agent = bool(st.get_option("server.enableAgentApi"))
        count_files()
        stack, trouble = middleware(base(), agent=agent), {StoreError: store_trouble}
        app = st.App(__file__, routes=routes(base()), lifespan=lifespan, middleware=stack, exception_handlers=trouble)
    except (BrokenHomeError, ValueError, OSError) as error:
        sys.exit(str(in_plain_words(error, settings().home) or error))
else:  # inside the application, this file is the script that runs for every page
    import streamlit as st

    from leakage.runs.broken_home import of_the_store
    from leakage.runs.connections import StoreError
    from leakage.settings import ROOT, settings
    from leakage.ui.common.base_path import address_of
    from leakage.ui.common.markdown import escape
    from leakage.ui.common.session import enter
    from leakage.web.server import dispatcher_watch

    st.set_page_config(page_title="Gradient Leakage Explorer", page_icon="🔎", layout="wide")
    st.html(ROOT / "assets" / "style.css")
    learn, papers = address_of("/learn"), address_of("/papers")  # pages of our own routes, for which Streamlit needs absolute addresses
    pages = [  # each page is a file and a line here
        *([st.Page(learn, title="Learn", icon=":material/school:")] if learn else []),
        *([st.Page(papers, title="Papers", icon=":material/menu_book:")] if papers else []),
        st.Page("pages/ask.py", title="Ask", icon=":material/help:"),
        st.Page("pages/lab.py", title="Lab", icon=":material/science:", default=True),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
        st.Page("pages/training.py", title="Training", icon=":material/model_training:"),
        st.Page("pages/audit.py", title="Audit", icon=":material/policy:"),
        st.Page("pages/architecture.py", title="Architecture", icon=":material/account_tree:"),
        st.Page("pages/runs.py", title="Your runs", icon=":material/history:"),
    ]
    try:
        page = st.navigation(pages, position="top")
        enter(page.url_path)
        if newer := dispatcher_watch().superseded:
            st.error(escape(newer))  # and no page: another version of the program would run the experiments
        else:
            page.run()
    except StoreError as error:  # for example, a newer version has been started on the same runs, or the disk is full
        if not (sentence := of_the_store(error, settings())):
            raise
        st.error(escape(sentence))
