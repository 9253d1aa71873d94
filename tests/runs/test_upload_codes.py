"""A code deletes an upload, all its runs and every byte; the store does not contain the code, and nobody can try many."""

import time

import pytest
from sample_events import frame
from store_rows import python, run

from leakage.runs import upload_codes
from leakage.runs.store import Store
from leakage.runs.upload_codes import TOO_MANY, TRIES, UNKNOWN, UNREADABLE, CodeError, Deleted, UploadCodes

SECRET = b"the pixels of somebody's face, " * 500


@pytest.fixture
def codes(store: Store) -> UploadCodes:
    return UploadCodes(store)


def add(store: Store, id: str, owner: str = "me", *uploads: str, created: float | None = None) -> None:
    """A run with these uploads, a frame and its private pictures."""
    store.add(run(id, owner, shareable=not uploads, created=created or time.time()), {f"upload:{name}": SECRET for name in uploads})
    store.add_frame(id, frame(1), SECRET)
    store.put_file(id, "private.png", SECRET)


def refused(codes: UploadCodes, code: str, owner: str = "stranger") -> str:
    with pytest.raises(CodeError) as caught:
        codes.delete(code, owner)
    return str(caught.value)


def files_with_the_secret(store: Store) -> set[str]:
    return {file.name for file in store.path.parent.iterdir() if SECRET[:31] in file.read_bytes()}


def test_a_code_deletes_every_run_of_its_upload_and_leaves_all_others(store: Store, codes: UploadCodes) -> None:
    code = codes.issue("me", "face")
    for id, owner, uploads in [
        ("first", "me", ["face"]),
        ("batch", "me", ["tree", "face"]),
        ("other picture", "me", ["tree"]),
        ("gallery", "me", []),
        ("of somebody with the same file", "you", ["face"]),
    ]:
        add(store, id, owner, *uploads)
    assert codes.delete(code, "somebody without the cookie") == Deleted("face", 2)
    assert {found.id for found in store.held_by("me")} == {"other picture", "gallery"}
    assert [found.id for found in store.held_by("you")] == ["of somebody with the same file"]
    assert store.files("first") == store.files("batch") == {}
    assert store.frames("first") == []
    assert refused(codes, code) == UNKNOWN


def test_the_bytes_are_gone_from_the_disk(store: Store, codes: UploadCodes) -> None:
    server = python("print(store.queue()); sys.stdin.read()", store.path)  # while it has the store open, the log stays
    code = codes.issue("me", "face")
    add(store, "mine", "me", "face")
    assert files_with_the_secret(store) != set()
    codes.delete(code, "me")
    assert files_with_the_secret(store) == set()
    server.communicate("", timeout=240)


def test_a_code_without_runs_says_so(codes: UploadCodes) -> None:
    assert codes.delete(codes.issue("me", "face"), "me") == Deleted("face", 0)


def test_codes_are_easily_typed_differ_and_are_not_in_the_store(store: Store, codes: UploadCodes) -> None:
    issued = [codes.issue("me", "face") for _ in range(200)]
    assert len(set(issued)) == 200
    assert all([len(group) for group in code.split("-")] == [4, 4, 4] for code in issued)
    assert not set("".join(issued)) & set("ilouABC_")
    assert len(set("".join(issued)) - {"-"}) == 32  # 5 bits a letter, 60 in all
    add(store, "mine", "me", "face")
    kept = b"".join(file.read_bytes() for file in store.path.parent.iterdir())
    assert not any(code.encode() in kept or code.replace("-", "").encode() in kept for code in issued)


@pytest.mark.parametrize("typed", ["01ab-2345-cdef", " 01AB-2345-CDEF ", "01ab2345cdef", "Olab 2345 cdef", "oIab_2345_cdef"])
def test_a_code_is_read_however_it_is_typed(codes: UploadCodes, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    letters = iter("01ab2345cdef")
    monkeypatch.setattr(upload_codes.secrets, "choice", lambda _: next(letters))
    assert codes.issue("me", "face") == "01ab-2345-cdef"
    assert codes.delete(typed, "me") == Deleted("face", 0)


@pytest.mark.parametrize("typed", ["", "7k2m", "7k2m-x9qd-04tw-aaaa", "' OR 1=1 --", "\0", "💥" * 12, "é" * 12])
def test_what_is_no_code_is_answered_with_its_form(codes: UploadCodes, typed: str) -> None:
    assert refused(codes, typed) == UNREADABLE


def test_after_some_wrong_codes_an_owner_waits_a_minute_and_nobody_else_does(codes: UploadCodes, monkeypatch: pytest.MonkeyPatch) -> None:
    code = codes.issue("me", "face")
    for _ in range(TRIES):
        assert refused(codes, "0000-0000-0000") == UNKNOWN
    assert refused(codes, "0000-0000-0000") == refused(codes, code) == TOO_MANY
    assert refused(codes, "0000-0000-0000", "another") == UNKNOWN
    now = time.time()
    monkeypatch.setattr(upload_codes.time, "time", lambda: now + 61)
    assert codes.delete(code, "stranger") == Deleted("face", 0)
    assert codes.wrong == {}


def test_a_sweep_forgets_old_codes_whose_uploads_are_in_no_run(store: Store, codes: UploadCodes, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, used = codes.issue("me", "tree"), codes.issue("me", "face")
    add(store, "later", "me", "face")  # a page was open for days before it was run
    monkeypatch.setattr(upload_codes.time, "time", lambda: 10.0**10)
    new = codes.issue("me", "sea")
    codes.sweep(before=10.0**10 - 1)
    assert refused(codes, gone) == UNKNOWN
    assert codes.delete(used, "me") == Deleted("face", 1)
    assert codes.delete(new, "me") == Deleted("sea", 0)
