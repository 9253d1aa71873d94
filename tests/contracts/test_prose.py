"""Prose that an outsider reads at once: imperative first lines, the field's words, no riddles as openings, cited names that exist."""

import ast
import builtins
import io
import json
import keyword
import re
import tokenize
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "app.py", *(file for folder in ("leakage", "pages") for file in sorted((ROOT / folder).rglob("*.py")))]
FOLDERS = (".streamlit", "assets", "benchmarks", "docs", "leakage", "pages", "scripts", "tests")  # with files that texts cite
LESSONS = sorted((ROOT / "assets" / "lessons").glob("*.json"))
GUIDES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md", *(ROOT / "leakage").rglob("README.md")]
SCRIPTS = [file for folder in ("benchmarks", "scripts", "tests") for file in (ROOT / folder).rglob("*.py")]
PAGE_TEXTS = [*LESSONS, ROOT / "assets" / "prepared.json"]

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text().split())
STEMS = {  # in any identifier, docstring, comment or page text: stem, without case -> the field's word
    "pulse": "should_stop (a callable), Heartbeat (a thread)",
    "slope": "gradient; derivative of an activation",
    "painter": "generator",
    "painted": "generated",
    "bend": "activation, nonlinearity",
    "bent": "nonlinear, not smooth",
    "climb": "recursion, recursion step",
    "ladder": "recursion",
    "rung": "recursion step, layer",
    "leash": "time limit",
    "ledger": "assumptions, threat model table",
    "boxed": "clamped",
    "whoever": "a noun",
    "voices": "attackers",
    "accomplices": "colluding clients",
}
RIDDLES = "Who|Whom|Whose|Of what|Of whom|Of which|To whom|By whom|From which|From whom|So does|So is|So are|Nor"  # how no sentence begins
OPENINGS = re.compile(rf"(?:^|(?<=[.;:!?] )|(?<=\n))({RIDDLES}) [^.?!]*(?=[.!:;]|$)")
FOREIGN = ("negative_slope",)  # names of torch with a banned stem
NAMED = ("id", "attr", "name", "arg")  # fields of a node that hold an identifier
LIBRARIES = ("torch", "torchvision", "transforms", "functional", "streamlit", "plotly", "numpy")  # whose names are not ours to check
CITED = re.compile(r"`([A-Za-z_][\w./]*)(?:\(\))?`")


class Text(NamedTuple):
    """A piece of prose of a file, and the line on which it begins."""

    line: int
    words: str


@lru_cache(maxsize=4)
def nodes(source: str) -> list[ast.AST]:
    """Return every node of a Python file."""
    return list(ast.walk(ast.parse(source)))


@lru_cache(maxsize=4)
def tokens(source: str) -> list[tokenize.TokenInfo]:
    """Return every token of a Python file."""
    return list(tokenize.generate_tokens(io.StringIO(source).readline))


def docstrings(source: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield every documented node with its docstring."""
    for node in nodes(source):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (text := ast.get_docstring(node)):
            yield node, text


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read as an attribute, so that a noun describes it."""
    return any("property" in ast.unparse(decorator) or ast.unparse(decorator).endswith(".setter") for decorator in node.decorator_list)


def without_verb(source: str) -> list[str]:
    """List the first lines of functions that do not begin with an imperative verb."""
    bad = []
    for node, text in docstrings(source):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_property(node):
            first = text.split("\n")[0]
            if re.split(r"\W", first)[0] not in VERBS:
                bad.append(f"{node.lineno}: {node.name}: {first}")
    return bad


def prose(source: str) -> Iterator[Text]:
    """Yield the docstrings, comments and sentences (strings with a space between words) of a Python file."""
    for token in tokens(source):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string.removeprefix("#").strip())
        elif token.type == tokenize.STRING and re.search(r"\w\S*\s+\S*\w", token.string):
            yield Text(token.start[0], re.sub(r'^[a-zA-Z]*("""|\'\'\'|"|\')|("""|\'\'\'|"|\')$', "", token.string))


def of_json(value: object) -> Iterator[str]:
    """Yield all sentences in a JSON value."""
    if isinstance(value, dict):
        for part in value.values():
            yield from of_json(part)
    elif isinstance(value, list):
        for part in value:
            yield from of_json(part)
    elif isinstance(value, str) and " " in value:
        yield value


def words_in(text: str) -> list[str]:
    """Split a text or an identifier into its words, in lower case.

    >>> words_in("BENDS = aPulse_of")
    ['bends', 'a', 'pulse', 'of']
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)]


@cache
def stems_of(word: str) -> frozenset[str]:
    """Return the stems with which a word begins, and which it extends by three letters at most."""
    return frozenset(stem for stem in STEMS if word.startswith(stem) and len(word) - len(stem) <= 3)


def stemmed(text: str) -> list[str]:
    """List the stems in a text that stand for a word of the field."""
    return sorted({stem for word in words_in(text) for stem in stems_of(word)})


def riddles(text: str) -> list[str]:
    """List the openings of sentences that have to be decoded; a question may begin with them."""
    return [found.group(1) for found in OPENINGS.finditer(text)]


def identifiers(node: ast.AST) -> set[str]:
    """Return the names that a node of a file defines or uses, and the words of a string without spaces.

    >>> [sorted(identifiers(node)) for node in nodes("seen.x = 'a.b'")[1:4]]
    [[], ['x'], ['a', 'b']]
    """
    match node:
        case ast.Constant(value=str(text)):
            return set() if " " in text else set(re.findall(r"\w+", text))
        case ast.ImportFrom(module=str(module)):
            return set(module.split("."))
        case ast.alias():
            return {*node.name.split("."), node.asname or ""}
    return {value for field in NAMED if isinstance(value := getattr(node, field, None), str)}


@cache
def project() -> tuple[frozenset[str], dict[str, tuple[frozenset[str], tuple[str, ...]]], frozenset[str]]:
    """Return all identifiers and strings of the project, the attributes and bases of its classes, and the names of its files."""
    names, classes = {*dir(builtins), *keyword.kwlist}, dict[str, tuple[frozenset[str], tuple[str, ...]]]()
    for file in [*FILES, *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]:
        for node in nodes(file.read_text()):
            names |= identifiers(node)
            if isinstance(node, ast.ClassDef):
                inner = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                inner |= {part.name for part in ast.walk(node) if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
                inner |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
                classes[node.name] = (frozenset(inner), tuple(ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases))
    kept = [*ROOT.glob("*.*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.*"))]
    files = {str(file.relative_to(ROOT)) for file in kept if file.suffix != ".pyc"}
    return frozenset(names), classes, frozenset(files)


def has(name: str, attribute: str) -> bool:
    """Return whether a class of the project has an attribute; one with a base from elsewhere may have any."""
    _, classes, _ = project()
    if name not in classes:
        return name not in ("object", "ABC", "NamedTuple", "Generic", "Exception", "Protocol")
    inner, bases = classes[name]
    return attribute in inner or any(has(base, attribute) for base in bases if base != name)


def missing(text: str) -> list[str]:
    """List the names and files that a text cites in backticks and that the project does not have."""
    names, classes, files = project()
    bad = []
    for cited in CITED.findall(text):
        if "/" in cited or cited.endswith((".py", ".md", ".json")):
            if not any(
                file == cited or file.endswith("/" + cited) or file.startswith(cited.rstrip("/") + "/") or f"/{cited.rstrip('/')}/" in file
                for file in files
            ):
                bad.append(cited)
            continue
        parts = cited.rstrip(".").split(".")
        if parts[0] in LIBRARIES:
            continue
        if len(parts) > 1 and parts[-2] in classes:
            bad += [] if has(parts[-2], parts[-1]) else [cited]
        elif not all(part in names for part in parts):
            bad.append(cited)
    return bad


def faults(source: str) -> list[str]:
    """List all that is wrong with the prose of a Python file."""
    texts = list(prose(source))
    bad = [f"{text.line}: {word!r}: write {STEMS[word]}" for text in texts for word in stemmed(text.words)]
    for token in tokens(source):
        if token.type == tokenize.NAME and token.string not in FOREIGN:
            bad += [f"{token.start[0]}: {token.string}: use {STEMS[word]}" for word in stemmed(token.string)]
    bad += [f"{text.line}: a sentence begins with {word!r}" for text in texts for word in riddles(text.words)]
    bad += [f"{text.line}: there is no `{name}`" for text in texts for name in missing(text.words)]
    return bad + without_verb(source)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_prose_is_plain(file: Path) -> None:
    assert faults(file.read_text()) == []


@pytest.mark.parametrize("file", PAGE_TEXTS, ids=lambda file: file.stem)
def test_the_texts_of_a_lesson_use_the_fields_words(file: Path) -> None:
    assert [(text, stemmed(text), riddles(text)) for text in of_json(json.loads(file.read_text())) if stemmed(text) or riddles(text)] == []


def paragraphs(guide: str) -> list[str]:
    """Split a Markdown file into paragraphs and cells of tables, without code."""
    text = re.sub(r"```.*?```", "", guide, flags=re.DOTALL)
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    return [part.lstrip("#*- \n").rstrip() for part in re.split(r"\n\s*\n|\n(?=- )|\|", lines)]


@pytest.mark.parametrize("file", sorted(GUIDES), ids=lambda file: str(file.relative_to(ROOT)))
def test_a_guide_uses_the_fields_words(file: Path) -> None:
    assert [(text, stemmed(text), riddles(text)) for text in paragraphs(file.read_text()) if stemmed(text) or riddles(text)] == []


@pytest.mark.long
def test_no_docstring_of_a_script_or_test_begins_a_sentence_with_a_riddle() -> None:
    texts = [(str(file), text) for file in SCRIPTS for _, text in docstrings(file.read_text())]
    assert [(file, text) for file, text in texts if riddles(text)] == []
    assert len(texts) > 1000


def test_the_check_of_guides_finds_planted_faults() -> None:
    guide = "# Head\n\n| a | Who knows it may act. |\n\n- Plain.\n- Nor is this.\n\n    Who runs code\n"
    assert [riddle for text in paragraphs(guide) for riddle in riddles(text)] == ["Who", "Nor"]


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """What a caller gets."""',
        "def pulse(): ...",
        "BENDS = 1",
        "x = 1  # the slopes of it",
        'def f():\n    """Return it. Who knows it may act."""',
        'x = "the one that Of what was. Whose is it and so on."',
        'def f():\n    """Return what `Defense.no_such_method` does."""',
        'def f():\n    """Read `leakage/no_such_file.py`."""',
    ],
)
def test_the_check_finds_planted_faults(source: str) -> None:
    assert faults(source) != []


def test_the_check_allows_plain_prose() -> None:
    assert (
        faults('def f():\n    """Return `Defense.defend` of `leakage/engine/core.py`. Who trains?"""\n    return "a depends on it"') == []
    )
