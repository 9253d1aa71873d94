"""The run that audits a recorded update: sentences on the update and what each attack found become events."""

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from leakage.adapters.update_reader import read_update
from leakage.auditing.update_audit import audit_update
from leakage.auditing.update_finding import UpdateFinding
from leakage.data.images import sheet
from leakage.results.audit_words import ANSWERED, FAILED, conclude
from leakage.runs.event_parts import FindingFacts
from leakage.runs.events import AuditEnd, FindingEvent, StatementEvent
from leakage.runs.store import Run, Store
from leakage.settings import settings
from leakage.spec.audit_task import AuditTask
from leakage.workers.adapter import untrained

GONE = "The files of this update are not on the machine that computes the audit. Choose them again."
NO_WEIGHTS = "The weights that the client received are missing (before.npz): attacks compute with them. Add them to the files."
SHOWN = 64  # pictures of one finding that are stored


def perform(store: Store, run: Run, should_stop: Callable[[], bool]) -> AuditEnd:
    """Audit the update of a run, store each sentence and each finding as an event, and return the conclusion.

    Raises:
        ValueError: the files are gone, or cannot be read; the message is a sentence for the owner.
    """
    task, begun, findings = run.experiment_as(AuditTask), time.monotonic(), dict[tuple[str, str], FindingEvent]()
    folder = settings().updates / task.files
    if not folder.is_dir():
        raise ValueError(GONE)
    update = read_update(folder)
    if update.before is None:
        raise ValueError(NO_WEIGHTS)

    def keep(found: UpdateFinding) -> None:
        event = findings[found.title, found.attacker] = finding_event(found)
        if found.pictures is None:
            store.add_event(run.id, event)
        else:
            store.add_frame(run.id, event, picture_sheet(found.pictures))

    audit_update(
        untrained(task.model, task.image_shape, task.num_classes, seed=task.seed),
        update,
        card=task.card,
        minutes=task.minutes,
        seed=task.seed,
        on_statement=lambda text: store.add_event(run.id, StatementEvent(text=text)),
        on_finding=keep,
        should_stop=should_stop,
    )
    return AuditEnd(
        conclusion=conclude(list(findings.values())),
        tried=sum(finding.state in (ANSWERED, FAILED) for finding in findings.values()),
        answered=sum(finding.state == ANSWERED for finding in findings.values()),
        seconds=round(time.monotonic() - begun, 1),
        whole=not should_stop(),
    )


def finding_event(found: UpdateFinding) -> FindingEvent:
    """Return what an attack found as an event, without its pictures."""
    facts: dict[str, Any] = {name: getattr(found, name) for name in FindingFacts.model_fields.keys() - {"count", "seconds"}}
    count = 0 if found.pictures is None else len(found.pictures)
    return FindingEvent(**facts, count=count, seconds=round(found.seconds, 1))


def picture_sheet(pictures: Tensor) -> bytes:
    """Return the first pictures (B, C, H, W) in [0, 1] side by side as PNG."""
    x = pictures.detach().float().cpu()[:SHOWN].nan_to_num(0).clamp(0, 1)
    return sheet((x * 255).round().byte().permute(0, 2, 3, 1).numpy())
