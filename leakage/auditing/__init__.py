"""Audits of a model of the caller: every strong attack on updates for some of its pictures, and what that permits to conclude."""

from leakage.auditing.audit_run import audit
from leakage.auditing.finding import Finding
from leakage.auditing.saving import Audit

__all__ = ["Audit", "Finding", "audit"]
