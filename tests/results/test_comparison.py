"""Several attacks side by side: their differences, their results, and files that run all of them again."""

import base64
import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from comparison_rows import judged
from markupsafe import escape
from PIL import Image
from sample_events import meta
from starlette.requests import Request

from leakage.data.images import tiles
from leakage.evaluation.verdict import MEANING
from leakage.results import accuracy_cost
from leakage.results.accuracy_cost import trained_in_table
from leakage.results.comparison import EXPORTS, MAX_RUNS, crossed, only_naive, rows, same_answers
from leakage.results.comparison_exports import COLUMN, make
from leakage.results.comparison_file import experiments
from leakage.results.comparison_report import page
from leakage.results.differences import differs, titles
from leakage.results.exports import GAP
from leakage.results.variant_results import gather
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.settings import Settings
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.spec.words import NOT_SHOWN
from leakage.web.stream import ids_in_address
from leakage.workers import plugin_catalog
from leakage.workers.worker import perform

NAIVE = Assumptions(adaptive=False)
PLAIN = Experiment(attack=Part(id="inverting_gradients", fields={"steps": 20}))
PRUNED = PLAIN.model_copy(update={"defenses": (Part(id="pruning", fields={"fraction": 0.9}),)})
NOISY = PLAIN.model_copy(update={"defenses": (Part(id="gaussian_noise", fields={"scale": 10}),)})
OWN = PLAIN.model_copy(update={"pictures": (Picture(source="upload", id="<b>mine</b>", label=6),)})
ARMS = (PLAIN, PRUNED.model_copy(update={"assume": NAIVE}), PRUNED, NOISY)


@pytest.fixture(scope="module")
def known() -> Catalog:
    return plugin_catalog.describe()


class Bench:
    """A store with the runs of ARMS and one of an upload, played by the worker's own code."""

    def __init__(self, home: Path, known: Catalog) -> None:
        self.store, self.known = Store(home / "store.db"), known
        plugin_catalog.write(home / "catalog.json")
        self.service = Service(self.store, Settings(home=home, slots=1, store_mb=4096, memory_mb=0))
        self.ids = [self.play(arm) for arm in ARMS]
        red = io.BytesIO()
        Image.new("RGB", (40, 40), (200, 30, 30)).save(red, "PNG")
        self.own = self.play(OWN, uploads={"<b>mine</b>": red.getvalue()})

    def play(self, experiment: Experiment, **more: Any) -> str:
        id = self.service.submit(experiment, "me", **more)
        claimed = self.store.claim("0:1")
        assert claimed
        assert claimed.id == id
        perform(self.store, claimed, torch.device("cpu"))
        assert self.look(id).status == "done"
        return id

    def look(self, id: str) -> Run:
        found = self.store.get(id)
        assert found
        return found

    def file(self, name: str, ids: list[str] | None = None) -> bytes:
        made = make(self.store, ids or self.ids, name, self.known)
        assert made
        return made.data

    def answer(self, id: str) -> np.ndarray:
        """The final guess, (H, W, 3)."""
        return tiles(self.store.frame(id, self.look(id).result["answer"]), 1)[0]  # type: ignore[index]

    def private(self, id: str) -> np.ndarray:
        return tiles(self.store.files(id)["private.png"], 1)[0]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, known: Catalog) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("bench"), known)
    yield made
    made.store.close()


# ---------------------------------------------------------------- what tells arms apart


def arm(**changes: Any) -> Experiment:
    return Experiment().model_copy(update=changes)


def defended(id: str, **fields: Any) -> Experiment:
    return arm(defenses=(Part(id=id, fields=fields),))


@pytest.mark.parametrize(
    ("arms", "wanted"),
    [
        (
            [arm(), defended("gaussian_noise", scale=0.01), defended("pruning")],
            ["no protection", "Gaussian noise 0.01", "Pruning 0.9"],
        ),
        ([defended("dp_sgd", noise_multiplier=0.1), defended("dp_sgd")], ["DP-SGD, noise multiplier 0.1", "DP-SGD, noise multiplier 1"]),
        ([arm(), defended("low_precision")], ["no protection", "Low precision, int8"]),
        (
            [defended("pruning"), defended("pruning", scope="random", feedback=True)],
            ["Pruning 0.9, each tensor, feedback off", "Pruning 0.9, random, feedback on"],
        ),
        (
            [arm(), arm(defenses=(Part(id="clipping"), Part(id="gaussian_noise")))],
            ["no protection", "Clipping 4, then Gaussian noise 0.01"],
        ),
        (
            [arm(attack=Part(id="dlg", fields={"steps": steps})) for steps in (10, 20)],
            ["DLG, steps 10", "DLG, steps 20"],
        ),
        ([arm(), arm(pictures=(Picture(id="astronaut"),) * 8)], ["1 picture", "8 pictures"]),
        ([arm(), arm(pictures=(Picture(id="chelsea"),))], ["Astronaut", "Cat"]),
        ([arm(), arm(seed=2), defended("pruning")], ["no protection, seed 1", "no protection, seed 2", "Pruning 0.9, seed 1"]),
        ([arm()], ["no protection"]),
        ([], []),
    ],
)
def test_titles_are_the_shortest_words_that_tell_arms_apart(arms: list[Experiment], wanted: list[str], known: Catalog) -> None:
    assert titles(arms, known) == wanted


CHANGES: dict[str, Any] = {
    "pictures": (Picture(id="chelsea"),),
    "size": 64,
    "channels": 1,
    "model": Part(id="mlp"),
    "checkpoint": "lenet@5",
    "task": "two",
    "outputs": 5749,
    "loss": "exponential",
    "precision": "float64",
    "batch_norm": "batch",
    "protocol": Part(id="fedavg"),
    "aggregation": Part(id="secure_aggregation"),
    "rounds": 3,
    "attacked_round": 2,
    "defenses": (Part(id="soteria"),),
    "server": Part(id="imprint"),
    "checks": (Part(id="new_layers"),),
    "refuse": False,
    "attack": Part(id="dlg"),
    "assume": Assumptions(labels=True),
    "seed": 7,
    "max_seconds": 60,
}


@pytest.mark.parametrize("name", sorted(set(Experiment.model_fields) - {"version"}))
def test_whatever_differs_is_in_the_title_and_in_one_line(name: str, known: Catalog) -> None:
    shared = {"checks": CHANGES["checks"]} if name == "refuse" else {}  # without checks nothing is refused
    two = [arm(**shared), arm(**{**shared, name: CHANGES[name]})]
    first, second = titles(two, known)
    assert first != second
    apart, alike = differs(two, known)
    assert len(apart) == 1
    assert all(line.split(": ")[0] != apart[0].split(": ")[0] for line in alike)


def test_local_steps_and_local_rate_are_told_by_themselves(known: Catalog) -> None:
    def local(epochs: int, rate: float, **fields: float) -> Experiment:
        return arm(protocol=Part(id="fedavg", fields={"epochs": epochs, "rate": rate, **fields}))

    steps = [local(1, 0.01), local(5, 0.01)]
    assert titles(steps, known) == ["1 local step", "5 local steps"]
    apart, alike = differs(steps, known)
    assert apart == ["Local steps: 1; 5"]
    assert {"What is sent: Several local steps (FedAvg)", "Local rate: 0.01"} <= set(alike)
    assert titles([local(1, 0.01, mini_batch=2), local(5, 0.1, mini_batch=2)], known) == [
        "1 epoch, local rate 0.01",
        "5 epochs, local rate 0.1",
    ]
    assert titles([arm(), *steps], known) == ["FedSGD", "FedAvg, epochs 1", "FedAvg, epochs 5"]  # one has no local steps


def test_what_the_attacker_is_granted_of_batch_norm_differs_too(known: Catalog) -> None:
    two = [arm(), arm(assume=Assumptions(statistics="exact"))]
    assert len(set(titles(two, known))) == 2


def test_naive_and_adaptive_share_a_title_and_the_attacker_is_told(known: Catalog) -> None:
    both = [PRUNED, PRUNED.model_copy(update={"assume": NAIVE})]
    assert titles([PLAIN, *both], known) == ["no protection", "Pruning 0.9", "Pruning 0.9"]
    apart, alike = differs(both, known)
    assert apart == ["The attacker: knows the protection (adaptive); does not know the protection (naive)"]
    assert {"The protection: Pruning 0.9", "The seed: 1", "The pictures: Astronaut"} <= set(alike)
    assert any(line.startswith("The attack: Guess and compare by direction (Inverting Gradients)") and "steps 20" in line for line in alike)


@pytest.mark.parametrize("kind", ["attack", "model", "protocol"])
def test_no_two_plug_ins_share_a_short_name(kind: str, known: Catalog) -> None:
    named = [titles([arm(seed=2), arm(**{kind: Part(id=entry.id)})], known)[1] for entry in known.of(kind)]
    assert len(set(named)) == len(named)


def test_a_protection_that_is_gone_keeps_its_id(known: Catalog) -> None:
    assert titles([arm(), defended("forgotten", strength=3)], known) == ["no protection", "forgotten, strength 3"]


# ---------------------------------------------------------------- what they came to


@pytest.mark.long
def test_a_row_repeats_what_the_run_found(bench: Bench) -> None:
    found = rows(bench.store, [bench.look(id) for id in bench.ids], bench.known)
    assert [row.attacker for row in found] == ["both", "naive", "adaptive", "adaptive"]
    assert [row.title for row in found] == ["no protection", "Pruning 0.9", "Pruning 0.9", "Gaussian noise 10"]
    for row, id in zip(found, bench.ids, strict=True):
        mse = np.mean((bench.answer(id) / 255.0 - bench.private(id) / 255.0) ** 2)
        assert row.psnr == pytest.approx(-10 * np.log10(mse), abs=0.2)  # the sheet holds 8 bits
        grey = np.mean((0.5 - bench.private(id) / 255.0) ** 2)
        assert row.grey["psnr"] == pytest.approx(-10 * np.log10(grey), abs=0.01)
        assert (row.run, row.status, row.verdict in MEANING) == (id, "done", True)
        assert row.words == bench.look(id).result["verdict"]["why"]  # type: ignore[index]
        assert row.rank is not None
        assert 1 <= row.rank <= 100
    assert found[0].name == "no protection"
    assert found[1].name == "Pruning 0.9 (naive)"


def test_a_run_that_waits_has_a_row_without_numbers(bench: Bench) -> None:
    id = bench.service.submit(PLAIN.model_copy(update={"seed": 5}), "me")
    (row,) = rows(bench.store, [bench.look(id)], bench.known)
    assert (row.status, row.verdict, row.words, row.psnr, row.epsilon, row.grey) == ("queued", None, None, None, None, {})
    assert make(bench.store, [id], "pictures.png", bench.known) is None
    assert b"1 not finished yet" in bench.file("comparison.html", [id])
    bench.store.drop(id, "me")


def test_epsilon_comes_from_what_the_worker_said(bench: Bench) -> None:
    id = bench.service.submit(PLAIN.model_copy(update={"seed": 6}), "me")
    bench.store.add_event(id, meta(epsilon={"value": 4.5, "delta": 1e-5, "times": 1}, baselines={"grey": {"psnr": 9.0, "lpips": None}}))
    (row,) = rows(bench.store, [bench.look(id)], bench.known)
    assert (row.epsilon, row.grey) == (4.5, {"psnr": 9.0})
    bench.store.drop(id, "me")
    id = bench.service.submit(PLAIN.model_copy(update={"seed": 7}), "me")
    bench.store.add_event(id, meta(epsilon={"value": math.inf, "delta": 1e-5, "times": 1}))
    (row,) = rows(bench.store, [bench.look(id)], bench.known)
    assert row.epsilon == math.inf
    (line,) = csv.DictReader(io.StringIO(bench.file("table.csv", [id]).decode()))
    data = bench.file("comparison.json", [id]).decode()
    assert (line["epsilon"], json.loads(data)["rows"][0]["epsilon"], "Infinity" in data) == ("∞", "∞", False)
    assert "<td>∞</td>" in bench.file("comparison.html", [id]).decode()
    bench.store.drop(id, "me")


def test_what_the_attacker_does_about_a_protection_tells_arms_apart(known: Catalog) -> None:
    hidden = Experiment(defenses=(Part(id="soteria"),))
    other = hidden.model_copy(update={"assume": Assumptions(strategy="without that layer")})
    assert titles([hidden, other], known) == ["default countermeasure", "without that layer"]
    apart, _ = differs([hidden, other], known)
    assert apart == ["The attacker's countermeasure: default; without that layer"]


def test_accuracy_is_the_mean_over_seeds_of_the_same_protections(tmp_path: Path, known: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "accuracy_cost.json"
    monkeypatch.setattr(accuracy_cost, "ACCURACY_COSTS", path)
    assert trained_in_table((), known) is None
    noise = {"id": "gaussian_noise", "fields": {"scale": 0.01}}
    recipe = {"model": {"id": "lenet", "fields": {}}, "rounds": 20, "pictures": 60_000, "batch": 64}
    measured = [
        {"defenses": [], "accuracy": [0.9, 0.98], **recipe},
        {"defenses": [], "accuracy": [0.5], **recipe, "server_rate": 0.1},
        {"defenses": [], "accuracy": [0.99], **recipe, "rounds": 100},  # another recipe: it says nothing beside the others
        {"defenses": [], "accuracy": [0.99], **recipe, "pictures": 2000},
        {"defenses": [], "accuracy": [0.99], **recipe, "model": {"id": "lenet", "fields": {"activation": "relu"}}},
        {"defenses": [], "accuracy": [], **recipe, "server_rate": 10},  # asked for, and not trained yet
        {"defenses": [noise, {"id": "clipping", "fields": {}}], "accuracy": [0.7], **recipe},
    ]
    path.write_text(json.dumps({"recipe": recipe, "rows": measured}))
    plain = trained_in_table((), known)
    assert plain
    assert (plain.accuracies, plain.privacy) == ((0.9, 0.98), None)
    with_defaults, short = Part(id="clipping", fields={"bound": 4.0, "scope": "whole gradient"}), Part(id="gaussian_noise")
    found = trained_in_table((short, with_defaults), known)
    assert found
    assert found.accuracies == (0.7,)
    assert trained_in_table((with_defaults, short), known) is None  # another order is another protection
    assert trained_in_table((Part(id="gaussian_noise", fields={"scale": 0.1}), with_defaults), known) is None


@pytest.mark.parametrize(
    ("naive", "adaptive", "warned"),
    [
        (NOT_SHOWN, "recognizable", True),
        (NOT_SHOWN, "partly", True),
        (NOT_SHOWN, NOT_SHOWN, False),
        ("partly", "recognizable", False),
        (NOT_SHOWN, None, False),
    ],
)
def test_a_protection_that_stops_only_who_does_not_know_it_is_named(naive: str, adaptive: str | None, warned: bool) -> None:
    seen = [judged("no protection", "both", "recognizable"), judged("pruning", "naive", naive), judged("pruning", "adaptive", adaptive)]
    wanted = ["Pruning stops only an attacker that does not know of it."] if warned else []
    assert only_naive(seen) == wanted


def test_a_protection_is_judged_over_all_of_its_arms() -> None:
    answers = [judged("the usual answer", attacker, NOT_SHOWN, protection="Soteria") for attacker in ("naive", "adaptive")]
    assert only_naive(answers) == []
    answers.append(judged("without that layer", "adaptive", "recognizable", protection="Soteria"))
    assert only_naive(answers) == ["Soteria stops only an attacker that does not know of it."]
    answers.append(judged("another seed", "naive", "recognizable", protection="Soteria"))
    assert only_naive(answers) == []
    local = [
        judged("1 picture", attacker, verdict, protection="no protection")
        for attacker, verdict in (("naive", NOT_SHOWN), ("adaptive", "recognizable"))
    ]
    assert only_naive(local) == ["What is sent stops only an attacker that does not know of it."]


def test_of_several_attacks_those_that_find_it_are_named() -> None:
    found = [
        ("naive", "DLG", NOT_SHOWN),
        ("naive", "iDLG", NOT_SHOWN),
        ("adaptive", "DLG", NOT_SHOWN),
        ("adaptive", "iDLG", "recognizable"),
    ]
    seen = [judged(attack, attacker, verdict, protection="Soteria", attack=attack) for attacker, attack, verdict in found]
    wanted = "Soteria stops only an attacker that does not know of it. An attacker that knows of it finds the picture by iDLG."
    assert only_naive(seen) == [wanted]
    seen[2] = judged("DLG", "adaptive", "partly", protection="Soteria", attack="DLG")
    assert only_naive(seen)[0].endswith(" finds the picture by DLG and by iDLG.")
    seen[0] = judged("DLG", "naive", NOT_SHOWN, protection="Soteria", attack="DLG", status="cancelled")
    assert only_naive(seen) == []  # stopped early, it might have found more
    seen[0] = judged("DLG", "naive", None, protection="Soteria", attack="DLG", status="running")
    assert only_naive(seen) == []  # it may still find it


def test_protections_are_crossed_with_attacks_where_a_table_of_both_has_more_than_a_diagonal(known: Catalog) -> None:
    def met(stack: str, attack: str, **more: Any) -> Experiment:
        return arm(defenses=(Part(id=stack),) if stack else (), attack=Part(id=attack), **more)

    grid = [met(stack, attack) for stack in ("", "pruning") for attack in ("dlg", "idlg")]
    naive = grid[2].model_copy(update={"assume": Assumptions(adaptive=False)})
    assert crossed(grid, known)
    assert crossed([*grid, naive], known)
    assert crossed(grid[:3], known)
    assert not crossed([grid[0], grid[3]], known)  # a diagonal
    assert not crossed(grid[:2], known)
    assert not crossed(grid[::2], known)
    assert not crossed([*grid, met("", "dlg", seed=2)], known)  # a cell would stand for two runs


def test_an_answer_that_comes_to_the_same_as_another_is_told() -> None:
    tried = [
        judged("the usual answer", "naive", NOT_SHOWN, protection="Noise", answer="as it is"),
        judged("the usual answer", "adaptive", NOT_SHOWN, protection="Noise", answer="as it is"),
        judged("average the rounds", "adaptive", NOT_SHOWN, protection="Noise", answer="as it is"),
        judged("cut off", "adaptive", NOT_SHOWN, protection="Noise", answer="cut off"),
    ]
    assert same_answers(tried) == ["Average the rounds: here that is the same as “the usual answer”."]


# ---------------------------------------------------------------- to take away, and to run again


@pytest.mark.parametrize("name", ["comparison.json", "comparison.html"])
def test_what_was_exported_can_be_run_again(name: str, bench: Bench) -> None:
    arms = [arm.resolve(bench.known) for arm in (*ARMS, OWN)]
    assert experiments(bench.file(name, [*bench.ids, bench.own]).decode()) == arms


def test_the_data_say_what_was_run_and_with_what(bench: Bench) -> None:
    found = json.loads(bench.file("comparison.json"))
    assert found["seeds"] == [1, 1, 1, 1]
    assert [one["torch"] for one in found["versions"]] == [torch.__version__.split("+")[0]] * 4
    assert all(one["engine"].startswith(bench.known.version) for one in found["versions"])
    told = [dataclasses.asdict(one.row) for one in gather(bench.store, bench.ids, bench.known)]
    assert found["rows"] == json.loads(json.dumps(told))
    assert found["differs"][0] == "The protection: no protection; Pruning 0.9; Gaussian noise 10"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "This is no exported comparison: expected its JSON or its report, and "),
        ("[" * 100_000, "This is no exported comparison: expected its JSON or its report, and "),
        ("[]", "expected an object with a list of experiments"),
        ('{"experiments": [1]}', "expected an object with a list of experiments"),
        ('{"experiments": []}', f"experiments: allowed are 1 to {MAX_RUNS}, given were 0."),
        (json.dumps({"experiments": [{}] * (MAX_RUNS + 1)}), f"given were {MAX_RUNS + 1}."),
        ('{"experiments": [{}, {"seed": -1}]}', "experiment 2: seed: "),
    ],
)
def test_other_files_are_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        experiments(text)
    assert sentence in str(refused.value)


def test_the_table_has_a_line_for_every_run(bench: Bench) -> None:
    lines = list(csv.DictReader(io.StringIO(bench.file("table.csv").decode())))
    assert [(line["arm"], line["attacker"], line["run"]) for line in lines] == [
        (row.title, row.attacker, row.run) for row in rows(bench.store, [bench.look(id) for id in bench.ids], bench.known)
    ]
    for line, id in zip(lines, bench.ids, strict=True):
        assert float(line["psnr"]) == bench.look(id).result["scores"]["psnr"]  # type: ignore[index]
        assert float(line["grey_psnr"]) == bench.store.meta(id).judging.baselines["grey"].psnr  # type: ignore[union-attr]
        assert line["epsilon"] == ""
    table = json.loads(accuracy_cost.ACCURACY_COSTS.read_text())
    (plain,) = (
        row for row in table["rows"] if not row["defenses"] and all(row[name] == table["recipe"][name] for name in accuracy_cost.RECIPE)
    )
    told = f"LeNet on MNIST, {table['recipe']['rounds']} rounds"
    assert (lines[0]["accuracy_of"], lines[0]["accuracy_seeds"]) == (told, str(len(plain["accuracy"])))
    assert float(lines[0]["accuracy"]) == pytest.approx(np.mean(plain["accuracy"]))


def test_the_picture_shows_private_pictures_above_guesses_one_column_for_each_arm(bench: Bench) -> None:
    page = np.asarray(Image.open(io.BytesIO(bench.file("pictures.png"))).convert("RGB"))
    scale = COLUMN // 32
    assert page.shape[1] == GAP + len(ARMS) * (COLUMN + GAP)
    for number, id in enumerate(bench.ids):
        column = page[:, GAP + number * (COLUMN + GAP) :][:, :COLUMN:scale]
        for top, wanted in ((GAP, bench.private(id)), (2 * GAP + COLUMN, bench.answer(id))):
            assert np.array_equal(column[top : top + COLUMN : scale], wanted)
    assert (page[2 * GAP + 2 * COLUMN :] < 100).any()  # words below


def test_another_name_or_no_run_makes_nothing(bench: Bench) -> None:
    assert make(bench.store, bench.ids, "secrets.txt", bench.known) is None
    for name in EXPORTS:
        assert make(bench.store, ["nobody"], name, bench.known) is None
        assert make(bench.store, [*bench.ids, *bench.ids, "nobody"], name, bench.known) == make(bench.store, bench.ids, name, bench.known)


# ---------------------------------------------------------------- the report


def test_the_report_loads_nothing_and_runs_nothing(bench: Bench) -> None:
    page = bench.file("comparison.html", [*bench.ids, bench.own]).decode()
    papers = {entry.source for entry in bench.known.entries}
    assert set(re.findall(r"https?://[^\s\"<]+", page)) <= papers
    assert set(re.findall(r'(?:href|src)="([^"]{12})', page)) <= {paper[:12] for paper in papers} | {"data:image/p"}
    assert re.findall(r"<script[^>]*>", page) == ['<script type="application/json" id="comparison">']
    assert not re.search(r"@import|url\(|<link|<iframe|\son\w+=", page)
    assert "default-src 'none'" in page


def test_the_report_tells_runs_that_were_stopped_early(bench: Bench) -> None:
    arms = gather(bench.store, bench.ids, bench.known)
    how = "Stopped by hand, at step 3 of 40: not the attack's answer"
    assert "not the attack's answer" not in page(arms, bench.known)
    arms[0] = replace(arms[0], row=replace(arms[0].row, ended=how, answered=False))
    assert page(arms, bench.known).count(f"<td>{arms[0].row.verdict}. {escape(how)}</td>") == 1


def test_the_report_holds_the_pictures_themselves(bench: Bench) -> None:
    page = bench.file("comparison.html").decode()
    held = [np.asarray(Image.open(io.BytesIO(base64.b64decode(text)))) for text in re.findall(r"base64,([^\"]+)", page)]
    assert all(np.array_equal(*pair) for pair in zip(held, [bench.private(bench.ids[0]), *map(bench.answer, bench.ids)], strict=True))
    assert "image-rendering: pixelated" in page


def test_the_curves_end_where_the_runs_ended(bench: Bench) -> None:
    page = bench.file("comparison.html").decode()
    drawn = re.findall(r"<title>([^<]+)</title><polyline ([^>]*)points=\"([^\"]+)\"", page)
    found = rows(bench.store, [bench.look(id) for id in bench.ids], bench.known)
    assert [name for name, _, _ in drawn] == [row.name for row in found]
    assert ["dasharray" in look for _, look, _ in drawn] == [row.attacker == "naive" for row in found]
    ticks = {int(words): float(y) for y, words in re.findall(r'y="([\d.]+)" text-anchor="end" dy="4">(\d+) dB', page)}
    for (_, _, points), row in zip(drawn, found, strict=True):
        y = float(points.split()[-1].split(",")[1])
        assert 10 * (ticks[0] - y) / (ticks[0] - ticks[10]) == pytest.approx(row.psnr, abs=0.05)


def test_the_report_says_what_it_assumes_and_what_it_does_not_prove(bench: Bench) -> None:
    page = bench.file("comparison.html").decode()
    assert page.count("<details>") == len(ARMS)
    for words in ("What this does not prove", "A failed attack is no protection", "on one picture with one seed (1)", "A grey picture"):
        assert words in page
    assert page.count("never sees") == len(ARMS)
    assert "This file shows a private picture" not in page


def test_a_report_with_somebodys_own_picture_says_so_and_shows_its_name_as_text(bench: Bench) -> None:
    page = bench.file("comparison.html", [*bench.ids, bench.own]).decode()
    assert "This file shows a private picture: its owner brought it" in page
    assert "own picture &lt;b&gt;mine&lt;/b&gt; (class 6)" in page
    assert "<b>mine" not in page


def test_a_file_holds_as_many_runs_as_the_page_lets_go_at_once() -> None:
    ids = [f"run-{number}" for number in range(MAX_RUNS + 1)]
    assert ids_in_address(Request({"type": "http", "query_string": f"ids={','.join(ids)}".encode()})) == ids[:MAX_RUNS]
