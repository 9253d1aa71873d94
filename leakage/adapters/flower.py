"""Record what a Flower client receives and sends, as a mod of its ClientApp. Checked against flwr 1.42.0."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from leakage.adapters.update_folder import add_update, fill_card, name_update

Mod: TypeAlias = Callable[[Any, Any, Callable[[Any, Any], Any]], Any]


def saved(folder: str | Path) -> Mod:
    """Return a mod that writes each update of training into a folder: `ClientApp(mods=[saved("updates")])`.

    Name it first: it then sees the update as it leaves, after the other mods have changed it. Round r of client c is the folder
    round-r-client-c, with what came (before.npz), what was sent (after.npz) and card.json. A learning rate and a number of epochs under the
    names of Flower's templates are guesses, because an app may use other ones.

    Args:
        folder: the folder of all updates; it is made if it does not exist. In a simulation all clients may write into the same one.

    Returns:
        The mod. It raises OSError if the update cannot be written, and so the client fails.
    """

    def record_update(message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        if message.metadata.message_type.split(".")[0] != "train":
            return call_next(message, context)
        before = _arrays(message.content.array_records)  # copies: the app may change what it was given
        configs = [*message.content.config_records.values(), context.run_config]
        reply = call_next(message, context)
        if reply.has_error() or not reply.content.array_records:
            return reply
        group = message.metadata.group_id  # the round, in Flower's strategies
        round = _look_up(configs, "server-round", "server_round") or (int(group) if group.isdecimal() else None)
        fields = {
            "round": round,
            "pictures": _look_up(reply.content.metric_records.values(), "num-examples", "num_examples"),
            "rate": {"guess": _look_up(configs, "lr", "learning-rate")},
            "epochs": {"guess": _look_up(configs, "local-epochs", "local_epochs")},
        }
        name = name_update(context.node_config.get("partition-id", context.node_id), round)
        card = fill_card(f"flower {version('flwr')}", fields)
        add_update(folder, name, card, before=before, after=_arrays(reply.content.array_records))
        return reply

    return record_update


def _arrays(records: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a message by name. If there are several records of arrays, "arrays" is that of the strategies."""
    if "arrays" in records or len(records) == 1:
        record = records["arrays"] if "arrays" in records else next(iter(records.values()))
        return {name: array.numpy() for name, array in record.items()}
    return {f"{key}.{name}": array.numpy() for key, record in records.items() for name, array in record.items()}


def _look_up(records: Iterable[Mapping[str, Any]], *names: str) -> Any:
    """Return the first value that a record has under one of some names; None if there is none."""
    return next((record[name] for record in records for name in names if name in record), None)
