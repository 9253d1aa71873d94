"""The ledger: what the attacker was assumed to know, what was set, and what a picture that knows nothing would have scored."""

from statistics import median
from typing import Any

from leakage.results.markup import render
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import Row, assumptions, counted, shown

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
    return render("ui/lab/ledger.html.jinja", rows=rows)


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
