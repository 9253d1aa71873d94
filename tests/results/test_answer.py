"""The answer to a question: its runs, and what it may conclude from them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from answered_questions import CLINICS, NOISE, OFFICER, answering, ended, planned
from small_problems import CATALOG

from leakage.results import answer_file
from leakage.results.alternatives import alternatives
from leakage.results.answer import ASKING, GONE, NOT_SAFE, Answer, answer, stronger
from leakage.results.answer_words import CHEATING, LEFT_OUT, effort, lines, not_tried, people_words
from leakage.results.asking import MOST, is_about, is_control, plan, unprotected
from leakage.results.differences import sentence_case
from leakage.results.precomputed import matrix, reach, seen_words
from leakage.runs.endings import inapplicable, refused
from leakage.runs.event_parts import CheckFacts
from leakage.runs.events import AttackEnd
from leakage.runs.store import Run, Store
from leakage.spec.conclusion import LEAK, PROVES_NOTHING
from leakage.spec.experiment import Experiment, Part, Picture, SpecError
from leakage.spec.question import GROUPS, Question, groups
from leakage.spec.words import CUT_SHORT, NOT_SHOWN, PARTLY, RECOGNIZABLE, REFUSED, SINGLED_OUT

# ---------------------------------------------------------------- what is run


def test_every_group_has_people_and_randomness_of_its_own() -> None:
    found = groups(OFFICER)
    assert len(found) == GROUPS[OFFICER.minutes] == 3
    people = [picture.id for one in found for picture in one.pictures]
    assert len(set(people)) == len(people) == 12
    assert [one.seed for one in found] == [1, 2, 3]
    assert all(one.aggregation and one.aggregation.fields["clients"] == 4 and one.defenses == (NOISE,) for one in found)


def test_the_strongest_attacker_comes_first_on_every_group_and_each_group_has_a_control() -> None:
    """Of four phones the row of a sum says GRNN: it was named under "What was not tried", and is played first now."""
    found = planned(CLINICS)
    main, controls = found[0:6:2], found[1:6:2]
    assert [(one.attack.id, one.attack.fields["steps"], one.assume.adaptive) for one in main] == [("grnn", 1200, True)] * 3
    assert [one.seed for one in main] == [one.seed for one in controls] == [1, 2, 3]
    assert [one.defenses for one in controls] == [()] * 3
    assert [one.pictures for one in main] == [one.pictures for one in controls]
    assert len({one.digest() for one in found}) == len(found) <= MOST


def test_every_attack_of_the_nearest_row_is_played_before_any_attacks_twice() -> None:
    found = [one.attack.id for one in planned(CLINICS.model_copy(update={"minutes": 1})) if one.defenses]
    different = len(set(found))
    assert len(set(found[:different])) == different
    assert {"rog", "grnn", "ci_net", "inverting_gradients", "idlg"} <= set(found)


def test_the_attackers_of_clients_that_train_and_of_digits_are_those_of_their_tables() -> None:
    assert "sme" in {one.attack.id for one in planned(Question(steps="several"))}
    assert {"gias", "gifd", "ggl"} <= {one.attack.id for one in planned(Question(who="digits"))}
    assert "gias" not in {one.attack.id for one in planned(Question())}


def test_as_many_are_run_as_the_time_allows_and_at_least_one_with_its_control() -> None:
    assert len(planned(OFFICER, 60.0)) == 8  # 0.85 of 5 minutes on 2 slots are 510 s
    assert len(planned(OFFICER, 60.0, slots=1)) == 4
    assert [bool(one.defenses) for one in planned(OFFICER, 10_000.0)] == [True, False]
    assert len(planned(Question(), 10_000.0)) == 1  # without a protection it is its own control


def test_where_time_is_short_fewer_groups_are_attacked_by_several_attacks() -> None:
    found = planned(CLINICS, 100.0)  # 510 s are room for five runs
    assert len({one.pictures for one in found}) == 1
    assert [one.attack.id for one in found if one.defenses] == ["grnn", "ci_net", "inverting_gradients", "rog"]


def test_an_attack_that_takes_longer_than_the_time_is_left_out() -> None:
    """It took all of the time, and no attack came to an answer."""
    found = plan(CLINICS, CATALOG, lambda one: 1000.0 if one.attack.id == "grnn" else 10.0, slots=2)
    assert "grnn" not in {one.attack.id for one in found}
    assert {"ci_net", "rog"} <= {one.attack.id for one in found}


def test_who_does_not_know_the_protection_attacks_as_if_there_were_none() -> None:
    naive = [one for one in planned(OFFICER.model_copy(update={"attacker": "naive"})) if one.defenses]
    assert {one.assume.adaptive for one in naive} == {False}
    protected = [one for one in planned(OFFICER) if one.defenses]
    assert {one.assume.adaptive for one in protected} == {True}  # nobody can compute noise again: the naive one would do the same
    pruned = Question(clients=4, defenses=(Part(id="pruning"),))
    assert {one.assume.adaptive for one in planned(pruned)} == {False, True}  # an adaptive attacker may also act naively


def test_a_server_that_stands_still_is_watched_round_after_round() -> None:
    (one, *_) = groups(Question(defenses=(NOISE,), attacker="still"))
    assert (one.rounds, one.attacked_round, one.protocol.id) == (16, 16, "fedsgd")
    assert "average the rounds" in {run.assume.strategy for run in planned(Question(defenses=(NOISE,), attacker="still"))}
    assert "average the rounds" not in {run.assume.strategy for run in planned(Question(defenses=(NOISE,)))}


def test_a_server_that_changes_the_model_is_tried_by_what_reads_it_and_asked_otherwise_no_server_cheats() -> None:
    """Each server that needs one round and fits the small network is tried first with the attack that reads it, also without protection."""
    asked = Question(clients=4, defenses=(NOISE,), attacker="changes", minutes=30)
    found = planned(asked)
    assert all(one.server and one.attack.id in CATALOG.servers.get(one.server.id).reading for one in found)
    assert "imprint" in {one.server.id for one in found if one.defenses}
    assert all(CATALOG.servers.get(one.server.id).rounds == 1 for one in found)
    assert [bool(one.defenses) for one in found[:2]] == [True, False]  # the control has the same server
    assert is_about_these(asked, found)
    assert not is_about_these(asked.model_copy(update={"attacker": "knows"}), found)
    honest = planned(asked.model_copy(update={"attacker": "knows"}))
    assert {one.server for one in honest} == {None}
    assert not is_about_these(asked, honest)


def test_a_server_that_no_attack_reads_comes_last_and_one_that_expects_a_class_is_left_out() -> None:
    found = [one.server.id for one in planned(Question(clients=4, attacker="changes", minutes=1)) if one.server]
    assert found[-1] == "inconsistent"
    assert {"first_layer", "imprint", "imprint_sparse", "loki"} == set(found[:-1])
    assert all(CATALOG.servers.get(id).classes for id in ("class_fishing", "label_flip"))  # they need one round as well
    assert "inconsistent" not in {one.server.id for one in planned(Question(attacker="changes")) if one.server}  # one phone alone


def test_checks_are_a_switch_and_the_control_has_neither_checks_nor_protections() -> None:
    asked = Question(clients=4, attacker="changes", checks=True, minutes=1)
    found = planned(asked)
    names = [[part.id for part in one.checks] for one in found]
    assert names[0] == ["new_layers", "same_for_all", "head_rows", "equal_rows", "trap_rows", "transmit_snr", "alive"]
    assert names[1] == []
    assert names[2:] == [names[0]] * (len(found) - 2)
    assert all(one.refuse for one in found)
    assert found[1] == found[0].model_copy(update={"checks": ()})
    assert [is_control(one, found) for one in found[:3]] == [False, True, False]
    assert is_about_these(asked, found)
    assert not is_about_these(asked.model_copy(update={"checks": False}), found)
    assert {one.checks for one in planned(Question(checks=True))} == {()}  # the server is honest
    assert "checks" not in Question().model_dump()  # files and links of before stay the same
    assert Question(checks=True).model_dump()["checks"] is True


def is_about_these(question: Question, experiments: list[Experiment]) -> bool:
    return is_about(question, [run_of(experiment) for experiment in experiments], CATALOG)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(clients=8, each=4), "At most 16 are tried here"),
        (Question(clients=4, colluding=4), "Of 4 phones at most 3 can work with the server; given were 4"),
        (Question(who="own"), "1 different pictures are needed, 0 are here"),
        (Question(attacker="still", steps="several"), "Choose one step, or another attacker"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_remedy(question: Question, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        planned(question)


# ---------------------------------------------------------------- what may be said


def run_of(experiment: Experiment) -> Run:
    """A run that waits."""
    return replace(ended(1, [CUT_SHORT], status="queued"), experiment=experiment.model_dump_json())


@pytest.fixture
def reader(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.sqlite")


@pytest.mark.parametrize(
    ("runs", "word", "people"),
    [
        ([ended(1, [NOT_SHOWN, PARTLY]), ended(2, [RECOGNIZABLE, NOT_SHOWN])], LEAK, {RECOGNIZABLE: 1, PARTLY: 1}),
        ([ended(1, [SINGLED_OUT])], LEAK, {SINGLED_OUT: 1}),
        ([ended(1, [PARTLY])], NOT_SAFE, {PARTLY: 1}),
        ([ended(1, [NOT_SHOWN]), ended(2, [PARTLY], seed=2)], NOT_SAFE, {PARTLY: 1}),
        ([ended(1, [NOT_SHOWN]), ended(2, [CUT_SHORT], status="running")], ASKING, {NOT_SHOWN: 1}),
        ([ended(1, [RECOGNIZABLE]), ended(2, [CUT_SHORT], status="running")], LEAK, {RECOGNIZABLE: 1}),
    ],
    ids=["one of two", "singled out", "partly", "nothing", "still running", "already"],
)
def test_every_person_counts_once_with_the_worst_that_any_attack_showed(
    reader: Store, runs: list[Run], word: str, people: dict[str, int]
) -> None:
    told = answer(reader, runs, CATALOG)
    assert (told.word, told.people) == (word, people)
    assert told.total == sum(people.values())


def test_where_runs_were_deleted_only_a_leak_is_an_answer(reader: Store) -> None:
    assert answer(reader, [ended(1, [NOT_SHOWN])], CATALOG, gone=1).word == GONE
    assert answer(reader, [ended(1, [RECOGNIZABLE])], CATALOG, gone=1).word == LEAK


def test_an_attack_that_does_not_apply_takes_nothing_from_what_others_showed(reader: Store) -> None:
    end = AttackEnd(ending=inapplicable("Choose the MLP."))
    idle = replace(ended(2, [CUT_SHORT]), result=end.model_dump(mode="json"), started=1.0)  # by iDLG, as all here
    told = answer(reader, [ended(1, [NOT_SHOWN, PARTLY]), idle], CATALOG)
    assert (told.people, told.cut) == ({PARTLY: 1, NOT_SHOWN: 1}, 0)
    assert told.seen == "Of 2 pictures: 1 partly."
    assert told.idle == {}  # the same attack was tried on other people
    assert "1 attack was played, in 1 run; 1 of 2 planned runs came to no answer." in told.headline


def test_pictures_of_which_the_phone_sent_nothing_are_counted_apart(reader: Store) -> None:
    end = AttackEnd(ending=refused("The phone refused. Nothing was sent.", ()))
    unsent = replace(ended(2, [CUT_SHORT]), result=end.model_dump(mode="json"), started=1.0)
    told = answer(reader, [ended(1, [NOT_SHOWN, PARTLY]), unsent], CATALOG)  # the second picture of both is the same
    assert (told.word, told.people, told.cut) == (NOT_SAFE, {PARTLY: 1, NOT_SHOWN: 1}, 0)
    alone = replace(unsent, experiment=Experiment(pictures=(Picture(id="cat"),)).resolve(CATALOG).model_dump_json())
    told = answer(reader, [ended(1, [PARTLY]), alone], CATALOG)
    assert (told.word, told.people) == (NOT_SAFE, {PARTLY: 1, "refused": 1})
    assert told.seen == "Of 1 picture: 1 partly; the phone refused 1 more."
    assert people_words(told) == "1 partly, 1 of which the phone sent nothing, of 2 pictures"
    assert "1 of 1 planned run came to an answer" in effort(told)
    assert "in 1 more the phone sent nothing" in effort(told)


def refusing(server: str, check: str) -> Run:
    """A run with a cheating server that the phone refused, as one check alone tripped."""
    found = CheckFacts(check=check, title=check.upper(), number=4, threshold=0, tripped=True, round=1)
    end = AttackEnd(ending=refused(f"The phone refused: {check}.", [found]))
    asked = Experiment(server=Part(id=server), checks=(Part(id=check),)).resolve(CATALOG)
    return replace(ended(2, [CUT_SHORT]), result=end.model_dump(mode="json"), started=1.0, experiment=asked.model_dump_json())


def test_where_the_phones_refused_in_all_runs_nothing_but_refusals_and_the_control_is_told(reader: Store) -> None:
    asked = Question(clients=4, attacker="changes", checks=True)
    told = answer(reader, [refusing("imprint", "new_layers")], CATALOG)
    assert (told.word, told.headline, lines(told, asked, CATALOG)) == (REFUSED, "The phone refused: new_layers.", [])
    runs = [refusing("imprint", "new_layers"), refusing("first_layer", "alive")]
    cheated = Experiment(server=Part(id="imprint")).resolve(CATALOG)
    runs.append(replace(ended(1, [RECOGNIZABLE]), experiment=cheated.model_dump_json()))
    told = answer(reader, runs, CATALOG)
    assert told.word == REFUSED
    assert told.headline == (
        "The phones refused each changed model that was tried, and kept their updates. Checks that raised an alarm: NEW_LAYERS, ALIVE."
    )
    assert [about for about, _ in lines(told, asked, CATALOG)] == ["Control, protection off"]
    assert told.protected


def test_attacks_on_a_changed_model_are_not_ranked_by_rows_of_an_honest_server(reader: Store) -> None:
    """Of twelve pictures that came back exactly, the page said: "A stronger known attack: GRNN"."""
    cheated = Experiment(server=Part(id="imprint"), attack=Part(id="bins"))
    assert stronger([cheated.model_copy(update={"server": None})], {"idlg"}, CATALOG)
    assert stronger([cheated], {"idlg"}, CATALOG) == ""
    told = answer(reader, [replace(ended(1, [RECOGNIZABLE]), experiment=cheated.resolve(CATALOG).model_dump_json())], CATALOG)
    assert told.servers == {"imprint"}
    untried = next(words for words in not_tried(Question(attacker="changes"), told, CATALOG) if words.startswith("These changes"))
    assert "Bisection" in untried
    assert " Imprint" not in untried


def test_where_no_attack_came_to_an_answer_nothing_is_said_of_what_attacks_found(reader: Store) -> None:
    told = answer(reader, [ended(1, [CUT_SHORT], status="cancelled")], CATALOG)
    assert told.headline == "No attack came to an answer, so nothing is known."
    assert told.tried == frozenset()


def test_a_failed_attack_is_never_called_safe(reader: Store) -> None:
    told = answer(reader, [ended(1, [NOT_SHOWN])], CATALOG)
    assert told.headline.startswith(f"{PROVES_NOTHING} Of 1 picture: none shown by these attacks. 1 attack was played, in 1 run.")
    assert {CHEATING, *LEFT_OUT} <= set(not_tried(Question(), told, CATALOG))


def test_pictures_on_which_time_ran_out_are_not_called_not_shown(reader: Store) -> None:
    """Of twelve pictures "none shown" was said where eight had not been attacked to an end."""
    assert answer(reader, [ended(1, [NOT_SHOWN, CUT_SHORT, CUT_SHORT])], CATALOG).seen == (
        "Of 1 picture: none shown by these attacks; 2 more not tried to the end."
    )


def test_a_stronger_attack_that_was_not_played_stands_in_the_headline(reader: Store) -> None:
    """The marked row said that GRNN recognized 2 of 2, the headline spoke of other attacks alone."""
    played = answering(CLINICS, [NOT_SHOWN] * 4)  # by GRNN
    assert answer(reader, [played], CATALOG).stronger == ""
    asked = played.experiment_as(Experiment)
    weak = asked.model_copy(update={"attack": Part(id="idlg")}).resolve(CATALOG)
    told = answer(reader, [replace(played, experiment=weak.model_dump_json(), digest=weak.digest())], CATALOG)
    words = "A stronger known attack was not played to an answer: GRNN (2 of 2 recognizable in the nearest precomputed row)."
    assert words in told.headline
    assert not_tried(CLINICS, told, CATALOG)[0] == "A stronger known attack: GRNN (2 of 2 recognizable in the nearest precomputed row)."


@pytest.mark.parametrize(
    ("words", "control_words", "doubt"),
    [
        ([NOT_SHOWN], [RECOGNIZABLE], ""),
        ([NOT_SHOWN], [NOT_SHOWN], "without it nothing was recognized either"),
        ([SINGLED_OUT], [RECOGNIZABLE], "without it 1 of 1 were recognized, no more"),
    ],
)
def test_the_control_stands_beside_the_answer(reader: Store, words: list[str], control_words: list[str], doubt: str) -> None:
    question = Question(defenses=(NOISE,))
    main, other = answering(question, words), answering(question, control_words)
    bare = unprotected(main.experiment_as(Experiment), Question(), CATALOG)[0]
    other = replace(other, id="control", experiment=bare.model_dump_json(), digest=bare.digest())
    assert other.result
    other = replace(other, result={**other.result, "verdict": {**other.result["verdict"], "why": "Place 3 of 100."}})
    told = answer(reader, [main, other], CATALOG)
    assert told.control
    recognized = sum(word != NOT_SHOWN for word in control_words)
    assert (told.control.seen, told.control.total, told.total) == (recognized, 1, 1)
    line = dict(lines(told, question, CATALOG))["Control, protection off"]
    assert line.startswith(f"{recognized} of 1 recognized, by ")
    assert (doubt in line) if doubt else ("hardly" not in line)
    assert ("hardly" in told.headline) == (bool(doubt) and told.word == NOT_SAFE)
    assert ("Place 3 of 100." in line) == bool(doubt)
    assert ("Without the protection 1 of 1 were recognized." in told.headline) == (not doubt)
    assert is_about(question, [main, other], CATALOG)
    assert not is_about(question, [other], CATALOG)  # a control alone answers nothing


def test_where_time_ran_out_on_all_that_is_what_is_said(reader: Store) -> None:
    told = answer(reader, [ended(1, [CUT_SHORT] * 8, status="cancelled")], CATALOG)
    assert dict(lines(told, Question(clients=8), CATALOG))["Could be seen"] == "Nothing is known: none of the 8 was tried to the end"


def test_what_was_not_tried_names_the_attacks_that_were_not_run(reader: Store) -> None:
    told: Answer = answer(reader, [ended(1, [NOT_SHOWN])], CATALOG)  # by iDLG
    (others,) = [words for words in not_tried(Question(), told, CATALOG) if words.startswith("These attacks, which this program has: ")]
    assert "Inverting Gradients" in others
    assert "iDLG," not in others


def test_what_was_begun_and_broken_off_is_told_apart_from_what_was_never_tried(reader: Store) -> None:
    broken_off = replace(ended(1, [CUT_SHORT], status="cancelled"), started=1.0)  # by iDLG
    early = ended(2, [PARTLY])  # its limit came before its answer, and it had shown something
    assert early.result
    limited = {**early.result, "ending": {"how": "limit", "words": "Stopped at its time limit"}}
    told = answer(reader, [broken_off, replace(early, result=limited), ended(3, [NOT_SHOWN])], CATALOG)
    assert (told.cut, sum(row.answered for row in told.rows)) == (2, 1)  # together all of them
    words = " ".join(not_tried(Question(), told, CATALOG))
    assert "2 of 3 runs did not come to an answer of their own. What they had shown until then counts" in words
    alone = not_tried(Question(), answer(reader, [broken_off], CATALOG), CATALOG)
    assert "Begun, and broken off before an answer: iDLG." in alone
    assert not any("iDLG," in one for one in alone)


def test_the_rows_of_the_protection_and_of_a_sum_are_marked(reader: Store) -> None:
    def marked(clients: Literal[1, 4], stack: tuple[Part, ...]) -> list[str]:
        (asked, *_) = groups(Question(clients=clients, defenses=stack))
        return [one.title for one in alternatives(asked, reader, CATALOG) if one.chosen]

    private = next(line.stack for line in matrix(CATALOG) if line.stack and line.stack[0].id == "dp_sgd")
    summed = {line.title for line in matrix(CATALOG) if line.clients > 1}
    alone = marked(1, private)
    assert len(alone) == 1
    assert set(alone).isdisjoint(summed)
    assert marked(4, private) == [*alone, "No protection, 4 phones added up"]


def test_alternatives_are_those_of_the_precomputed_results_with_their_best_attacker(reader: Store) -> None:
    found = alternatives(groups(OFFICER)[0], reader, CATALOG)
    lines = {line.title: line for line in matrix(CATALOG)}
    assert [one.title for one in found if one.chosen] == ["Gaussian noise 0.01, 4 phones added up"]
    for one in found:
        cells = [
            cell for duel in lines[one.title].duels.values() for cell in (duel.naive, *duel.knowing.values()) if cell and "psnr" in cell
        ]
        assert one.seen == sentence_case(seen_words(max(cells, key=reach)))


# ---------------------------------------------------------------- its files


def test_the_file_asks_the_same_again_and_the_page_says_the_answer(reader: Store) -> None:
    run = answering(OFFICER, [NOT_SHOWN, RECOGNIZABLE, NOT_SHOWN, NOT_SHOWN])
    reader.add(run, {})
    given = {"question": OFFICER.model_dump_json(), "organisation": "<b>School</b>"}
    made = answer_file.make(reader, [run.id], "answer.json", CATALOG, given)
    assert made
    assert answer_file.question(made.data.decode()) == OFFICER
    assert json.loads(made.data)["answer"]["total"] == 4
    page = answer_file.make(reader, [run.id], "answer.html", CATALOG, given)
    assert page
    text = page.data.decode()
    assert "&lt;b&gt;School&lt;/b&gt;" in text
    assert text.index("Could somebody see") < text.index("The scenario") < text.index("What was not tried") < text.index("Every attack")
    assert "Gaussian noise 0.01" in text


def test_a_page_tells_of_no_other_question_than_its_runs_were_asked_by(reader: Store) -> None:
    run = answering(OFFICER, [NOT_SHOWN] * 4)
    reader.add(run, {})
    assert is_about(OFFICER, [run], CATALOG)
    for other in ({"clients": 2}, {"defenses": ()}, {"who": "scans"}, {"attacker": "still"}, {"seed": 2}):
        question = OFFICER.model_copy(update=other)
        assert not is_about(question, [run], CATALOG)
        with pytest.raises(SpecError, match="another question"):
            answer_file.make(reader, [run.id], "answer.html", CATALOG, {"question": question.model_dump_json()})


def test_own_pictures_are_the_question_s_where_there_are_as_many(reader: Store) -> None:
    own = [Picture(source="upload", id=f"{number:016x}", label=0) for number in range(2)]
    question = Question(who="own", clients=2)
    (experiment, *_) = plan(question, CATALOG, lambda _: 1.0, slots=2, uploads=own)
    assert is_about(question, [run_of(experiment)], CATALOG)
    assert not is_about(Question(who="own"), [run_of(experiment)], CATALOG)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"question": {"who": "martians"}}', '{"question": {"clients": 3}}'])
def test_a_file_that_is_none_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SpecError):
        answer_file.question(text)


def test_a_picture_in_two_groups_counts_once_in_the_control_too(reader: Store) -> None:
    """Of eight pictures in three groups of four the control spoke of twelve."""
    question = Question(defenses=(NOISE,))
    main = answering(question, [NOT_SHOWN])
    bare = unprotected(main.experiment_as(Experiment), Question(), CATALOG)[0]
    twice = [bare, bare.model_copy(update={"seed": 7})]
    controls = [replace(main, id=f"control{one.seed}", experiment=one.model_dump_json(), digest=one.digest()) for one in twice]
    told = answer(reader, [main, *controls], CATALOG)
    assert told.control
    assert (told.control.total, told.total) == (1, 1)
