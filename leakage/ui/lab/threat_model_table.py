"""The threat model table: what the attacker is assumed to know, the settings, and the scores of pictures made without the update."""

from collections.abc import Sequence
from statistics import median

from leakage.frontend.markup import render
from leakage.results.accuracy_cost import epsilon_of_json, epsilon_words
from leakage.results.over_rounds import best_of
from leakage.results.run_assumptions import run_assumptions
from leakage.runs.event_parts import BaselineScores, FrameScores, GradientDistances, PrivacyBound
from leakage.runs.events import AttackEnd, MetaEvent
from leakage.settings import AUTOGRAD, FORMULA
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Experiment
from leakage.spec.threat_model import Row
from leakage.spec.words import COMPILED, counted, format_value

NOTES = {  # what an attack may note about its result, by key: the title of the row, and a prefix of the value
    "read from": ("What the picture was read from", ""),
    "start": ("Which try of the search is shown", "try "),
    "event": ("What the attack reports", ""),
    "alpha": (
        "The model that the attacker computes with: as the phone received it (0), as the phone sent it back (1), or a mixture",
        "alpha ",
    ),
}
OVER_ROUNDS = "an untrained small network (LeNet) and small colour pictures (CIFAR-10), by an attacker that combines rounds of training"
DERIVATIVES = {
    FORMULA: "by a formula for the layers of this network; PyTorch's automatic differentiation gives other last digits",
    COMPILED: "by a formula for the layers of this network, compiled on this machine; uncompiled it gives other last digits",
    AUTOGRAD: "by PyTorch's automatic differentiation",
}
BASELINES = {
    "grey": "A grey picture",
    "mean": "The average of all pictures in the line-up",
    "noise": "Random noise",
    "mean_colour": "A picture in one colour, the average of the private picture,",
    "blurred": "The private picture itself, blurred for comparison,",
    "same_class": "Another picture of the private picture's class",
}


def table_html(experiment: Experiment, known: Catalog, meta: MetaEvent | None, end: AttackEnd | None) -> str:
    """Return the threat model table of a run as HTML; `meta` and `end` are None until the run has sent them."""
    rows = [
        *run_assumptions(experiment, known, meta, end),
        *setting_rows(experiment, known, meta, end),
        *baseline_rows(meta),
    ]
    return render("ui/lab/threat_model_table.html.jinja", rows=rows)


def setting_rows(experiment: Experiment, known: Catalog, meta: MetaEvent | None, end: AttackEnd | None) -> list[Row]:
    """Return the rows for the settings of a run, and for the measurements that the page does not show elsewhere."""
    fields = ", ".join(f"{name.replace('_', ' ')} {format_value(value)}" for name, value in experiment.attack.fields.items())
    rows = [
        ("setting", "The attack", f"{known.attacks.get(experiment.attack.id).title}: {fields}"),
        ("setting", "Random start (seed)", f"{experiment.seed}; this is a single run with one seed"),
    ]
    if meta:
        versions = dict(meta.environment.versions)
        derivatives = versions.pop("derivatives by", None)  # runs before it was told have none
        if end and end.note.get("derivatives by") == COMPILED:
            derivatives = COMPILED
        if derivatives and "steps" in experiment.attack.fields:
            rows.append(("setting", "How the search gets its derivatives", DERIVATIVES[derivatives]))
        named = ", ".join(f"{name} {number[:10]}" for name, number in versions.items())
        rows.append(("setting", "Device and versions", f"{meta.environment.device}; {named}"))
        measures = ("The line-up", meta.judging.lineup), ("LPIPS", meta.judging.lpips)
        rows += [("setting", title, measure.words) for title, measure in measures if measure]
    if meta and meta.update.changed and experiment.defenses:
        rows.append(("measured", "What the protection changed", _distances(meta.update.changed)))
        if meta.update.known and meta.update.known != meta.update.changed:
            rows.append(("measured", "What the attacker got back of the gradient", f"{_distances(meta.update.known)} from the gradient"))
    if meta and meta.update.epsilon:
        rows.append(("guaranteed", "Privacy budget (epsilon)", _privacy(meta.update.epsilon)))
    if curve := best_of(experiment.defenses, known):
        rows.append(
            (
                "precomputed",
                "How well this protection holds over many rounds",
                f"{OVER_ROUNDS} ({known.strategy_title(curve.strategy)}): {curve.sentence()}",
            )
        )
    if end and end.answer is not None:
        rows.append(("measured", "Gradient distances", _distances(end.scores)))
        rows += score_rows(end.scores)
        rows += [("measured", title, f"{prefix}{_plain(end.note[name])}") for name, (title, prefix) in NOTES.items() if name in end.note]
    return rows


def _privacy(bound: PrivacyBound) -> str:
    """Return epsilon and delta in words, with the client and the number of uses that they hold for."""
    size = f"epsilon {epsilon_words(epsilon_of_json(bound.value))}{' (none below 200)' if bound.value is None else ''}"
    uses = counted(bound.times, "use")
    scope = (
        f"for {bound.whom}, in {uses} by this phone; it is not assumed that pictures are drawn at random, and a whole training is not "
        "covered"
    )
    return f"{size} at delta {bound.delta:g}: {scope}"


def _distances(distances: GradientDistances) -> str:
    return f"cosine distance {_short(distances.cosine)}, relative distance {_short(distances.relative_l2)}"


def _plain(value: object) -> str:
    """Return a value that an attack noted as text: numbers with two digits, all else unchanged."""
    return _short(value) if isinstance(value, float) else str(value)


def _short(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}"


def score_rows(scores: FrameScores) -> list[Row]:
    """Return the rows for further scores, as far as they were measured.

    They are the mean squared error, the rank in the line-up by each distance, the PSNR after the best shift of the reconstruction, and
    error and PSNR as the AdaDefense paper computes them.
    """
    rows: list[Row] = []
    units = "" if scores.mse_norm is None else f"; {scores.mse_norm:.2g} in the model's own units, not clamped"
    rows.append(("measured", "Mean squared error", f"{_short(scores.mse)} on [0, 1]{units}"))
    ranks = {"pixels": without_none(scores.rank_pixel), "SSIM": without_none(scores.rank_ssim), "LPIPS": without_none(scores.rank_lpips)}
    medians = [f"{distance} {median(values):g}" for distance, values in ranks.items() if values]
    if medians:
        rows.append(("measured", "Place in the line-up (median of all pictures)", f"by {', '.join(medians)}"))
    if scores.registered_psnr is not None and scores.psnr is not None:
        rows.append(
            (
                "measured",
                "Closeness (PSNR), the attacker's picture shifted to where it fits best",
                f"{scores.registered_psnr:.1f} dB, unshifted {scores.psnr:.1f} dB",
            )
        )
    if scores.rmse255 is not None and scores.psnr_adadefense is not None:
        root = f"{scores.rmse255:.2f} (root of MSE, in grey levels), PSNR {scores.psnr_adadefense:.2f} (from that root)"
        rows.append(("measured", "Error as AdaDefense's authors compute it", root))
    return rows


def without_none(values: Sequence[float | None] | None) -> list[float]:
    """Return the values that were measured, which are those that are not None."""
    return [value for value in values or [] if value is not None]


def baseline_rows(meta: MetaEvent | None) -> list[Row]:
    """Return a row with the scores of each baseline: pictures that are made without the update. Of a batch the scores are means."""
    judging = meta.judging if meta else None
    scores, size = (judging.baselines, judging.lineup.size if judging.lineup else None) if judging else ({}, None)
    mean = ", on average over the batch" if meta and meta.truth.batch > 1 else ""
    return [("baseline", f"{title} would score", _scores(scores[name], size) + mean) for name, title in BASELINES.items() if name in scores]


def _scores(scores: BaselineScores, size: int | None) -> str:
    """Return the measured scores of one baseline in words; `size` is the number of pictures in the line-up."""
    forms = {"{:.1f} dB": scores.psnr, "SSIM {:.2f}": scores.ssim, "LPIPS {:.2f}": scores.lpips, f"rank {{:g}} of {size}": scores.rank}
    return ", ".join(form.format(value) for form, value in forms.items() if value is not None)
