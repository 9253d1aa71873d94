"""Text from outside goes through `escape` before it is drawn as Markdown: a walk over the source of all pages."""

import ast
from functools import cache
from pathlib import Path

import pytest
from markdown_types import Project, commands
from markdown_walk import Walk

from leakage.settings import ROOT

DRAWING = ("leakage/ui", "pages")
HOME = "leakage.ui.common.markdown"  # where text becomes Markdown


@cache
def modules() -> dict[str, ast.Module]:
    """All modules that draw, by their names."""
    files = [ROOT / "app.py", *(file for folder in DRAWING for file in sorted((ROOT / folder).rglob("*.py")))]
    return {name_of(file): ast.parse(file.read_text()) for file in files}


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_nothing_from_outside_is_drawn_as_markdown_without_being_escaped() -> None:
    project = Project(modules())
    assert len(project.trees) > 50
    assert [found for name in project.trees if name != HOME for found in Walk(name, project).unsafe()] == []


def found_in(source: str) -> list[str]:
    """What the walk finds in a page with these lines."""
    head = "import streamlit as st\nfrom leakage.ui.common.markdown import Markdown, escape, link, ours\n"
    trees = {"page": ast.parse(head + source)}
    home = modules()[HOME]
    return list(Walk("page", Project({**trees, HOME: home})).unsafe())


@pytest.mark.parametrize(
    "planted",
    [
        'def page(name: str):\n    st.markdown(f"Hello {name}")',
        'st.markdown("Hello " + st.query_params["name"])',
        'st.markdown("Hello %s" % st.query_params["name"])',
        'st.markdown("Hello {}".format(st.query_params["name"]))',
        'name = st.query_params["name"]\nst.caption(name)',
        'for name in st.query_params:\n    st.caption(f"**{name}**")',
        "try:\n    pass\nexcept ValueError as error:\n    st.error(str(error))",
        'def page(place, name: str):\n    place.warning(name, icon=":material/lock:")',
        'def page(file):\n    st.selectbox(f"Class of {file.name}", [])',
        'def page(file):\n    st.button("Go", help=file.name)',
        "def page(file):\n    st.button(label=file.name)",
        'def page(names: list[str]):\n    st.radio("Which", names)',
        'def page(names: dict[str, str]):\n    st.segmented_control("Which", list(names), format_func=names.__getitem__)',
        'def page(names: dict[str, str]):\n    st.pills("Which", list(names), format_func=lambda name: names[name])',
        'def page(names: list[str]):\n    st.tabs([f"{name}" for name in names])',
        'def page(name: str):\n    st.write("Hello", name)',
        'def page(name: str):\n    st.metric("Best", name)',
        "def page(name: str):\n    st.table({name: [1]})",
        "def page(name: str):\n    st.progress(1.0, text=name)",
        'def page(name: str):\n    st.image("x.png", caption=name)',
        'def page(name: str):\n    how = {"help": name}\n    st.button("Go", **how)',
        'def page(name: str):\n    words = "Hello"\n    words += name\n    st.toast(words)',
        "def page(name: str):\n    with st.expander(name):\n        pass",
        'def page(name: str):\n    st.link_button(name, "https://example.org")',
        "def page(name: str):\n    st.caption(ours(name))",
        "def page(file):\n    st.caption(ours(file.name))",
        'def page(name: str):\n    st.caption(Markdown(f"Hello {name}"))',
        'def page(name: str):\n    st.caption(link(Markdown(name), "/runs"))',
        "def said(name: str) -> Markdown:\n    return name",
        'def said() -> dict[str, Markdown]:\n    return {"a": st.session_state["a"]}',
        'def show(words: Markdown):\n    st.caption(words)\ndef page():\n    show(st.session_state["words"])',
        'class Said:\n    words: Markdown\ndef page():\n    Said(st.session_state["words"])',
        "def page(name: str):\n    make = st.slider\n    make(name, 1, 2)",
        "from streamlit import caption",
        'def page(name: str, how: str):\n    st.caption(f"{name:{how}}")',
        'def page(count: int, names: dict[str, Markdown]):\n    st.caption(", ".join(names))',
    ],
)
def test_a_planted_name_is_found(planted: str) -> None:
    assert len(found_in(planted)) == 1


@pytest.mark.parametrize(
    "line",
    [
        'def page(name: str):\n    st.markdown(f"Hello {escape(name)}")',
        'def page(names: list[str]):\n    st.caption(", ".join(f"**{escape(name)}**" for name in names))',
        'def page(entry):\n    st.caption(ours(entry.plain), help=f"{ours(entry.hint)} [The paper]({ours(entry.source)})")',
        'def page(share: float):\n    st.caption(f"{share:.1%} of {round(share)}, {len([share]):,}")',
        'WORDS = {"a": "b"}\ndef page():\n    st.caption(WORDS["a"])\n    st.radio("Which", list(WORDS), format_func=WORDS.__getitem__)',
        "def page(names: dict[str, Markdown]):\n    st.tabs(list(names.values()))\n    for _, one in names.items():\n        st.info(one)",
        'def said(name: str) -> Markdown:\n    return Markdown(f"**{escape(name)}**")\ndef page():\n    st.info(said("a"))',
        'def page(name: str):\n    words = "Hello"\n    words += f" {escape(name)}" if name else " you"\n    st.toast(words)',
        'def page(file):\n    st.text_input("Name", file.name, key=f"name-{file.name}")\n    st.text(file.name)\n    st.code(file.name)',
        'def page(names: list[str]):\n    st.selectbox("Which", names)\n    st.multiselect("Which", names)',
        'def page(count: int):\n    for number in range(count):\n        st.button(f"{number} of {count}")',
    ],
)
def test_what_is_safe_may_be_drawn(line: str) -> None:
    assert found_in(line) == []


def test_the_commands_that_draw_markdown_are_known_by_their_documentation() -> None:
    drawn = {(name, one) for name, (_, ones) in commands().items() for one in ones}
    boxes = {
        (name, "body") for name in ("markdown", "caption", "title", "header", "subheader", "error", "info", "success", "warning", "toast")
    }
    labels = {
        (name, "label") for name in ("button", "radio", "expander", "popover", "link_button", "page_link", "metric", "status", "badge")
    }
    others = {("write", "args"), ("tabs", "tabs"), ("table", "data"), ("progress", "text"), ("spinner", "text"), ("dialog", "title")}
    others |= {("metric", "value"), ("metric", "delta"), ("image", "caption"), ("Page", "title"), ("button", "help"), ("radio", "options")}
    others |= {("segmented_control", "format_func"), ("pills", "format_func"), ("radio", "captions"), ("select_slider", "format_func")}
    assert (boxes | labels | others) - drawn == set()
    assert {("selectbox", "options"), ("text", "body"), ("code", "body"), ("button", "key")} & drawn == set()
