"""The script for a visitor's own picture: all in one file, which runs as a classic script, and whose worker runs as one too."""

import base64
import gzip
import json
import re
import shutil
import subprocess
from io import BytesIO

import pytest
from PIL import Image

from leakage.frontend.own_script import LINEUP, own_script, own_script_address, own_script_name, worker_script
from leakage.frontend.scripts import FOLDER

LARGEST, LARGEST_WORKER = 300_000, 23_200  # bytes; the second compressed


def parts() -> dict[str, str]:
    """What the script brings beside its page's part."""
    found: dict[str, str] = json.loads(own_script().removeprefix("globalThis.gleOwn = ").split(";\n(()=>{", 1)[0])
    return found


def test_the_name_follows_the_content() -> None:
    assert re.fullmatch(r"own\.[0-9a-f]{12}\.js", own_script_name())
    assert own_script_address("/gle") == f"/gle/api/own/{own_script_name()}"


def test_the_script_is_small_and_brings_worker_style_and_line_up() -> None:
    assert len(own_script().encode()) < LARGEST
    assert len(gzip.compress(worker_script().encode())) < LARGEST_WORKER
    assert parts()["worker"] == worker_script()
    assert ".gle-own-picture {" in parts()["style"]
    kind, _, picture = parts()["lineup"].partition(",")
    assert kind == "data:image/webp;base64"
    assert base64.b64decode(picture) == LINEUP.read_bytes()
    with Image.open(BytesIO(LINEUP.read_bytes())) as image:
        assert image.size == (99 * 32, 32)


def test_its_style_has_classes_of_its_own_since_it_lands_among_the_styles_of_any_page() -> None:
    sheets = [file.read_text() for file in FOLDER.rglob("*.css") if file.parent.name != "own"]
    others = set(re.findall(r"\.gle-[\w-]+", "".join(sheets)))
    own = set(re.findall(r"\.gle-[\w-]+", parts()["style"]))
    assert ".gle-own-run" in own
    assert own & others == set()


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
def test_it_runs_as_a_classic_script_and_its_worker_too() -> None:
    calls = "console.log(typeof gleOwn.OwnPicture, Object.keys(gleOwn).sort().join(), typeof (0, eval)(gleOwn.worker));"
    script = f"{own_script()}\n{calls}\n"
    printed = subprocess.run(["node", "-"], input=script, text=True, capture_output=True, timeout=240, check=True).stdout
    assert printed == "function OwnPicture,lineup,style,worker undefined\n"
