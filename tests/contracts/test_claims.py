"""No text of the product claims safety from a failed attack: pages, scripts, templates, reports, experiments, plug-ins, guides."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from leakage.settings import ROOT

PICTURES = r"(the|your|every|all|each|any|a|private|no) ?(private |original )?(pictures?|images?|data|photographs?|faces?)"
FORBIDDEN = (
    rf"\b(hides?|hid|hiding) {PICTURES}",
    r"\b(pictures?|images?|data|faces?|people|persons?|you) (is|are|stays?|remains?|was|were) (well |fully |completely )?"
    r"(hidden|safe|protected|secure|private|invisible|unrecogni[sz]able)\b",
    rf"\bprotects? {PICTURES}",
    r"\bprotects? (your |the )?privacy\b",
    r"\b(cannot|can not|can't|can never|could not) be (seen|found|recovered|reconstructed|recogni[sz]ed|identified|stolen|leaked)\b",
    r"\bnot recogni[sz]able\b",
    r"\bnobody (can|could) (see|find|recover|recogni[sz]e)\b",
    r"\b(no|without) leak(age)?\b",
    r"\bleaks nothing\b",
    r"\bno attack (can|could|will) (find|see|recover|reconstruct|show)\b",
    r"\bwhatever attack\b",
    r"\b(is|are|be) (safe|secure|harmless)\b",
    r"\bsafe (from|against|to share)\b|\bsecure (from|against)\b",
    r"\b(stops|defeats|prevents|withstands|resists) (the |all |every |any )?(attacks?|attackers?|reconstruction|leakage)\b",
    r":material/(lock|visibility_off|shield|verified_user)\b",
)
PATTERN = re.compile("|".join(f"(?:{one})" for one in FORBIDDEN), re.IGNORECASE)
ALLOWED = ("\nrecognisable\npartly recognisable\nnot recognisable\n",)  # what earlier versions wrote, to be read as the words of today
SUFFIXES = {".html", ".jinja", ".js", ".css"}
FOLDERS = ("leakage", "pages")


def texts() -> Iterator[tuple[str, str]]:
    """Every text that a visitor may read, with where it stands."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix == ".py":
                yield str(file.relative_to(ROOT)), "\n".join(sentences(file.read_text()))
            elif file.suffix in SUFFIXES:
                yield str(file.relative_to(ROOT)), re.sub(r"\s+", " ", file.read_text())
    for file in sorted((ROOT / "assets" / "lessons").glob("*.json")):
        yield str(file.relative_to(ROOT)), re.sub(r"\s+", " ", file.read_text())
    guides = ("docs/installation.md", "docs/pages.md", "docs/python_api.md")
    for name in ("README.md", *guides, "assets/prepared.json", "docs/plugins.md", "docs/write_a_plugin.md", "app.py"):
        yield name, re.sub(r"\s+", " ", (ROOT / name).read_text())


def sentences(source: str) -> Iterator[str]:
    """The string constants of a module, joined as Python joins them, without its docstrings."""
    tree = ast.parse(source)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield re.sub(r"\s+", " ", "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield re.sub(r"\s+", " ", node.value)


def claims(text: str) -> list[str]:
    """What it claims, each with some words around it."""
    around = [text[max(0, hit.start() - 60) : hit.end() + 40] for hit in PATTERN.finditer(text)]
    return [words for words in around if not any(allowed in words for allowed in ALLOWED)]


def test_no_text_claims_safety() -> None:
    assert [(where, found) for where, text in texts() if (found := claims(text))] == []


@pytest.mark.parametrize(
    "planted",
    [
        "The picture is hidden.",
        "Your pictures stay private.",
        "Clipping hides the picture from the naive attacker.",
        "Noise protects your data.",
        "It cannot be reconstructed.",
        "not recognisable",
        "Not recognizable: the attack failed.",
        "Whatever attack is used, the rest has to be guessed.",
        "With eight phones the update is safe.",
        "Secure aggregation stops the attacker.",
        "No leak was found here.",
        "This protects privacy.",
        "The gradient leaks nothing.",
        ":material/lock: Not enough equations",
    ],
)
def test_a_planted_claim_is_found(planted: str) -> None:
    assert claims(planted)
    assert list(sentences(f"def page():\n    st.markdown(f'{{a}} ' {planted!r})")) != []
    assert any(claims(sentence) for sentence in sentences(f"def page():\n    st.markdown({planted!r})"))


def test_what_is_allowed_is_still_there() -> None:
    said = [text for _, text in texts()]
    assert [allowed for allowed in ALLOWED if not any(allowed in text for text in said)] == []
    assert Path(ROOT / "pages").is_dir()
