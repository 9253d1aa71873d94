"""The routes of the museum of papers: its page, and a recorded run as JSON for the page to play."""

from urllib.parse import quote

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from leakage.frontend.scripts import scripts
from leakage.learn.data_address import data_folder, data_version
from leakage.learn.paper_rows import museum
from leakage.learn.reader_data import reader_run
from leakage.results.exports import Download
from leakage.runs.service import Service
from leakage.spec.catalog import Catalog
from leakage.spec.experiment import SpecError
from leakage.web.downloads import Downloads
from leakage.web.papers_page import ENTRY, PageLinks, papers_page

NO_CACHE = {"Cache-Control": "no-cache"}
COMPRESSED = [Middleware(GZipMiddleware)]


class PaperRoutes:
    """The requests of the museum; `base` is the prefix of all addresses, such as `/gle`, or empty."""

    def __init__(self, service: Service, base: str = "") -> None:
        self.service, self.base, self.downloads = service, base, Downloads()

    def routes(self) -> list[Route]:
        """Return the routes of the page and of the runs that it plays."""
        return [
            Route(f"{self.base}/papers", self.page, middleware=COMPRESSED),
            Route(f"{self.base}/papers/{{name}}", self.redirect_to_paper),
            Route(f"{self.base}/api/learn/{{version}}/records/{{run}}.json", self.record, middleware=COMPRESSED),
        ]

    async def page(self, _request: Request) -> Response:
        """Respond with the museum; the part of its address after # selects a verdict, a paper or a row."""
        known = self.service.catalog()
        try:
            made = await self.downloads.get(("papers", known.version if known else "", data_version()), lambda: self.draw(known))
        except SpecError as error:
            return PlainTextResponse(str(error), 500)
        return HTMLResponse(made.data, headers=NO_CACHE)

    def draw(self, known: Catalog | None) -> Download:
        """Return the page for the installed plug-ins."""
        base, folder = self.base, scripts().folder(self.base)
        pages = {"Learn": f"{base}/learn", "Papers": f"{base}/papers", "Lab": f"{base}/", "Compare": f"{base}/compare"}
        about = {"base": base, "data": data_folder(base), "own": "", "lessons": []}
        modules = [f"{folder}/{name}" for name in scripts().closure(ENTRY)]
        return Download("text/html", papers_page(known, modules, about, PageLinks(f"{base}/", pages, f"{base}/")).encode())

    async def redirect_to_paper(self, request: Request) -> Response:
        """Redirect an address such as /papers/r-gap to that paper, or verdict, on the page."""
        return RedirectResponse(f"{self.base}/papers#{quote(request.path_params['name'])}", 307)

    async def record(self, request: Request) -> Response:
        """Respond with a recorded run that a row of the museum plays."""
        name = request.path_params["run"]
        if name not in {row.run for paper in museum().papers for row in paper.rows}:
            return PlainTextResponse("No row of a paper plays such a run.", 404)
        return JSONResponse(reader_run(name, self.service.catalog()), headers=NO_CACHE)
