"""The JSON of an audit, audit.json: what was found, under which settings, and what repeats it. It holds no pictures, but a hash of each."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from leakage.api.normalization import constants_of
from leakage.api.plugins import chosen, plugin
from leakage.auditing.attempts import Attempt
from leakage.auditing.audit_arguments import PLAIN, AuditArguments
from leakage.auditing.audit_attackers import AuditAttacker
from leakage.auditing.audit_outcome import Outcome
from leakage.auditing.card import AuditCard, as_json
from leakage.auditing.finding import Finding
from leakage.auditing.sample import Sample

FORMAT = 1
NO_RECORD = "{} is no record of an audit that can be repeated here ({}). Expected is the audit.json of an earlier audit, and its arguments."


def audit_as_json(audit: Outcome) -> dict[str, Any]:
    """Return an audit as JSON values; NaN and infinity become None."""
    values = {
        "format": FORMAT,
        "word": audit.word,
        "headline": audit.headline,
        "decision": audit.decision,
        "people": dict(audit.conclusion.people),
        "settings": dict(audit.settings),
        "card": asdict(audit.card),
        "notices": audit.notices,
        "sample": _sample_as_json(audit.sample),
        "findings": [_finding_as_json(finding) for finding in audit.findings],
        "effects": [asdict(effect) for effect in audit.effects],
        "not_tried": audit.untried,
        "seconds": audit.seconds,
    }
    return json.loads(json.dumps(values), parse_constant=lambda _: None)  # type: ignore[no-any-return]


def settings_of(arguments: AuditArguments, card: AuditCard, named: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of an audit as an audit file has them.

    Args:
        arguments: of the audit.
        card: of the audit.
        named: what an audit file names and does not hold: model, data, loss.
    """
    settings: dict[str, Any] = {**named, **{name: getattr(arguments, name) for name in PLAIN}}
    settings["batch_sizes"] = list(arguments.batch_sizes)  # a range, for example
    settings |= {kind: card.plugins[kind][0] for kind in ("protocol", "aggregation", "server") if card.plugins[kind]}
    settings |= {kind: card.plugins[kind] for kind in ("defenses", "checks")}
    if arguments.attacks is not None:
        settings["attacks"] = [as_json(chosen("attack", attack)) for attack in arguments.attacks]
    if arguments.normalization is not None:
        settings["normalization"] = [part.tolist() for part in constants_of(arguments.normalization, card.image_shape[0])]
    return {name: value for name, value in settings.items() if value is not None}


def recorded_attempts(path: Path, attackers: list[AuditAttacker], count: int) -> list[Attempt]:
    """Return the attempts of a recorded audit that came to an answer, with the fields that they had.

    Args:
        path: the record, audit.json.
        attackers: the attackers of the audit that repeats it.
        count: the number of its pictures.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is no record, or it names an attacker or an attack that does not exist here.
    """
    known = {attacker.title: attacker for each in attackers for attacker in (each, each.with_labels)}
    try:
        raw = json.loads(path.read_text())
        if raw["format"] != FORMAT:
            raise ValueError(f"its format is {raw['format']!r}, and this version reads {FORMAT}")
        answered = [finding for finding in raw["findings"] if finding["ending"] == "answer"]
        if strange := [each["attacker"] for each in answered if each["attacker"] not in known]:
            raise ValueError(f"it has the attacker {strange[0]!r}, which the arguments of this audit do not give")
        if any(int(place) not in range(count) for each in answered for place in each["pictures"]):
            raise ValueError(f"it is about more pictures than the {count} that were given")
        return [
            Attempt(plugin(each["attack"], **each["fields"]), known[each["attacker"]], tuple(map(int, each["pictures"])))
            for each in answered
        ]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(NO_RECORD.format(path, error)) from None


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    return {field.name: getattr(finding, field.name) for field in fields(Finding) if field.name != "reconstruction"}


def _sample_as_json(sample: Sample) -> dict[str, Any]:
    """Describe a sample by what shows no picture: how many there are, and a hash of each."""
    return {
        "count": len(sample.x),
        "shape": tuple(sample.x.shape[1:]),
        "origin": sample.origin,
        "sha256": _hashes(sample),
    }


def differences(path: Path, card: AuditCard, sample: Sample) -> list[str]:
    """Return sentences on what differs from a recorded audit, so that its digits will differ."""
    raw = json.loads(path.read_text())
    found = {
        "The weights are not those": raw["card"]["weights"] != card.weights,
        "The pictures are not those": raw["sample"]["sha256"] != _hashes(sample),
        "The number of threads is not that": raw["card"]["threads"] != card.threads,
        "The versions are not those": raw["card"]["versions"] != card.versions,
    }
    return [f"{what} of the audit that is repeated." for what, differs in found.items() if differs]


def _hashes(sample: Sample) -> list[str]:
    return [hashlib.sha256(picture.cpu().contiguous().numpy().tobytes()).hexdigest() for picture in sample.x]
