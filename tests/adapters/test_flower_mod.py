"""The mod of Flower records what a client sends, and passes everything else on. Messages are stand-ins here; see test_federations.py."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakage.adapters import flower


class Array:
    """Flower's Array: bytes that become a NumPy array."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def numpy(self) -> Any:
        return np.array(self.values, np.float32)


def message(arrays: dict[str, dict[str, Array]], *, kind: str = "train", group: str = "", error: bool = False, **records: Any) -> Any:
    content = SimpleNamespace(array_records=arrays, config_records=records.get("configs", {}), metric_records=records.get("metrics", {}))
    return SimpleNamespace(metadata=SimpleNamespace(message_type=kind, group_id=group), content=content, has_error=lambda: error)


def context(**config: Any) -> Any:
    return SimpleNamespace(node_id=77, node_config=config.pop("node", {"partition-id": 4}), run_config=config)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower, "version", lambda _name: "1.42.0")


def card(folder: Path) -> Any:
    return json.loads((folder / "card.json").read_text())


def weights(folder: Path, part: str) -> dict[str, list[float]]:
    return {name: value.tolist() for name, value in np.load(folder / f"{part}.npz", allow_pickle=False).items()}


SENT = {"arrays": {"w": Array(2.0)}}
COUNT = {"metrics": {"num-examples": 8}}


def test_an_update_of_a_strategy_is_recorded_with_what_it_says(tmp_path: Path) -> None:
    asked = message({"arrays": {"w": Array(1.0)}}, group="9", configs={"config": {"server-round": 3, "lr": 0.1}})
    answer = message(SENT, metrics=COUNT)

    def train(given: Any, _context: Any) -> Any:
        given.content.array_records.clear()  # the app may do with it what it likes
        return answer

    settings = context(**{"local-epochs": 2})
    assert flower.saved(tmp_path)(asked, settings, train) is answer
    folder = tmp_path / "round-3-client-4"
    assert (weights(folder, "before"), weights(folder, "after")) == ({"w": [1.0]}, {"w": [2.0]})
    said = {"pictures": 8, "round": 3, "rate": {"guess": 0.1}, "epochs": {"guess": 2}}
    assert card(folder) == {"format": 1, "framework": "flower 1.42.0"} | said


def test_an_update_of_a_numpy_client_is_recorded_under_numbers(tmp_path: Path) -> None:
    asked = message({"fitins.parameters": {"0": Array(1.0), "1": Array(0.0)}}, kind="train.default", group="2")
    count = {"fitres.num_examples": {"num_examples": 5}}
    answer = message({"fitres.parameters": {"0": Array(2.0), "1": Array(1.0)}}, metrics=count)
    flower.saved(str(tmp_path))(asked, context(node={}), lambda *_: answer)
    folder = tmp_path / "round-2-client-77"
    assert weights(folder, "after") == {"0": [2.0], "1": [1.0]}
    assert card(folder) == {"format": 1, "framework": "flower 1.42.0", "pictures": 5, "round": 2}


def test_several_records_of_arrays_keep_their_names_apart(tmp_path: Path) -> None:
    flower.saved(tmp_path)(message({}), context(), lambda *_: message({"a": {"w": Array(1.0)}, "b": {"w": Array(2.0)}}))
    folder = tmp_path / "client-4"
    assert weights(folder, "after") == {"a.w": [1.0], "b.w": [2.0]}
    assert not (folder / "before.npz").exists()


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(message(SENT, kind="evaluate"), message(SENT)), (message(SENT), message(SENT, error=True)), (message(SENT), message({}))],
    ids=["evaluation", "error", "no arrays"],
)
def test_what_is_no_update_passes_and_is_not_recorded(tmp_path: Path, asked: Any, answer: Any) -> None:
    assert flower.saved(tmp_path / "updates")(asked, context(), lambda *_: answer) is answer
    assert list(tmp_path.iterdir()) == []
