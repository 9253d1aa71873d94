"""The lessons as a folder of static files, which a browser opens by double click without the program or a network: `make site`.

A page that is opened from a disk can neither load modules nor fetch files. The reader is therefore bundled into one classic script, and
each lesson is a script that passes its data to the reader. Any web host can serve the same folder.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leakage.frontend.bundle import bundle
from leakage.frontend.markup import render
from leakage.frontend.own_script import own_script, own_script_name
from leakage.frontend.scripts import scripts
from leakage.learn import grids, recordings
from leakage.learn.lessons import lessons
from leakage.learn.paper_rows import museum
from leakage.learn.reader_data import reader_index, reader_lesson, reader_run, thumbnail
from leakage.learn.stories import door_data, front_door, story_picture
from leakage.results.slides import png
from leakage.spec.catalog import Catalog
from leakage.web.papers_page import ENTRY as PAPERS_ENTRY
from leakage.web.papers_page import PageLinks, papers_page, papers_style
from leakage.web.printing import print_all
from leakage.web.reader_page import ENTRY, reader_page, stylesheet
from leakage.web.recorded_slides import recorded_slide
from leakage.web.worksheets import HandoutLinks, handout, handout_names

HOME = "index.html"
PAPERS = "papers.html"
PROGRAM = "program.html"  # what links to the Lab lead to
MANIFEST = "written.json"  # the files that `write_site` wrote, each with its hash: only these are replaced or deleted
SITE_MARKER = '"folder": true'  # text by which the home page of a written site is recognized


def write_site(out: Path, known: Catalog, *, address: str = "") -> int:
    """Write the lessons, their pictures and the worksheets as a folder of static files, and return its size.

    Args:
        out: The folder. Files that an earlier call wrote are replaced; those that are no longer needed are deleted, unless somebody has
            changed them since. No other file is touched.
        known: The catalog of plug-ins. A beat (a step of a lesson) is left out if its plug-in is missing.
        address: The address at which a web host will serve the folder; worksheets print it. Empty if the folder is opened from a disk.

    Returns:
        The size of all files together, in bytes.

    Raises:
        ValueError: If the folder contains anything other than a site, or the reader has syntax that cannot be bundled.
    """
    earlier, visible = read_manifest(out), out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir())
    if visible and (not (out / HOME).is_file() or SITE_MARKER not in (out / HOME).read_text()):
        raise ValueError(f"{out} is neither empty nor an earlier site: name another folder, as in `--out lessons`.")
    files = {name: content if isinstance(content, bytes) else content.encode() for name, content in _site_files(known, address)}
    for name in sorted(set(earlier) - set(files)):
        delete_unchanged(out, name, earlier[name])
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    write_manifest(out, {name: _sha256(content) for name, content in files.items()})
    return sum(len(content) for content in files.values()) + (out / MANIFEST).stat().st_size


def read_manifest(out: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that `write_site` wrote to a folder, by file name; empty if the list is missing or damaged."""
    try:
        digests = json.loads((out / MANIFEST).read_text())
        return {str(name): str(digest) for name, digest in digests.items() if ".." not in Path(name).parts and not Path(name).is_absolute()}
    except (OSError, ValueError, AttributeError):
        return {}


def write_manifest(out: Path, digests: Mapping[str, str]) -> None:
    """Store the SHA-256 of each written file, by file name, for the next call of `write_site`."""
    (out / MANIFEST).write_text(json.dumps(digests, indent=0, sort_keys=True))


def delete_unchanged(out: Path, name: str, digest: str) -> None:
    """Delete a file if its SHA-256 is still `digest`, and the folders that become empty; leave a changed file or a link in place."""
    path = out / name
    if not path.is_file() or path.is_symlink() or _sha256(path.read_bytes()) != digest:
        return
    path.unlink()
    for folder in path.parents:
        if folder == out or any(folder.iterdir()):
            return
        folder.rmdir()


def add_pdfs(out: Path) -> int:
    """Write a PDF beside every worksheet of a site, and return their number. Raises RuntimeError without Chromium or Playwright."""
    pdfs = print_all([out / "worksheets" / f"{name}.html" for name in handout_names()])
    write_manifest(out, read_manifest(out) | {path.relative_to(out).as_posix(): _sha256(path.read_bytes()) for path in pdfs})
    return len(pdfs)


def _site_files(known: Catalog, address: str) -> Iterator[tuple[str, str | bytes]]:
    """Yield the name and the content of every file of the site."""
    script, style = bundle(scripts(), ENTRY), stylesheet(door=True)
    script_name, style_name = f"reader.{_short_hash(script)}.js", f"reader.{_short_hash(style)}.css"
    yield script_name, script
    yield style_name, style
    yield own_script_name(), own_script()
    door = door_data(known, data=".", learn="", lab=PROGRAM, handouts="worksheets", own=own_script_name())
    about = {
        "base": "",
        "data": "",
        "folder": True,
        "own": own_script_name(),
        "lessons": reader_index(known),
        "door": {**door, "needs_program": True},
    }
    pages = {"Learn": HOME, "Papers": PAPERS, "The program": PROGRAM}
    yield HOME, reader_page(about, [script_name], style_file=style_name, home=HOME, pages=pages)
    yield from _paper_files(known, PageLinks(HOME, pages, PROGRAM))
    yield PROGRAM, render("web/program.html.jinja", style_file=style_name, home=HOME)
    for run in {story.run for story in front_door().stories}:
        yield f"stories/{run}.webp", story_picture(run)
    slides: set[str] = set()
    for lesson in lessons():
        data = reader_lesson(lesson.id, known)
        yield f"data/{lesson.id}.js", _data_script(f"lessons/{lesson.id}", data)
        yield f"thumbnails/{lesson.id}.webp", thumbnail(lesson.id)
        for kind, folder in (("runs", recordings.FOLDER), ("grids", grids.FOLDER)):
            for name in data[kind]:
                if (film := folder / f"{name}.webp").exists():
                    yield f"{kind}/{name}.webp", film.read_bytes()
                    slides |= {name} if kind == "runs" else set()
    for name in sorted(slides):
        yield f"slides/{name}.png", png(recorded_slide(name, known), small=True)
    links = HandoutLinks(f"../{HOME}", lambda id: f"{address.rstrip('/')}/#{id}" if address else f"{HOME}, lesson {int(id[:2])}")
    for name in handout_names():
        yield f"worksheets/{name}.html", handout(name, links)


def _paper_files(known: Catalog, links: PageLinks) -> Iterator[tuple[str, str | bytes]]:
    """Yield the museum of papers, with its script, its style, and the recorded runs that its rows play."""
    script, style = bundle(scripts(), PAPERS_ENTRY), papers_style()
    script_name, style_name = f"papers.{_short_hash(script)}.js", f"papers.{_short_hash(style)}.css"
    yield script_name, script
    yield style_name, style
    about = {"base": "", "data": "", "folder": True, "own": "", "lessons": []}
    yield PAPERS, papers_page(known, [script_name], about, links, style_file=style_name)
    for run in sorted({row.run for paper in museum().papers for row in paper.rows if row.run}):
        yield f"data/{run}.js", _data_script(f"records/{run}", reader_run(run, known))
        yield f"runs/{run}.webp", (recordings.FOLDER / f"{run}.webp").read_bytes()


def _data_script(name: str, data: Any) -> str:
    """Return a script that hands data to the page under a name."""
    return f"gle.data({json.dumps(name)}, {json.dumps(data, separators=(',', ':'))});\n"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _short_hash(text: str) -> str:
    return _sha256(text.encode())[:12]
