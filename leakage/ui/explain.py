"""The words beside the numbers: the ledger of assumptions, the glossary, what-ifs."""

import html
from typing import Any

from leakage.catalog import Catalog
from leakage.spec import Assumptions, Experiment, Part, Picture

QUESTION = "A phone trains on its owner's pictures and sends only this update. What can the server see?"
PROMISE = "Pictures go to this machine only. A run with your own pictures is deleted with one click, at the latest after 7 days."

GLOSSARY = {
    "Gradient": "For every weight of the model, how much and in which direction it should change to do better on these pictures. "
    "In federated learning a phone sends this instead of its pictures.",
    "Batch": "The pictures that go into one gradient. Their gradients are averaged, so the server receives one sum, not one per picture.",
    "PSNR": "Peak signal-to-noise ratio, in decibels: how small the pixel errors are. 10 dB is no better than grey, 20 dB is clearly "
    "recognisable, from 30 dB on the eye hardly sees a difference.",
    "SSIM": "Structural similarity, up to 1: compares edges and contrast in small windows, closer to what an eye sees than PSNR.",
    "Gradient distance": "How far the gradient of the attacker's picture is from the one received. It is all the attacker can see.",
    "Grey picture": "The baseline: the score of an answer in plain grey, made without any gradient. Scores near it mean no leak.",
    "Label": "The class of a picture, for example 'cat'. For one picture it can be read from the gradient without any search.",
    "Seed": "The number that fixes all chance in a run: the model's untrained weights and the attacker's first guess. Same seed, same run.",
}


def ledger(experiment: Experiment, known: Catalog, meta: dict[str, Any] | None, note: dict[str, Any]) -> str:
    """What the attacker was assumed to know, and what else the result depends on, as an HTML table."""
    batch, model = len(experiment.pictures), known.get("model", experiment.model.id)
    defenses = " and ".join(known.get("defense", part.id).title for part in experiment.defenses)
    rule = str(note.get("label rule", "not yet known"))
    protection = "none was used"
    if experiment.defenses:
        protection = (
            f"{defenses}: known and imitated" if experiment.assume.defense else f"{defenses}: not known, taken for a plain gradient"
        )
    normalise = model.fields and experiment.model.fields.get("normalise", "none")
    rows = [
        ("knows", "The model and its weights", f"{model.title}, untrained; every server has them"),
        ("knows", "How many pictures, and their size", f"{batch} of {experiment.channels} x {experiment.size} x {experiment.size}"),
        ("granted" if experiment.assume.labels else "finds out", "The labels", "granted by a switch" if experiment.assume.labels else rule),
        ("knows" if experiment.assume.defense or not experiment.defenses else "does not know", "The protection", protection),
        ("knows", "How pixels are normalised", "not at all" if normalise in (None, "none") else f"by the constants of {normalise}"),
        (
            "knows",
            "BatchNorm",
            "running statistics of the untrained model (eval mode)" if experiment.model.id == "convnet" else "none in this model",
        ),
        ("never sees", "The private pictures", "used by the referee for the scores alone"),
        ("setting", "Seed", f"{experiment.seed}; one run of one seed"),
    ]
    if meta:
        versions = ", ".join(f"{name} {number}" for name, number in meta["versions"].items())
        grey, noise = meta["baselines"]["grey"], meta["baselines"]["noise"]
        unknowns = batch * experiment.channels * experiment.size**2
        numbers = meta["received"]["entries"]
        enough = "enough to pin the pictures down" if numbers >= unknowns else "too few to pin the pictures down"
        rows.insert(2, ("counting", "Numbers against unknowns", f"{numbers:,} numbers for {unknowns:,} pixel values: {enough}"))
        rows += [
            ("setting", "Device and versions", f"{meta['device']}; {versions}"),
            ("baseline", "A grey picture would score", f"{grey['psnr']:.1f} dB, structural similarity {grey['ssim']:.2f}"),
            ("baseline", "Random noise would score", f"{noise['psnr']:.1f} dB, structural similarity {noise['ssim']:.2f}"),
        ]
    cells = "".join(
        f'<tr><td><span class="gle-tag gle-{how.split()[0]}">{how}</span></td>'
        f'<th scope="row">{html.escape(what)}</th><td>{html.escape(value)}</td></tr>'
        for how, what, value in rows
    )
    return f'<table class="gle-ledger"><caption>What this result assumes</caption><tbody>{cells}</tbody></table>'


def what_ifs(experiment: Experiment, known: Catalog, spare: list[Picture]) -> dict[str, tuple[str, Experiment]]:
    """Three questions that follow from a run, each one click away: title -> (what it does, the experiment)."""
    matching = experiment.attack if experiment.attack.id == "inverting_gradients" else Part(id="inverting_gradients")
    eight = (*experiment.pictures, *(p for p in spare if p not in experiment.pictures))[:8]
    width = next((field for field in known.get("model", experiment.model.id).fields if field.name == "width"), None)
    if width and width.high:
        wide = min(2 * int(experiment.model.fields.get("width", width.default)), int(width.high))
        wider = experiment.model_copy(update={"model": Part(id=experiment.model.id, fields={**experiment.model.fields, "width": wide})})
        about = f"The same model, {wide} wide."
    else:
        change = {"model": Part(id="mlp"), "attack": Part(id="inverting_gradients", fields={"steps": 2000})}
        wider = experiment.model_copy(update=change)
        about = "A fully connected network that sends fifty times as many numbers, by Inverting Gradients."
    pruned = {
        "defenses": (Part(id="pruning", fields={"share": 0.9}),),
        "attack": matching,
        "assume": Assumptions(labels=experiment.assume.labels),
    }
    return {
        "a batch of 8": (
            "Eight pictures in one gradient, by Inverting Gradients.",
            experiment.model_copy(update={"pictures": eight, "attack": matching}),
        ),
        "prune 90 %": (
            "The phone sends only the largest tenth of each layer. The attacker knows; then try one who does not.",
            experiment.model_copy(update=pruned),
        ),
        "a wider model": (about, wider),
    }


def title(experiment: Experiment, known: Catalog) -> str:
    """A run in one line."""
    names = [known.get("attack", experiment.attack.id).title, "on", known.get("model", experiment.model.id).title]
    names += [f"with {known.get('defense', part.id).title.lower()}" for part in experiment.defenses]
    count = len(experiment.pictures)
    return f"{' '.join(names)}, {count} picture{'s' if count > 1 else ''}, seed {experiment.seed}"
