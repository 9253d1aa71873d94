"""The threat model table: what the attacker was assumed to know, what was set, and what a picture that knows nothing would have scored."""

from collections.abc import Sequence
from statistics import median

from leakage.frontend.markup import render
from leakage.results.accuracy_cost import epsilon_of_json, epsilon_words
from leakage.results.over_rounds import best_of
from leakage.runs.event_parts import BaselineScores, FrameScores, GradientDistances, PrivacyBound
from leakage.runs.events import AttackEnd, MetaEvent
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import Row, assumptions, counted, format_value

TOLD = {  # by the attack, of its answer: in its note -> what it is about, and what is written before it
    "read from": ("Read from", ""),
    "start": ("Which try it was", "try "),
    "event": ("In the attack's own words", ""),
    "alpha": ("The model in between (0: sent out, 1: came back)", "alpha "),
}
OVER_ROUNDS = "an untrained LeNet and CIFAR-10 pictures, by an attacker who puts rounds together"
BASELINES = {
    "grey": "A grey picture",
    "mean": "The mean picture of the line-up",
    "noise": "Random noise",
    "mean_colour": "Its mean colour alone",
    "blurred": "The private picture itself, out of focus,",
    "same_class": "Another picture of the same class",
}


def table_html(experiment: Experiment, known: Catalog, meta: MetaEvent | None, end: AttackEnd | None) -> str:
    """Return the threat model table of a run as HTML; `meta` and `end` are None as long as they are not known."""
    rows = [
        *assumptions(experiment, known, meta, end.note if end else {}),
        *settings(experiment, known, meta, end),
        *baselines(meta),
    ]
    return render("ui/lab/threat_model_table.html.jinja", rows=rows)


def settings(experiment: Experiment, known: Catalog, meta: MetaEvent | None, end: AttackEnd | None) -> list[Row]:
    """What else the result depends on, and the scores that have no gauge."""
    fields = ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in experiment.attack.fields.items())
    rows = [
        ("setting", "The attack", f"{known.attacks.get(experiment.attack.id).title}: {fields}"),
        ("setting", "Random start (seed)", f"{experiment.seed}; one run of one seed"),
    ]
    if meta:
        versions = ", ".join(f"{name} {number[:10]}" for name, number in meta.environment.versions.items())
        rows.append(("setting", "Device and versions", f"{meta.environment.device}; {versions}"))
        measures = ("The line-up", meta.judging.lineup), ("LPIPS", meta.judging.lpips)
        rows += [("setting", what, told.words) for what, told in measures if told]
    if meta and meta.update.changed and experiment.defenses:
        rows.append(("measured", "What the protection changed", _distances(meta.update.changed)))
        if meta.update.known and meta.update.known != meta.update.changed:
            rows.append(("measured", "What the attacker made of that", f"{_distances(meta.update.known)} from the gradient"))
    if meta and meta.update.epsilon:
        rows.append(("guaranteed", "Privacy budget (epsilon)", _promise(meta.update.epsilon)))
    if curve := best_of(experiment.defenses, known):
        rows.append(
            ("precomputed", "The same over many rounds", f"{OVER_ROUNDS} ({known.strategy_title(curve.strategy)}): {curve.sentence()}")
        )
    if end:
        rows.append(("measured", "Gradient distances", _distances(end.scores)))
        rows += details(end.scores)
        rows += [("measured", what, f"{before}{_plain(end.note[name])}") for name, (what, before) in TOLD.items() if name in end.note]
    return rows


def _promise(promise: PrivacyBound) -> str:
    """Epsilon with its scope."""
    size = f"epsilon {epsilon_words(epsilon_of_json(promise.value))}{' (none below 200)' if promise.value is None else ''}"
    uses = counted(promise.times, "use")
    told = f"{size} at delta {promise.delta:g}: for {promise.whom}; in {uses} by this client"
    return f"{told}; no sampling assumed; not that of a whole training"


def _distances(found: GradientDistances) -> str:
    return f"cosine distance {_short(found.cosine)}, relative distance {_short(found.relative_l2)}"


def _plain(value: object) -> str:
    """What an attack noted: words as they are, numbers without digits that say nothing."""
    return _short(value) if isinstance(value, float) else str(value)


def _short(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"


def details(scores: FrameScores) -> list[Row]:
    """The error in two units, ranks by each distance, PSNR after the best shift, another paper's units, as far as they were measured."""
    rows: list[Row] = []
    units = "" if scores.mse_norm is None else f"; {scores.mse_norm:.2g} in the model's own units, not clamped"
    rows.append(("measured", "Mean squared error", f"{_short(scores.mse)} on [0, 1]{units}"))
    ranks = {"pixels": known(scores.rank_pixel), "SSIM": known(scores.rank_ssim), "LPIPS": known(scores.rank_lpips)}
    told = [f"{words} {median(values):g}" for words, values in ranks.items() if values]
    if told:
        rows.append(("measured", "Rank in the line-up, median", f"by {', '.join(told)}"))
    if scores.registered_psnr is not None and scores.psnr is not None:
        rows.append(("measured", "PSNR after the best shift", f"{scores.registered_psnr:.1f} dB, unshifted {scores.psnr:.1f} dB"))
    if scores.rmse255 is not None and scores.psnr_adadefense is not None:
        root = f"MSE {scores.rmse255:.2f} (a root, in grey levels), PSNR {scores.psnr_adadefense:.2f} (of that root)"
        rows.append(("measured", "In AdaDefense's units", root))
    return rows


def known(values: Sequence[float | None] | None) -> list[float]:
    """The values that were measured."""
    return [value for value in values or [] if value is not None]


def baselines(meta: MetaEvent | None) -> list[Row]:
    """What pictures that know nothing would score."""
    judging = meta.judging if meta else None
    scores, size = (judging.baselines, judging.lineup.size if judging.lineup else None) if judging else ({}, None)
    return [("baseline", f"{words} would score", _told(scores[name], size)) for name, words in BASELINES.items() if name in scores]


def _told(scores: BaselineScores, size: int | None) -> str:
    """PSNR, then what else is known of one baseline."""
    forms = {"{:.1f} dB": scores.psnr, "SSIM {:.2f}": scores.ssim, "LPIPS {:.2f}": scores.lpips, f"rank {{:g}} of {size}": scores.rank}
    return ", ".join(form.format(value) for form, value in forms.items() if value is not None)
