"""Names from outside that look like Markdown: in addresses, uploads, runs, trained models and imported files, on every page."""

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from page_visits import Open, fine, words
from streamlit.testing.v1 import AppTest

from leakage.runs.owners import owner_of
from leakage.runs.service import Service
from leakage.settings import ROOT
from leakage.spec.experiment import Experiment
from leakage.ui.common.address import OTHERS, _fields, _menus
from leakage.ui.common.markdown import escape

HOSTILE = [
    "[Your session has expired: sign in here](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)> https://evil.example www.evil.example",
    ":red[x] $x$ :material/lock: :smile:",
]
LIVE = re.compile(  # it would be drawn
    r"(?<!\\)\]\(https?:/*evil|https?://evil|www\.evil|(?<!\\)<img|(?<!\\):red|(?<!\\)\$x|:material/lock:\s|:smile:"
)
MARKDOWN = {"body", "label", "help", "text", "content", "caption", "title"}  # fields of what is sent to the browser
UNDRAWN = {"Html", "Code", "TextInput", "TextArea", "BidiComponent", "FileUploader"}  # their texts are no Markdown, but for these labels
PAGES = ("", "pages/ask.py", "pages/compare.py", "pages/training.py", "pages/architecture.py", "pages/runs.py")


def drawn(at: AppTest) -> list[str]:
    """All that the browser is sent to draw as Markdown."""
    return [text for element in elements(at._tree) for text in texts(element)]


def elements(node: Any) -> Iterator[Message]:
    """What is on a page, as it is sent."""
    if isinstance(getattr(node, "proto", None), Message):
        yield node.proto
    for child in getattr(node, "children", {}).values():
        yield from elements(child)


def texts(message: Message) -> Iterator[str]:
    """The texts of a message that are drawn as Markdown."""
    kind = message.DESCRIPTOR.name
    for field, value in message.ListFields():
        for one in value if field.is_repeated else [value]:
            if isinstance(one, Message):
                yield from texts(one)
            elif isinstance(one, str) and field.name in MARKDOWN and (kind not in UNDRAWN or field.name in ("label", "help")):
                yield one


def harmless(at: AppTest) -> None:
    fine(at)
    assert [text for text in drawn(at) if LIVE.search(text)] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_not_escaped_would_be_found(name: str) -> None:
    assert LIVE.search(name)
    assert not LIVE.search(escape(name))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long
def test_no_key_of_an_address_brings_markdown_onto_a_page(door: Service, visit: Open, page: str, name: str) -> None:
    known = door.catalog()
    assert known is not None
    keys = {*_menus(known), *OTHERS, *(key for key, _ in _fields(known)), "net", "run", "runs", "preset", "v", "pictures", "expert", "list"}
    keys |= {"called", "who", "each", "steps", "attacker", "minutes", "protection", "seed", "differs", "arms", "answers", "sizes", "states"}
    for chosen in (dict.fromkeys(keys, name), {"checkpoint": name}, {"attack": name, f"dlg.{name}": name, name: name}):
        at = visit(page, itself=True, **chosen)
        harmless(at)
        if page == "" and "attack" in chosen and "run" not in chosen:
            assert escape(f"attack={name} is not known here") in words(at)  # the page does repeat it


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_runs_and_trained_models_bring_no_markdown(door: Service, visit: Open, name: str) -> None:
    run = door.submit(Experiment(), owner_of("me"))
    door.labels.rename(run, owner_of("me"), name)
    home = door.config.checkpoints / "mine"
    shutil.copytree(ROOT / "assets" / "checkpoints" / "lenet-cifar10", home)
    card = json.loads((home / "card.json").read_text())
    stacked = {**card["training"], "defenses": [{"id": name, "fields": {}}]}
    (home / "card.json").write_text(json.dumps({**card, "recipe": name, "training": stacked}))
    mine = visit("pages/runs.py")
    harmless(mine)
    assert escape(name[:60]) in words(mine)
    harmless(visit("pages/runs.py", who="you", list=run, called=[name]))
    shelf = visit("pages/training.py")
    harmless(shelf)
    assert escape(name) in "\n".join(drawn(shelf))
    harmless(visit(checkpoint="mine@1"))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long
def test_an_upload_and_an_imported_file_bring_no_markdown(door: Service, visit: Open, name: str) -> None:
    at = visit(source="upload")
    at.file_uploader(key="files-0").upload(f"{name}.png", b"no picture", "image/png").run()
    harmless(at)
    assert len(at.error) == 1
    for page, files, key in (("pages/ask.py", "answer", "question"), ("pages/compare.py", "comparison", "experiments")):
        at = visit(page)
        asked = {"version": 1, key: [{name: name}], "attack": name, "who": name}
        at.file_uploader(key=f"{files}-0").upload(f"{name}.json", json.dumps(asked).encode(), "application/json").run()
        next(button for button in at.button if button.label.endswith("again")).click().run()
        harmless(at)
        assert len(at.error) == 1
