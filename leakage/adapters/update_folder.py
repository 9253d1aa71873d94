"""A recorded update as a folder: before.npz and after.npz, or what was sent in their place, and card.json. No torch."""

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from leakage.spec.update_card import FILE, UpdateCard

Arrays: TypeAlias = Mapping[str, Any]
KINDS = ("before", "after", "difference", "gradient")  # each is a file, such as before.npz
NUMBERS = "biuf"  # the kinds of NumPy's types that are written: booleans, whole numbers, floating-point numbers
NO_NUMBERS = "{} is no array of numbers, but {}. Give NumPy arrays or tensors of booleans, whole numbers or floating-point numbers."
LONGEST = 60  # characters of a client's name in the name of its folder


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return a copy of an array or of a PyTorch tensor as a NumPy array.

    Types that NumPy does not have, such as bfloat16, become float32, which holds their values exactly.

    Args:
        value: the array or the tensor, on any device.
        name: the name of the array, for the message of an error.

    Raises:
        ValueError: the value is no array of numbers.
    """
    if hasattr(value, "detach"):
        tensor = value.detach().cpu().to_dense()
        try:
            value = tensor.numpy()
        except TypeError:
            value = tensor.float().numpy()
    try:
        array = np.array(value)
    except (TypeError, ValueError):
        raise ValueError(NO_NUMBERS.format(name, type(value).__name__)) from None
    if array.dtype.kind not in NUMBERS:
        raise ValueError(NO_NUMBERS.format(name, f"{type(value).__name__} of {array.dtype}"))
    return array


def card_as_json(card: UpdateCard) -> dict[str, Any]:
    """Return a card as JSON: a known field is its value, a guess is {"guess": value}, and unknown fields are left out.

    Args:
        card: the card.
    """
    dumped = card.model_dump(mode="json")
    fields: dict[str, Any] = {"format": card.format}
    fields |= {name: dumped[name] for name in ("framework", "protections") if dumped[name]}
    for name, entry in card.entries():
        value = dumped[name]["value"]
        if entry.state != "unknown":
            fields[name] = {"guess": value} if entry.guessed else value
    return fields


def fill_card(framework: str, fields: Mapping[str, Any]) -> UpdateCard:
    """Return a card of what a framework says of a client. A value that its field does not allow is left out: the field stays unknown.

    Args:
        framework: the program and its version, such as "flower 1.42.0".
        fields: the values, or {"guess": value}; None is unknown.
    """
    allowed = {}
    for name, value in fields.items():
        try:
            UpdateCard.model_validate({name: value})
        except ValidationError:
            continue
        allowed[name] = value
    return UpdateCard.model_validate({"framework": framework, **allowed})


def write_update(folder: str | Path, card: UpdateCard, **arrays: Arrays | None) -> Path:
    """Write an update as a new folder, which its owner alone may read.

    The folder appears under its name when all its files are written, and not at all if there is an error.

    Args:
        folder: the folder, which does not exist yet, or is empty.
        card: what is known of the client.
        arrays: `before` and `after`, or `before` and `difference`, or `difference`, or `gradient`: arrays or tensors by name. An argument
            that is None or empty is not written.

    Returns:
        The path of the folder.

    Raises:
        FileExistsError: there is a file of this name, or a folder that is not empty.
        TypeError: an argument has another name, or the name of an array is no text.
        ValueError: there is no update, or an array has no numbers.
        OSError: a file cannot be written.
    """
    _check_arguments(arrays)
    place = Path(folder)
    draft = _write_draft(place, card, arrays)
    try:
        _move(draft, place)
    except BaseException:
        shutil.rmtree(draft)
        raise
    return place


def add_update(root: str | Path, name: str, card: UpdateCard, **arrays: Arrays | None) -> Path:
    """Write an update as a new folder inside another one. If there is a folder of this name, a number is appended: name-2, name-3.

    Args:
        root: the folder of all updates; it is made if it does not exist.
        name: the name of the update, from `name_update`.
        card: what is known of the client.
        arrays: as of `write_update`.

    Returns:
        The path of the new folder.

    Raises:
        TypeError, ValueError, OSError: as of `write_update`.
    """
    _check_arguments(arrays)
    draft = _write_draft(Path(root, name), card, arrays)
    number = 1
    while True:
        place = Path(root, name if number == 1 else f"{name}-{number}")
        try:
            _move(draft, place)
        except FileExistsError:
            number += 1
        except BaseException:
            shutil.rmtree(draft)
            raise
        else:
            return place


def name_update(client: object, round: int | None = None) -> str:
    """Return a name for the folder of an update, such as "round-1-client-0".

    Args:
        client: the number or the name of the client; characters other than letters, digits, "_" and "-" become "-".
        round: the round; None: unknown.
    """
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", str(client)).strip("-")[:LONGEST] or "unnamed"
    return f"client-{readable}" if round is None else f"round-{round}-client-{readable}"


def check_place(folder: str | Path) -> None:
    """Raise FileExistsError if an update cannot be written to this folder, because it holds files, or is a file."""
    place = Path(folder)
    if place.is_symlink() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
        raise _taken(place)


def _taken(place: Path) -> FileExistsError:
    return FileExistsError(f"{place} exists and is not empty. An update is written as a new folder: name another one, or delete it.")


def _check_arguments(arrays: Mapping[str, Arrays | None]) -> None:
    strange = sorted(set(arrays) - set(KINDS))
    if strange:
        raise TypeError(f"There is no part {strange[0]!r} of an update. The parts are {', '.join(KINDS)}.")
    if not any(arrays.get(kind) for kind in KINDS[1:]):
        raise ValueError("There is no update to write. Give `after`, `difference` or `gradient` as arrays by name.")


def _write_draft(place: Path, card: UpdateCard, arrays: Mapping[str, Arrays | None]) -> Path:
    """Write the files into a hidden folder beside the place of the update, and return its path."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))  # of mode 0700
    try:
        for kind, by_name in arrays.items():
            if by_name:
                _write_arrays(draft / f"{kind}.npz", by_name)
        with _create_private(draft / FILE) as file:
            file.write(f"{json.dumps(card_as_json(card), indent=2)}\n".encode())
    except BaseException:
        shutil.rmtree(draft)
        raise
    return draft


def _write_arrays(path: Path, arrays: Arrays) -> None:
    """Write an .npz file as `numpy.savez` does, also of arrays with the names of its arguments, and never with a pickle."""
    with _create_private(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            if not isinstance(name, str):
                raise TypeError(f'The name of an array is {name!r}, and must be a text. Name arrays without names by their number, as "0".')
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, as_array(value, name), allow_pickle=False)


def _create_private(path: Path) -> BinaryIO:
    """Create a file that its owner alone may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _move(draft: Path, place: Path) -> None:
    """Give a folder its name. Raises FileExistsError if there is a file of this name, or a folder that is not empty."""
    check_place(place)
    try:
        draft.rename(place)
    except OSError as error:
        if place.exists():  # another process was faster
            raise _taken(place) from error
        raise
