"""Adapters that write what a federated client received and sent into a folder, each framework in its own module; and the reader of it."""
