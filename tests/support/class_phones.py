"""A class without browsers: a room that is opened and led by requests, and phones that vote and choose in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from leakage.web.lan import lan_addresses

# The modules of a QR code in a picture that has eight pixels for each: 1 is dark.
MODULES = """
(image) => {
  const canvas = document.createElement('canvas');
  const side = image.naturalWidth;
  Object.assign(canvas, { width: side, height: side });
  const pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const n = side / 8;
  const dark = (x, y) => pen.getImageData(8 * x + 4, 8 * y + 4, 1, 1).data[0] < 128 ? 1 : 0;
  return [...Array(n).keys()].map((y) => [...Array(n).keys()].map((x) => dark(x, y)));
}
"""


def lan_address(port: int) -> str:
    """Return the address of a server on this computer that its room's dialog offers first; skip the test where there is none."""
    if not (found := lan_addresses()):
        pytest.skip("this computer is in no network")
    return f"http://{found[0]}:{port}"


@contextmanager
def requests_to(address: str) -> Iterator[httpx.Client]:
    """A client whose requests come, like those of the server's own pages, from its origin, and through no proxy."""
    with httpx.Client(base_url=address, headers={"Origin": address}, trust_env=False, timeout=120) as client:
        yield client


def slot(number: int) -> str:
    """Return the token of a phone."""
    return f"{number:024x}"


def say(client: httpx.Client, code: str, number: int, **more: Any) -> None:
    """Say something as phone `number` of the room `code`: that it is here, a vote (beat, option, round), or a choice (beat, cell)."""
    answer = client.put(f"/api/class/{code}/me", json={"slot": slot(number), **more})
    assert answer.status_code == 204, answer.text


class Class:
    """A room that is open at beat 1 of a lesson; `key` is its teacher's."""

    def __init__(self, client: httpx.Client, lesson: str) -> None:
        self.client = client
        answer = client.post("/api/class", json={"lesson": lesson, "beat": 1})
        assert answer.status_code == 201, answer.text
        self.code, self.key = answer.json()["code"], answer.json()["key"]

    def lead(self, **what: Any) -> None:
        """Go to a beat, or act."""
        answer = self.client.post(f"/api/class/{self.code}/lead", json={"key": self.key, **what})
        assert answer.status_code == 204, answer.text

    def live(self, beat: int, cell: int) -> str:
        """Ask for a cell's live run as the teacher; return its id."""
        answer = self.client.post(f"/api/class/{self.code}/live", json={"key": self.key, "beat": beat, "cell": cell})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["run"])
