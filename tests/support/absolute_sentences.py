"""Finds every sentence of the program with no, every, only, always and the like, and its place."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from small_problems import CATALOG

from leakage.learn.lessons import GuessBeat, Lesson, lessons
from leakage.learn.stories import front_door
from leakage.settings import ROOT
from leakage.spec.prepared import FILE as PREPARED

ABSOLUTE = re.compile(
    r"\b(no|none|nobody|nothing|never|every|everyone|everything|all|always|only|cannot|impossible|exactly)\b", re.IGNORECASE
)
ENDS = re.compile(r"(?<=[.?!])[\"'”)]*\s+(?=[A-Z0-9{“\"'(…])")
ANSWERS = ("answer", "answer_words", "advice", "alternatives", "control", "labels_read", "promise", "what_ifs")
SOURCES = (  # pages, tooltips, the threat model table, the answers of Ask
    "leakage/spec",
    *(f"leakage/results/{name}.py" for name in ANSWERS),
    "leakage/networks/rank_verdict.py",
    "leakage/ui",
    "pages",
)
TOLD = ("strategies", "backfires", "published", "imitation", "in_place_of_steps", "ends_without", "needs_structure", "needs_step")
SHOWN = ("title", "help", "story", "titles", "about")  # what assets/prepared.json says to readers


def sentences_of(text: str) -> Iterator[str]:
    """Return the sentences of a text, without bold and italics.

    >>> list(sentences_of("**No.** It is not. Is it?"))
    ['No.', 'It is not.', 'Is it?']
    """
    plain = re.sub(r"\*+([^*]+)\*+", r"\1", re.sub(r"\s+", " ", text)).strip()
    yield from ENDS.split(plain)


def is_absolute(sentence: str) -> bool:
    """Return whether a sentence asserts something of all, or of none; a question asserts nothing.

    >>> is_absolute("Every row is one."), is_absolute("Does it always work?"), is_absolute("Most rows are.")
    (True, False, False)
    """
    return bool(ABSOLUTE.search(sentence)) and not sentence.endswith("?")


def words_of(sentence: str) -> str:
    """List the words that make a sentence absolute.

    >>> words_of("Every row is one, and no row is none.")
    'Every, no, none'
    """
    return ", ".join(ABSOLUTE.findall(sentence))


def texts() -> Iterator[tuple[str, str]]:
    """Yield place and text: lessons, stories, prepared experiments, plug-ins, and strings of Python files."""
    for lesson in lessons():
        yield from ((f"Lesson {lesson.id}", text) for text in asserted(lesson))
    for story in front_door().stories:
        yield from (("Stories", text) for text in (story.title, story.line))
    yield from (("Presets, what-ifs and menus", text) for text in shown(json.loads(PREPARED.read_text())))
    for entry in CATALOG.entries:
        own = (entry.title, entry.plain, entry.hint, *(field.help for field in entry.fields))
        told = {name: value for name, value in entry.model_dump().items() if name in TOLD}
        told["strategies"] = [strategy["description"] for strategy in told.get("strategies", {}).values()]  # without names and titles
        yield from ((f"Plug-ins: {entry.kind}s", text) for text in (*own, *strings(told)))
    for source in SOURCES:
        for file in sorted((ROOT / source).rglob("*.py")) if (ROOT / source).is_dir() else [ROOT / source]:
            yield from (("Pages, tooltips and answers", text) for text in written(file))


def asserted(lesson: Lesson) -> Iterator[str]:
    """Yield what a lesson itself asserts: no wrong options, and no questions of its worksheet."""
    wrong = {option.text for beat in lesson.beats if isinstance(beat, GuessBeat) for option in beat.options if not option.right}
    for where, text in lesson.texts():
        if not where.endswith(".question") and not (".options." in where and text in wrong):
            yield text


def shown(part: Any) -> Iterator[str]:
    """Yield the texts for readers in a part of a JSON file."""
    for name, value in part.items() if isinstance(part, dict) else ():
        if name in SHOWN:
            yield from [value] if isinstance(value, str) else value
        else:
            yield from shown(value)
    for value in part if isinstance(part, list) else ():
        yield from shown(value)


def strings(part: Any) -> Iterator[str]:
    """Yield the strings in nested values, without names."""
    if isinstance(part, str):
        yield part
    for value in part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ():
        yield from strings(value)


def written(file: Path) -> Iterator[str]:
    """Yield the sentences among the strings of a Python file, without docstrings; an ellipsis stands for inserted values."""
    tree = ast.parse(file.read_text())
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    left_out = {id(part.value) for body in bodies for part in body if isinstance(part, ast.Expr)}  # also those of attributes
    left_out |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            text = node.value
        if re.match(r"^\W*[A-Z…{]", text.strip()) and re.search(r"[.?!]\W*$", text.strip()):
            yield text


def absolute_sentences() -> dict[str, str]:
    """Return each absolute sentence with the first place where it stands."""
    found: dict[str, str] = {}
    for where, text in texts():
        for sentence in sentences_of(text):
            if is_absolute(sentence):
                found.setdefault(sentence, where)
    return found
