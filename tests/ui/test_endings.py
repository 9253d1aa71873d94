"""Every way an attack can end, in the same words wherever it is shown."""

import csv
import io
import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
import torch
from home_processes import until
from page_visits import Open, fine, words
from PIL import Image
from small_problems import CATALOG

from leakage.attacks._read_layers import FIRST
from leakage.evaluation.play import NO_GRADIENT
from leakage.results import answer as asked
from leakage.results import exports, worst_case
from leakage.results.answer_words import lines, not_tried
from leakage.results.comparison import rows
from leakage.results.comparison_exports import make
from leakage.runs.endings import how_it_stands
from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.runs.store import Run
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.question import Question
from leakage.spec.words import CUT_SHORT, NOT_SHOWN, VERDICTS
from leakage.spec.words import INAPPLICABLE as DOES_NOT_APPLY
from leakage.ui.compare.table import matrix
from leakage.workers import plugin_catalog
from leakage.workers.job import MEMORY, Job
from leakage.workers.worker import perform

CPU = torch.device("cpu")
WORDS = ROOT / "leakage" / "ui" / "components" / "live" / "words.js"


def search(steps: int, seconds: int = 60, **more: object) -> Experiment:
    return Experiment(attack=Part(id="inverting_gradients", fields={"steps": steps, **more}), max_seconds=seconds)


# only pictures far outside the box have gradients as large as this noise: L-BFGS diverges whatever the processor's last digits are
LARGE_NOISE = Part(id="gaussian_noise", fields={"scale": 10})
DIVERGING = Experiment(defenses=(LARGE_NOISE,), attack=Part(id="dlg", fields={"steps": 40, "restarts": 1}))


def submitted(door: Service, experiment: Experiment, **uploads: bytes) -> Run:
    door.submit(experiment, owner_of("me"), uploads=uploads)
    claimed = door.store.claim("0:1")
    assert claimed is not None
    return claimed


def answer(door: Service) -> Run:
    run = submitted(door, search(3))
    perform(door.store, run, CPU)
    return run


def limit(door: Service) -> Run:
    run = submitted(door, search(24000, seconds=10, starts=16))
    perform(door.store, run, CPU)
    return run


def when_it_plays(door: Service, run: Run, then: Callable[[], object]) -> None:
    """Do something in another thread once the run has shown a guess."""

    def wait() -> None:
        until(lambda: any(event["kind"] == "frame" for event in door.store.events([run.id], 0)), what="the run shows a guess")
        then()

    threading.Thread(target=wait, daemon=True).start()


def stop(door: Service) -> Run:
    run = submitted(door, search(24000, starts=16))
    when_it_plays(door, run, lambda: door.store.cancel(run.id))
    perform(door.store, run, CPU)
    return run


def over(door: Service) -> Run:
    run = submitted(door, search(24000, starts=16))
    when_it_plays(door, run, lambda: door.cancel(run.id, owner_of("me"), how="over"))
    perform(door.store, run, CPU)
    return run


def divergence(door: Service) -> Run:
    run = submitted(door, DIVERGING)
    perform(door.store, run, CPU)
    return run


# a closed form that reads a fully connected first layer, where the first layer is a convolution
INAPPLICABLE = Experiment(attack=Part(id="linear_layer"))


def inapplicable(door: Service) -> Run:
    run = submitted(door, INAPPLICABLE)
    perform(door.store, run, CPU)
    return run


# a server that adds two layers, in front of a phone that looks for new layers
REFUSED = Experiment(server=Part(id="imprint"), checks=(Part(id="new_layers"),), attack=Part(id="bins"))
REFUSAL = "The phone refused to train this model in round 1: the check New layers measured 4, above its threshold of 0. Nothing was sent."


def refused(door: Service) -> Run:
    run = submitted(door, REFUSED)
    perform(door.store, run, CPU)
    return run


def no_gradient(door: Service) -> Run:
    """Black through a network without biases: every feature is 0, and so is every gradient."""
    black = io.BytesIO()
    Image.new("RGB", (32, 32)).save(black, "PNG")
    picture = Picture(source="upload", id="black", label=1)
    asked = search(3).model_copy(update={"pictures": (picture,), "model": Part(id="custom", fields={"network": "conv 3@4"})})
    run = submitted(door, asked, black=black.getvalue())
    perform(door.store, run, CPU)
    return run


def memory(door: Service) -> Run:
    run = submitted(door, search(3))
    with Job(door.store, run, so_far="") as job:
        job.fail(MemoryError())
    return run


ENDINGS: dict[Callable[[Service], Run], tuple[str, str]] = {  # how -> the words, and the run's state
    answer: ("Attack finished", "done"),
    limit: ("Stopped at its time limit of 10 s, at step # of 24,000: not the attack's answer", "done"),
    stop: ("Stopped by hand, at step # of 24,000: not the attack's answer", "cancelled"),
    over: ("Stopped when the time of its question was over, at step # of 24,000: not the attack's answer", "cancelled"),
    divergence: ("Diverged, at step # of 40: not the attack's answer", "done"),
    inapplicable: (f"Does not apply: {FIRST.format('a convolution')}", "done"),
    refused: (REFUSAL, "done"),
    no_gradient: (f"Failed: {NO_GRADIENT}", "failed"),
    memory: (f"Failed: {MEMORY}", "failed"),
}


def live(run: Run, door: Service) -> str:
    """What the scripts of the page make of the events, by the script itself."""
    events = [event for event in door.store.events([run.id], 0) if event["kind"] in ("state", "end")]
    state = next(event for event in reversed(events) if event["kind"] == "state")
    end = next((event for event in events if event["kind"] == "end"), {})
    call = (
        f"import({json.dumps(WORDS.as_uri())}).then((m) => console.log(m.stateWords({json.dumps(state)}, {json.dumps(end.get('ending'))})))"
    )
    return subprocess.run(["node", "--input-type=module", "-e", call], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("ended", ENDINGS, ids=lambda ended: ended.__name__)
@pytest.mark.long
def test_every_place_tells_how_a_run_ended_in_the_same_words(door: Service, visit: Open, ended: Callable[[Service], Run]) -> None:
    pattern, status = ENDINGS[ended]
    run = door.look(ended(door).id)
    assert run is not None
    told = how_it_stands(run)
    before, _, after = pattern.partition("#")
    assert run.status == status
    assert told.startswith(before)
    assert told.endswith(after)

    known = plugin_catalog.describe()
    finished = ended is answer
    report = unescape((make(door.store, [run.id], "comparison.html", known) or pytest.fail("no report")).data.decode())
    (row,) = csv.DictReader(io.StringIO((make(door.store, [run.id], "table.csv", known) or pytest.fail("no table")).data.decode()))
    (data,) = json.loads((make(door.store, [run.id], "comparison.json", known) or pytest.fail("no data")).data)["rows"]
    assert row["ended"] == data["ended"] == told
    assert data["answered"] == finished
    assert (
        told.removesuffix(".") + "." in report.partition("application/json")[0]
    ) != finished  # a report is of answers: only what is none is told

    mine = visit("pages/runs.py")
    fine(mine)
    assert told in words(mine)
    compared = visit("pages/compare.py", runs=run.id)
    fine(compared)
    shown = unescape(" ".join(str(element.proto.body) for element in compared.get("html")) + words(compared))
    assert (told in shown) != finished

    verdict = data["verdict"]
    assert verdict in (
        (None,) if status == "failed" or ended in (inapplicable, refused) else VERDICTS if finished else (CUT_SHORT, *VERDICTS[:3])
    )
    if shutil.which("node"):
        assert live(run, door) == told


@pytest.mark.long
def test_the_command_line_tells_it_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from leakage.__main__ import main

    for name, experiment, words_of in (
        ("answer", search(3), "Attack finished. "),
        ("limit", search(24000, seconds=10, starts=16), "Stopped at its time limit of 10 s, at step "),
        ("diverged", DIVERGING, "Diverged, at step "),
        ("refused", REFUSED, REFUSAL),
        ("inapplicable", INAPPLICABLE, "Does not apply: This attack needs a network whose first layer is fully connected"),
    ):
        (tmp_path / "asked.json").write_text(experiment.model_dump_json())
        caplog.clear()
        with caplog.at_level("INFO"):
            assert main(["run", str(tmp_path / "asked.json"), "--out", str(tmp_path / name)]) == 0
        ending = json.loads((tmp_path / name / "metrics.json").read_text())["ending"]
        assert (ending["how"], ending["words"] in caplog.text) == (name, True)
        assert words_of in f"{ending['words']}. "
        if name == "refused":
            assert [record.getMessage() for record in caplog.records] == [f"{REFUSAL} That is in {tmp_path / name}."]


def test_what_does_not_apply_has_no_verdict_no_scores_and_no_picture_anywhere(door: Service, visit: Open) -> None:
    run = door.look(inapplicable(door).id)
    assert run is not None
    known = plugin_catalog.describe()
    (row,) = csv.DictReader(io.StringIO((make(door.store, [run.id], "table.csv", known) or pytest.fail("no table")).data.decode()))
    assert (row["verdict"], row["psnr"], row["rank"]) == (DOES_NOT_APPLY, "", "")
    (data,) = json.loads((make(door.store, [run.id], "comparison.json", known) or pytest.fail("no data")).data)["rows"]
    assert (data["verdict"], data["psnr"], data["inapplicable"]) == (None, None, FIRST.format("a convolution"))
    assert door.store.frames(run.id) == []
    assert exports.make(door.store, run.id, "final.png") is None
    lab = visit(run=run.id)
    fine(lab)
    assert not [button for button in lab.get("link_button") if "final.png" in str(button.proto.url)]
    shown = unescape(matrix(rows(door, [run], known)))
    assert DOES_NOT_APPLY in shown
    assert NOT_SHOWN not in shown
    told = asked.answer(door, [run], known)
    assert (told.word, told.tried, told.begun, told.cut) == (asked.NOT_SAFE, frozenset(), frozenset(), 0)
    assert told.people == {DOES_NOT_APPLY: 1}
    assert told.headline == "None of these attacks applies here, so none was tried, and nothing is known."
    assert f"Bias attack does not apply here, and was not tried: {FIRST.format('a convolution')}" in not_tried(Question(), told, known)


def test_of_a_run_that_the_phone_refused_nothing_is_told_but_the_refusal(door: Service, visit: Open) -> None:
    run = door.look(refused(door).id)
    assert run is not None
    known = plugin_catalog.describe()
    kinds = [event["kind"] for event in door.store.events([run.id], 0)]
    assert set(kinds) == {"state", "end"}  # no meta, no frame: nothing of the update, of which there is none
    assert run.result == {
        "seconds": 0.0,
        "ending": {
            "how": "refused",
            "words": REFUSAL,
            "checks": [
                {
                    **{"check": "new_layers", "title": "New layers", "number": 4.0, "threshold": 0.0, "tripped": True, "round": 1},
                    "measures": known.checks.get("new_layers").measures,
                }
            ],
        },
    }
    (row,) = csv.DictReader(io.StringIO((make(door.store, [run.id], "table.csv", known) or pytest.fail("no table")).data.decode()))
    assert (row["verdict"], row["psnr"], row["rank"], row["checks"]) == ("refused", "", "", "New layers 4 above 0 in round 1")
    (data,) = json.loads((make(door.store, [run.id], "comparison.json", known) or pytest.fail("no data")).data)["rows"]
    assert (data["verdict"], data["psnr"], data["inapplicable"], data["refused"]) == (None, None, "", REFUSAL)
    report = unescape((make(door.store, [run.id], "comparison.html", known) or pytest.fail("no report")).data.decode())
    assert "4 (threshold 0): it tripped in round 1, and from then on the phone sent nothing." in report
    assert exports.make(door.store, run.id, "final.png") is None
    lab = visit(run=run.id)
    fine(lab)
    assert not [button for button in lab.get("link_button") if "final.png" in str(button.proto.url)]
    assert not [button for button in lab.button if "strongest known attackers" in button.label]
    table = unescape(" ".join(str(element.proto.body) for element in lab.get("html")))
    assert "4 (threshold 0): it tripped in round 1" in table
    assert not [words for words in ("Gradient distances", "Mean squared error", "finds out", "receives") if words in table]
    mine = visit("pages/runs.py")
    fine(mine)
    assert "final.png" not in " ".join(str(element.proto.body) for element in mine.get("html"))
    shown = unescape(matrix(rows(door, [run], known)))
    assert ("refused" in shown, NOT_SHOWN in shown, REFUSAL in shown) == (True, False, True)
    told = asked.answer(door, [run], known)
    assert (told.word, told.people, told.headline, told.meaning, told.decision) == ("refused", {"refused": 1}, REFUSAL, "", "")
    assert (told.tried, told.begun, told.cut, told.idle) == (frozenset(), frozenset(), 0, {})
    assert lines(told, Question(), known) == []


def test_a_check_that_only_reports_stands_beside_the_run(door: Service, visit: Open) -> None:
    run = submitted(door, REFUSED.model_copy(update={"refuse": False}))
    perform(door.store, run, CPU)
    meta = door.meta(run.id)
    assert meta is not None
    assert [(found.check, found.number, found.tripped) for found in meta.checks] == [("new_layers", 4.0, True)]
    lab = visit(run=run.id)
    fine(lab)
    table = unescape(" ".join(str(element.proto.body) for element in lab.get("html")))
    assert "4 (threshold 0): it tripped in round 1, and the phone sent its update all the same. The check measures" in table
    known = plugin_catalog.describe()
    (row,) = csv.DictReader(io.StringIO((make(door.store, [run.id], "table.csv", known) or pytest.fail("no table")).data.decode()))
    assert (row["verdict"], row["checks"]) == ("recognizable", "New layers 4 above 0 in round 1")


def test_where_nothing_was_shown_the_strongest_known_attackers_are_one_click_away(door: Service, visit: Open) -> None:
    run = answer(door)
    at = visit(run=run.id)
    fine(at)
    (button,) = [button for button in at.button if button.label.startswith("… the strongest known attackers")]
    tries = worst_case.strongest_attacks(run.experiment_as(Experiment), CATALOG)
    assert button.label == f"… the strongest known attackers try ({len(tries)} runs)?"
    button.click().run()
    fine(at)
    queued = [one.experiment_as(Experiment) for one in door.store.queue()]
    assert [one.digest() for one in queued] == [one.digest() for one in tries]
    assert at.query_params["runs"].split(",") == [one.id for one in door.store.queue()]
