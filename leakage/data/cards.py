"""Cards of trained networks (JSON files), and the check of the weights by the hash in the card."""

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from leakage.data.errors import CheckpointError

Card = TypeVar("Card")


def read_card(path: Path, kind: TypeAdapter[Card], title: str, remedy: str, **more: Any) -> Card:
    """Read and check the card of a trained network, the JSON file that describes it, and return it as the type of `kind`.

    Args:
        path: the JSON file.
        kind: checks and converts the content of the file.
        title: what the card describes, such as "a checkpoint", for the error message.
        remedy: a sentence on what to do about a damaged card, for the error message.
        more: fields of the card that are not in the file, by name.

    Raises:
        CheckpointError: if the file is missing or damaged.
    """
    try:
        return kind.validate_python({**json.loads(path.read_text()), **more})
    except (OSError, ValueError, TypeError) as error:  # pydantic's errors are ValueErrors
        why = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} is no card of {title} ({why}). {remedy}") from None


def verified_bytes(path: Path, sha256: str, remedy: str) -> bytes:
    """Return the content of a file of weights.

    Raises CheckpointError, with the sentence `remedy`, if the file cannot be read or has another SHA-256 than `sha256`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). {remedy}") from None
    if (found := digest(data)) != sha256:
        about = f"its sha256 begins with {found[:12]}, the card says {sha256[:12]}"
        raise CheckpointError(f"{path} is damaged or was exchanged: {about}. {remedy}")
    return data


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's content in hexadecimal form."""
    return hashlib.sha256(data).hexdigest()
