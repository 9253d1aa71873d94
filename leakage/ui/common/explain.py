"""The words beside the pictures: the question, the glossary, what-ifs, a run in one line."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import quote, urlencode

from leakage.data.checkpoints import cards, words
from leakage.data.datasets import TITLES
from leakage.data.images import PictureError, find
from leakage.results.differences import protection, sentence_case
from leakage.settings import settings
from leakage.spec.catalog import Catalog
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Experiment, Part, Picture, SpecError, clients_of
from leakage.spec.lab_settings import with_usual_unnamed
from leakage.spec.prepared import WhatIf, prepared
from leakage.spec.tasks import Ranks, Training
from leakage.spec.threat_model import ClientBehavior, coincide
from leakage.spec.words import BATCH_NORM, NAIVELY
from leakage.ui.architecture import counts
from leakage.ui.common.base_path import base
from leakage.ui.common.markdown import Markdown, escape

MANY_STEPS = 10  # local steps from which on replaying each takes long
GLOSSARY = {
    "Gradient": "For every weight of the model, how much and in which direction it should change to do better on these pictures. "
    "In federated learning a phone sends this instead of its pictures.",
    "Batch": "The pictures that go into one gradient. Their gradients are averaged, so one sum is sent, not one per picture.",
    "Local steps": "With FedAvg a phone sends no gradient: it trains for some steps by itself and sends how far its weights have "
    "moved. Who knows how it trains can imitate every step.",
    "Added up with other phones (secure aggregation)": "Several phones mask their updates so that only the sum is "
    "readable. The server then faces one large batch: harder to take apart, and still no promise for any picture in it.",
    "Naive and adaptive": "A naive attacker takes what arrives for a plain gradient. An adaptive one knows how the phone trains and what "
    "protects it, and imitates both. What stops only the naive one protects nobody.",
    "PSNR": "Peak signal-to-noise ratio, in decibels: how small the pixel errors are. Plain grey scores about 10 dB, 20 dB is clearly "
    "recognizable, from 30 dB on the eye hardly sees a difference.",
    "SSIM": "Structural similarity, up to 1: compares edges and contrast in small windows, closer to what an eye sees than PSNR.",
    "LPIPS": "Learned perceptual similarity, 0 for equal pictures: how differently a network trained on photographs sees the two. "
    "It forgives small shifts and notices blur. It needs the weights of that network on this machine.",
    "Line-up": "The private picture stands among 99 others. Rank 1: of all 100 the attacker's picture is most like the private one, so it "
    "could be picked out. A guess that knows nothing lands anywhere, at rank 50.5 on average over the pictures of a data set; among the "
    "gallery's crops, which are cut less alike, see where grey and noise land.",
    "Gradient distance": "How far the gradient of the attacker's picture is from the one received. "
    "DLG and iDLG square it, Inverting Gradients compares directions (cosine): compare runs of one attack only.",
    "Grey picture": "The baseline: the score of an answer in plain grey, made without any gradient. A score near it says little by itself.",
    "Label": "The class of a picture, for example 'cat'. For one picture it can be read from the gradient without any search.",
    "Random start (seed)": "The number that fixes all randomness in a run: the model's untrained weights and the attacker's first guess. "
    "Same seed, same run.",
}


def promise() -> Markdown:
    """What becomes of pictures, in a line below every page."""
    life = escape(settings().upload_life)
    return Markdown(f"Pictures go to this machine only. A run with your own is deleted with one click, at the latest after {life}.")


def what_ifs(experiment: Experiment, known: Catalog, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """At most five questions that follow from a run, each one click away: title -> (what it does, the experiment)."""
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
    """The other attacker, where that does something else."""
    if coincide(experiment, known):
        return {}
    other = experiment.assume.model_copy(update={"adaptive": not experiment.assume.adaptive})
    about = sentence_case(NAIVELY) if experiment.assume.adaptive else "It imitates all that the phone does."
    word = "a naive attacker" if experiment.assume.adaptive else "an adaptive attacker"
    return {word: (about, experiment.model_copy(update={"assume": other}))}


def _statistics(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """The other statistics of BatchNorm, where the model has one and the client can use them."""
    other: Literal["eval", "batch"] = "eval" if experiment.batch_norm == "batch" else "batch"
    asked = experiment.model_copy(update={"batch_norm": other})
    with suppress(SpecError):
        if asked.resolve(known).model.fields.get("norm") == "batch":
            return {f"BatchNorm with {BATCH_NORM[other].short}": (f"It {BATCH_NORM[other].sentence}.", asked)}
    return {}


def _rounds(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """The same watched for many rounds, where one is watched and who knows the protection can put rounds together."""
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).named(averaging=True)]
    if not ways or experiment.attacked_round > 1 or experiment.aggregation:
        return {}
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0]})
    asked = with_usual_unnamed(experiment.model_copy(update={"assume": assume}), known)
    return _prepared(prepared().what_ifs.watched, asked)


def _accomplice(experiment: Experiment, known: Catalog, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """An accomplice, where several rounds are watched, nobody colludes yet, and who knows the protection can make use of one."""
    ways = [name for part in experiment.defenses[-1:] for name in known.defenses.get(part.id).named(colluding=True)]
    others = [picture for picture in spare if picture not in experiment.pictures]
    if not ways or experiment.attacked_round == 1 or experiment.assume.accomplice or not others or experiment.task != "classes":
        return {}
    own = next((one for one in others if _label(one) == _label(experiment.pictures[0])), others[0])
    assume = experiment.assume.model_copy(update={"adaptive": True, "strategy": ways[0], "accomplice": own})
    return _prepared(prepared().what_ifs.colluding, experiment, assume=assume)


def _label(picture: Picture) -> int | None:
    """Its class, as far as it is known here."""
    with suppress(PictureError):
        return find(picture.source, picture.id).label if picture.label is None else picture.label
    return None


def _prepared(prepared_question: WhatIf, experiment: Experiment, **more: Any) -> dict[str, tuple[str, Experiment]]:
    """A prepared question, with what else changes."""
    return {
        prepared_question.title: (
            prepared_question.about,
            experiment.model_copy(update={**prepared_question.change.of(experiment), **more}),
        )
    }


def _crowd(experiment: Experiment, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """More pictures in one update; or the same in a sum of several phones."""
    if experiment.aggregation:
        return {"each phone by itself": ("No sum: one phone with all pictures.", experiment.model_copy(update={"aggregation": None}))}
    if len(experiment.pictures) >= 4 and len(experiment.pictures) % 4 == 0:
        return _prepared(prepared().what_ifs.summed, experiment)
    eight = (*experiment.pictures, *(p for p in spare if p not in experiment.pictures))[:8]
    return _prepared(prepared().what_ifs.eight, experiment, pictures=eight)


def _apart(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """Several pictures against the attack that takes them apart, unless that is what was run."""
    question = prepared().what_ifs.exact
    if len(experiment.pictures) == 1 or experiment.attack.id == _attack(question):
        return {}
    return _prepared(question, experiment, checkpoint="")


def _learned(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """An attacker who has learned what digits look like, where pictures have their form; after each such attack the next one."""
    if (experiment.channels, experiment.size) != (1, 28) or experiment.attack.fields.get("generator", "digits") != "digits":
        return {}
    own = prepared().what_ifs
    chain = [own.learned, own.staged, own.taught, own.unlearned]
    asked = [_attack(question) for question in chain]
    if experiment.attack.id in asked:
        following = chain[asked.index(experiment.attack.id) + 1 :]
        return _prepared(following[0], experiment) if following else {}
    return _prepared(own.learned, experiment)


def _undone(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """A network that was trained to undo such updates, where one was, unless that is what was run."""
    question = prepared().what_ifs.undone
    asked = _prepared(question, experiment)
    with suppress(SpecError):
        if experiment.attack.id != _attack(question) and not warnings(asked[question.title][1].resolve(known), known):
            return asked
    return {}


def _coarse(experiment: Experiment) -> dict[str, tuple[str, Experiment]]:
    """The attack that needs fewer numbers, behind a protection, unless that is what was run."""
    question = prepared().what_ifs.coarse
    return _prepared(question, experiment) if experiment.defenses and experiment.attack.id != _attack(question) else {}


def _attack(question: WhatIf) -> str:
    """The id of the attack that it puts in the other's place; empty where it keeps that."""
    return question.change.attack.id if question.change.attack else ""


def _between(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """The attack that needs no local steps, where there are many of them, unless that is what was run."""
    question, steps = prepared().what_ifs.between, ClientBehavior.in_experiment(experiment, known).steps
    if (steps or 1) < MANY_STEPS or experiment.attack.id == _attack(question):
        return {}
    return _prepared(question, experiment)


def _protocol(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Local steps where there are none, or none where there are."""
    prepared_question = prepared().what_ifs
    return _prepared(
        prepared_question.local if known.protocols.get(experiment.protocol.id).sends_gradient else prepared_question.plain, experiment
    )


def _weakening(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """Fewer numbers, or more."""
    prepared_question = prepared().what_ifs
    width = next((field for field in known.models.get(experiment.model.id).fields if field.name == "width"), None)
    if width and width.high:
        wide = min(2 * int(experiment.model.fields.get("width", width.default)), int(width.high))
        model = Part(id=experiment.model.id, fields={**experiment.model.fields, "width": wide})
        same = experiment.model_copy(update={"model": model, "checkpoint": ""})
        wider = {prepared_question.connected.title: (f"The same model, {wide} wide.", same)}
    else:
        wider = _prepared(prepared_question.connected, experiment, checkpoint="")
    knows = experiment.assume.model_copy(update={"adaptive": True})
    sends_gradient = known.protocols.get(experiment.protocol.id).sends_gradient
    fewer = prepared_question.pruned if sends_gradient else prepared_question.filtered
    return {**_prepared(fewer, experiment, assume=knows), **wider}


def _training(experiment: Experiment, known: Catalog) -> dict[str, tuple[str, Experiment]]:
    """The question about training, where there are weights to answer it with."""
    if experiment.checkpoint:
        return {"an untrained model": ("The same with weights drawn at random.", experiment.model_copy(update={"checkpoint": ""}))}
    for id, card in cards().items():
        trained = experiment.model_copy(update={"checkpoint": f"{id}@{card.stages[-1].rounds}"})
        with suppress(SpecError):
            trained.resolve(known)
            return {"a trained model": (f"The same with weights {words(trained.checkpoint)}.", trained)}
    return {}


def title(experiment: Experiment, known: Catalog) -> str:
    """A run in one line; plug-ins that are gone keep their id."""

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
    if experiment.rounds > 1:
        names.append(f"in round {experiment.attacked_round} of {experiment.rounds}")
    if not coincide(experiment, known):
        names.append("(adaptive)" if experiment.assume.adaptive else "(naive)")
    return f"{_subject(experiment.pictures)}: {' '.join(names)}, seed {experiment.seed}"


def _subject(pictures: Sequence[Picture]) -> str:
    """What is attacked: one picture by its title, else how many."""
    if len(pictures) > 1:
        return f"{len(pictures)} pictures"
    (picture,) = pictures
    with suppress(PictureError):  # it may be gone since
        return "Own picture" if picture.source == "upload" else find(picture.source, picture.id).title
    return picture.id


def training_title(training: Training, known: Catalog) -> str:
    """A training in one line."""
    titles = {(entry.kind, entry.id): entry.short for entry in known.entries}
    model = titles.get(("model", training.model.id), training.model.id)
    who = "centrally" if training.clients == 1 else f"by {training.clients} clients"
    behind = "".join(f", with {titles.get(('defense', part.id), part.id)}" for part in training.defenses)
    return f"{model} trained on {TITLES[training.data]}, {training.rounds} rounds {who}{behind}"


def ranks_title(ranks: Ranks) -> str:
    """A measurement of ranks in one line."""
    return f"Ranks of {counts.template_of(ranks.network) or ranks.network[:60]}"


def ranks_link(ranks: Ranks) -> str:
    """The page with its network."""
    given = {"net": ranks.network, "size": str(ranks.size), "channels": str(ranks.channels)}
    given |= {} if ranks.outputs == 10 else {"outputs": str(ranks.outputs)}
    return f"{base()}/architecture?" + urlencode(given, quote_via=quote)
