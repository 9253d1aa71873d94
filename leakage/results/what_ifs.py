"""The questions that follow from a run: each is the run's experiment with one change."""

from contextlib import suppress
from typing import Any, Literal

from leakage.data.checkpoints import cards, describe_training
from leakage.data.images import PictureError, find
from leakage.results.differences import sentence_case
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.spec.lab_settings import without_default_strategy
from leakage.spec.prepared import WhatIf, prepared
from leakage.spec.threat_model import ClientBehavior, coincide
from leakage.spec.words import BATCH_NORM, NAIVELY

MANY_STEPS = 10  # local steps; from here on an attack that replays each of them takes long


def what_ifs(experiment: Experiment, known: Catalog, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """Return at most five questions that follow from a run.

    Args:
        experiment: the experiment of the run.
        known: the plug-ins.
        spare: pictures that a question may add.

    Returns:
        For each title, what the question changes, in words, and its experiment.
    """
    questions = {
        **_rounds(experiment, known),
        **_accomplice(experiment, known, spare),
        **_attacker(experiment, known),
        **_statistics(experiment, known),
        **_training(experiment, known),
        **_crowd(experiment, spare),
        **_apart(experiment),
        **_learned(experiment),
        **_undone(experiment, known),
        **_between(experiment, known),
        **_coarse(experiment),
        **_protocol(experiment, known),
        **_weakening(experiment, known),
    }
    return dict(list(questions.items())[:5])


def _attacker(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about the other attacker (naive or adaptive), if it does something else."""
    if coincide(experiment, known):
        return {}
    other = experiment.assume.model_copy(update={"adaptive": not experiment.assume.adaptive})
    about = sentence_case(NAIVELY) if experiment.assume.adaptive else "It imitates all that the phone does."
    word = "a naive attacker" if experiment.assume.adaptive else "an adaptive attacker"
    return {word: (about, experiment.model_copy(update={"assume": other}))}


def _statistics(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about the other statistics of BatchNorm, if the model has BatchNorm and the client can use them."""
    other: Literal["eval", "batch"] = "eval" if experiment.batch_norm == "batch" else "batch"
    asked = experiment.model_copy(update={"batch_norm": other})
    with suppress(SpecError):
        if asked.resolve(known).model.fields.get("norm") == "batch":
            return {f"BatchNorm with {BATCH_NORM[other].short}": (f"It {BATCH_NORM[other].sentence}.", asked)}
    return {}


def _rounds(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about many watched rounds, if just one is watched and an adaptive attacker can average rounds."""
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).strategies_with(averaging=True)]
    if not ways or experiment.attacked_round > 1 or experiment.aggregation:
        return {}
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0]})
    asked = without_default_strategy(experiment.model_copy(update={"assume": assume}), known)
    return _prepared(prepared().what_ifs.watched, asked)


def _accomplice(experiment: Experiment, known: Catalog, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """Ask about a colluding client, if several rounds are watched and an adaptive attacker can use such a client."""
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).strategies_with(colluding=True)]
    others = [picture for picture in spare if picture not in experiment.pictures]
    if not ways or experiment.attacked_round == 1 or experiment.assume.accomplice or not others or experiment.task != "classes":
        return {}
    accomplice = next((other for other in others if _label(other) == _label(experiment.pictures[0])), others[0])
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0], "accomplice": accomplice})
    return _prepared(prepared().what_ifs.colluding, experiment, assume=assume)


def _label(picture: Picture) -> int | None:
    """Return the class of a picture; None if it is not known here."""
    with suppress(PictureError):
        return find(picture.source, picture.id).label if picture.label is None else picture.label
    return None


def _prepared(prepared_question: WhatIf, experiment: Experiment, **more: Any) -> dict[str, tuple[str, Experiment]]:
    """Return a prepared question about an experiment, with further changes `more`."""
    changed = experiment.model_copy(update={**prepared_question.change.of(experiment), **more})
    return {prepared_question.title: (prepared_question.about, changed)}


def _crowd(experiment: Experiment, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """Ask about more pictures in an update, or about a sum of several clients; for a sum, about a single client."""
    if experiment.aggregation:
        return {"each phone by itself": ("No sum: one phone with all pictures.", experiment.model_copy(update={"aggregation": None}))}
    if len(experiment.pictures) >= 4 and len(experiment.pictures) % 4 == 0:
        return _prepared(prepared().what_ifs.summed, experiment)
    eight = (*experiment.pictures, *(picture for picture in spare if picture not in experiment.pictures))[:8]
    return _prepared(prepared().what_ifs.eight, experiment, pictures=eight)


def _apart(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """Ask about the exact attack on batches, if there are several pictures and the run used another attack."""
    return _other_attack(prepared().what_ifs.exact, experiment, checkpoint="") if len(experiment.pictures) > 1 else {}


def _learned(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """Ask about attackers with a generator of digits, for pictures of that form; after each such attack about the next."""
    if (experiment.channels, experiment.size) != (1, 28) or experiment.attack.fields.get("generator", "digits") != "digits":
        return {}
    questions = prepared().what_ifs
    chain = [questions.learned, questions.staged, questions.taught, questions.unlearned]
    asked = [_attack(question) for question in chain]
    if experiment.attack.id in asked:
        following = chain[asked.index(experiment.attack.id) + 1 :]
        return _prepared(following[0], experiment) if following else {}
    return _prepared(questions.learned, experiment)


def _undone(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about a network that was trained to invert such updates, if there is one and the run used another attack."""
    asked = _other_attack(prepared().what_ifs.undone, experiment)
    with suppress(SpecError):
        if not any(warnings(changed.resolve(known), known) for _, changed in asked.values()):
            return asked
    return {}


def _coarse(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """Ask about the attack with fewer unknowns, if there is a protection and the run used another attack."""
    return _other_attack(prepared().what_ifs.coarse, experiment) if experiment.defenses else {}


def _other_attack(question: WhatIf, experiment: Experiment, **more: Any) -> dict[str, tuple[str, Experiment]]:
    """Return a prepared question that changes the attack; nothing if the run used that attack."""
    return {} if experiment.attack.id == _attack(question) else _prepared(question, experiment, **more)


def _attack(question: WhatIf) -> str:
    """Return the id of the attack to which a question changes; empty if it keeps the attack."""
    return question.change.attack.id if question.change.attack else ""


def _between(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about the attack that replays no local steps, if there are many local steps and the run used another attack."""
    steps = ClientBehavior.in_experiment(experiment, known).steps or 1
    return _other_attack(prepared().what_ifs.between, experiment) if steps >= MANY_STEPS else {}


def _protocol(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about local steps if there are none, and about a plain gradient otherwise."""
    sends_gradient, questions = known.protocols.get(experiment.protocol.id).sends_gradient, prepared().what_ifs
    return _prepared(questions.local if sends_gradient else questions.plain, experiment)


def _weakening(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about an update with fewer numbers, and about a model with more numbers."""
    questions = prepared().what_ifs
    width = next((field for field in known.models.get(experiment.model.id).fields if field.name == "width"), None)
    if width and width.high:
        wide = min(2 * int(experiment.model.fields.get("width", width.default)), int(width.high))
        model = Part(id=experiment.model.id, fields={**experiment.model.fields, "width": wide})
        same = experiment.model_copy(update={"model": model, "checkpoint": ""})
        wider = {questions.connected.title: (f"The same model, {wide} wide.", same)}
    else:
        wider = _prepared(questions.connected, experiment, checkpoint="")
    knows = experiment.assume.model_copy(update={"adaptive": True})
    sends_gradient = known.protocols.get(experiment.protocol.id).sends_gradient
    fewer = questions.pruned if sends_gradient else questions.filtered
    return {**_prepared(fewer, experiment, assume=knows), **wider}


def _training(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Ask about a trained model if the model is untrained and has trained weights, or about an untrained model."""
    if experiment.checkpoint:
        return {"an untrained model": ("The same with weights drawn at random.", experiment.model_copy(update={"checkpoint": ""}))}
    for id, card in cards().items():
        trained = experiment.model_copy(update={"checkpoint": f"{id}@{card.stages[-1].rounds}"})
        with suppress(SpecError):
            trained.resolve(known)
            return {"a trained model": (f"The same with weights {describe_training(trained.checkpoint)}.", trained)}
    return {}
