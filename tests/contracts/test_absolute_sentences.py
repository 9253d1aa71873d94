"""Every sentence with no, every, only, always and the like has its support in docs/absolute_sentences.md, and the support holds."""

import json
import re
from pathlib import Path

import pytest
from absolute_sentences import absolute_sentences, words_of

from leakage.learn.claims import prints_equal, recompute
from leakage.learn.lessons import Claim, find_lesson
from leakage.learn.recordings import load
from leakage.settings import ROOT
from leakage.spec.words import RECOGNIZABLE, VERDICTS

LIST = ROOT / "docs" / "absolute_sentences.md"
FACTS = Path(__file__).with_name("facts.json")
SPOKEN = ("By definition: ", "A setting: ", "A notice: ", "An instruction: ", "Source: ")  # reasons in words, each with what it is
ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)
SAY_LESS = f"Write these sentences without these words, or add a row with the support of each to {LIST.relative_to(ROOT)}"


def listed(text: str) -> list[tuple[str, str]]:
    """The rows of the list: a sentence, and what backs it."""
    rows = ROW.findall(text.replace(r"\|", "\0"))
    return [(sentence.replace("\0", "|"), by) for sentence, by in rows if sentence != "sentence"]


def lacking(by: str) -> list[str]:
    """What is wrong with a backing: nothing, or a sentence for each reference that does not hold."""
    references = re.findall(r"`([^`]+)`", by)
    wrong = [said for reference in references if (said := refuted(reference))]
    if not references and not (by.startswith(SPOKEN) and len(by.partition(": ")[2].split()) >= 2):
        wrong.append(f"expected a reference or a reason that begins with one of {SPOKEN}, found {by!r}")
    return wrong


def refuted(reference: str) -> str:
    """Why a reference backs nothing today; empty where it holds."""
    kind, _, name = reference.partition(" ")
    if kind == "claim":  # recomputed by tests/learn/test_lessons.py
        lesson, _, claim = name.partition(".")
        return "" if claim in find_lesson(lesson).claims else f"lesson {lesson} has no claim {claim}"
    if kind == "fact":
        facts = json.loads(FACTS.read_text())
        if name not in facts:
            return f"{FACTS.name} has no {name}"
        fact = Claim.model_validate(facts[name])
        return (
            "" if prints_equal(fact.stated, today := recompute(fact)) else f"{name}: stated is {fact.stated}, {fact.file} gives {today!r}"
        )
    if kind == "recording":
        run, _, said = name.partition(": ")
        return "" if shows(run, said) else f"{run} does not show: {said}"
    if kind == "test":
        path, _, function = name.partition("::")
        there = (ROOT / path).is_file() and path.startswith("tests/")
        return "" if there and (not function or f"def {function}(" in (ROOT / path).read_text()) else f"there is no test {name}"
    return f"{reference!r} begins with none of claim, fact, recording, test"


def shows(run: str, said: str) -> bool:
    """Whether a recorded run came to what is said of it."""
    recording = load(run)
    scores = recording.end.scores
    told = {
        "below grey": scores.psnr < recording.grey,
        "all labels": scores.label_accuracy == 1,
        "all identified": scores.identified == 1,
        f"not {RECOGNIZABLE}": recording.word != RECOGNIZABLE,
        **{word: recording.word == word for word in VERDICTS},
    }
    return bool(told.get(said, False))


def without_support(found: dict[str, str], rows: list[str]) -> list[str]:
    """The sentences without a row, each with its place and the words that make it absolute."""
    return [f"{where}: {sentence} [absolute by: {words_of(sentence)}]" for sentence, where in found.items() if sentence not in rows]


def test_a_sentence_without_support_is_reported_with_the_words_that_make_it_absolute() -> None:
    found = {"Every phone sends all.": "Plug-ins: attacks", "It never fails.": "Lesson 1"}
    assert without_support(found, ["It never fails."]) == ["Plug-ins: attacks: Every phone sends all. [absolute by: Every, all]"]


def test_every_absolute_sentence_is_listed_with_what_backs_it() -> None:
    """Where one is missing: find what backs it and add a row, or say less. Where one is gone: take its row out."""
    rows = [sentence for sentence, _ in listed(LIST.read_text())]
    found = absolute_sentences()
    missing = without_support(found, rows)
    assert missing == [], f"{SAY_LESS}:\n" + "\n".join(missing)
    assert [sentence for sentence in rows if sentence not in found] == [], "listed, and said nowhere"
    assert len(rows) == len(set(rows)), "listed twice"


@pytest.mark.parametrize(("sentence", "by"), listed(LIST.read_text()))
def test_what_backs_a_sentence_is_there_and_holds(sentence: str, by: str) -> None:
    assert lacking(by) == [], f"read the sentence again: {sentence}"


def test_every_fact_backs_a_sentence() -> None:
    text = LIST.read_text()
    assert [name for name in json.loads(FACTS.read_text()) if f"`fact {name}`" not in text] == []


@pytest.mark.parametrize(
    ("planted", "sentence"),
    [
        ("Everybody knows.", "expected a reference or a reason"),
        ("By definition: yes.", "expected a reference or a reason"),
        ("`claim 09-solve.nothing`", "lesson 09-solve has no claim nothing"),
        ("`fact the-moon-is-round`", "facts.json has no the-moon-is-round"),
        ("`recording r15: recognizable`", "r15 does not show: recognizable"),
        ("`recording r17: below grey`", "r17 does not show: below grey"),
        ("`recording r17: splendid`", "r17 does not show: splendid"),
        ("`test tests/engine/test_labels.py::test_that_is_not_there`", "there is no test"),
        ("`rumour somebody said so`", "begins with none of claim"),
    ],
)
def test_a_backing_that_does_not_hold_is_found(planted: str, sentence: str) -> None:
    assert sentence in " ".join(lacking(planted))
