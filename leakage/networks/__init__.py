"""A network as text and as plain data, and the analysis of its ranks. No torch."""
