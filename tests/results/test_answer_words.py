"""An answer in words: every ending on the page and on paper without a placeholder, with the reader's word for the clients."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from answered_questions import CLINICS, NOISE, OFFICER, answering
from small_problems import CATALOG

from leakage.results import answer_file
from leakage.results.alternatives import about_rows
from leakage.results.answer import answer
from leakage.results.answer_words import lines, not_tried, scenario_words
from leakage.results.asking import plan
from leakage.results.labels_read import LabelsRead
from leakage.runs.endings import inapplicable
from leakage.runs.events import AttackEnd
from leakage.runs.store import Run, Store
from leakage.spec.experiment import Part, Picture
from leakage.spec.question import CALLED, Question, groups, in_words_of
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

PLACEHOLDER = re.compile(r"\{[^}]*\}|%[sd]\b|\bNone\b(?! is| of)|\bundefined\b|\bnan\b")
ENDINGS = ("recognizable", "singled out", "partly", "not shown", "cut", "waiting", "failed", "inapplicable", "gone")
QUESTIONS = {
    "officer": CLINICS,
    "one phone": Question(),
    "by epsilon": Question(
        called="sites", clients=2, epsilon=8.0, rounds=100, defenses=(Part(id="dp_sgd", fields={"noise_multiplier": 6.0}),)
    ),
    "trains": Question(steps="several", defenses=(NOISE,)),
    "cheats": Question(attacker="still", defenses=(Part(id="dp_sgd"),)),
    "changes": Question(attacker="changes", clients=4, checks=True),
    "colluding": Question(clients=12, colluding=8),
    "own": Question(who="own", channels=1),
}


@pytest.fixture
def reader(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.sqlite")


def first_run(question: Question, ending: str) -> Run:
    """The first run of a question as it ended."""
    own = [Picture(source="upload", id=f"{number:016x}", label=0) for number in range(3)]
    (asked, *_) = plan(question, CATALOG, lambda _: 1.0, slots=2, uploads=own)
    word = {"recognizable": RECOGNIZABLE, "singled out": SINGLED_OUT, "partly": PARTLY}.get(ending, NOT_SHOWN)
    run = replace(answering(Question(), [word]), experiment=asked.model_dump_json(), digest=asked.digest(), started=1.0, finished=2.0)
    assert run.result
    verdict = {**run.result["verdict"], "word": word, "each": [word] * len(asked.pictures)}
    run = replace(run, result={**run.result, "verdict": verdict})
    if ending == "inapplicable":
        return replace(run, result=AttackEnd(ending=inapplicable("Choose the MLP.")).model_dump(mode="json"))
    if ending in ("cut", "waiting", "failed"):
        status = {"cut": "cancelled", "waiting": "queued", "failed": "failed"}[ending]
        return replace(run, result=None, status=status, finished=None if ending == "waiting" else 2.0)
    return run


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_answer_is_told_without_a_placeholder(reader: Store, name: str, ending: str) -> None:
    """The paper said "deletes it after {}"."""
    question = QUESTIONS[name]
    run = first_run(question, ending)
    reader.add(run, {})
    told = answer(reader, [run], CATALOG, gone=int(ending == "gone"))
    texts = [told.word, told.headline, told.decision, *not_tried(question, told, CATALOG)]
    texts += [text for pair in (*scenario_words(question, CATALOG), *lines(told, question, CATALOG)) for text in pair]
    assert all(texts[:2])
    made = answer_file.make(
        reader, [run.id, *["gone"] * (ending == "gone")], "answer.html", CATALOG, {"question": question.model_dump_json()}
    )
    assert made
    page = re.sub(r"(?s)<style>.*?</style>|<[^>]+>", " ", made.data.decode())
    for text in (*texts, page):
        assert PLACEHOLDER.findall(text) == []
        assert ".." not in text
    if question.called != "phones":
        assert "phone" not in re.sub(r"phones added up", "", page)


@pytest.mark.parametrize("called", CALLED)
def test_who_takes_part_has_the_readers_name(called: Literal["phones", "clinics", "sites"]) -> None:
    told = dict(scenario_words(OFFICER.model_copy(update={"called": called}), CATALOG))
    assert told["Participants"] == f"4 {called}, added up before the server sees them (secure aggregation)"
    assert in_words_of(Question(called=called), "One phone; phones; a headphone") == f"One {called[:-1]}; {called}; a headphone"


def test_paper_keeps_the_strength_and_the_local_steps() -> None:
    """A default strength and the number of steps were lost on paper."""
    told = dict(scenario_words(Question(steps="several", defenses=(Part(id="dp_sgd"),), rounds=100), CATALOG))
    assert told["Protection"] == "DP-SGD, max grad norm 1, noise multiplier 1"
    assert told["What a phone does"] == "5 steps by itself, then it sends (FedAvg)"
    assert told["Uploads"] == "100 uploads by each phone in the whole training"


def test_paper_names_the_server_of_each_attack_and_what_the_rows_of_an_honest_server_say(reader: Store) -> None:
    """Of five attacks on changed models the paper said "Bins" three times."""
    asked = Question(attacker="changes", clients=4, checks=True, minutes=1)
    for number, experiment in enumerate(plan(asked, CATALOG, lambda _: 1.0, slots=2)[:3]):
        run = replace(
            first_run(asked, "recognizable"), id=f"r{number}", experiment=experiment.model_dump_json(), digest=experiment.digest()
        )
        reader.add(run, {})
    made = answer_file.make(reader, ["r0", "r1", "r2"], "answer.html", CATALOG, {"question": asked.model_dump_json()})
    assert made
    page = made.data.decode()
    rows = re.findall(r"<tr><td>([^<]*)</td><td></td><td>([^<]*)</td>", page.partition("Every attack")[2])
    assert rows == [("Bias attack (First layer)", "checks of the model"), ("Bias attack (First layer)", "no protection"), *rows[2:]]
    assert rows[2][1] == "checks of the model"
    assert rows[2][0] != rows[0][0]
    assert "They say little about a server that changes the model." in page
    assert "and their attackers are tried first" in about_rows(Question())


def test_paper_counts_the_runs_that_never_began_in_place_of_a_line_for_each(reader: Store) -> None:
    run = first_run(Question(), "not shown")
    idle = replace(first_run(Question(), "cut"), id="idle", started=None)
    for one in (run, idle):
        reader.add(one, {})
    made = answer_file.make(reader, [run.id, idle.id], "answer.html", CATALOG, {"question": Question().model_dump_json()})
    assert made
    page = made.data.decode()
    assert "1 more planned run did not begin" in page
    assert page.partition("Every attack")[2].count("<tr>") == 2  # the heads and one run


def test_grey_uploads_are_called_grey() -> None:
    for channels, words in ((1, "grey"), (3, "in colour")):
        question = Question.model_validate({"who": "own", "channels": channels})
        assert dict(scenario_words(question, CATALOG))["Pictures"] == f"Your own pictures, 32 px, {words}"
        assert groups(question, [Picture(source="upload", id="0" * 16, label=0)])[0].channels == channels


def test_colluding_phones_are_subtracted_from_the_sum() -> None:
    (asked, *_) = groups(Question(clients=12, colluding=8))
    assert asked.aggregation
    assert (len(asked.pictures), asked.aggregation.fields["clients"]) == (4, 4)
    (alone, *_) = groups(Question(clients=12, colluding=11))
    assert (len(alone.pictures), alone.aggregation) == (1, None)
    told = dict(scenario_words(Question(clients=12, colluding=8), CATALOG))["Participants"]
    assert told.endswith("8 phones work with the server, which subtracts what they sent: a sum of 4 is left")


def test_sixteen_pictures_of_one_update_are_asked_about_and_searches_that_cannot_say_so(reader: Store) -> None:
    question = Question(clients=4, each=4)
    (asked, *others) = plan(question, CATALOG, lambda _: 1.0, slots=2)
    assert len({picture.id for picture in asked.pictures}) == 16
    assert "idlg" not in {one.attack.id for one in (asked, *others)}
    assert "4 of them are of other kinds" in dict(scenario_words(question, CATALOG))["Pictures"]
    told = answer(reader, [first_run(question, "not shown")], CATALOG)
    reason = "iDLG was not tried: it is for at most 4 pictures in one update. The update that you ask about has 16."
    assert reason in not_tried(question, told, CATALOG)


@pytest.mark.parametrize(
    ("named", "total", "blind", "words"),
    [
        (8, 8, 4, "guessed for 8 of 8 (blind guess: 4 of 8)"),
        (3, 8, 4, "guessed for 3 of 8 (blind guess: 4 of 8)"),
        (8, 8, 8, "guessed for 8 of 8 (blind guess: 8 of 8). All are of one class, so this says little"),
    ],
)
def test_labels_stand_beside_a_blind_guess(named: int, total: int, blind: int, words: str) -> None:
    assert LabelsRead(named, total, blind, 10).words == words


def test_a_file_repeats_its_very_runs(reader: Store) -> None:
    """Asked again it had other counts: another plan, as the estimates had changed."""
    run = first_run(CLINICS, "not shown")
    reader.add(run, {})
    made = answer_file.make(reader, [run.id], "answer.json", CATALOG, {"question": CLINICS.model_dump_json()})
    assert made
    assert [one.digest() for one in answer_file.parse_experiments(made.data.decode(), CATALOG)] == [run.digest]
    other = made.data.decode().replace('"clients": 4', '"clients": 2')
    assert answer_file.parse_experiments(other, CATALOG) == []


@pytest.mark.parametrize(
    ("noise_multiplier", "words", "nearest"),
    [(0.01, "promises nothing of use", "ROG"), (6.0, "does not depend on the attack", "Inverting Gradients")],
)
def test_where_nothing_was_shown_the_decision_weighs_what_privacy_promises(
    reader: Store, noise_multiplier: float, words: str, nearest: str
) -> None:
    """Epsilon above 200 and epsilon 0.6 had one decision."""
    question = Question(defenses=(Part(id="dp_sgd", fields={"noise_multiplier": noise_multiplier}),))
    run = first_run(question, "not shown")
    reader.add(run, {})
    said = dict(lines(answer(reader, [run], CATALOG), question, CATALOG))
    assert words in said["To decide"]
    assert said["Came nearest"].startswith(nearest)  # the strongest against DP-SGD in the precomputed results
