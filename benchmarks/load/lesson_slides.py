"""One browser asks for 60 slides of the lessons at once: how long another browser waits for a picture of a run meanwhile."""

import asyncio
import itertools
import time
from typing import Any

import httpx
from _site import Site, until

from leakage.learn.data_address import data_folder
from leakage.learn.lessons import FOLDER


def measure(site: Site, count: int) -> dict[str, Any]:
    """Measure the longest and the median wait for pictures, in seconds, while another browser's slides are drawn."""
    until(site.service.recorded, 60)
    picture = f"/api/runs/{site.service.recorded()}/private.png"
    names = sorted(file.stem for file in (FOLDER / "runs").glob("*.webp"))
    slides = [f"{data_folder('')}/slides/{name}.{kind}" for kind, name in itertools.product(("png", "gif"), names)][:count]
    waits, took = asyncio.run(_ask(site, picture, slides))
    again = asyncio.run(_ask(site, picture, slides))[1]
    return {
        "slides": len(slides),
        "pictures": len(waits),
        "median_s": sorted(waits)[len(waits) // 2],
        "longest_s": max(waits),
        "all_slides_s": took,
        "the_same_again_s": again,
    }


async def _ask(site: Site, picture: str, slides: list[str]) -> tuple[list[float], float]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=site.address, timeout=120, limits=limits) as web:
        began, waits = time.perf_counter(), list[float]()
        asked = asyncio.gather(*(web.get(slide) for slide in slides))
        await asyncio.sleep(0.2)
        while True:
            before = time.perf_counter()
            (await web.get(picture)).raise_for_status()
            waits.append(time.perf_counter() - before)
            if asked.done():
                break
            await asyncio.sleep(0.05)
        for answer in await asked:
            answer.raise_for_status()
        return waits, time.perf_counter() - began
