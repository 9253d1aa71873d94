"""The command `audit` on a recorded update: what it says and what attacks make of it, printed, and written into a folder."""

import argparse
import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from leakage import __version__
from leakage.auditing.config import import_function
from leakage.auditing.saving import write_private
from leakage.auditing.update_audit import audit_update
from leakage.auditing.update_finding import UpdateAudit, UpdateFinding
from leakage.data.images import sheet

RECORD = "update-audit.json"
NO_MODEL = "A recorded update needs --model, for example --model ours:make_model: the function in ours.py that returns the network."
NO_THRESHOLD = "--fail-if counts pictures that are known. Those behind a recorded update are not: leave it out."
log = logging.getLogger("leakage")


def perform_on_update(given: argparse.Namespace) -> int:
    """Run an audit of the recorded update in a folder, write what it found, and return the exit status 0.

    Raises:
        ValueError, TypeError: an option, the update or its card is not allowed.
        OSError: a file cannot be read or written.
    """
    if not given.model:
        raise ValueError(NO_MODEL)
    if given.fail_if:
        raise ValueError(NO_THRESHOLD)
    model = import_function(given.model, Path.cwd())()
    try:
        audit = audit_update(model, given.file, minutes=given.minutes, on_statement=log.info, on_finding=lambda one: log.info("%s", one))
    except TypeError as error:
        raise ValueError(str(error)) from error
    write_update_audit(audit, given.out)
    log.info("\n%s\n\nThe numbers and the pictures are in %s.", audit, given.out)
    return 0


def write_update_audit(audit: UpdateAudit, folder: Path) -> None:
    """Write update-audit.json and a PNG for each answer, its pictures side by side; their owner alone may read these files."""
    folder.mkdir(parents=True, exist_ok=True)
    findings = list[dict[str, Any]]()
    for number, finding in enumerate(audit.findings, 1):
        said = _as_json(finding)
        if finding.pictures is not None:
            said["picture"] = f"answer-{number}-{finding.attack}.png"
            write_private(folder / said["picture"], _as_png(finding.pictures))
        findings.append(said)
    record = {"version": __version__, "statements": audit.statements, "assumptions": audit.assumptions, "findings": findings}
    write_private(folder / RECORD, json.dumps(record, indent=2).encode() + b"\n")


def _as_json(finding: UpdateFinding) -> dict[str, Any]:
    return {each.name: getattr(finding, each.name) for each in fields(finding) if each.name != "pictures"}


def _as_png(pictures: Tensor) -> bytes:
    """Return pictures (B, C, H, W) in [0, 1] side by side as a PNG; of other numbers of channels than 1 and 3 the mean is drawn."""
    shown = pictures if pictures.shape[1] in (1, 3) else pictures.mean(1, keepdim=True)
    return sheet((shown.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).numpy())
