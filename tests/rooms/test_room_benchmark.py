"""The parts of benchmarks/load/room.py that count and read: how busy a second was, the rule of the phones, a chunked response."""

import asyncio
import sys
from functools import cache
from importlib import import_module
from types import ModuleType

import pytest
from event_loop import run_async

from leakage.settings import ROOT


@cache
def module(name: str) -> ModuleType:
    """A module of benchmarks/load."""
    folders = [str(ROOT / "benchmarks" / "load"), str(ROOT / "benchmarks")]
    sys.path[:0] = folders
    try:
        return import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)


@pytest.mark.parametrize(
    ("times", "most"),
    [([], 0), ([3.0], 1), ([0.0, 1.0, 2.0], 1), ([5.0, 0.9, 0.1, 1.05], 3), ([0.0, 0.6, 1.2, 1.4, 1.59], 4)],
)
def test_the_busiest_second_may_begin_anywhere(times: list[float], most: int) -> None:
    assert module("room").busiest_second(times) == most


def test_the_phones_of_the_benchmark_keep_the_pauses_of_the_page() -> None:
    script = (ROOT / "leakage" / "ui" / "components" / "room" / "room_stream.js").read_text()
    spans = module("_students").spans()
    for name in ("FIRST", "LATER", "PATIENCE"):
        low, high = (round(1000 * seconds) for seconds in spans[name])
        assert f"const {name} = [{low}, {high}];" in script
    assert f"const SILENCE = {round(1000 * spans['SILENCE'][0])};" in script


def test_a_chunked_response_is_read_up_to_its_end() -> None:
    async def read() -> list[bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"5\r\nfirst\r\nA\r\nthe\r\nvotes\r\n0\r\n\r\nthe next response")
        found = [chunk async for chunk in module("_students").chunks(reader)]
        return [*found, await reader.readexactly(8)]

    assert run_async(read()) == [b"first", b"the\r\nvotes", b"the next"]
