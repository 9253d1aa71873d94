"""The parts of the page Lab: its forms, and a run on the page."""
