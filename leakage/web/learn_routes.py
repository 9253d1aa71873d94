"""The routes of the reader: the page of the lessons, each lesson as data, and the pictures of what was recorded for them."""

import hashlib
import html
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from leakage.learn.lessons import FOLDER as LESSONS
from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_index, reader_lesson, thumbnail
from leakage.results.scripts import FOLDER, scripts
from leakage.runs.service import Service
from leakage.spec.experiment import SpecError

PAGE = FOLDER / "reader"
ENTRY = "reader/reader.js"
STYLES = ("reader.css", "hall.css")
NO_CACHE = {"Cache-Control": "no-cache"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
SMALLER = [Middleware(GZipMiddleware)]  # columns of numbers, words: a third of their size
FILMS = ("runs", "grids")  # folders below assets/lessons whose pictures are fetched


class Learning:
    """Answers what the reader asks; `base` is the prefix of our routes, such as `/gle`, or nothing."""

    def __init__(self, service: Service, base: str = "") -> None:
        self.service, self.base = service, base

    def routes(self) -> list[Route]:
        """The page, and the data below a folder that is named by its content."""
        data = f"{self.base}/api/learn/{{version}}"
        return [
            Route(f"{self.base}/learn", self.page, middleware=SMALLER),
            Route(f"{self.base}/learn/{{lesson}}", self.lesson_address),
            Route(f"{data}/lessons/{{lesson}}.json", self.lesson, middleware=SMALLER),
            Route(f"{data}/thumbnails/{{lesson}}.webp", self.thumbnail),
            Route(f"{data}/{{folder}}/{{name}}.webp", self.film),
        ]

    async def page(self, _request: Request) -> Response:
        """The reader, with the index of the lessons in it: which lesson is read stands behind the # of its address."""
        try:
            index = reader_index(self.service.catalog())
        except SpecError as error:
            return PlainTextResponse(str(error), 500)
        about = {"base": self.base, "data": f"{self.base}/api/learn/{data_version()}", "lessons": index}
        folder = scripts().folder(self.base)
        filled = {
            "__STYLE__": "".join((PAGE / name).read_text(encoding="utf-8") for name in STYLES),
            "__PRELOADS__": "\n".join(f'<link rel="modulepreload" href="{folder}/{name}">' for name in scripts().closure(ENTRY)),
            "__SCRIPT__": f"{folder}/{ENTRY}",
            "__BASE__": html.escape(self.base),
            "__ABOUT__": json.dumps(about, ensure_ascii=False).replace("<", "\\u003c"),
        }
        text = (PAGE / "reader.html").read_text(encoding="utf-8")
        for mark, value in filled.items():
            text = text.replace(mark, value)
        return HTMLResponse(text, headers=NO_CACHE)

    async def lesson_address(self, request: Request) -> Response:
        """An address such as /learn/07-noise leads to that lesson."""
        lesson = request.path_params["lesson"]
        there = lesson in {one.id for one in lessons()}
        return RedirectResponse(f"{self.base}/learn{'#' + lesson if there else ''}", 307)

    async def lesson(self, request: Request) -> Response:
        try:
            return JSONResponse(reader_lesson(request.path_params["lesson"], self.service.catalog()), headers=NO_CACHE)
        except SpecError as error:
            return PlainTextResponse(str(error), 404)

    async def thumbnail(self, request: Request) -> Response:
        try:
            return Response(thumbnail(request.path_params["lesson"]), media_type="image/webp", headers=FOREVER)
        except SpecError as error:
            return PlainTextResponse(str(error), 404)

    async def film(self, request: Request) -> Response:
        """The pictures of a recorded run or grid."""
        folder, name = request.path_params["folder"], request.path_params["name"]
        file = film_files().get(f"{folder}/{name}")
        if file is None:
            return PlainTextResponse("No such picture.", 404)
        return FileResponse(file, media_type="image/webp", headers=FOREVER)


def _films() -> Iterator[Path]:
    for folder in FILMS:
        yield from sorted((LESSONS / folder).glob("*.webp"))


@cache
def film_files() -> dict[str, Path]:
    """Every film by its name, such as `runs/r09`."""
    return {f"{file.parent.name}/{file.stem}": file for file in _films()}


@cache
def data_version() -> str:
    """Names the content of all lessons and recordings, so that a browser may keep their pictures."""
    digest = hashlib.sha256()
    for file in sorted(LESSONS.rglob("*.*")):
        content: Any = file.read_bytes()
        digest.update(f"{file.relative_to(LESSONS)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
