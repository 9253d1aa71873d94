"""Sets of files of recorded updates: deleted with their last run, by their owner, and by age, and kept while a run needs them."""

import os
import time
from pathlib import Path

import pytest
from recorded_updates import audit_of, send_update, write_update

from leakage.runs.service import FILES_GONE, Service
from leakage.runs.update_sets import IN_USE, UNUSED
from leakage.spec.audit_task import AuditTask
from leakage.spec.experiment import SpecError
from leakage.spec.part import Part
from leakage.spec.update_card import UpdateCard


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_update(tmp_path_factory.mktemp("recorded"))


def test_a_set_goes_with_its_last_run(door: Service, recorded: Path) -> None:
    sets = door.store.updates
    files = send_update(door, "me", source=recorded)
    first, second = (door.audit(audit_of(files, seed=seed), "me") for seed in (1, 2))
    assert first != second
    door.delete(first, "me")
    assert set(sets.files(files)) == {"before.npz", "after.npz"}
    door.delete(second, "me")
    assert list(sets.folder.glob("*")) == []


def test_a_second_press_of_run_is_the_same_run_and_equal_files_of_others_are_not(door: Service, recorded: Path) -> None:
    mine, others = (audit_of(send_update(door, who, source=recorded)) for who in ("me", "you"))
    first = door.audit(mine, "me")
    assert door.audit(mine, "me") == first
    assert door.audit(others, "you") != first
    assert [run.shareable for run in door.mine("me")] == [False]
    door.cancel(first, "me")
    assert door.audit(mine, "me") != first


def test_delete_all_deletes_files_that_no_run_has_used(door: Service, recorded: Path) -> None:
    mine, others = send_update(door, "me", source=recorded), send_update(door, "you", source=recorded)
    door.audit(audit_of(mine), "me")
    send_update(door, "me", source=recorded)
    door.delete_all("me")
    sets = door.store.updates
    assert [path.parent.name + "/" + path.name for path in sets.folder.glob("*/*")] == [others]
    assert not sets.is_open(mine, "me")
    assert sets.is_open(others, "you")
    assert not sets.is_open(others, "me")


def test_by_age_files_go_as_uploads_do(door: Service, recorded: Path) -> None:
    """A run's files go with the run, files without a run after a day."""
    sets, now = door.store.updates, time.time()
    used, unused, new = (send_update(door, "me", source=recorded) for _ in range(3))
    run = door.audit(audit_of(used), "me")
    for name in (used, unused):
        for path in (*sets.path(name).iterdir(), sets.path(name)):
            os.utime(path, (now - UNUSED - 60, now - UNUSED - 60))
    sets.remove_unheld()
    assert sets.files(used)
    assert not sets.files(unused)
    assert sets.files(new)
    door.store.sweep(uploads_before=now + 60)
    assert door.look(run) is None
    assert not sets.files(used)
    removed = door.removed(run)
    assert removed is not None
    assert removed.experiment is None


def test_an_audit_needs_its_files_and_a_network_that_can_be_built(door: Service, recorded: Path) -> None:
    with pytest.raises(SpecError, match=f"^{FILES_GONE}$"):
        door.audit(audit_of(door.store.updates.open("me")), "me")
    files = send_update(door, "me", source=recorded)
    small = UpdateCard.model_validate({"input": [3, 28, 28], "classes": 10})
    with pytest.raises(SpecError, match="at least 32 pixels, given was 28"):
        door.audit(audit_of(files).model_copy(update={"card": small, "model": Part(id="vgg16")}), "me")
    assert door.mine("me") == []


def test_a_file_that_arrives_after_its_run_has_begun_changes_nothing(door: Service, recorded: Path) -> None:
    sets = door.store.updates
    files = send_update(door, "me", source=recorded)
    before = (sets.path(files) / "after.npz").read_bytes()

    def replace_late() -> None:
        with sets.receive(files, "after.npz", 5) as draft:
            draft.write(b"other")
            door.audit(audit_of(files), "me")

    with pytest.raises(ValueError, match=IN_USE):
        replace_late()
    assert (sets.path(files) / "after.npz").read_bytes() == before
    assert set(sets.files(files)) == {"before.npz", "after.npz"}


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({}, "Fill in both"),
        ({"input": [3, 32, 32]}, "Fill in both"),
        ({"input": [3, 32, 16], "classes": 10}, "square pictures"),
        ({"input": [3, 4096, 4096], "classes": 10}, "square pictures"),
        ({"input": [3, 32, 32], "classes": 1}, "2 to"),
    ],
)
def test_the_card_of_a_task_says_what_the_network_needs(card: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AuditTask(files="0123456789abcdef/AAAAAAAAAAAAAAAA", card=UpdateCard.model_validate(card))


@pytest.mark.parametrize("name", ["", "../../etc", "0123456789abcdef/..", "0123456789abcdef/../AAAAAAAAAAAAA"])
def test_the_name_of_a_set_is_no_path(door: Service, name: str) -> None:
    with pytest.raises(ValueError, match="a set of files has a name"):
        door.store.updates.path(name)
