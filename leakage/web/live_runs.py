"""Live runs of a class: the cells of a what-if that are computed while the class looks on."""

import asyncio
import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from leakage.learn.planned import planned_grid
from leakage.rooms.room import Room
from leakage.rooms.room_errors import ANOTHER_BEAT, ONE_AT_A_TIME, TEACHER_ONLY, RoomError
from leakage.runs.connections import StoreError
from leakage.runs.rows import OPEN
from leakage.runs.service import Service
from leakage.spec.experiment import SpecError
from leakage.web.routes import Routes
from leakage.web.stream import Stream

NO_RUN = "There is no such run in this room."
LOOK = 1.0  # seconds between two looks whether a run has ended
QUEUE_FULL = "The class's queue is full. Look at the recorded result, or try again later."
log = logging.getLogger(__name__)


def owner_of_class(room: Room) -> str:
    """Return the owner of a room's runs: a class is one owner, so that nobody else waits longer because it has many students."""
    return f"class {room.code}"


class LiveRuns:
    """The live runs of all rooms."""

    def __init__(self, service: Service, stream: Stream, files: Routes) -> None:
        self.service, self.stream, self.files = service, stream, files
        self.asking = set[tuple[str, str]]()  # (code, who) of the requests that are being queued
        self.tasks = set[asyncio.Future[Any]]()

    async def ask(self, room: Room, by: str, beat: int, cell: int) -> str:
        """Queue the run of a cell, or find it if the class has asked for it already; return its id.

        Args:
            room: The room.
            by: "teacher", or the hashed token of a phone.
            beat: The beat with the what-if.
            cell: The number of the cell in its grid.

        Raises:
            RoomError: if this phone may not, or has a run that has not ended, or the queue is full.
        """
        grid = room.checked_cell(beat, cell)
        if by != "teacher" and not room.students:
            raise RoomError(TEACHER_ONLY, 403)
        if beat != room.beat:
            raise RoomError(ANOTHER_BEAT, 409)
        if (known := room.runs.get(beat, {}).get(cell)) and await self.is_good(known):
            return known
        if (room.code, by) in self.asking:
            raise RoomError(ONE_AT_A_TIME, 429)
        self.asking.add((room.code, by))
        try:
            if await self.is_open(room.asked.get(by, "")):
                raise RoomError(ONE_AT_A_TIME, 429)
            planned = planned_grid(grid)
            run = await asyncio.to_thread(self.service.submit, planned.experiment(planned.cells()[cell]), owner_of_class(room))
        except SpecError:
            log.info("a class's run was not queued", exc_info=True)
            raise RoomError(QUEUE_FULL, 429) from None
        finally:
            self.asking.discard((room.code, by))
        room.asked[by] = run
        room.show_run(beat, cell, run)
        if by == "teacher":
            self.keep(asyncio.ensure_future(self.follow(room, run)))
        return run

    async def follow(self, room: Room, run: str) -> None:
        """Let the class know that its teacher computes a run, until the run has ended."""
        room.computes(run, now=True)
        try:
            while not (room.closed or self.stream.closing) and await self.is_open(run):
                await asyncio.sleep(LOOK)
        finally:
            room.computes(run, now=False)

    def keep(self, task: asyncio.Future[Any]) -> None:
        """Hold a task until it is done: the loop itself does not."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def is_open(self, run: str) -> bool:
        """Return whether a run waits or is being computed."""
        found = await asyncio.to_thread(self.service.look, run) if run else None
        return found is not None and found.status in OPEN

    async def is_good(self, run: str) -> bool:
        """Return whether a run waits, is being computed or has ended well."""
        found = await asyncio.to_thread(self.service.look, run)
        return found is not None and found.status in (*OPEN, "done")

    async def show(self, room: Room | None, request: Request) -> Response:
        """Respond with the events or a picture of a live run of this room."""
        run, name = request.path_params["run"], request.path_params["name"]
        if room is None or not any(run in cells.values() for cells in room.runs.values()):
            return PlainTextResponse(NO_RUN, 404)
        if name == "events":
            return await self.stream.listen(request, [run], owner=f"class {room.code} {request.query_params.get('slot', '')}")
        if name == "private.png" or name.startswith("frames/"):
            return await self.files.file(request)
        return PlainTextResponse(NO_RUN, 404)

    def forget(self, room: Room) -> None:
        """Delete the runs of a closed room, also those of its earlier lessons and of the time before a restart of the server."""
        self.keep(asyncio.ensure_future(asyncio.to_thread(self.delete, owner_of_class(room))))

    def delete(self, owner: str) -> int:
        """Delete the runs of an owner, and return how many there were."""
        try:
            return self.service.delete_all(owner)
        except StoreError as error:
            log.warning("the runs of a class were not deleted: %s", error)
            return 0
