"""The routes of the reader: the page of the lessons, each lesson as data, and the pictures of what was recorded for them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from leakage.frontend.scripts import scripts
from leakage.learn.data_address import data_folder, data_version
from leakage.learn.lessons import FOLDER as LESSONS
from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_index, reader_lesson, thumbnail
from leakage.learn.stories import story_picture
from leakage.results.exports import Made
from leakage.results.slides import gif, png
from leakage.runs.service import Service
from leakage.spec.experiment import SpecError
from leakage.web.downloads import Downloads
from leakage.web.reader_page import ENTRY, program_page
from leakage.web.recorded_slides import recorded_slide
from leakage.web.routes import download
from leakage.web.worksheets import HandoutLinks, handout

NO_CACHE = {"Cache-Control": "no-cache"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
SMALLER = [Middleware(GZipMiddleware)]  # columns of numbers, words: a third of their size
SLIDES = {"png": png, "gif": gif}
FILMS = ("runs", "grids")  # folders below assets/lessons whose pictures are fetched


class Learning:
    """Answers what the reader asks; `base` is the prefix of our routes, such as `/gle`, or nothing."""

    def __init__(self, service: Service, base: str = "") -> None:
        self.service, self.base, self.drawn = service, base, Downloads()

    def routes(self) -> list[Route]:
        """The page, and the data below a folder that is named by its content."""
        data = f"{self.base}/api/learn/{{version}}"
        return [
            Route(f"{self.base}/learn", self.page, middleware=SMALLER),
            Route(f"{self.base}/learn/worksheets/{{name}}.html", self.handout, middleware=SMALLER),
            Route(f"{self.base}/learn/{{lesson}}", self.lesson_address),
            Route(f"{data}/lessons/{{lesson}}.json", self.lesson, middleware=SMALLER),
            Route(f"{data}/thumbnails/{{lesson}}.webp", self.thumbnail),
            Route(f"{data}/slides/{{name}}.{{kind}}", self.slide),
            Route(f"{data}/stories/{{run}}.webp", self.story),
            Route(f"{data}/{{folder}}/{{name}}.webp", self.film),
        ]

    async def page(self, _request: Request) -> Response:
        """The reader, with the index of the lessons in it: which lesson is read stands behind the # of its address."""
        try:
            index = reader_index(self.service.catalog())
        except SpecError as error:
            return PlainTextResponse(str(error), 500)
        base, folder = self.base, scripts().folder(self.base)
        page = program_page(
            {"base": base, "data": data_folder(base), "lessons": index},
            [f"{folder}/{name}" for name in scripts().closure(ENTRY)],
            home=f"{base}/",
            pages={"Learn": f"{base}/learn", "Lab": f"{base}/", "Compare": f"{base}/compare"},
        )
        return HTMLResponse(page, headers=NO_CACHE)

    async def lesson_address(self, request: Request) -> Response:
        """An address such as /learn/07-noise leads to that lesson."""
        lesson = request.path_params["lesson"]
        there = lesson in {one.id for one in lessons()}
        return RedirectResponse(f"{self.base}/learn{'#' + lesson if there else ''}", 307)

    async def handout(self, request: Request) -> Response:
        """A page to print."""
        name, here = request.path_params["name"], f"{request.url.scheme}://{request.url.netloc}{self.base}/learn/"
        links = HandoutLinks(f"{self.base}/learn", lambda lesson: here + lesson)
        try:
            made = await self.drawn.get((name, here, data_version()), lambda: Made("text/html", handout(name, links).encode()))
        except SpecError as error:
            return PlainTextResponse(str(error), 404)
        return HTMLResponse(made.data, headers=NO_CACHE)

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

    async def slide(self, request: Request) -> Response:
        """A recorded run as a picture for a slide, or as an animation, to be saved."""
        name, kind, known = request.path_params["name"], request.path_params["kind"], self.service.catalog()
        if kind not in SLIDES or f"runs/{name}" not in film_files():
            return PlainTextResponse("No such slide.", 404)
        if known is None:
            return PlainTextResponse("The list of attacks and protections is being made: try again in a few seconds.", 503)
        key = (name, kind, known.version, data_version())
        made = await self.drawn.get(key, lambda: Made(f"image/{kind}", SLIDES[kind](recorded_slide(name, known))))
        return download(made, f"leakage-{name}.{kind}", NO_CACHE)

    async def story(self, request: Request) -> Response:
        """What was private beside what became of it."""
        try:
            return Response(story_picture(request.path_params["run"]), media_type="image/webp", headers=FOREVER)
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
