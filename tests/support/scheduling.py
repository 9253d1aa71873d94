"""Which tests run when: pairs of the large products, chains of tests one after the other, no network during collection."""

import gc
import heapq
import os
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from torch import nn
from xdist.scheduler import LoadScopeScheduling

# Each of the two one after the other: they watch times, memory and processes, wait for these much of the time, and take longest.
CHAINS = {"tests/browser/": "browser"} | dict.fromkeys(
    (
        "tests/adapters/test_federations.py",
        "tests/runs/test_broken_home.py",
        "tests/runs/test_private_home.py",
        *(
            f"tests/web/test_{name}.py"
            for name in ("connection_limits", "dispatcher_watch", "downloads", "hostile_requests", "password", "request_filter")
        ),
        *(f"tests/web/test_{name}.py" for name in ("page_sessions", "room_stream", "server", "upload_quota")),
        *(f"tests/workers/test_{name}.py" for name in ("audit_job", "faults", "limits", "rank_job", "ray", "recorder", "timing")),
        *(f"tests/workers/test_{name}.py" for name in ("training_job", "worker", "yielding")),
    ),
    "processes",
)
STARTERS = {"dispatcher", "server", "school"}  # fixtures that start processes
POLITE = 10  # niceness of a process with tests that wait for no other process
TESTS = Path(__file__).parents[1]
BROWSER = TESTS / "browser"


def chain(nodeid: str) -> str:
    """Return the chain that a test belongs to, or ""."""
    return next((name for start, name in CHAINS.items() if nodeid.startswith(start)), "")


def gives_way(nodeid: str, first: str) -> bool:
    """Return whether a test leaves the cores to the chains: it is in no chain, and `first` of its process is a browser test."""
    return not chain(nodeid) and chain(first) == "browser"


def covering(cases: Sequence[dict[str, Hashable]], apart: tuple[str, ...] = ()) -> set[int]:
    """Return numbers of cases that together have every pair of values of any two parameters that occurs in all cases.

    Pairs of two parameters that are named `apart` are not asked for. Greedy: again and again the case with the most pairs that are new; of
    equals the first. So it is the same in every process.
    """
    every = [combinations(sorted(case.items(), key=lambda item: item[0]), min(2, len(case))) for case in cases]
    pairs = [{pair for pair in found if not apart or {name for name, _ in pair} != set(apart)} for found in every]
    queue = [(-len(found), number) for number, found in enumerate(pairs)]
    heapq.heapify(queue)
    covered: set[Hashable] = set()
    chosen = set()
    while queue:
        promised, number = heapq.heappop(queue)
        new = len(pairs[number] - covered)
        if new == -promised and new:
            chosen.add(number)
            covered |= pairs[number]
        elif new:  # fewer than when it was put there: its turn comes later
            heapq.heappush(queue, (-new, number))
    return chosen


def leave_to_the_grid(items: Sequence[pytest.Item]) -> None:
    """Mark with `grid` the cases of `pairwise` tests that a covering does not need."""
    products = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("pairwise"):
            products[item.nodeid.partition("[")[0], mark.args].append(item)
    for (_, apart), cases in products.items():
        needed = covering([{name: repr(value) for name, value in case.callspec.params.items()} for case in cases], apart)
        for number, case in enumerate(cases):
            if number not in needed:
                case.add_marker(pytest.mark.grid)


class Scheduling(LoadScopeScheduling):
    """A file's tests run in one process, which makes its fixtures once; those of a chain in one, too.

    Not by the marks of `--dist loadgroup`: with pytest 9.2 pytest-xdist 3.8 passes over them without a word.
    """

    def _split_scope(self, nodeid: str) -> str:
        return chain(nodeid) or nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    config.option.loadscopereorder = False  # in the order of collection, which begins with what takes longest
    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_to_the_grid(items)
    if hasattr(config, "workerinput"):  # of one process among several: else the chains would end after all others
        items.sort(key=lambda item: not chain(item.nodeid))
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker(pytest.mark.browser)
        elif STARTERS & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("processes"):
            raise pytest.UsageError(f"{item.nodeid} starts processes: mark it with `processes`")
        if item.get_closest_marker("processes") and item.path.is_relative_to(TESTS) and not chain(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid} starts processes: name its file in CHAINS")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of the chains wait for servers, workers and a browser, and fail when these are too slow: the cores are theirs first."""
    if hasattr(item.config, "workerinput") and gives_way(item.nodeid, item.session.items[0].nodeid):
        os.nice(max(0, POLITE - os.nice(0)))  # for good: a process that is through with a chain runs no other


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without networks and without garbage collections, so that listing tests is fast.

    The garbage collector passes over the collected tests from then on: they are a million objects, and live as long as the process.
    """

    def refuse(self: nn.Module, *_given: object, **_named: object) -> None:
        raise RuntimeError(f"{type(self).__name__} is built while tests are collected: build it in the test or in a fixture")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.Module, "__init__", refuse)
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries report objects that are left when the process ends
