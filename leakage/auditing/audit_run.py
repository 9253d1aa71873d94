"""`leakage.audit`: what the attacks of the literature find in the updates of a model of the caller."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from torch import Tensor

from leakage.api.arguments import takes
from leakage.api.model_errors import MODEL_ERRORS
from leakage.api.reading import listed_classes, reading
from leakage.auditing.attempts import Attempts
from leakage.auditing.audit_arguments import AuditArguments
from leakage.auditing.audit_attackers import attackers_of
from leakage.auditing.audit_outcome import sorted_findings
from leakage.auditing.audit_progress import AuditProgress
from leakage.auditing.card import card_of
from leakage.auditing.finding import Finding
from leakage.auditing.notices import labels_sentence, notices
from leakage.auditing.protection_effects import effects, fastest
from leakage.auditing.record import differences, recorded_attempts, settings_of
from leakage.auditing.saving import Audit
from leakage.auditing.scenes import Scenes
from leakage.engine.check import RefusedError
from leakage.engine.core import Observation
from leakage.engine.devices import differentiable
from leakage.engine.losses import CustomLoss, classes_of, client_loss
from leakage.spec.words import counted

RESERVED = 0.2  # of the time, for what protections would buy


@takes(AuditArguments)
def audit(arguments: AuditArguments) -> Audit:  # noqa: D417  (its parameters are the fields of AuditArguments)
    """Attack updates of your model with the strongest attacks that there are here, and return what they show of the pictures behind them.

    A client is simulated on some of your pictures, alone and in batches. Closed forms are tried first, then searches, with as many steps
    as the time allows. Where the client protects itself or trains for several steps, an adaptive and a naive attacker are tried. Pictures,
    labels and model stay unchanged, and nothing leaves this process.

    Args:
        model: a network that returns logits (B, K), K >= 2, in float32 or float64.
        data: private pictures and their labels: (x, y), with x (B, C, H, W) in [0, 1] and sides of 8 to 256 pixels; a DataLoader; a Dataset
            of (picture, label) or of dictionaries with `image` and `label`; or the path of a folder, in which each subfolder is a class.
            Pictures of a folder without subfolders have no labels: the model's own predictions stand in for them.
        defenses: what the client does to its update before it sends it, in this order.
        protocol: how the client trains and what it sends.
        aggregation: how the updates of several clients are combined before the server sees them ("secure_aggregation": their sum).
        server: the server that changes the model before the client trains it ("imprint"); None: an honest server.
        checks: what each client checks of the model that it receives; if a check trips, the client refuses, and sends nothing.
        adaptive: False: only the naive attacker is tried, which takes the update for a gradient.
        threat_model: everything that the attackers are granted beside the update.
        normalization: of the pictures before they enter the model: (mean, std), as in `leakage.attack`.
        batch_norm: the statistics that BatchNorm uses: the stored ones ("eval"), or those of the batch, as in training ("batch").
        loss: what the client minimizes; by default the mean cross-entropy.
        seed: of all random numbers.
        minutes: the time for the audit. Attacks for which no time is left are named as not tried.
        pictures: the number of pictures that are taken from the data.
        batch_sizes: the numbers of pictures in an update that are tried.
        normalized: whether the pictures of `data` are already normalized, by `normalization`.
        image_shape: (C, H, W) to which pictures of a folder are cut and resized; None: they keep their size.
        on_finding: a function that is called with each Finding as soon as it is there.
        progress: whether tqdm draws a bar.
        attacks: the attacks that are tried, by their ids or as `leakage.plugin` makes them; None: the strongest that there are here.
        protections: whether a fifth of the time is for the question what protections would buy: the fastest attack that showed pictures is
            tried on planted public pictures, behind several protections.
        repeat: the audit.json of an earlier audit, of which the attacks are repeated with the same fields, however long they take. On the
            same machine with the same number of threads the digits are equal. None: the strongest attacks are tried.

    Returns:
        An Audit. `print` shows what was found, what to assume, and what was not tried.

    Raises:
        TypeError, ValueError: when an argument is not allowed; the message says what is expected.

    Example:
        >>> import torch, leakage
        >>> _ = torch.manual_seed(0)
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> audit = leakage.audit(model, (torch.rand(1, 3, 8, 8), torch.tensor([2])), minutes=0.2)
        >>> audit.headline
        'Leaks. Of 1 picture: 1 recognizable.'
    """
    return run_audit(arguments)


@differentiable()
def run_audit(arguments: AuditArguments, named: Mapping[str, str] = MappingProxyType({})) -> Audit:
    """Run an audit, and return its outcome.

    Args:
        arguments: of the audit.
        named: the settings of an audit file that name model, data and loss; empty where no file names them.

    Raises:
        TypeError, ValueError: as `audit`.
        OSError: the record of the audit that is to be repeated cannot be read.
    """
    began = time.perf_counter()
    progress = AuditProgress(arguments.on_finding, bar=arguments.progress)
    scenes = Scenes(arguments)
    recorded = recorded_attempts(Path(arguments.repeat), attackers_of(arguments), len(scenes.sample.x)) if arguments.repeat else None
    until = began + 60 * arguments.minutes
    attempts = Attempts(scenes, until - RESERVED * 60 * arguments.minutes * arguments.protections, recorded)
    said, findings = _notices(scenes, attempts), list[Finding]()
    card = card_of(arguments, scenes.client(scenes.groups()[0]))
    if arguments.repeat:
        said += differences(Path(arguments.repeat), card, scenes.sample)
    missing = sorted(set(arguments.batch_sizes) - {len(group) for group in scenes.groups()})
    if said and missing:
        given = counted(len(scenes.sample.x), "picture")
        said.append(f"Updates of {', '.join(map(str, missing))} pictures were not tried: {given} cannot make them.")
    for sentence in said:
        progress.note(sentence)
    progress.begin(len(attempts.planned()))
    try:
        for finding in attempts.run():
            progress.tell_finding(finding)
            findings.append(finding)
    finally:
        progress.end()
    worst_first = sorted_findings(findings)
    best = fastest(worst_first)
    return Audit(
        findings=worst_first,
        sample=scenes.sample,
        notices=tuple(said),
        card=card,
        settings=settings_of(arguments, card, named),
        effects=tuple(effects(arguments, best, scenes, until)) if best and arguments.protections else (),
        seconds=time.perf_counter() - began,
    )


def _true_classes(seen: Observation, y: Tensor) -> list[int]:
    """Return the classes that labels name: all of a picture with several labels, else one for each picture."""
    loss = client_loss(seen.model)
    return listed_classes(y) if isinstance(loss, CustomLoss) and loss.shows_labels else classes_of(y).tolist()


def _notices(scenes: Scenes, attempts: Attempts) -> list[str]:
    """Return what an update says before any attack, as sentences; nothing if the client refuses.

    It is the update of the first group of pictures with which a client can compute one. If there is none, its error is raised.
    """
    failed: Exception | None = None
    for group in scenes.groups():
        try:
            seen = scenes.scene(group, attempts.attackers[0], attempts.attacks[0]).seen
        except RefusedError:
            return []
        except MODEL_ERRORS as error:
            failed = failed or error
            continue
        complete = len(seen.received.weights) >= len(list(scenes.arguments.model.parameters()))
        return [*notices(seen, complete=complete), labels_sentence(reading(seen), _true_classes(seen, scenes.client(group).y))]
    assert failed is not None
    raise failed
