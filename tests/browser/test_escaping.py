"""Texts from outside on real pages are shown as written, and become no link, picture, icon or formula."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from leakage.ui.common.markdown import JOINER

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "[Your session has expired: sign in here](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "[x][1] [1]: https://evil.example",
    "<https://evil.example> https://evil.example HTTP://evil.example/a?b=c ftp://evil.example",
    "www.evil.example WWW.evil.example a@evil.example mailto:a@evil.example xmpp:a@evil.example/b",
    "<img src=x onerror=alert(1)> <a href='https://evil.example'>x</a> <!-- x -->",
    "*a* **b** _c_ __d__ ~e~ ~~f~~ `g` ``h``",
    "a_b_c local_steps 2*3*4 x~y 5 < 6 > 4 | A & B &amp; &#65; &copy;",
    ":red[x] :red-background[x] :blue-badge[x] :small[x] :color[x]{foreground='red'} :shimmer[x] :x a:b",
    ":material/home: :smile: :+1: :-1: :100: :streamlit: :material/lock:x 10:30:45",
    "$x$ $$x$$ \\(x\\) \\[x\\] $5 and $6",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "a[^1] [^1]: b",
    "\\*a\\* C:\\temp\\",
    "# heading",
    "## heading",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "1) item",
    "> quotation",
    "---",
    "===",
    "***",
    "```python",
    "~~~",
    "| a | b | --- | --- |",
    "::: x",
    "::red[x]",
    ":::red[x]",
    "- [ ] task",
    "-> b",
    "--",
    "ends with :smile",
    "ends with \\",
]
PLAIN = ["a\nb\n\nc\n    d", "a  \nb", "\n# a\n- b\n", "a | b\n--- | ---\nc | d", "a\n===", "[x]\n\n[x]: https://evil.example"]
APP = """
import json
from pathlib import Path
from urllib.parse import urlencode
import streamlit as st
from leakage.ui.common.markdown import escape
for number, text in enumerate(json.loads(Path(__file__).with_name("texts.json").read_text())):
    with st.container(key=f"alone-{number}"):
        st.markdown(escape(text))
    with st.container(key=f"inside-{number}"):
        st.markdown(f"Before **{escape(text)}** after")
    with st.container(key=f"after-{number}"):
        st.markdown(f"Before  \\n{escape(text)}")
    with st.container(key=f"label-{number}"):
        st.button(escape(text), key=f"button-{number}")
    with st.container(key=f"option-{number}"):
        st.radio("x", [text], format_func=escape, key=f"radio-{number}")
    with st.container(key=f"warning-{number}"):
        st.warning(escape(text))
"""
PLACES = {"alone": "{}", "inside": "Before {} after", "after": "Before {}", "label": "{}", "option": "{}", "warning": "{}"}
LOOK = """
(place) => {
  const drawn = [...document.querySelectorAll(`${place} [data-testid=stMarkdownContainer]`)].pop();
  return [drawn.textContent, [...drawn.querySelectorAll('*')].map((one) => one.tagName)];
}
"""
HOSTILE = "[Your session has expired: sign in here](https://evil.example) ![x](https://evil.example/x.png) https://evil.example"
ADDRESSES = ("", "ask", "compare", "training", "audit", "architecture", "runs")
KEYS = (
    "checkpoint",
    "attack",
    "model",
    "defense",
    "pictures",
    "net",
    "who",
    "arms",
    "differs",
    "preset",
    "v",
    "list",
    "called",
    "run",
    "runs",
)
ANYWHERE = "a[href*='evil.example'], img[src*='evil.example']"


@pytest.fixture
def drawn(tmp_path: Path, chromium: Browser) -> Iterator[Page]:
    """A page that draws all of these texts, escaped."""
    folder = tmp_path
    (folder / "page.py").write_text(APP)
    (folder / "texts.json").write_text(json.dumps([*TEXTS, *PLAIN]))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(folder / "page.py"), "--server.port", str(port), "--server.headless", "true"]
    server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
            break
        time.sleep(0.1)
    page = chromium.new_context().new_page()
    page.goto(f"http://127.0.0.1:{port}")
    page.locator(f".st-key-warning-{len(TEXTS) + len(PLAIN) - 1} p").wait_for(timeout=120_000)
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=120_000)
    yield page
    server.terminate()
    server.wait()


def test_what_is_escaped_reads_as_it_was_written(drawn: Page) -> None:
    for place, around in PLACES.items():
        for number, text in enumerate([*TEXTS, *PLAIN]):
            shown, tags = drawn.evaluate(LOOK, f".st-key-{place}-{number}")
            assert " ".join(shown.replace(JOINER, "").split()) == around.format(" ".join(text.split()))
            assert set(tags) == {"P", *({"inside": ["STRONG"], "after": ["BR"]}.get(place, []))}


def test_no_address_brings_a_link_or_a_picture_onto_a_page(chromium: Browser, site: str) -> None:
    page = chromium.new_context().new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for where in ADDRESSES:
        for keys in (KEYS, KEYS[:1], [key for key in KEYS if key not in ("list", "run", "runs")]):
            page.goto(f"{site}/{where}?{urlencode(dict.fromkeys(keys, HOSTILE))}")
            page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=120_000)
            page.locator("[data-testid=stMarkdownContainer]").first.wait_for(timeout=120_000)
            assert page.locator(ANYWHERE).count() == 0
    page.goto(f"{site}/?{urlencode({'checkpoint': HOSTILE, 'expert': '1'})}")
    page.get_by_text("is not a trained model of this kind").wait_for(timeout=120_000)
    assert page.locator(ANYWHERE).count() == 0
    upload = {"name": "www.evil.example.png", "mimeType": "image/png", "buffer": b"no picture"}
    page.goto(f"{site}/?source=upload")
    page.locator("input[type=file]").first.set_input_files(upload)
    page.get_by_text("evil.example.png").first.wait_for(timeout=120_000)
    assert page.locator(ANYWHERE).count() == 0
    assert [url for url in asked if url.startswith("https://evil.example")] == []
