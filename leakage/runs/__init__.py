"""Who runs what, where."""
