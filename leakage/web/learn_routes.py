"""The routes of the page Learn: the page itself, each lesson as JSON, worksheets, and the pictures of the recorded runs."""

from functools import cache
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from leakage.frontend.own_script import ROUTE as OWN
from leakage.frontend.own_script import own_script, own_script_address, own_script_name
from leakage.frontend.scripts import scripts
from leakage.learn.data_address import data_folder, data_version
from leakage.learn.lessons import FOLDER as LESSONS
from leakage.learn.lessons import lessons
from leakage.learn.reader_data import reader_index, reader_lesson, thumbnail
from leakage.learn.stories import story_picture
from leakage.results.exports import Download
from leakage.results.slides import gif, png
from leakage.runs.service import Service
from leakage.spec.experiment import SpecError
from leakage.web.downloads import Downloads
from leakage.web.reader_page import ENTRY, reader_page
from leakage.web.recorded_slides import recorded_slide
from leakage.web.routes import download
from leakage.web.worksheets import HandoutLinks, handout

NO_CACHE = {"Cache-Control": "no-cache"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
COMPRESSED = [Middleware(GZipMiddleware)]  # text and columns of numbers shrink to a third
SLIDES = {"png": png, "gif": gif}
FILMS = ("runs", "grids")  # folders below assets/lessons/ from which the page fetches pictures


class LearnRoutes:
    """The requests of the page Learn; `base` is the prefix of all addresses, such as `/gle`, or empty."""

    def __init__(self, service: Service, base: str = "") -> None:
        self.service, self.base, self.downloads = service, base, Downloads()

    def routes(self) -> list[Route]:
        """Return the routes of the page and of its data; a hash of all data is part of the data's addresses."""
        data = f"{self.base}/api/learn/{{version}}"
        return [
            Route(f"{self.base}/learn", self.page, middleware=COMPRESSED),
            Route(f"{self.base}/learn/worksheets/{{name}}.html", self.handout, middleware=COMPRESSED),
            Route(f"{self.base}/learn/{{lesson}}", self.redirect_to_lesson),
            Route(f"{data}/lessons/{{lesson}}.json", self.lesson, middleware=COMPRESSED),
            Route(f"{data}/thumbnails/{{lesson}}.webp", self.thumbnail),
            Route(f"{data}/slides/{{name}}.{{kind}}", self.slide),
            Route(f"{data}/stories/{{run}}.webp", self.story),
            Route(f"{data}/{{folder}}/{{name}}.webp", self.film),
            Route(f"{self.base}{OWN}/{{name}}", self.own_script, middleware=COMPRESSED),
        ]

    async def page(self, _request: Request) -> Response:
        """Respond with the page Learn, which contains the index of all lessons; the part of its address after # selects a lesson."""
        try:
            index = reader_index(self.service.catalog())
        except SpecError as error:
            return PlainTextResponse(str(error), 500)
        base, folder = self.base, scripts().folder(self.base)
        page = reader_page(
            {"base": base, "data": data_folder(base), "own": own_script_address(base), "lessons": index, "rooms": True},
            [f"{folder}/{name}" for name in scripts().closure(ENTRY)],
            home=f"{base}/",
            pages={"Learn": f"{base}/learn", "Papers": f"{base}/papers", "Lab": f"{base}/", "Compare": f"{base}/compare"},
        )
        return HTMLResponse(page, headers=NO_CACHE)

    async def own_script(self, request: Request) -> Response:
        """Respond with the script that attacks a visitor's own picture inside the page."""
        if request.path_params["name"] != own_script_name():
            return PlainTextResponse("There is no such script. Reload the page.", 404)
        return Response(own_script(), media_type="text/javascript", headers=FOREVER)

    async def redirect_to_lesson(self, request: Request) -> Response:
        """Redirect an address such as /learn/07-noise to that lesson on the page Learn, or to the page's top if there is no such lesson."""
        id = request.path_params["lesson"]
        exists = id in {lesson.id for lesson in lessons()}
        return RedirectResponse(f"{self.base}/learn{'#' + id if exists else ''}", 307)

    async def handout(self, request: Request) -> Response:
        """Respond with a page to print: the plan for teachers, a worksheet, a solution, or the plan of a lesson."""
        name, address = request.path_params["name"], f"{request.url.scheme}://{request.url.netloc}{self.base}/learn/"
        links = HandoutLinks(f"{self.base}/learn", lambda lesson: address + lesson)
        key = (name, address, data_version())
        try:
            page = await self.downloads.get(key, lambda: Download("text/html", handout(name, links).encode()))
        except SpecError as error:
            return PlainTextResponse(str(error), 404)
        return HTMLResponse(page.data, headers=NO_CACHE)

    async def lesson(self, request: Request) -> Response:
        """Respond with a lesson as JSON."""
        try:
            return JSONResponse(reader_lesson(request.path_params["lesson"], self.service.catalog()), headers=NO_CACHE)
        except SpecError as error:
            return PlainTextResponse(str(error), 404)

    async def thumbnail(self, request: Request) -> Response:
        """Respond with the small picture of a lesson."""
        try:
            return Response(thumbnail(request.path_params["lesson"]), media_type="image/webp", headers=FOREVER)
        except SpecError as error:
            return PlainTextResponse(str(error), 404)

    async def slide(self, request: Request) -> Response:
        """Respond with a recorded run as a picture (PNG) or an animation (GIF) for a slide, as a download."""
        name, kind, known = request.path_params["name"], request.path_params["kind"], self.service.catalog()
        if kind not in SLIDES or f"runs/{name}" not in film_files():
            return PlainTextResponse("No such slide.", 404)
        if known is None:
            return PlainTextResponse("The list of attacks and protections is not complete yet. Try again in a few seconds.", 503)
        key = (name, kind, known.version, data_version())
        file = await self.downloads.get(key, lambda: Download(f"image/{kind}", SLIDES[kind](recorded_slide(name, known))))
        return download(file, f"leakage-{name}.{kind}", NO_CACHE)

    async def story(self, request: Request) -> Response:
        """Respond with a picture of the front page: private pictures beside their reconstructions."""
        try:
            return Response(story_picture(request.path_params["run"]), media_type="image/webp", headers=FOREVER)
        except SpecError as error:
            return PlainTextResponse(str(error), 404)

    async def film(self, request: Request) -> Response:
        """Respond with all pictures of a recorded run, or of a grid (the what-ifs of a lesson), in one WebP file."""
        folder, name = request.path_params["folder"], request.path_params["name"]
        file = film_files().get(f"{folder}/{name}")
        if file is None:
            return PlainTextResponse("No such picture.", 404)
        return FileResponse(file, media_type="image/webp", headers=FOREVER)


@cache
def film_files() -> dict[str, Path]:
    """Return the picture file of every recording, by "runs/NAME" (a run) or "grids/NAME" (all what-ifs of a lesson)."""
    return {f"{folder}/{file.stem}": file for folder in FILMS for file in sorted((LESSONS / folder).glob("*.webp"))}
