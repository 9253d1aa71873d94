"""The questions that follow from a run: each is the run's experiment with one change."""

from contextlib import suppress
from typing import Any, Literal

from leakage.data.checkpoints import cards, describe_training
from leakage.data.images import PictureError, find
from leakage.results.differences import sentence_case
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import warnings
from leakage.spec.client_behavior import ClientBehavior
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.spec.lab_settings import without_default_strategy
from leakage.spec.prepared import WhatIf, prepared
from leakage.spec.threat_model import coincide
from leakage.spec.words import BATCH_NORM, NAIVELY

Questions = dict[str, tuple[str, Experiment]]  # title of a question -> what the question changes, in words, and the changed experiment
MANY_STEPS = 10  # local steps; from here on an attack that replays each of them takes long


def what_ifs(experiment: Experiment, known: Catalog, spare: list[Picture]) -> Questions:
    """Return at most five questions that follow from a run: each changes one thing in its experiment.

    Args:
        experiment: the experiment of the run.
        known: the plug-ins.
        spare: gallery pictures that a question may add to the private pictures or give to an accomplice.

    Returns:
        Title of a question -> what it changes, in words, and the changed experiment.
    """
    questions = {
        **_ask_without_refusal(experiment),
        **_ask_many_rounds(experiment, known),
        **_ask_accomplice(experiment, known, spare),
        **_ask_other_attacker(experiment, known),
        **_ask_batch_norm_statistics(experiment, known),
        **_ask_training_state(experiment, known),
        **_ask_more_pictures_or_clients(experiment, spare),
        **_ask_exact_batch_attack(experiment),
        **_ask_generator_attack(experiment),
        **_ask_inversion_network(experiment, known),
        **_ask_attack_without_replay(experiment, known),
        **_ask_coarse_attack(experiment),
        **_ask_protocol(experiment, known),
        **_ask_sizes(experiment, known),
    }
    return dict(list(questions.items())[:5])


def _ask_without_refusal(experiment: Experiment) -> Questions:
    """Return the question with a phone that sends its update although a check trips; empty if the phone refuses for no check."""
    if not (experiment.checks and experiment.refuse):
        return {}
    about = "The phone sends its update, whatever its checks find. What they find is shown beside the run."
    return {"a phone that does not refuse": (about, experiment.model_copy(update={"refuse": False}))}


def _ask_other_attacker(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with a naive attacker in place of an adaptive attacker, or the reverse; nothing if both do the same."""
    if coincide(experiment, known):
        return {}
    other = experiment.assume.model_copy(update={"adaptive": not experiment.assume.adaptive})
    about = sentence_case(NAIVELY) if experiment.assume.adaptive else "It imitates all that the phone does."
    word = "a naive attacker" if experiment.assume.adaptive else "an adaptive attacker"
    return {word: (about, experiment.model_copy(update={"assume": other}))}


def _ask_batch_norm_statistics(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with running statistics in place of batch statistics, or the reverse.

    Nothing if the model has no BatchNorm, or if the changed experiment cannot run.
    """
    other: Literal["eval", "batch"] = "eval" if experiment.batch_norm == "batch" else "batch"
    asked = experiment.model_copy(update={"batch_norm": other})
    with suppress(SpecError):
        if asked.resolve(known).model.fields.get("norm") == "batch":
            return {f"BatchNorm with {BATCH_NORM[other].short}": (f"It {BATCH_NORM[other].sentence}.", asked)}
    return {}


def _ask_many_rounds(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with many watched rounds; nothing if several are watched already, or no adaptive strategy averages rounds."""
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).strategies_with(averaging=True)]
    if not ways or experiment.attacked_round > 1 or experiment.aggregation:
        return {}
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0]})
    asked = without_default_strategy(experiment.model_copy(update={"assume": assume}), known)
    return _apply_change(prepared().what_ifs.watched, asked)


def _ask_accomplice(experiment: Experiment, known: Catalog, spare: list[Picture]) -> Questions:
    """Return the question with an accomplice (another client that colludes with the attacker).

    Nothing if only one round is watched, if there is an accomplice already, or if no adaptive strategy can use an accomplice.
    """
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).strategies_with(colluding=True)]
    others = [picture for picture in spare if picture not in experiment.pictures]
    if not ways or experiment.attacked_round == 1 or experiment.assume.accomplice or not others or experiment.task != "classes":
        return {}
    accomplice = next((other for other in others if _class_of(other) == _class_of(experiment.pictures[0])), others[0])
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0], "accomplice": accomplice})
    return _apply_change(prepared().what_ifs.colluding, experiment, assume=assume)


def _class_of(picture: Picture) -> int | None:
    """Return the class label of a picture; None if the picture is not on this machine."""
    with suppress(PictureError):
        return find(picture.source, picture.id).label if picture.label is None else picture.label
    return None


def _apply_change(prepared_question: WhatIf, experiment: Experiment, **more: Any) -> Questions:
    """Return a question of assets/prepared.json with its change made to this experiment; `more`: further fields to change."""
    changed = experiment.model_copy(update={**prepared_question.change.of(experiment), **more})
    return {prepared_question.title: (prepared_question.about, changed)}


def _ask_more_pictures_or_clients(experiment: Experiment, spare: list[Picture]) -> Questions:
    """Return the question with eight pictures, or, for 4, 8, 12 ... pictures, with a sum of several clients.

    For a sum, return the question with a single client that has all pictures.
    """
    if experiment.aggregation:
        return {"each phone by itself": ("No sum: one phone with all pictures.", experiment.model_copy(update={"aggregation": None}))}
    if len(experiment.pictures) >= 4 and len(experiment.pictures) % 4 == 0:
        return _apply_change(prepared().what_ifs.summed, experiment)
    eight = (*experiment.pictures, *(picture for picture in spare if picture not in experiment.pictures))[:8]
    return _apply_change(prepared().what_ifs.eight, experiment, pictures=eight)


def _ask_exact_batch_attack(experiment: Experiment) -> Questions:
    """Return the question with the attack that reconstructs a batch exactly; nothing for one picture, or if the run used this attack."""
    return _ask_attack(prepared().what_ifs.exact, experiment, checkpoint="") if len(experiment.pictures) > 1 else {}


def _ask_generator_attack(experiment: Experiment) -> Questions:
    """Return the question with an attack that uses a generator of digits; nothing if the pictures are not grey, 28 x 28.

    There are several such attacks: after a run of one of them, the question is about the next in their order.
    """
    if (experiment.channels, experiment.size) != (1, 28) or experiment.attack.fields.get("generator", "digits") != "digits":
        return {}
    questions = prepared().what_ifs
    chain = [questions.learned, questions.staged, questions.taught, questions.unlearned]
    asked = [_attack_id(question) for question in chain]
    if experiment.attack.id in asked:
        following = chain[asked.index(experiment.attack.id) + 1 :]
        return _apply_change(following[0], experiment) if following else {}
    return _apply_change(questions.learned, experiment)


def _ask_inversion_network(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with a network that was trained to invert such updates; nothing if there is none, or the run used it."""
    asked = _ask_attack(prepared().what_ifs.undone, experiment)
    with suppress(SpecError):
        if not any(warnings(changed.resolve(known), known) for _, changed in asked.values()):
            return asked
    return {}


def _ask_coarse_attack(experiment: Experiment) -> Questions:
    """Return the question with the attack that searches a small, enlarged picture; nothing without protection, or if the run used it."""
    return _ask_attack(prepared().what_ifs.coarse, experiment) if experiment.defenses else {}


def _ask_attack(question: WhatIf, experiment: Experiment, **more: Any) -> Questions:
    """Return a question of assets/prepared.json that changes the attack; nothing if the run used that attack."""
    return {} if experiment.attack.id == _attack_id(question) else _apply_change(question, experiment, **more)


def _attack_id(question: WhatIf) -> str:
    """Return the id of the attack to which a question changes the experiment; empty if the question keeps the attack."""
    return question.change.attack.id if question.change.attack else ""


def _ask_attack_without_replay(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with the attack that does not replay local steps; nothing for fewer than MANY_STEPS, or if the run used it."""
    steps = ClientBehavior.in_experiment(experiment, known).steps or 1
    return _ask_attack(prepared().what_ifs.between, experiment) if steps >= MANY_STEPS else {}


def _ask_protocol(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with local steps if the client sends a gradient, else the question with a gradient."""
    sends_gradient, questions = known.protocols.get(experiment.protocol.id).sends_gradient, prepared().what_ifs
    return _apply_change(questions.local if sends_gradient else questions.plain, experiment)


def _ask_sizes(experiment: Experiment, known: Catalog) -> Questions:
    """Return two questions: with a protection that sends fewer entries of the update, and with a wider model."""
    questions = prepared().what_ifs
    width = next((field for field in known.models.get(experiment.model.id).fields if field.name == "width"), None)
    if width and width.high:
        wide = min(2 * int(experiment.model.fields.get("width", width.default)), int(width.high))
        model = Part(id=experiment.model.id, fields={**experiment.model.fields, "width": wide})
        same = experiment.model_copy(update={"model": model, "checkpoint": ""})
        wider = {questions.connected.title: (f"The same model, {wide} wide.", same)}
    else:
        wider = _apply_change(questions.connected, experiment, checkpoint="")
    knows = experiment.assume.model_copy(update={"adaptive": True})
    sends_gradient = known.protocols.get(experiment.protocol.id).sends_gradient
    fewer = questions.pruned if sends_gradient else questions.filtered
    return {**_apply_change(fewer, experiment, assume=knows), **wider}


def _ask_training_state(experiment: Experiment, known: Catalog) -> Questions:
    """Return the question with an untrained model if the model is trained, else with a trained model; nothing if no checkpoint fits."""
    if experiment.checkpoint:
        return {"an untrained model": ("The same with weights drawn at random.", experiment.model_copy(update={"checkpoint": ""}))}
    for id, card in cards().items():
        trained = experiment.model_copy(update={"checkpoint": f"{id}@{card.stages[-1].rounds}"})
        with suppress(SpecError):
            trained.resolve(known)
            return {"a trained model": (f"The same with weights {describe_training(trained.checkpoint)}.", trained)}
    return {}
