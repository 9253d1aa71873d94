"""A federation of two clients in Flower's simulation, whose updates the adapter saves. It runs in the environment of the frameworks.

The clients run one after the other in this process. Flower's own choice, actors of Ray, did not come up within minutes on a small machine
that was busy with other tests; `--ray` runs them.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from federated_clients import make_network, read_batch, train
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.server.superlink.fleet.vce.backend import Backend, BackendConfig, raybackend
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from leakage.adapters.flower import saved


def make_client(folder: str, network: str, pictures: int, epochs: int) -> ClientApp:
    """Return the app of a client that trains on some pictures of the gallery."""
    app = ClientApp(mods=[saved(folder)])

    @app.train()
    def train_once(message: Message, context: Context) -> Message:
        model = make_network(network)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        x, y = read_batch(network, int(context.node_config["partition-id"]), pictures)
        train(model, x, y, epochs)
        content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(y)})}
        return Message(content=RecordDict(content), reply_to=message)

    return app


def make_server(network: str, rounds: int) -> ServerApp:
    """Return the app of the server: FedAvg over both clients."""
    app = ServerApp()

    @app.main()
    def run_rounds(grid: Grid, _context: Context) -> None:
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=2)
        model = make_network(network)
        strategy.start(grid=grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=rounds)

    return app


class OneAfterTheOther(Backend):  # type: ignore[misc]  # Flower is in another environment
    """The part of Flower's simulation that runs the clients, without other processes."""

    def __init__(self, backend_config: BackendConfig) -> None:
        super().__init__(backend_config)
        self.app: ClientApp | None = None

    def build(self, app_fn: Callable[[], ClientApp]) -> None:
        self.app = app_fn()

    @property
    def num_workers(self) -> int:
        return 1

    def is_worker_idle(self) -> bool:
        return True

    def process_message(self, message: Message, context: Context) -> tuple[Message, Context]:
        assert self.app
        return self.app(message, context), context

    def terminate(self) -> None:
        pass


def run(given: Any) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)
    torch.set_num_threads(1)
    if not given.ray:
        raybackend.RayBackend = OneAfterTheOther
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    backend: Any = {"client_resources": resources, "init_args": {"num_cpus": 1, "include_dashboard": False, "log_to_driver": True}}
    client = make_client(str(Path(given.folder).resolve()), given.network, given.pictures, given.epochs)
    run_simulation(make_server(given.network, given.rounds), client, num_supernodes=2, backend_config=backend)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--network", choices=["lenet", "tiny"], default="lenet")
    parser.add_argument("--pictures", type=int, default=1, help="of each client")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ray", action="store_true", help="run the clients as actors of Ray")
    run(parser.parse_args())
