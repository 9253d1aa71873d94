"""Adapters that write what a federated client received and sent into a folder. No torch; each framework only in its own module."""
