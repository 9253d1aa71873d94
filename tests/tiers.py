"""Which tests run when: a pairwise part of the large products, what runs one after the other, and no network while tests are collected."""

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from torch import nn

ALONE = pytest.mark.xdist_group("ALONE")  # one after the other in one process: they watch times, memory and processes
STARTERS = {"dispatcher", "server", "school"}  # fixtures that start processes
BROWSER = Path(__file__).parent / "browser"


def covering(cases: Sequence[dict[str, Hashable]]) -> set[int]:
    """The numbers of some cases in which every pair of values, of any two parameters, occurs that occurs in all of them.

    Greedy: again and again the case with the most pairs that are new; of equals the first. So it is the same in every process.
    """
    pairs = [set(combinations(sorted(case.items(), key=lambda item: item[0]), min(2, len(case)))) for case in cases]
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
        if item.get_closest_marker("pairwise"):
            products[item.nodeid.partition("[")[0]].append(item)
    for cases in products.values():
        needed = covering([{name: repr(value) for name, value in case.callspec.params.items()} for case in cases])
        for number, case in enumerate(cases):
            if number not in needed:
                case.add_marker(pytest.mark.grid)


def _shares_a_module_fixture(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo", None)
    return fixtures is not None and any(
        found[-1].scope == "module" and not found[-1].argname.startswith("_") for found in fixtures.name2fixturedefs.values() if found
    )


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_to_the_grid(items)
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker(pytest.mark.browser)
        elif STARTERS & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("processes"):
            raise pytest.UsageError(f"{item.nodeid} starts processes: mark it with `processes`")
        if item.get_closest_marker("browser") or item.get_closest_marker("processes"):
            item.add_marker(ALONE)
        elif _shares_a_module_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))  # made once, in the process of its file


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Whoever only lists the tests waits for no engine."""

    def refuse(self: nn.Module, *_given: object, **_named: object) -> None:
        raise RuntimeError(f"{type(self).__name__} is built while tests are collected: build it in the test or in a fixture")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.Module, "__init__", refuse)
        return (yield)
