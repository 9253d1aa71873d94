"""The differences of two experiments in words: none is left out."""

from typing import Any

import pytest
from small_problems import CATALOG

from leakage.data.images import gallery
from leakage.results.changes import changes
from leakage.results.what_ifs import what_ifs
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

EIGHT = tuple(Picture(id=item.id) for item in gallery()[:8])
OTHERS: dict[str, tuple[Any, str]] = {
    "pictures": (EIGHT, "8 pictures instead of 1 picture"),
    "size": (64, "size: 64 px instead of 32 px"),
    "channels": (1, "colours: grey instead of colour"),
    "model": (Part(id="mlp"), "model: MLP instead of LeNet"),
    "checkpoint": ("lenet-mnist@5", "weights: trained (lenet-mnist@5) instead of untrained"),
    "task": ("two", "one output instead of one output for each class"),
    "outputs": (5749, "5,749 classes instead of 10 classes"),
    "loss": ("hinge", "hinge loss instead of cross-entropy"),
    "precision": ("float64", "arithmetic: float64 instead of float32"),
    "batch_norm": ("batch", "BatchNorm uses: statistics of this batch instead of stored statistics"),
    "protocol": (Part(id="fedavg"), "what is sent: FedAvg instead of FedSGD"),
    "aggregation": (Part(id="secure_aggregation"), "added up with other phones: Secure aggregation instead of no"),
    "rounds": (3, "round 1 of 3 instead of round 1 of 1"),
    "attacked_round": (2, "round 2 of 1 instead of round 1 of 1"),
    "defenses": ((Part(id="pruning", fields={"fraction": 0.9}),), "protection: Pruning 0.9 instead of no protection"),
    "server": (Part(id="imprint"), "server: Imprint instead of honest server"),
    "checks": ((Part(id="new_layers"),), "checks New layers instead of no checks"),
    "refuse": (False, "checks New layers, and refuses nothing instead of checks New layers"),
    "attack": (Part(id="inverting_gradients"), "attack: Inverting Gradients instead of iDLG"),
    "seed": (2, "seed 2 instead of seed 1"),
    "max_seconds": (60, "time limit: at most 60 s instead of at most 900 s"),
}
GRANTED = {
    "labels": (True, "labels granted instead of labels found out"),
    "adaptive": (False, "attacker: naive instead of adaptive"),
    "strategy": ("read it off", "attacker's countermeasure: undone by its formula instead of default countermeasure"),
    "statistics": ("exact", "statistics granted for this very batch instead of statistics not granted"),
    "examples": (True, "starts from another picture of the class instead of starts without one"),
    "accomplice": (Picture(id="chelsea"), "accomplice with Cat instead of no accomplice"),
}


@pytest.mark.parametrize("field", sorted({*Experiment.model_fields, *Assumptions.model_fields} - {"version", "assume"}))
def test_every_field_that_differs_is_told(field: str) -> None:
    before = Experiment(checks=OTHERS["checks"][0]) if field == "refuse" else Experiment()  # without checks nothing is refused
    if field in GRANTED:
        value, words = GRANTED[field]
        after = before.model_copy(update={"assume": before.assume.model_copy(update={field: value})})
    else:
        value, words = OTHERS[field]
        after = before.model_copy(update={field: value})
    assert changes(before, after, CATALOG) == words
    assert changes(after, after, CATALOG) == ""


def test_several_changes_are_told_one_after_the_other() -> None:
    what_if = what_ifs(Experiment(), CATALOG, list(EIGHT))["a batch of 8"][1]
    assert changes(Experiment(), what_if, CATALOG) == "attack: Inverting Gradients instead of iDLG; 8 pictures instead of 1 picture"
    wider = Experiment(model=Part(id="mlp", fields={"width": 64}))
    narrow = Experiment(model=Part(id="mlp", fields={"width": 8}), seed=2)
    assert changes(narrow, wider, CATALOG) == "model: MLP, width 64 instead of MLP, width 8; seed 1 instead of seed 2"


def test_the_other_statistics_of_batch_normalisation_are_a_what_if_where_a_model_has_it() -> None:
    normed = Experiment(model=Part(id="convnet", fields={"norm": "batch"}), pictures=EIGHT[:2]).resolve(CATALOG)
    asked = what_ifs(normed, CATALOG, [])["BatchNorm with statistics of this batch"][1]
    assert changes(normed, asked, CATALOG) == "BatchNorm uses: statistics of this batch instead of stored statistics"
    assert what_ifs(asked, CATALOG, [])["BatchNorm with stored statistics"][1] == normed
    one_by_one = normed.model_copy(update={"defenses": (Part(id="dp_sgd"),)})
    for other in (one_by_one, Experiment()):
        assert not any(title.startswith("BatchNorm") for title in what_ifs(other, CATALOG, []))
