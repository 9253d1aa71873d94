"""The title of a run: of an attack, a training, or a measurement of ranks."""

from collections.abc import Sequence
from contextlib import suppress

from leakage.data.datasets import TITLES
from leakage.data.images import PictureError, find
from leakage.networks.templates import template_of
from leakage.results.differences import protection
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment, Picture, clients_of
from leakage.spec.tasks import Ranks, Training
from leakage.spec.threat_model import coincide


def attack_title(experiment: Experiment, known: Catalog) -> str:
    """Return the title of an attack: its pictures, plug-ins and seed. Plug-ins that no longer exist are named by their id."""

    def name(kind: str, id: str) -> str:
        return entry.short if (entry := known.of(kind).find(id)) else id

    names = [
        name("attack", experiment.attack.id),
        "on",
        *(["trained"] if experiment.checkpoint else []),
        name("model", experiment.model.id),
    ]
    names.append(f"with {protection(experiment.defenses, experiment.defenses, known)}")
    protocol = known.protocols.find(experiment.protocol.id)
    if protocol is None or not protocol.sends_gradient:
        names.append(f"by {name('protocol', experiment.protocol.id)}")
    if experiment.aggregation:
        names.append(f"added up over {clients_of(experiment.aggregation, known)} phones")
    if experiment.server:
        names.append(f"for a server that changes the model ({name('server', experiment.server.id)})")
    if experiment.checks:
        checks = ", ".join(name("check", part.id) for part in experiment.checks)
        names.append(f"{'and' if experiment.server else 'for'} a phone that checks the model ({checks})")
    if experiment.rounds > 1:
        names.append(f"in round {experiment.attacked_round} of {experiment.rounds}")
    if not coincide(experiment, known):
        strategy = known.strategy_title(experiment.assume.strategy) if experiment.assume.strategy else ""
        adaptive = f"(adaptive: {strategy})" if strategy else "(adaptive)"
        names.append(adaptive if experiment.assume.adaptive else "(naive)")
    return f"{_subject(experiment.pictures)}: {' '.join(names)}, seed {experiment.seed}"


def _subject(pictures: Sequence[Picture]) -> str:
    """Name what is attacked: a single picture by its title, several by their number."""
    if len(pictures) > 1:
        return f"{len(pictures)} pictures"
    (picture,) = pictures
    with suppress(PictureError):  # it may have been removed
        return "Own picture" if picture.source == "upload" else find(picture.source, picture.id).title
    return picture.id


def training_title(training: Training, known: Catalog) -> str:
    """Return the title of a training."""
    titles = {(entry.kind, entry.id): entry.short for entry in known.entries}
    model = titles.get(("model", training.model.id), training.model.id)
    trainers = "centrally" if training.clients == 1 else f"by {training.clients} clients"
    behind = "".join(f", with {titles.get(('defense', part.id), part.id)}" for part in training.defenses)
    return f"{model} trained on {TITLES[training.data]}, {training.rounds} rounds {trainers}{behind}"


def ranks_title(ranks: Ranks) -> str:
    """Return the title of a measurement of ranks."""
    return f"Ranks of {template_of(ranks.network) or ranks.network[:60]}"
