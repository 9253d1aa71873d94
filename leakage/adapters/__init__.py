"""Recorded updates of federated clients: adapters that write them beside a client's training, and their reader. No torch."""
