"""The bodies of requests to a room: JSON of at most 500 bytes."""

from typing import Annotated, Literal, TypeVar

from pydantic import Field
from starlette.requests import Request

from leakage.rooms.room_errors import RoomError
from leakage.spec.json_reading import parse_as
from leakage.spec.part import Base

MAX_BYTES = 500
TOO_LONG = f"A request to a room has at most {MAX_BYTES} bytes."

Slot = Annotated[str, Field(pattern=r"^[0-9a-f]{24}$")]
"""The random token of a phone."""
Key = Annotated[str, Field(min_length=16, max_length=64)]
"""The random key of the teacher's page."""
Body = TypeVar("Body", bound=Base)


class Opening(Base):
    """Open a room at a beat of a lesson; or, with code and key, open the same room again, at a round of the beat's question.

    With code and key of an open room and another lesson: take that room to the lesson.
    """

    lesson: str = Field(max_length=60)
    beat: int = 1
    code: str = Field(default="", max_length=5)
    key: str = Field(default="", max_length=64)
    round: int = Field(default=0, ge=0, le=1000)
    second: bool = False
    revealed: bool = False
    students: bool = False


class Saying(Base):
    """What a phone says: that it is here, its vote in a round of a question, or the cell that it chose in a what-if."""

    slot: Slot
    beat: int | None = None
    option: int | None = None
    round: int = Field(default=0, ge=0, le=1000)
    cell: int | None = None


class Leading(Base):
    """What the teacher does: lead the class to a beat, or an act."""

    key: Key
    beat: int | None = None
    act: Literal["reveal", "hide", "again", "clear", "lock", "unlock", "students", "teacher", "close"] | None = None


class LiveRequest(Base):
    """Compute a cell of a what-if live; for the teacher with the key, for a phone with its token."""

    beat: int
    cell: int
    slot: Slot | None = None
    key: Key | None = None


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Return the body of a request. Raises RoomError if it is too long, SpecError if it is not valid."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise RoomError(TOO_LONG, 413)
    return parse_as(body, kind, "a request to a room")
