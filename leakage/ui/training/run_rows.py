"""A run in a list of runs: how it ended, its title, and the address of its page, for each kind of run."""

from leakage.results.audit_words import audit_title
from leakage.results.run_titles import attack_title, ranks_title, training_title
from leakage.runs.endings import how_it_stands
from leakage.runs.events import AttackEnd, AuditEnd, InverterEnd, TrainingEnd
from leakage.runs.service import service
from leakage.runs.store import Run
from leakage.spec.audit_task import AuditTask
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.tasks import InverterTraining, Ranks, Training
from leakage.spec.words import counted
from leakage.ui.common import explain
from leakage.ui.common.base_path import base
from leakage.ui.training import attackers


def attack_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """Return how an attack ended, its title, and the address of its page."""
    end, status = run.outcome(AttackEnd), how_it_stands(run)
    if end and end.scores.psnr is not None and end.verdict:
        status += f" · {end.verdict.word}, PSNR {end.scores.psnr:.1f} dB"
    return status, attack_title(run.experiment_as(Experiment), known), f"{base()}/?run={run.id}"


def training_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """Return how a training ended, its title, and the address of its page."""
    end = run.outcome(TrainingEnd)
    status = how_it_stands(run) + (f" · accuracy {end.accuracy:.1%}" if end and end.accuracy is not None else "")
    return status, training_title(run.experiment_as(Training), known), f"{base()}/training?run={run.id}"


def ranks_row(run: Run, _known: Catalog) -> tuple[str, str, str]:
    """Return how a measurement of ranks ended, its title, and the address of its page."""
    task = run.experiment_as(Ranks)
    measured = [rank for rank in service().ranks(run.id).values() if rank is not None]
    whole = " and the whole gradient" if service().gradient_rank(run.id) else ""
    status = f"{how_it_stands(run)} · {len(measured)} of {len(task.layers)} layers{whole} measured"
    return status, ranks_title(task), explain.ranks_link(task)


def attacker_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """Return how the training of an attacker's network ended, its title, and the address of its page."""
    end = run.outcome(InverterEnd)
    status = how_it_stands(run) + (f" · {attackers.decibels(end.mse):.1f} dB on pictures it never saw" if end and end.mse else "")
    return status, attackers.title(run.experiment_as(InverterTraining), known), f"{base()}/training?run={run.id}"


def audit_row(run: Run, known: Catalog) -> tuple[str, str, str]:
    """Return how an audit of a recorded update ended, its title, and the address of its page."""
    end = run.outcome(AuditEnd)
    status = how_it_stands(run) + (f" · {end.answered} of {counted(end.tried, 'attack')} gave pictures" if end else "")
    return status, audit_title(run.experiment_as(AuditTask), known), f"{base()}/audit?run={run.id}"


ROWS = {"attack": attack_row, "train": training_row, "invert": attacker_row, "rank": ranks_row, "audit": audit_row}


def row_of(run: Run, known: Catalog) -> tuple[str, str, str]:
    """Return how a run ended, its title, and the address of its page."""
    return ROWS[run.kind](run, known)
