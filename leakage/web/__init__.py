"""The web server beside Streamlit's pages: routes, middleware, the event stream, a dispatcher that is kept running, and static pages."""
