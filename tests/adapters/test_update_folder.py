"""The folder of an update: what was written is read again, only its owner may read it, and mistakes are named."""

import json
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leakage.adapters.update_folder import add_update, card_as_json, fill_card, name_update, write_update
from leakage.settings import ROOT
from leakage.spec.update_card import UpdateCard

ARRAYS: dict[str, Any] = {
    "0.weight": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "1.num_batches_tracked": np.array(3, np.int64),
    "half": np.ones(2, np.float16),
    "file": np.array([True, False]),  # an argument of numpy.savez
    "a/b": np.zeros((0, 2)),
}
CARD = UpdateCard.model_validate(
    {
        "framework": "none 1.0",
        "network": {"id": "lenet", "fields": {"bias": False}},
        "input": [3, 32, 32],
        "normalization": {"guess": [[0.5, 0.5, 0.5], [0.2, 0.2, 0.2]]},
        "optimizer": "Adam",
        "rate": 0.01,
        "epochs": {"guess": 2},
        "labels": [3, 1],
        "protections": [{"id": "gaussian_noise", "fields": {"scale": 0.1}}],
    }
)


def read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return list(one) == list(other) and all(
        np.asarray(value).dtype == other[name].dtype and np.array_equal(value, other[name]) for name, value in one.items()
    )


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("parts", [("before", "after"), ("before", "difference"), ("difference",), ("gradient",)], ids="-".join)
def test_arrays_and_the_card_are_read_as_they_were_written(tmp_path: Path, parts: tuple[str, ...]) -> None:
    folder = write_update(tmp_path / "update", CARD, **{part: ARRAYS for part in parts})
    assert {path.name for path in folder.iterdir()} == {"card.json", *(f"{part}.npz" for part in parts)}
    assert all(same(ARRAYS, read_arrays(folder / f"{part}.npz")) for part in parts)
    assert UpdateCard.model_validate_json((folder / "card.json").read_text()) == CARD


def test_a_card_has_known_values_guesses_and_nothing_of_what_is_unknown() -> None:
    assert card_as_json(CARD) == {
        "format": 1,
        "framework": "none 1.0",
        "protections": [{"id": "gaussian_noise", "fields": {"scale": 0.1}}],
        "network": {"id": "lenet", "fields": {"bias": False}},
        "input": [3, 32, 32],
        "normalization": {"guess": [[0.5, 0.5, 0.5], [0.2, 0.2, 0.2]]},
        "optimizer": "Adam",
        "rate": 0.01,
        "epochs": {"guess": 2},
        "labels": [3, 1],
    }
    assert card_as_json(UpdateCard()) == {"format": 1}


def test_what_a_framework_says_and_a_field_does_not_allow_stays_unknown() -> None:
    card = fill_card("none 1.0", {"pictures": 0, "round": 2, "rate": {"guess": "high"}, "epochs": {"guess": None}, "steps": None})
    assert card_as_json(card) == {"format": 1, "framework": "none 1.0", "round": 2}


def test_tensors_are_copied_and_bfloat16_becomes_float32(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 2).to(torch.bfloat16)
    folder = write_update(tmp_path / "update", CARD, after=layer.state_dict())
    read = read_arrays(folder / "after.npz")
    assert {value.dtype for value in read.values()} == {np.dtype("float32")}
    assert all(torch.equal(torch.from_numpy(read[name]), value.float()) for name, value in layer.state_dict().items())


def test_a_sparse_tensor_becomes_dense(tmp_path: Path) -> None:
    folder = write_update(tmp_path / "update", CARD, gradient={"w": torch.eye(3, dtype=torch.float64).to_sparse()})
    assert same({"w": np.eye(3)}, read_arrays(folder / "gradient.npz"))


def test_a_folder_and_its_files_can_be_read_by_their_owner_alone(tmp_path: Path) -> None:
    folder = add_update(tmp_path / "updates", "client-0", CARD, before=ARRAYS, after=ARRAYS)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder)] == [0o700, 0o700]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


# ---------------------------------------------------------------- several updates


@pytest.mark.parametrize(
    ("client", "round", "name"),
    [
        (0, 3, "round-3-client-0"),
        ("site-1", None, "client-site-1"),
        ("../../etc/passwd", 1, "round-1-client-etc-passwd"),
        ("..", 1, "round-1-client-unnamed"),
        ("a" * 500, None, f"client-{'a' * 60}"),
    ],
)
def test_an_update_is_named_after_its_round_and_its_client(client: object, round: int | None, name: str) -> None:
    assert name_update(client, round) == name


def test_updates_of_the_same_name_get_a_number_also_when_they_are_written_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda number: add_update(tmp_path, "client-0", CARD, gradient={"0": np.array(number)}), range(12)))
    assert {folder.name for folder in folders} == {"client-0", *(f"client-0-{number}" for number in range(2, 13))}
    assert {path.name for path in tmp_path.iterdir()} == {folder.name for folder in folders}  # no drafts are left
    assert [int(read_arrays(folder / "gradient.npz")["0"]) for folder in folders] == list(range(12))


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arrays", "error", "sentence"),
    [
        ({}, ValueError, "There is no update to write. Give `after`, `difference` or `gradient`"),
        ({"before": ARRAYS}, ValueError, "There is no update to write"),
        ({"after": {}}, ValueError, "There is no update to write"),
        ({"gradients": ARRAYS}, TypeError, "There is no part 'gradients' of an update. The parts are before, after, difference, gradient."),
        ({"after": {"w": np.array([object()])}}, ValueError, "w is no array of numbers, but ndarray of object. Give NumPy arrays"),
        ({"after": {"w": ["a"]}}, ValueError, "w is no array of numbers, but list of <U1"),
        ({"after": {"w": [[1], [2, 3]]}}, ValueError, "w is no array of numbers, but list. Give NumPy arrays"),
        ({"after": {"w": np.ones(1, complex)}}, ValueError, "w is no array of numbers, but ndarray of complex128"),
        ({"after": {0: np.ones(1)}}, TypeError, "The name of an array is 0, and must be a text. Name arrays without names by their number"),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_nothing_behind(
    tmp_path: Path, arrays: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        write_update(tmp_path / "update", CARD, **arrays)
    assert str(caught.value).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


def test_an_update_is_not_written_over_other_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_update(tmp_path / "empty", CARD, after=ARRAYS)
    (tmp_path / "file").write_text("mine")
    for name in ("empty", "file"):
        with pytest.raises(
            FileExistsError, match=f"{name} exists and is not empty. An update is written as a new folder: name another one"
        ):
            write_update(tmp_path / name, CARD, gradient=ARRAYS)
    assert (tmp_path / "file").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "file"}
    assert not (tmp_path / "empty" / "gradient.npz").exists()


# ---------------------------------------------------------------- beside a framework

SCRIPT = """
import importlib.abc, json, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("flwr", "nvflare", "torch", "safetensors", "PIL", "scipy", "platformdirs", "streamlit"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Refuse())
import leakage.adapters.flower, leakage.adapters.plain_torch, leakage.adapters.update_folder
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))))
"""


@pytest.mark.long
def test_the_adapters_need_numpy_and_pydantic_and_no_other_package() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    packages = {name for name in json.loads(done.stdout) if not name.startswith("_")}
    assert packages - {"leakage"} <= {"numpy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def test_only_the_module_of_a_framework_imports_it_and_none_imports_more_of_this_project_than_card_and_files() -> None:
    imported = {}
    for file in sorted((ROOT / "leakage" / "adapters").glob("*.py")):
        lines = [line.strip() for line in file.read_text().splitlines()]
        modules = {line.split()[1] for line in lines if line.startswith(("from ", "import ")) and len(line.split()) > 1}
        imported[file.stem] = modules
    frameworks = {name: {module.split(".")[0] for module in modules} & {"flwr", "nvflare", "torch"} for name, modules in imported.items()}
    expected = {
        "__init__": set(),
        "flower": set(),
        "nvflare": {"nvflare"},
        "plain_torch": {"torch"},
        "update_folder": set(),
        "update_reader": set(),
    }
    assert frameworks == expected
    ours = {module for modules in imported.values() for module in modules if module.startswith("leakage")}
    assert ours == {
        "leakage.spec.update_card",
        "leakage.adapters.update_folder",
        "leakage.data.array_files",
        "leakage.data.errors",
        "leakage.data.process_limits",
    }
