"""The Streamlit pages in parts: widgets made from fields, the live view of a run, and texts."""
