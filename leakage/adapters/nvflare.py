"""Record what an NVFlare client receives and sends, as a filter of its task results. Checked against nvflare 2.9.0."""

from importlib.metadata import version
from typing import Any

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants

from leakage.adapters.update_folder import add_update, as_array, fill_card, name_update

WEIGHTS = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)


class UpdateRecorder(DXOFilter):  # type: ignore[misc]  # nvflare has no types
    """A filter that writes each update of training into a folder, and changes nothing.

    `job.to_clients(UpdateRecorder("/updates"), filter_type=FilterType.TASK_RESULT, tasks=["train"])`, as the last filter: it then sees the
    update as it leaves, after the other filters have changed it. Round r of client c is the folder round-r-client-c, with the weights of
    the task (before.npz), what was sent (after.npz, or difference.npz for WEIGHT_DIFF) and card.json. NVFlare counts rounds from 0, and
    the card from 1.

    The weights of the task are taken when the client begins the task. If they are references to be downloaded, as for a client in a
    process of its own, there is no before.npz.

    Args:
        folder: the folder of all updates; it is made if it does not exist. Name it from the root: each client has a working folder.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(supported_data_kinds=list(WEIGHTS), data_kinds_to_filter=None)
        self.folder = str(folder)  # under the argument's name: NVFlare writes it into the configuration of the job
        self._received: dict[str, Any] = {}
        self._round: int | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Keep the weights of a task that begins. NVFlare calls this for every event.

        Args:
            event_type: the event.
            fl_ctx: has the task's data.
        """
        if event_type == EventType.BEFORE_TASK_EXECUTION:
            task = fl_ctx.get_prop(FLContextKey.TASK_DATA)
            self._received, self._round = _weights(task), task.get_header(AppConstants.CURRENT_ROUND) if task else None

    def process_dxo(self, dxo: DXO, shareable: Shareable, fl_ctx: FLContext) -> None:
        """Write what is sent, with what was received.

        Args:
            dxo: has the arrays.
            shareable: the result that they belong to.
            fl_ctx: has the name of the client.

        Raises:
            ValueError: the result has something else than arrays.
            OSError: the update cannot be written.
        """
        number = shareable.get_header(AppConstants.CURRENT_ROUND, self._round)
        round = None if number is None else int(number) + 1
        card = fill_card(f"nvflare {version('nvflare')}", {"round": round, "steps": dxo.get_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND)})
        kind = "after" if dxo.data_kind == DataKind.WEIGHTS else "difference"
        name = name_update(fl_ctx.get_identity_name(), round)
        add_update(self.folder, name, card, before=self._received, **{kind: dxo.data})


def _weights(task: Shareable | None) -> dict[str, Any]:
    """Return copies of the weights of a task; {} if it has none, or only references to be downloaded."""
    try:
        dxo = from_shareable(task or Shareable())
        return {name: as_array(value, name) for name, value in dxo.data.items()} if dxo.data_kind in WEIGHTS else {}
    except ValueError:  # no DXO, as the data of other tasks, or no arrays
        return {}
