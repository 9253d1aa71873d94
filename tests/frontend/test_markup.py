"""Templates: values are escaped, missing values are errors, and line breaks in a template change nothing on the page."""

import ast
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from leakage.frontend import markup
from leakage.frontend.markup import PACKAGE, render
from leakage.settings import ROOT

TEMPLATES = sorted(PACKAGE.rglob("*.jinja"))


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A template that a test writes, with its values."""
    monkeypatch.setattr(markup, "PACKAGE", tmp_path)
    markup._environment.cache_clear()

    def fill(text: str, **values: object) -> str:
        (tmp_path / "one.html.jinja").write_text(text)
        return render("one.html.jinja", **values)

    yield fill
    markup._environment.cache_clear()


def test_what_is_filled_in_is_text_unless_it_is_marked_as_markup(filled) -> None:
    given = {"words": "<b> & \"quoted\" 'words'", "more": Markup("<i>so</i>")}
    assert filled('<p title="{{ words }}">{{ more }}</p>', **given) == (
        '<p title="&lt;b&gt; &amp; &#34;quoted&#34; &#39;words&#39;"><i>so</i></p>'
    )


def test_a_value_that_is_missing_is_an_error_and_not_an_empty_place(filled) -> None:
    with pytest.raises(UndefinedError, match="'words' is undefined"):
        filled("<p>{{ words }}</p>")


def test_line_breaks_of_the_template_never_reach_the_page_and_those_of_a_value_do(filled) -> None:
    text = """
    <tr>
        {% for cell in cells %}
        <td>
            {% if cell %}
            {{ cell }}
            {% endif %}
        </td>
        {% endfor %}
    </tr>
    """
    assert filled(text, cells=["a\n    b", "", " c "]) == "<tr><td>a\n    b</td><td></td><td> c </td></tr>"
    assert filled("<p>{{ one }} {{ two }} <b>three</b></p>", one=1, two=2) == "<p>1 2 <b>three</b></p>"


def test_an_error_names_the_line_of_the_template(filled) -> None:
    with pytest.raises(UndefinedError) as raised:
        filled("<p>\n\n    <b>{{ words }}</b>\n</p>")
    (entry,) = (entry for entry in raised.traceback if str(entry.path).endswith(".jinja"))
    assert entry.lineno == 2  # counted from 0


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_template_says_what_it_is_and_escapes_everything(file: Path) -> None:
    text = file.read_text()
    assert re.match(r"\{# .+\. #\}\n", text)
    assert not re.search(r"\|\s*safe|autoescape", text)
    markup._environment().get_template(str(file.relative_to(PACKAGE)))


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_html_is_glued_in_python(file: Path) -> None:
    assert not re.search(r"</(?:a|div|figure|i|li|p|section|small|span|svg|table|td|th|tr|ul)>", file.read_text())


@pytest.mark.long
def test_text_is_trusted_as_markup_in_a_few_places_only() -> None:
    found = [
        f"{file.name}:{ast.unparse(node.args[0])[:7]}"
        for file in sorted((ROOT / "leakage").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Markup")
    ]
    assert sorted(found) == [
        "answer_file.py:STYLE.r",
        "comparison_report.py:OPENS +",
        "comparison_report.py:STYLE.r",
        "markup.py:json.du",
        "papers_page.py:papers_",
        "reader_page.py:stylesh",
        "report.py:STYLE.r",
        "worksheets.py:STYLE.r",
    ]  # our own style, and JSON without "<"
