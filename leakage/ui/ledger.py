"""The ledger: what the attacker was assumed to know, what was set, and what a picture that knows nothing would have scored."""

import html
from statistics import median
from typing import Any

from leakage.catalog import Catalog, Entry
from leakage.spec import Experiment, Part
from leakage.ui.attacker import imitates, meaning
from leakage.ui.setting import Doing, counted, shown

BATCH_NORM = {
    "eval": "uses the statistics stored in the model, not those of this batch (eval mode)",
    "batch": "uses the statistics of the batch (as while training); the replay takes those of the attacker's guess, never the true ones",
}
OUTPUTS = {
    "classes": "{} classes, cross-entropy",
    "two": "one output, logistic loss; the label is what the network says itself",
    "flipped": "one output, logistic loss; the label is the opposite of what the network says, as R-GAP's authors ran it",
}
STATISTICS = {
    "none": "not granted",
    "running": "those stored in the model, which the server sends itself",
    "exact": "exactly those of the private batch",
}
Row = tuple[str, str, str]  # a tag, what it is about, what holds
TOLD = {  # by the attack, of its answer: in its note -> what it is about, and what is written before it
    "read from": ("Read from", ""),
    "start": ("Which start it was", "start "),
    "event": ("In the attack's own words", ""),
}
INSTRUMENTS = {"lineup": "The line-up", "lpips": "LPIPS"}
BASELINES = {
    "grey": "A grey picture",
    "mean": "The mean picture of the line-up",
    "noise": "Random noise",
    "same_class": "Another picture of the same class",
}


def ledger(experiment: Experiment, known: Catalog, meta: dict[str, Any] | None, result: dict[str, Any] | None) -> str:
    """The ledger of a run as an HTML table; `meta` and `result` are None as long as they are not known."""
    rows = [
        *assumptions(experiment, known, meta, (result or {}).get("note", {})),
        *settings(experiment, known, meta, result),
        *baselines(meta),
    ]
    cells = "".join(
        f'<tr><td><span class="gle-tag gle-{tag.split()[0]}">{tag}</span></td>'
        f'<th scope="row">{html.escape(what)}</th><td>{html.escape(value)}</td></tr>'
        for tag, what, value in rows
    )
    return f'<table class="gle-ledger"><caption>What this result assumes</caption><tbody>{cells}</tbody></table>'


def assumptions(experiment: Experiment, known: Catalog, meta: dict[str, Any] | None, note: dict[str, Any]) -> list[Row]:
    """What the attacker knows, finds out, was granted, and never sees."""
    model, granted = known.get("model", experiment.model.id), experiment.assume.labels
    normalise = experiment.model.fields.get("normalise", "none")
    weights = (meta or {}).get("weights", experiment.checkpoint or "untrained")
    doing, adaptive = Doing.in_experiment(experiment, known), experiment.assume.adaptive
    attack, protections = known.get("attack", experiment.attack.id), [known.get("defense", part.id) for part in experiment.defenses]
    sees = adaptive or doing.plain or imitates(attack)
    answers = [entry.answer(experiment.assume.counter) for entry in protections]
    what = meaning(doing, protections, attack, experiment.attack.fields, answers=answers if adaptive else None)
    own = f" In the attack's own words: {note['attacker']}." if "attacker" in note else ""
    rows = [
        (
            "knows",
            "The model and its weights",
            f"{_model(model, experiment.model)}, {weights}, {OUTPUTS[experiment.task].format(experiment.num_classes)}",
        ),
        ("knows" if sees else "does not know", "What the client does", doing.told(experiment.rounds)),
        ("assumed", "Naive or adaptive", what + own),
        *_sum(doing),
        ("knows", "Rounds watched", _rounds(experiment)),
        (
            "knows",
            "How many pictures, and their size",
            f"{len(experiment.pictures)} of {experiment.channels} x {experiment.size} x {experiment.size}",
        ),
        ("knows", "How pixels are normalised", "not at all" if normalise == "none" else f"by the constants of {normalise}"),
        ("granted" if granted else "finds out", "The labels", "granted by a switch" if granted else _labels(note)),
    ]
    for part, defense in zip(experiment.defenses, protections, strict=True):
        told = adaptive
        fields = ", ".join(f"{name} {shown(value)}" for name, value in part.fields.items())
        what = defense.answer(experiment.assume.counter) if told else "not known: the update is taken as it came"
        rows.append(("knows" if told else "does not know", "The protection", f"{defense.title} ({fields}): {what}"))
    if meta and meta.get("batch_norm"):
        rows.append(("knows", "BatchNorm", BATCH_NORM[experiment.batch_norm]))
        given = experiment.assume.statistics
        rows.append(("does not know" if given == "none" else "granted", "BatchNorm statistics", STATISTICS[given]))
    if meta:
        unknowns, numbers = len(experiment.pictures) * experiment.channels * experiment.size**2, meta["received"]["entries"]
        fewer = "" if numbers >= unknowns else ": fewer than there are unknowns, so some guessing remains"
        rows.append(("receives", "Numbers against unknowns", f"{numbers:,} numbers for {unknowns:,} pixel values{fewer}"))
    return [*rows, ("never sees", "The private pictures", "they are with the referee, who computes the scores")]


def _model(entry: Entry, model: Part) -> str:
    """The model's title, and in quotes what its user wrote."""
    texts = [shown(model.fields[field.name]) for field in entry.fields if field.syntax and model.fields.get(field.name)]
    return " ".join([entry.title, *texts])


def _sum(doing: Doing) -> list[Row]:
    """Who else is in the sum that the server sees."""
    if doing.phones == 1:
        return []
    shared = f"{doing.pictures} picture{'' if doing.pictures == 1 else 's'} each"
    return [("receives", "A sum of several phones", f"of {doing.phones} phones with {shared}; never a single update")]


def _rounds(experiment: Experiment) -> str:
    """How long the server has listened, and which round it attacks."""
    if experiment.rounds == 1:
        return "1, which is attacked"
    return f"{experiment.rounds}, of which round {experiment.attacked_round} is attacked"


def _labels(note: dict[str, Any]) -> str:
    """The rule that read the labels, and how sure it is."""
    rule, certainty = str(note.get("label rule", "said when the run has ended")), note.get("label certainty")
    if certainty is None:
        return rule
    percent = "more than 99" if 0.99 < certainty < 1 else f"{certainty:.0%}"[:-1]
    return f"{rule}, expected to be right for {percent} %"


def settings(experiment: Experiment, known: Catalog, meta: dict[str, Any] | None, result: dict[str, Any] | None) -> list[Row]:
    """What else the result depends on, and the scores that have no gauge."""
    fields = ", ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in experiment.attack.fields.items())
    rows = [
        ("setting", "The attack", f"{known.get('attack', experiment.attack.id).title}: {fields}"),
        ("setting", "Seed", f"{experiment.seed}; one run of one seed"),
    ]
    if meta:
        versions = ", ".join(f"{name} {number[:10]}" for name, number in meta["versions"].items())
        rows.append(("setting", "Device and versions", f"{meta['device']}; {versions}"))
        rows += [("setting", what, meta[name]["words"]) for name, what in INSTRUMENTS.items() if meta.get(name)]
    if meta and meta.get("changed") and experiment.defenses:
        rows.append(("measured", "What the protection changed", _distances(meta["changed"])))
        if meta.get("known", meta["changed"]) != meta["changed"]:
            rows.append(("measured", "What the attacker made of that", f"{_distances(meta['known'])} from the gradient"))
    if meta and (promise := meta.get("epsilon")):
        rows.append(("guaranteed", "Differential privacy", _promise(promise)))
    if result:
        scores = result["scores"]
        rows.append(("measured", "Gradient distances", _distances(scores)))
        rows += details(scores)
        note = result["note"]
        rows += [("measured", what, f"{before}{note[name]}") for name, (what, before) in TOLD.items() if name in note]
    return rows


def _promise(promise: dict[str, Any]) -> str:
    """Epsilon with its scope."""
    size = "no epsilon below 200" if promise["value"] is None else f"epsilon {promise['value']:.2f}"
    uses = counted(promise["times"], "use")
    return (
        f"{size} at delta {promise['delta']:g}: for one picture, present or absent, in {uses} by this client; not that of a whole training"
    )


def _distances(found: dict[str, float]) -> str:
    return f"cosine distance {found['cosine']:.2g}, relative distance {found['relative_l2']:.2g}"


def details(scores: dict[str, Any]) -> list[Row]:
    """The error in two units, ranks by each distance, PSNR after the best shift, another paper's units, as far as they were measured."""
    rows: list[Row] = []
    own = scores.get("mse_norm")
    units = "" if own is None else f"; {own:.2g} in the model's own units, not clamped"
    rows.append(("measured", "Mean squared error", f"{scores['mse']:.2g} on [0, 1]{units}"))
    ranks = {"pixels": "rank_pixel", "SSIM": "rank_ssim", "LPIPS": "rank_lpips"}
    told = [f"{words} {median(known(scores[name])):g}" for words, name in ranks.items() if known(scores.get(name))]
    if told:
        rows.append(("measured", "Rank in the line-up, median", f"by {', '.join(told)}"))
    if scores.get("registered_psnr") is not None:
        rows.append(("measured", "PSNR after the best shift", f"{scores['registered_psnr']:.1f} dB, unshifted {scores['psnr']:.1f} dB"))
    if scores.get("rmse255") is not None:
        error, ratio = scores["rmse255"], scores["psnr_adadefense"]
        rows.append(("measured", "In AdaDefense's units", f"MSE {error:.2f} (a root, in grey levels), PSNR {ratio:.2f} (of that root)"))
    return rows


def known(values: list[float | None] | None) -> list[float]:
    """The values that were measured."""
    return [value for value in values or [] if value is not None]


def baselines(meta: dict[str, Any] | None) -> list[Row]:
    """What pictures that know nothing would score."""
    scores, size = (meta["baselines"], meta.get("lineup", {}).get("size")) if meta else ({}, None)
    return [("baseline", f"{words} would score", _told(scores[name], size)) for name, words in BASELINES.items() if name in scores]


def _told(scores: dict[str, float | None], size: int | None) -> str:
    """PSNR, then what else is known of one baseline."""
    formats = {"psnr": "{:.1f} dB", "ssim": "SSIM {:.2f}", "lpips": "LPIPS {:.2f}", "rank": f"rank {{:g}} of {size}"}
    return ", ".join(form.format(scores[name]) for name, form in formats.items() if scores.get(name) is not None)
