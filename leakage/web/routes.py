"""The GET routes of the program: live events, pictures and downloads of runs, scripts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from leakage.data.errors import PictureError
from leakage.frontend.scripts import ROUTE, scripts
from leakage.results import answer_file, comparison_exports, exports, run_strips
from leakage.results.strip_steps import parse_steps
from leakage.runs.service import Service
from leakage.runs.store import Run, Store
from leakage.spec.experiment import SpecError
from leakage.web.compressed import compressed
from leakage.web.downloads import Downloads, cache_key
from leakage.web.stream import Stream, ids_in_address, parse_seq

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
NO_STORE = {"Cache-Control": "no-store"}


class Routes:
    """The requests of pages: live events, pictures and downloads of runs, and scripts."""

    def __init__(self, service: Service, store: Store, stream: Stream) -> None:
        self.service, self.store, self.stream, self.downloads = service, store, stream, Downloads()

    def below(self, base: str = "") -> list[Route]:
        """Return all routes, below a prefix such as `/gle`."""
        return [
            Route(f"{base}/api/runs/stream", self.stream.follow),
            Route(f"{base}/api/runs/{{run}}/strip.{{kind}}", self.strip),
            Route(f"{base}/api/runs/{{run}}/{{name:path}}", self.file),
            Route(f"{base}/api/compare/strip.{{kind}}", self.strip),
            Route(f"{base}/api/compare/{{name}}", self.comparison),
            Route(f"{base}/api/ask/{{name}}", self.answer),
            Route(f"{base}/api/plotly.min.js", self.plotly),
            Route(f"{base}{ROUTE}/{{version}}/{{name:path}}", self.script),
        ]

    async def file(self, request: Request) -> Response:
        """Respond with the private pictures of a run, one of its frames, or one of its downloads."""
        id, name = request.path_params["run"], request.path_params["name"]
        run = await asyncio.to_thread(self.service.look, id)
        if run and name == "private.png":
            return picture(run, await asyncio.to_thread(self.service.private, id))
        if run and name.startswith("frames/") and name.endswith(".png") and (seq := parse_seq(name[7:-4])) is not None:
            return picture(run, await asyncio.to_thread(self.store.frame, id, seq))
        try:
            export = await self.downloads.get(cache_key([run], name), lambda: exports.make(self.store, id, name, self.service.catalog()))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        if run is None or export is None:
            return PlainTextResponse("Nothing to download: no such run, or it has no pictures yet.", 404)
        return download(export, f"leakage-{id[:6]}-{name}", None if run.shareable else NO_STORE)

    async def strip(self, request: Request) -> Response:
        """Respond with a strip of the run in the path, or of the runs `ids` together, at the steps `steps`, such as `steps=0,10,40`."""
        run, kind, asked = request.path_params.get("run"), request.path_params["kind"], parse_steps(request.query_params.get("steps", ""))
        ids = [run] if run else ids_in_address(request)
        try:
            known = self.service.ready()
        except SpecError as error:
            return PlainTextResponse(str(error), 503)
        runs = await asyncio.to_thread(lambda: [self.service.look(id) for id in ids])
        key = cache_key(runs, f"strip.{kind} {asked}")
        try:
            export = await self.downloads.get(key, lambda: run_strips.make(self.store, ids, kind, known, asked))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        if export is None:
            return PlainTextResponse("Nothing to download: no such run, or it has no pictures yet.", 404)
        cached = run and all(found and found.shareable for found in runs)
        return download(export, f"leakage-{run[:6]}-strip.{kind}" if run else f"leakage-strip.{kind}", None if cached else NO_STORE)

    async def comparison(self, request: Request) -> Response:
        """Respond with a download about the runs `ids` together. Browsers do not cache it: it can change, and may show uploads."""
        name, ids = request.path_params["name"], ids_in_address(request)
        try:
            known = self.service.ready()
        except SpecError as error:
            return PlainTextResponse(str(error), 503)
        runs = await asyncio.to_thread(lambda: [self.service.look(run) for run in ids])
        try:
            export = await self.downloads.get(cache_key(runs, name), lambda: comparison_exports.make(self.store, ids, name, known))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        if export is None:
            return PlainTextResponse("Nothing to download: no such runs, or they have no pictures yet.", 404)
        return download(export, f"leakage-{name}", NO_STORE)

    async def answer(self, request: Request) -> Response:
        """Respond with an answer of the page Ask: HTML to print, which opens in the browser, or a file that can ask the question again."""
        name, ids, parameters = request.path_params["name"], ids_in_address(request), dict(request.query_params)
        try:
            known = self.service.ready()
            file = await self.downloads.get(None, lambda: answer_file.make(self.store, ids, name, known, parameters))
        except PictureError as error:
            return PlainTextResponse(str(error), 404)
        except SpecError as error:
            return PlainTextResponse(str(error), 400)
        if file is None:
            return PlainTextResponse("Nothing to show: no such runs, or they have no pictures yet.", 404)
        return Response(file.data, media_type=file.type, headers=NO_STORE) if name.endswith(".html") else download(file, name, NO_STORE)

    async def plotly(self, _request: Request) -> Response:
        """Respond with plotly.js from the installed package, so that no page needs a content delivery network."""
        import plotly

        path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        return FileResponse(path, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    async def script(self, request: Request) -> Response:
        """Respond with a JavaScript module of the components; browsers cache it for ever, because its address contains its hash."""
        text = scripts().find(request.path_params["version"], request.path_params["name"])
        if text is None:
            return PlainTextResponse("No such script in this version; reload the page.", 404, headers=NO_STORE)
        return compressed(request, text, "text/javascript", {"Cache-Control": "public, max-age=31536000, immutable"})


def picture(run: Run, png: bytes | None) -> Response:
    """Return a response with a picture; browsers cache it for ever, but never an upload, because computers may be shared."""
    if png is None:
        return PlainTextResponse("No such picture.", 404)
    return Response(png, media_type="image/png", headers=FOREVER if run.shareable else NO_STORE)


def download(export: exports.Download, name: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a file that the browser saves under a name instead of showing it."""
    return Response(
        export.data, media_type=export.type, headers={**(headers or {}), "Content-Disposition": f'attachment; filename="{name}"'}
    )
