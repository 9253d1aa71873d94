"""Eight variants of a comparison together against one, by formula and by autograd; and how fast the page answers meanwhile."""

import time
from statistics import median
from typing import Any

from live import Site, browser
from loop import experiment
from playwright.sync_api import Page

from leakage.runs.notes import SPEEDS
from leakage.runs.service import Service
from leakage.runs.store import OPEN
from leakage.spec.experiment import Assumptions, Experiment, Part

ARMS = 8
STEPS = 2000
ROUNDS = 5
STACKS: tuple[tuple[Part, ...], ...] = (
    (),
    (Part(id="gaussian_noise", fields={"scale": 0.01}),),
    (Part(id="pruning", fields={"fraction": 0.9}),),
    (Part(id="ada_defense"),),
)
PAGE = (
    "v=1&attack=inverting_gradients&inverting_gradients.steps=24000&differs=strength&swept=gaussian_noise.scale"
    "&values=0.0001,0.0003,0.001,0.003,0.01,0.03,0.1,0.3&voices=naive"
)
CLICKS = 6


def arms(seed: int) -> list[Experiment]:
    """Four protections, each against a naive and an adaptive attacker."""
    base = experiment("lenet", STEPS).model_copy(update={"seed": seed})
    attackers = [Assumptions(adaptive=adaptive) for adaptive in (True, False)]
    return [base.model_copy(update={"defenses": stack, "assume": attacker}) for stack in STACKS for attacker in attackers]


def until_done(doors: Service, chosen: list[Experiment], group: str) -> float:
    """Submit them as the page does and wait; seconds until the last has ended."""
    began = time.perf_counter()
    runs = doors.submit_all(chosen, "bench", group=group)
    while any(run.status in OPEN for run in map(doors.look, runs) if run):
        time.sleep(0.02)
    return time.perf_counter() - began


def wait_for_workers(site: Site) -> Service:
    """Return the runs of a site whose workers are ready. They do not measure the machine, which would take a core for a minute."""
    doors = site.service()
    doors.store.put_note(SPEEDS, {"lenet": (0.01, 0.02)})
    while not doors.catalog():
        time.sleep(0.5)
    until_done(doors, arms(0), "warm")
    return doors


def eight_runs(doors: Service, by_autograd: Service) -> dict[str, Any]:
    """Time one variant, eight, and one by autograd in turn, ROUNDS times, from submission until all runs have ended.

    Args:
        doors: the runs of a site that computes by formula.
        by_autograd: the runs of a second site, which has LEAKAGE_STEP=autograd.

    Returns:
        Medians of the seconds ("one_s", "eight_s", "by_autograd_s"), and of the ratios within a round: eight variants to one ("ratio"), and
        to one by autograd ("ratio_by_autograd").
    """
    one, eight, autograd = list[float](), list[float](), list[float]()
    for round_ in range(ROUNDS):
        one.append(until_done(doors, arms(100 + round_)[:1], "one"))
        eight.append(until_done(doors, arms(200 + round_), "eight"))
        autograd.append(until_done(by_autograd, arms(300 + round_)[:1], "one"))
    return {
        "arms": ARMS,
        "steps": STEPS,
        "rounds": ROUNDS,
        "one_s": median(one),
        "eight_s": median(eight),
        "by_autograd_s": median(autograd),
        "ratio": median(many / single for single, many in zip(one, eight, strict=True)),
        "ratio_by_autograd": median(many / single for single, many in zip(autograd, eight, strict=True)),
    }


def clicks(site: Site) -> dict[str, Any]:
    """Measure the seconds until the page answers a click, with nothing running and with eight variants live."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(f"{site.url}/compare?{PAGE}")
        page.get_by_role("button", name="Run all").wait_for(timeout=60_000)
        page.wait_for_timeout(2000)
        idle = answers(page)
        page.get_by_role("button", name="Run all").click()
        live = "[...document.querySelectorAll('.gle-run')].filter((one) => one.dataset.status === 'running').length"
        page.wait_for_function(f"() => {live} === {ARMS}", timeout=60_000)
        page.wait_for_timeout(2000)
        taken = answers(page)
        assert page.evaluate(f"() => {live}") == ARMS, "the runs ended too early: nothing was measured"
        page.close()
    return {"live": ARMS, "idle_s": median(idle), "median_s": median(taken), "worst_s": max(taken)}


def answers(page: Page) -> list[float]:
    """Choose other attackers and back: that is another number of runs, which the caption below the button counts."""
    caption, taken = page.locator(".st-key-run-bar"), []
    for attacker in ("Both", "Naive") * (CLICKS // 2):
        before = caption.inner_text()
        began = time.perf_counter()
        page.get_by_role("radio", name=attacker, exact=True).click()
        changed = "(before) => (document.querySelector('.st-key-run-bar')?.innerText ?? before) !== before"
        page.wait_for_function(changed, arg=before, polling=10, timeout=20_000)
        taken.append(time.perf_counter() - began)
        page.wait_for_timeout(700)
    return taken
