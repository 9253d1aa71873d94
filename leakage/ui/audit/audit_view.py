"""An audit on its page: what the update says by itself, then what each attack found, as it comes; at the end the conclusion."""

from typing import Any

import streamlit as st

from leakage.frontend.markup import render
from leakage.results import audit_words
from leakage.results.durations import duration
from leakage.runs.endings import how_it_stands
from leakage.runs.events import AuditEnd, FindingEvent
from leakage.runs.service import service
from leakage.runs.store import OPEN, Run
from leakage.spec.audit_task import AuditTask
from leakage.spec.words import ATTACKERS
from leakage.ui.common import gone
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import escape
from leakage.ui.training import under_way

TILE = 144  # screen pixels of a reconstructed picture's side, about
FIRST_SENTENCE = "The files are being read"
FIRST_ATTACK = "The first attack is under way"


def show(run_id: str, task: AuditTask | None) -> None:
    """Draw an audit, again every second while it waits or runs; or say that it is not here.

    Args:
        run_id: the id of the audit.
        task: what the form above would run now; None if it is not complete.
    """
    run = service().look(run_id)
    if run is None or run.kind != "audit":
        st.warning(f"This audit is not here: {gone.why([run_id])}. Choose files and press Run.")
    else:
        if task and task.digest() != run.digest:
            st.caption(":material/warning: This result belongs to other settings. Press Run for the settings beside it.")
        under_way.show(run, draw)


def draw(run: Run) -> None:
    """Draw an audit: headline, what the update says, what the attacks found, and what to do next."""
    task, known = run.experiment_as(AuditTask), service().catalog()
    statements, findings = service().audits.statements(run.id), service().audits.findings(run.id)
    st.markdown(f"**{escape(headline(run, statements, findings))}**")
    if known:
        st.caption(escape(audit_words.audit_title(task, known)))
    if run.status in OPEN:
        under_way.stop_button(run, "What was found so far stays.")
    elif run.message:
        st.caption(escape(run.message))
    if statements:
        with st.container(border=True, gap="small", key="statements"):
            st.markdown("**What the update says before any attack, and what is assumed of the client**")
            st.markdown("\n".join(f"- {escape(text)}" for text in statements))
    if findings:
        st.markdown("**What the attacks found**")
        st.html(draw_findings(run, findings))
    if findings or run.status not in OPEN:
        st.info(escape(audit_words.NO_PROOF), icon=":material/info:")
    if run.status not in OPEN and statements:
        st.link_button("Findings (JSON)", f"{base()}/api/runs/{run.id}/audit.json", icon=":material/download:", type="tertiary")


def headline(run: Run, statements: list[str], findings: list[FindingEvent]) -> str:
    """Return the conclusion of an audit, or how it stands."""
    end = run.outcome(AuditEnd)
    if end:
        return end.conclusion
    if run.status not in OPEN:
        return how_it_stands(run)
    if findings:
        return f"{len(findings)} of the attacks are through, the next is under way"
    return under_way.waiting(run, FIRST_ATTACK if statements else FIRST_SENTENCE)


def draw_findings(run: Run, findings: list[FindingEvent]) -> str:
    """Return the findings as HTML: first the attacks that were tried, then the others with the reasons."""
    tried = [finding for finding in findings if finding.state in (audit_words.ANSWERED, audit_words.FAILED)]
    return render(
        "ui/audit/findings.html.jinja",
        findings=[describe(run, finding) for finding in tried],
        untried=[(finding.title, finding.why) for finding in findings if finding not in tried],
    )


def describe(run: Run, finding: FindingEvent) -> dict[str, Any]:
    """Return what the template draws of an attack that was tried."""
    labels = "as you gave them" if run.experiment_as(AuditTask).card.labels.value is not None else "that the attack assigned"
    facts = [
        finding.why,
        "The attack checked its pictures by an equation." if finding.proved else "",
        audit_words.describe_distance(finding),
        audit_words.describe_agreement(finding),
        audit_words.describe_calibration(finding),
        f"Classes {labels}: {', '.join(map(str, finding.labels))}." if finding.labels else "",
        *finding.warnings,
        f"{finding.steps:,} steps, {duration(finding.seconds)}." if finding.steps else f"{duration(finding.seconds)}.",
    ]
    picture = {
        "address": f"{base()}/api/runs/{run.id}/frames/{finding.seq}.png",
        "words": f"What the attack {finding.title} reconstructed",
        "width": TILE * max(1, finding.count),
    }
    return {
        "title": finding.title,
        "attacker": f"{ATTACKERS[finding.attacker]} attacker" if finding.attacker else "",
        "mark": audit_words.mark(finding),
        "picture": picture if finding.picture else None,
        "facts": [fact for fact in facts if fact],
    }
