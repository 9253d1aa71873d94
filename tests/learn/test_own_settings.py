"""Settings for a visitor's own picture: the page, the Lab and the lessons mean the same experiment by them."""

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest
from small_problems import CATALOG
from streamlit.testing.v1 import AppTest

from leakage.frontend.scripts import FOLDER
from leakage.learn.own_settings import own_settings
from leakage.learn.planned import planned_grid
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.lab_settings import experiment_of
from leakage.ui.common.forms import DEFAULT

NODE = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
ALL = """
import { ATTACKS, NETWORKS, PROTECTIONS, USUAL, hasAttackers, labQueryOf, protectionOf } from 'FOLDER/own/own_choices.js';
const amountsOf = ({ knob }) => (knob ? [knob.from, knob.start, knob.to] : [0]);
const fitting = NETWORKS.flatMap(({ id }) => ATTACKS.filter(({ networks }) => networks.includes(id)).map((attack) => [id, attack.id]));
const all = [
  ...PROTECTIONS.flatMap((protection) =>
    amountsOf(protection).flatMap((amount) => [true, false].map((adaptive) => ({ ...USUAL, protection: protection.id, amount, adaptive }))),
  ),
  ...fitting.map(([network, attack]) => ({ ...USUAL, network, attack, seed: 7 })),
].filter((values) => values.adaptive || hasAttackers(values));
console.log(JSON.stringify(all.map((values) => [values, labQueryOf(values)])));
"""


def offered() -> list[tuple[dict[str, Any], str]]:
    """Return settings that the page offers, each with the query of its link to the Lab: all protections, all networks with all attacks."""
    script = ALL.replace("FOLDER", FOLDER.as_uri())
    command = ["node", "--input-type=module", "-"]
    printed = subprocess.run(command, input=script, text=True, capture_output=True, timeout=240, check=True).stdout
    return [(values, query) for values, query in json.loads(printed)]


def read_all(known: "Catalog", queries: list[dict[str, str]], hear: "Callable[[dict[str, Any]], None]") -> None:
    """Read each address as the Lab does, and hand over the settings; AppTest runs this text without the imports above."""
    import streamlit as st

    from leakage.ui.common.address import read_url

    for query in queries:
        st.query_params.from_dict(query)
        read_url(known, again=True)
        hear(dict(st.session_state.items()))


@NODE
def test_the_lab_reads_every_link_of_the_page_as_the_settings_of_the_page() -> None:
    pairs = offered()
    queries = [dict(parse_qsl(query)) for _, query in pairs]
    states: list[dict[str, Any]] = []
    at = AppTest.from_function(read_all, kwargs={"known": CATALOG, "queries": queries, "hear": states.append}, default_timeout=240).run()
    assert not at.exception
    assert len(states) == len(pairs) > 20
    for (values, query), asked, state in zip(pairs, queries, states, strict=True):
        understood = {key: type(state[key])(text) for key, text in asked.items() if key != "v"}
        assert {key: state[key] for key in understood} == understood, query
        pictures = tuple(Picture(id=id) for id in ("astronaut", "chelsea", "coffee", "rocket", "digit-0", "digit-1", "digit-2", "digit-3"))
        experiment = experiment_of(state, pictures[: state["batch"]], CATALOG)
        assert own_settings(experiment.resolve(CATALOG), CATALOG) == values, query


# ---------------------------------------------------------------- the grids of the lessons


def of_grid(name: str) -> list[tuple[tuple[str, ...], dict[str, Any] | None]]:
    """Return the labels of every cell with its settings."""
    grid = planned_grid(name)
    cells = grid.cells()
    labels = [tuple(knob.values[index].label for knob, index in zip(grid.knobs, cell, strict=True)) for cell in cells]
    return [(label, own_settings(grid.experiment(cell), CATALOG)) for label, cell in zip(labels, cells, strict=True)]


def test_one_division_and_other_pictures_can_all_be_computed_with_ones_own() -> None:
    for (_, noise), own in of_grid("g01"):
        protection = {"protection": "none", "amount": 0} if noise == "none" else {"protection": "noise", "amount": float(noise)}
        assert own == {"network": "mlp", "attack": "linear_layer", "adaptive": True, "seed": 1, **protection}
    for (_, seed), own in of_grid("g02"):
        assert own == {"network": "lenet", "attack": "idlg", "adaptive": True, "seed": int(seed), "protection": "none", "amount": 0}


def test_noise_is_seen_once_by_a_naive_attacker_or_averaged_by_one_that_knows_it() -> None:
    for (_, noise, looks), own in of_grid("g07"):
        assert own is not None
        name = "none" if noise == "none" else "noise" if looks == "once" else "averaged"
        assert (own["protection"], own["amount"]) == (name, 0 if noise == "none" else float(noise))
        assert own["adaptive"] == (looks != "once")


def test_of_the_protections_the_page_has_three() -> None:
    names = {"none": ("none", 0), "pruning 50 %": ("pruning", 0.5), "DP-SGD, noise 1": ("clipping", 1)}
    for (_, protection, attacker), own in of_grid("g08"):
        assert (own and (own["protection"], own["amount"], own["adaptive"])) == (
            (*names[protection], attacker == "knows it") if protection in names else None
        )


def test_a_sum_over_phones_is_one_of_a_picture_each() -> None:
    for (_, phones), own in of_grid("g10"):
        expected = ("none", 0) if phones == "1" else ("sum", int(phones))
        assert own is not None
        assert (own["protection"], own["amount"]) == expected


@pytest.mark.parametrize("name", ["g05", "g09", "g11"])  # FedAvg, R-GAP, FedADMM
def test_other_methods_are_left_to_the_lab(name: str) -> None:
    assert {own is None for _, own in of_grid(name)} == {True}


# ---------------------------------------------------------------- single settings

NOISE = Part(id="gaussian_noise", fields={"scale": 0.01})
TWO = (Picture(id="chelsea"), Picture(id="coffee"))


def test_defaults_may_be_written_out() -> None:
    written = Experiment(model=Part(id="mlp", fields={"width": 256}), protocol=Part(id="fedsgd", fields={"rate": 0.1}))
    assert own_settings(written, CATALOG) == own_settings(Experiment(model=Part(id="mlp")), CATALOG)
    assert (own_settings(written, CATALOG) or {})["network"] == "mlp"


def test_less_noise_than_the_page_has_is_none() -> None:
    little = Part(id="gaussian_noise", fields={"scale": 0.00001})
    assert (own_settings(Experiment(defenses=(little,)), CATALOG) or {})["protection"] == "none"


@pytest.mark.parametrize(
    "change",
    [
        {"pictures": TWO},
        {"size": 64},
        {"channels": 1},
        {"model": Part(id="mnist_cnn")},  # on colour pictures
        {"model": Part(id="lenet", fields={"activation": "tanh"})},
        {"attack": Part(id="inverting_gradients", fields={"distance": "squared"})},
        {"attack": Part(id="r_gap")},
        {"checkpoint": "convnet@5"},
        {"precision": "float64"},
        {"assume": Assumptions(labels=True)},
        {"rounds": 16, "attacked_round": 16},
        {"defenses": (NOISE,), "rounds": 16, "attacked_round": 16, "assume": Assumptions(strategy="average the rounds")},  # the model moves
        {"defenses": (NOISE,), "rounds": 8, "attacked_round": 8, "protocol": Part(id="fedsgd", fields={"rate": 1e-6})},
        {"defenses": (NOISE, Part(id="pruning"))},
        {"defenses": (Part(id="pruning", fields={"scope": "random"}),)},
        {"defenses": (Part(id="pruning"),), "assume": Assumptions(strategy="what arrived, and bounds")},
        {"defenses": (Part(id="low_precision", fields={"number": "bf16"}),)},
        {"defenses": (Part(id="dp_sgd", fields={"max_grad_norm": 2.0}),)},
        {"pictures": TWO, "aggregation": Part(id="secure_aggregation"), "defenses": (NOISE,)},
        {"pictures": (*TWO, *TWO), "aggregation": Part(id="secure_aggregation")},
    ],
    ids=str,
)
def test_what_a_page_does_not_have_it_does_not_offer(change: dict[str, Any]) -> None:
    assert own_settings(Experiment().model_copy(update=change), CATALOG) is None


def test_without_known_plugins_nothing_is_offered() -> None:
    assert own_settings(DEFAULT, CATALOG) is not None
    assert own_settings(DEFAULT, None) is None
