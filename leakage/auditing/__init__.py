"""Audits of a model of the caller: every strong attack on updates for some of its pictures, and what that permits to conclude."""

from leakage.auditing.audit_run import audit
from leakage.auditing.finding import Finding
from leakage.auditing.saving import Audit
from leakage.auditing.update_audit import audit_update
from leakage.auditing.update_finding import UpdateAudit
from leakage.spec.update_card import UpdateCard

__all__ = ["Audit", "Finding", "UpdateAudit", "UpdateCard", "audit", "audit_update"]
