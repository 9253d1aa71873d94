"""A federation of two clients in NVFlare's simulator, whose updates the adapter saves. It runs in the environment of the frameworks."""

import argparse
import tempfile
from pathlib import Path

import torch
from federated_clients import make_network, read_batch, train
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob, FilterType

from leakage.adapters.nvflare import UpdateRecorder


class LocalTraining(Executor):
    """A client that trains the tiny network on one picture, and sends its weights or their difference."""

    def __init__(self, kind: str = "WEIGHTS", epochs: int = 2) -> None:
        super().__init__()
        self.kind = kind
        self.epochs = epochs

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        received = from_shareable(shareable).data
        model = make_network("tiny")
        model.load_state_dict({name: torch.as_tensor(value) for name, value in received.items()})
        x, y = read_batch("tiny", int(fl_ctx.get_identity_name().removeprefix("site-")) - 1, 1)
        train(model, x, y, self.epochs)
        trained = {name: value.numpy() for name, value in model.state_dict().items()}
        if self.kind == DataKind.WEIGHT_DIFF:
            trained = {name: value - received[name] for name, value in trained.items()}
        return DXO(self.kind, data=trained, meta={MetaKey.NUM_STEPS_CURRENT_ROUND: self.epochs}).to_shareable()


class TinyFedAvg(FedAvg):
    """FedAvg that begins with the tiny network and keeps no file of it."""

    def load_model(self) -> FLModel:
        return FLModel(params={name: value.numpy() for name, value in make_network("tiny").state_dict().items()}, current_round=0)

    def save_model(self, model: FLModel) -> None: ...


def run(folder: Path, kind: str, rounds: int) -> None:
    job = FedJob(name="tiny")
    job.to_server(TinyFedAvg(num_clients=2, num_rounds=rounds, persistor_id=""))
    job.to_clients(LocalTraining(kind), tasks=["train"])
    job.to_clients(UpdateRecorder(str(folder.resolve())), filter_type=FilterType.TASK_RESULT, tasks=["train"])
    with tempfile.TemporaryDirectory() as workspace:
        job.simulator_run(workspace, n_clients=2, threads=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=["WEIGHTS", "WEIGHT_DIFF"], default="WEIGHTS")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    run(given.folder, given.kind, given.rounds)
