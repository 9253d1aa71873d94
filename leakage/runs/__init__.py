"""Runs: the queue, the store, and the events that pages read."""
