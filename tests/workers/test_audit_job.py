"""The audit of a recorded update from the page's request to the result: a real worker, deleted like uploads."""

import io
import os
import re
import signal
from pathlib import Path

import pytest
from home_processes import Place, until
from PIL import Image
from recorded_updates import audit_of, send_update, write_update

from leakage.results import exports
from leakage.runs.events import AuditEnd

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_update(tmp_path_factory.mktemp("recorded"))


def test_a_worker_writes_what_the_update_says_and_what_each_attack_found(dispatcher: Place, recorded: Path) -> None:
    service, store = dispatcher.service, dispatcher.store
    files = send_update(service, "me", source=recorded)
    id = service.audit(audit_of(files), "me")
    assert store.updates.has_runs(files)
    run = dispatcher.finished(id)
    assert (run.kind, run.status, run.message) == ("audit", "done", "")
    assert not run.shareable
    assert run.model_folder is None
    end, findings = run.outcome(AuditEnd), service.audits.findings(id)
    assert end is not None
    assert end.whole
    assert end.tried == sum(finding.state in ("answered", "failed") for finding in findings) >= 1
    assert len(service.audits.statements(id)) > 1
    answered = [finding for finding in findings if finding.state == "answered"]
    assert end.answered == len(answered) >= 1
    for finding in answered:
        assert finding.picture
        png = store.frame(id, finding.seq)
        assert png is not None
        with Image.open(io.BytesIO(png)) as image:
            assert image.size == (32 * finding.count, 32)
    export = exports.make(store, id, "audit.json")
    assert export is not None
    assert files.encode() not in export.data
    assert end.conclusion.encode() in export.data
    folder = store.updates.path(files)
    assert folder.is_dir()
    service.delete(id, "me")
    assert not folder.exists()
    assert list(store.updates.folder.glob("*/*")) == []


def test_an_audit_that_is_stopped_keeps_what_it_found(dispatcher: Place, recorded: Path) -> None:
    service = dispatcher.service
    id = service.audit(audit_of(send_update(service, "me", source=recorded)), "me")
    until(lambda: service.audits.statements(id), what="the first sentence is there")
    service.cancel(id, "me")
    run = dispatcher.finished(id)
    assert run.status == "cancelled"
    assert re.fullmatch("Cancelled; what .* is (shown|kept).", run.message)  # by the worker, or by the dispatcher, if that is faster
    assert service.audits.statements(id)
    service.delete(id, "me")


def test_a_worker_that_dies_ends_the_audit_as_it_ends_other_runs(dispatcher: Place, recorded: Path) -> None:
    service = dispatcher.service
    id = service.audit(audit_of(send_update(service, "me", source=recorded), seed=5), "me")
    until(lambda: service.audits.statements(id), what="the first sentence is there")
    worker = dispatcher.look(id).worker
    assert worker is not None
    os.kill(int(worker.split(":")[1]), signal.SIGKILL)
    run = dispatcher.finished(id)
    assert (run.status, "did not expect" in run.message) == ("failed", False)
    assert run.message
    assert service.audits.statements(id)
    service.delete(id, "me")


def test_files_that_are_gone_or_no_update_end_the_audit_with_a_sentence(dispatcher: Place, tmp_path: Path) -> None:
    service = dispatcher.service
    (tmp_path / "gradient.npz").write_bytes(b"PK no archive")
    files = send_update(service, "me", ("gradient.npz",), source=tmp_path)
    run = dispatcher.finished(service.audit(audit_of(files), "me"))
    assert run.status == "failed"
    assert "gradient.npz" in run.message
    assert "did not expect" not in run.message
