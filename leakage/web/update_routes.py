"""The route to which a page sends the files of a recorded update: written to disk piece by piece, never whole in memory."""

import asyncio
import errno
import logging
from contextlib import suppress

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from leakage.runs.connections import FULL
from leakage.runs.owners import COOKIE, owner_of
from leakage.runs.service import Service
from leakage.runs.update_sets import FILE_MB, MB
from leakage.web.owner_cookie import OWNER_ID

ROUTE = "/api/updates"
SILENT = 30.0  # seconds without a byte after which a transfer is given up
PIECE = MB  # bytes that are collected before they are written
NO_COOKIE = "This browser sends no cookie, by which its files are known. Allow cookies for this page, then reload it."
STALLED = f"No byte of this file has come for {SILENT:.0f} seconds. Send it again."
REMOVED = "These files were deleted meanwhile. Choose them again."
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_STORE = {"Cache-Control": "no-store"}
log = logging.getLogger(__name__)


class UpdateRoutes:
    """The requests that put files into a set and delete them; RequestFilter has checked that a page of this server sent them."""

    def __init__(self, service: Service) -> None:
        self.sets = service.updates

    def below(self, base: str = "") -> list[Route]:
        """Return the routes, below a prefix such as `/gle`."""
        return [Route(f"{base}{ROUTE}/{{owner}}/{{set}}/{{file}}", self.change, methods=["PUT", "DELETE"])]

    async def change(self, request: Request) -> Response:
        """Store or delete a file of a set, if a page of the same browser may fill this set. The body of a PUT is the file."""
        cookie = request.cookies.get(COOKIE, "")
        if not OWNER_ID.fullmatch(cookie):
            return answer(NO_COOKIE, 403)
        owner, file = owner_of(cookie), request.path_params["file"]
        name = f"{request.path_params['owner']}/{request.path_params['set']}"
        length = "0" if request.method == "DELETE" else request.headers.get("content-length", "")
        if refusal := self.sets.refusal(name, owner, file, length):  # in this thread: two transfers must not both take the last room
            status, text = refusal
            if status in (409, 413, 503):  # a page of ours sent it
                await skip(request)
            return answer(text, status)
        if request.method == "DELETE":
            await asyncio.to_thread(self.sets.remove, name, file)
            return answer()
        try:
            await self.receive(request, name, file, int(length))
        except ClientDisconnect:
            return answer("The transfer was aborted.", 400)
        except TimeoutError:
            return answer(STALLED, 408)
        except ValueError as error:
            return answer(str(error), 400)
        except OSError as error:
            log.warning("a file was not stored: %s", error.strerror)
            return answer(FULL, 507) if error.errno in NO_ROOM else answer(REMOVED, 409)
        return answer()

    async def receive(self, request: Request, name: str, file: str, size: int) -> None:
        """Write the body of a request into a file of a set.

        Raises:
            ClientDisconnect: the browser aborted the transfer.
            TimeoutError: no byte came for SILENT seconds.
            ValueError: the body is longer or shorter than `size`.
            OSError: the disk is full, or the set was deleted meanwhile.
        """
        with self.sets.receive(name, file, size) as draft:
            piece, came, stream = bytearray(), 0, request.stream()
            while True:
                try:
                    chunk = await asyncio.wait_for(anext(stream), SILENT)
                except StopAsyncIteration:
                    break
                came += len(chunk)
                if came > size:
                    raise ValueError(f"{file}: {size} bytes were announced, more came. Send it again.")
                piece += chunk
                if len(piece) >= PIECE:
                    await asyncio.to_thread(draft.write, piece)
                    piece = bytearray()
            await asyncio.to_thread(draft.write, piece)


async def skip(request: Request) -> None:
    """Read a body that is refused, up to the largest size of a file: a browser that is still sending does not read the answer."""
    came, stream = 0, request.stream()
    with suppress(TimeoutError, StopAsyncIteration, ClientDisconnect):
        while came <= FILE_MB * MB:
            came += len(await asyncio.wait_for(anext(stream), SILENT))


def answer(text: str = "", status: int = 0) -> Response:
    """Return a response with a sentence, or an empty one for success; no browser caches it."""
    return PlainTextResponse(text, status or (400 if text else 204), NO_STORE)
