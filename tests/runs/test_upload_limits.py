"""An owner's limits of uploads and their bytes; deleted uploads make room, and other owners have their own limits."""

import pytest

from leakage.runs import upload_limits
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment, Picture, SpecError


def submit(door: Service, *names: str, owner: str = "me", size: int = 10) -> str:
    pictures = tuple(Picture(source="upload", id=name, label=0) for name in names)
    return door.submit(Experiment(pictures=pictures), owner, uploads={name: bytes(size) for name in names})


def test_more_pictures_than_allowed_are_refused_and_nothing_is_queued(door: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "MAX_KEPT", 3)
    first = submit(door, "a", "b")
    submit(door, "b", "c")  # three in all
    with pytest.raises(SpecError, match=r"^Your runs would hold 4 uploaded pictures; 3 are allowed\. Delete runs"):
        submit(door, "d")
    assert len(door.mine("me")) == 2
    submit(door, "d", owner="you")
    door.submit(Experiment(), "me")  # of the gallery: it keeps nothing
    door.delete(first, "me")
    submit(door, "d")


def test_more_bytes_than_allowed_are_refused_each_run_counting_its_own(door: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "MAX_KEPT_MB", 2)
    for _ in range(2):
        submit(door, "a", size=2**20)
    with pytest.raises(SpecError, match=r"^Your runs would hold 3 MB of uploaded pictures; 2 MB are allowed\."):
        submit(door, "a", size=2**20)
    assert len(door.mine("me")) == 2
