"""Our GET routes: live events, pictures and downloads of runs, scripts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from leakage.data.errors import PictureError
from leakage.frontend.scripts import ROUTE, scripts
from leakage.results import answer_file, comparison_exports, exports
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.spec.experiment import SpecError
from leakage.web.downloads import Downloads, key_of
from leakage.web.stream import Stream, ids_in_address, number

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
UNKEPT = {"Cache-Control": "no-store"}


class Routes:
    """What is fetched beside pages: the stream's events, and the pictures and downloads of runs."""

    def __init__(self, service: Service, store: Store, stream: Stream) -> None:
        self.service, self.store, self.stream, self.downloads = service, store, stream, Downloads()

    def below(self, base: str = "") -> list[Route]:
        """All GET routes, below a prefix such as `/gle`."""
        return [
            Route(f"{base}/api/runs/stream", self.stream.follow),
            Route(f"{base}/api/runs/{{run}}/{{name:path}}", self.file),
            Route(f"{base}/api/compare/{{name}}", self.comparison),
            Route(f"{base}/api/ask/{{name}}", self.answer),
            Route(f"{base}/api/plotly.min.js", self.plotly),
            Route(f"{base}{ROUTE}/{{version}}/{{name:path}}", self.script),
        ]

    async def file(self, request: Request) -> Response:
        """The private pictures, one frame, or a download of a run."""
        run, name = request.path_params["run"], request.path_params["name"]
        found = await asyncio.to_thread(self.service.look, run)
        if found and name == "private.png":
            return picture(found, await asyncio.to_thread(self.service.private, run))
        if found and name.startswith("frames/") and name.endswith(".png") and (seq := number(name[7:-4])) is not None:
            return picture(found, await asyncio.to_thread(self.store.frame, run, seq))
        try:
            export = await self.downloads.get(key_of([found], name), lambda: exports.make(self.store, run, name, self.service.catalog()))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        if found is None or export is None:
            return PlainTextResponse("Nothing to download: no such run, or it has no pictures yet.", 404)
        return download(export, f"leakage-{run[:6]}-{name}", None if found.shareable else UNKEPT)

    async def comparison(self, request: Request) -> Response:
        """A download of the runs `ids` together; it changes while they run, and may show uploads, so no browser keeps it."""
        name, ids = request.path_params["name"], ids_in_address(request)
        try:
            known = self.service.ready()
        except SpecError as error:
            return PlainTextResponse(str(error), 503)
        runs = await asyncio.to_thread(lambda: [self.service.look(run) for run in ids])
        try:
            export = await self.downloads.get(key_of(runs, name), lambda: comparison_exports.make(self.store, ids, name, known))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        if export is None:
            return PlainTextResponse("Nothing to download: no such runs, or they have no pictures yet.", 404)
        return download(export, f"leakage-{name}", UNKEPT)

    async def answer(self, request: Request) -> Response:
        """An answer of the page Ask: a page to print, which opens in the browser, or a file that asks the same again."""
        name, ids, given = request.path_params["name"], ids_in_address(request), dict(request.query_params)
        try:
            known = self.service.ready()
            made = await self.downloads.get(None, lambda: answer_file.make(self.store, ids, name, known, given))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        except SpecError as error:
            return PlainTextResponse(str(error), 400)
        if made is None:
            return PlainTextResponse("Nothing to show: no such runs, or they have no pictures yet.", 404)
        return Response(made.data, media_type=made.type, headers=UNKEPT) if name.endswith(".html") else download(made, name, UNKEPT)

    async def plotly(self, _request: Request) -> Response:
        """plotly.js from the installed package: no content delivery network is asked."""
        import plotly

        path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        return FileResponse(path, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    async def script(self, request: Request) -> Response:
        """A module of the components. Its address names its content, so a browser asks once."""
        found = scripts().find(request.path_params["version"], request.path_params["name"])
        if found is None:
            return PlainTextResponse("No such script in this version; reload the page.", 404, headers=UNKEPT)
        return Response(found, media_type="text/javascript", headers={"Cache-Control": "public, max-age=31536000, immutable"})


def picture(run: Run, png: bytes | None) -> Response:
    """A picture that never changes. Uploads leave no trace in the browser's cache: it may be a shared computer."""
    if png is None:
        return PlainTextResponse("No such picture.", 404)
    return Response(png, media_type="image/png", headers=FOREVER if run.shareable else UNKEPT)


def download(export: exports.Made, name: str, headers: Mapping[str, str] | None = None) -> Response:
    """A file that the browser saves instead of showing."""
    return Response(
        export.data, media_type=export.type, headers={**(headers or {}), "Content-Disposition": f'attachment; filename="{name}"'}
    )
