"""The filter of NVFlare on tasks and results without a federation. It runs in the environment of the frameworks."""

import sys

import numpy as np
from nvflare.apis.dxo import DXO, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants

from leakage.adapters.nvflare import UpdateRecorder


def send(recorder: UpdateRecorder, task: Shareable, result: DXO) -> DXO:
    """Return what a client sends, after the filter."""
    context = FLContext()
    context.set_prop(ReservedKey.IDENTITY_NAME, "site-1", private=False, sticky=False)
    context.set_prop(FLContextKey.TASK_DATA, task, private=True, sticky=False)
    recorder.handle_event(EventType.BEFORE_TASK_EXECUTION, context)
    if "DXO" in task:
        from_shareable(task).data["w"] += 5  # an executor may train in place
    context.set_prop(FLContextKey.TASK_DATA, None, private=True, sticky=False)
    return from_shareable(recorder.process(result.to_shareable(), context))


def weights(value: float) -> DXO:
    return DXO("WEIGHTS", {"w": np.full(2, value)})


def run(folder: str) -> None:
    recorder = UpdateRecorder(folder)
    task = weights(1.0).to_shareable()
    task.set_header(AppConstants.CURRENT_ROUND, 6)
    sent = send(recorder, task, weights(2.0))
    assert (sent.data_kind, sent.data["w"].tolist(), sent.meta) == ("WEIGHTS", [2.0, 2.0], {})
    send(recorder, Shareable(), DXO("COLLECTION", {"a": weights(3.0), "b": DXO("WEIGHT_DIFF", {"w": np.ones(2)})}))
    send(recorder, Shareable(), DXO("METRICS", {"accuracy": 1.0}))


if __name__ == "__main__":
    run(sys.argv[1])
