"""The lessons as a folder that a browser opens by double click, without a program and without a network: `make site`.

A page from a disk may neither load modules nor fetch: so the reader is one classic script, bundled from its modules, and a lesson is a
script that hands it over. Any web host serves the same folder.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from leakage.frontend.markup import render
from leakage.frontend.scripts import scripts
from leakage.learn import grids, recordings
from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_index, reader_lesson, thumbnail
from leakage.learn.stories import door_data, front_door, story_picture
from leakage.results.slides import png
from leakage.spec.catalog import Catalog
from leakage.web.bundle import bundle
from leakage.web.printing import print_all
from leakage.web.reader_page import ENTRY, folder_page, stylesheet
from leakage.web.recorded_slides import recorded_slide
from leakage.web.worksheets import HandoutLinks, handout, names

HOME = "index.html"
PROGRAM = "program.html"  # what links to the Lab lead to
WRITTEN = "written.json"  # which files are ours, each with its hash: only these are replaced or deleted
TOLD_BY = '"folder": true'  # a page of ours holds it


def write_site(out: Path, known: Catalog, *, address: str = "") -> int:
    """Write the folder anew; how many bytes it has.

    Args:
        out: The folder. Of what an earlier call wrote there, files of the same name are replaced, and those that are no longer needed are
            deleted, unless somebody changed them since. Nothing else is touched.
        known: The plug-ins: without its plug-in a beat is left out.
        address: Where a web host will have it, for the worksheets to print; nothing where it is opened from a disk.

    Returns:
        The size of all its files together.

    Raises:
        ValueError: If the folder holds something else than a site, or the reader has syntax that cannot be bundled.
    """
    earlier, visible = written_files(out), out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir())
    if visible and (not (out / HOME).is_file() or TOLD_BY not in (out / HOME).read_text()):
        raise ValueError(f"{out} is neither empty nor an earlier site: name another folder, as in `--out lessons`.")
    made = {name: content if isinstance(content, bytes) else content.encode() for name, content in _files(known, address)}
    for name in sorted(set(earlier) - set(made)):
        delete_own(out, name, earlier[name])
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    note_written(out, {name: _sha256(content) for name, content in made.items()})
    return sum(len(content) for content in made.values()) + (out / WRITTEN).stat().st_size


def written_files(out: Path) -> dict[str, str]:
    """The files that this program wrote there, and the SHA-256 of each."""
    try:
        noted = json.loads((out / WRITTEN).read_text())
        return {str(name): str(digest) for name, digest in noted.items() if ".." not in Path(name).parts and not Path(name).is_absolute()}
    except (OSError, ValueError, AttributeError):
        return {}


def note_written(out: Path, digests: Mapping[str, str]) -> None:
    """Note them, for the next time."""
    (out / WRITTEN).write_text(json.dumps(digests, indent=0, sort_keys=True))


def delete_own(out: Path, name: str, digest: str) -> None:
    """Delete a file that was written there, unless somebody changed it since; and the folders that it leaves empty."""
    path = out / name
    if not path.is_file() or path.is_symlink() or _sha256(path.read_bytes()) != digest:
        return
    path.unlink()
    for folder in path.parents:
        if folder == out or any(folder.iterdir()):
            return
        folder.rmdir()


def add_pdfs(out: Path) -> int:
    """Put a PDF beside every worksheet; how many. Raises RuntimeError where there is no Chromium, or no Playwright."""
    made = print_all([out / "worksheets" / f"{name}.html" for name in names()])
    note_written(out, written_files(out) | {path.relative_to(out).as_posix(): _sha256(path.read_bytes()) for path in made})
    return len(made)


def _files(known: Catalog, address: str) -> Iterator[tuple[str, str | bytes]]:
    """Every file by its name in the folder."""
    script, style = bundle(scripts(), ENTRY), stylesheet(door=True)
    script_name, style_name = f"reader.{_version(script)}.js", f"reader.{_version(style)}.css"
    yield script_name, script
    yield style_name, style
    door = door_data(known, data=".", learn="", lab=PROGRAM, handouts="worksheets", own=PROGRAM)
    about = {"base": "", "data": "", "folder": True, "lessons": reader_index(known), "door": {**door, "needs_program": True}}
    yield HOME, folder_page(about, script_name, style_name, home=HOME, pages={"Learn": HOME, "The program": PROGRAM})
    yield PROGRAM, render("web/program.html.jinja", style_file=style_name, home=HOME)
    for run in {story.run for story in front_door().stories}:
        yield f"stories/{run}.webp", story_picture(run)
    slides: set[str] = set()
    for lesson in lessons():
        read = reader_lesson(lesson.id, known)
        yield f"data/{lesson.id}.js", f"gle.data({json.dumps(f'lessons/{lesson.id}')}, {json.dumps(read, separators=(',', ':'))});\n"
        yield f"thumbnails/{lesson.id}.webp", thumbnail(lesson.id)
        for kind, folder in (("runs", recordings.FOLDER), ("grids", grids.FOLDER)):
            for name in read[kind]:
                if (film := folder / f"{name}.webp").exists():
                    yield f"{kind}/{name}.webp", film.read_bytes()
                    slides |= {name} if kind == "runs" else set()
    for name in sorted(slides):
        yield f"slides/{name}.png", png(recorded_slide(name, known), small=True)
    links = HandoutLinks(f"../{HOME}", lambda id: f"{address.rstrip('/')}/#{id}" if address else f"{HOME}, lesson {int(id[:2])}")
    for name in names():
        yield f"worksheets/{name}.html", handout(name, links)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _version(text: str) -> str:
    return _sha256(text.encode())[:12]
