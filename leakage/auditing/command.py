"""The command `audit`: an audit from a file, its report in a folder, and an exit status for builds."""

import argparse
import logging
from pathlib import Path

from leakage.auditing.audit_outcome import UNKNOWN
from leakage.auditing.audit_run import run_audit
from leakage.auditing.config import arguments_of, named_settings, read_config
from leakage.auditing.thresholds import Threshold
from leakage.auditing.update_command import perform_on_update
from leakage.spec.words import REFUSED

NO_ANSWER = "No attack came to an answer, so the thresholds say nothing. Give the audit more minutes, or read why in the report."
NO_MODEL = "The client refused the model, so the thresholds say nothing. Leave out the checks to see what an update shows."
PASSED = 3  # exit status if a threshold was passed
log = logging.getLogger("leakage")


def perform(given: argparse.Namespace) -> int:
    """Run the audit that a file describes, write its report, and return the exit status: 0, or PASSED if a threshold was passed.

    In place of the file there may be the folder of a recorded update (`perform_on_update`).

    Raises:
        ValueError, TypeError: the file or a threshold is not allowed, or thresholds were given and no attack came to an answer.
        OSError: a file cannot be read or written.
    """
    if given.out.exists() and any(given.out.iterdir()):
        raise ValueError(f"{given.out} is not empty. Name a new folder for the report.")
    if given.file.is_dir():
        return perform_on_update(given)
    thresholds = [Threshold.parse(text) for text in given.fail_if]
    settings = read_config(given.file)
    repeat = given.file if given.file.suffix == ".json" else None
    try:
        audit = run_audit(arguments_of(settings, Path.cwd(), repeat=repeat), named_settings(settings))
    except TypeError as error:  # a setting, or what a function of the owner returns, has a wrong type
        raise ValueError(str(error)) from error
    audit.save(given.out, dpia=given.dpia)
    log.info("\n%s\n\nThe report is in %s.", audit, given.out)
    passed = [threshold.text for threshold in thresholds if threshold.passed(audit)]
    for text in passed:
        log.info("Passed: %s.", text)
    if thresholds and not passed and audit.word in (UNKNOWN, REFUSED):
        raise ValueError(NO_MODEL if audit.word == REFUSED else NO_ANSWER)
    return PASSED if passed else 0
