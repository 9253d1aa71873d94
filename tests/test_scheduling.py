"""A covering has every pair of values, the grid the rest; collection builds no network, and tests that start processes say so."""

from collections.abc import Callable
from itertools import combinations, product

import pytest
from scheduling import covering, gives_way

from leakage.settings import ROOT

SIZES = [(2, 2, 2), (3, 4, 2, 5), (11, 5, 2, 15)]
NAMES = "abcd"
Run = Callable[..., tuple[int, str]]


def cases(sizes: tuple[int, ...]) -> list[dict[str, str]]:
    return [{NAMES[place]: str(value) for place, value in enumerate(values)} for values in product(*map(range, sizes))]


def pairs(some: list[dict[str, str]]) -> set[tuple[tuple[str, str], ...]]:
    return {pair for case in some for pair in combinations(case.items(), 2)}


@pytest.mark.parametrize("sizes", SIZES)
def test_every_pair_of_values_occurs_in_a_covering_which_is_much_smaller(sizes: tuple[int, ...]) -> None:
    every = cases(sizes)
    chosen = [every[number] for number in sorted(covering(every))]
    assert len(pairs(every)) == sum(one * other for one, other in combinations(sizes, 2))
    assert pairs(chosen) == pairs(every)
    most, second = sorted(sizes)[-1:-3:-1]
    assert most * second <= len(chosen) <= 1.6 * most * second  # each case has one pair of the two longest parameters


def test_of_cases_that_were_left_out_beforehand_nothing_is_asked() -> None:
    some = [case for case in cases((3, 3, 3)) if case["a"] != case["b"]]
    chosen = [some[number] for number in covering(some)]
    assert pairs(chosen) == pairs(some)


def test_of_two_parameters_and_of_one_nothing_can_be_left_out() -> None:
    assert covering(cases((4, 3))) == set(range(12))
    assert covering([{"a": "1"}, {"a": "2"}]) == {0, 1}


def test_of_two_parameters_that_are_apart_no_pairs_are_asked_for() -> None:
    every = cases((7, 3, 7))
    chosen = [every[number] for number in covering(every, ("a", "c"))]
    asked = {pair for pair in pairs(every) if {name for name, _ in pair} != {"a", "c"}}
    assert asked <= pairs(chosen)
    assert len(chosen) == 21  # a covering of all pairs has 49 at least


def test_beside_a_browser_the_tests_of_no_chain_give_way_and_without_one_nobody_does() -> None:
    browser, server, other = "tests/browser/test_lab.py::test_a", "tests/web/test_server.py::test_b[c]", "tests/api/test_attack.py::test_d"
    assert [gives_way(nodeid, browser) for nodeid in (browser, server, other)] == [False, False, True]
    assert not any(gives_way(nodeid, first) for first in (server, other) for nodeid in (server, other))


# ---------------------------------------------------------------- as pytest uses it

PRODUCT = """
import pytest

@pytest.mark.pairwise
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", "xyz")
@pytest.mark.parametrize("c", [None, True, (1, 2)])
def test_product(a, b, c): ...

@pytest.mark.parametrize("a", range(3))
def test_other(a): ...
"""
BUILDS = "import torch\nNET = torch.nn.Linear(2, 2)\ndef test_net(): ...\n"
BUILDS_LATER = "import torch\ndef test_net():\n    assert torch.nn.Linear(2, 2)(torch.zeros(1, 2)).shape == (1, 2)\n"
STARTS = "import pytest\n@pytest.fixture\ndef dispatcher(): ...\nMARK\ndef test_started(dispatcher): ...\n"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest with our marks on files that a test writes: the exit code, and what it says."""
    (pytester.path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())

    def started(*words: str, **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (pytester.path / f"test_{name}.py").write_text(text)
        done = pytester.runpytest_inprocess("-p", "scheduling", "-p", "no:cacheprovider", "-q", *words, str(pytester.path))
        return int(done.ret), f"{done.stdout}\n{done.stderr}"

    return started


def test_what_the_covering_leaves_is_the_grid_and_both_are_all(run: Run) -> None:
    files = {"product": PRODUCT}
    needed, rest = ({line for line in run("--collect-only", *how, **files)[1].splitlines() if "::" in line} for how in ((), ("-m", "grid")))
    assert needed & rest == set()
    assert len(needed | rest) == 27 + 3
    assert all("test_product[" in line for line in rest)
    assert 9 <= len(needed) - 3 <= 12  # nine cases can hold the 27 pairs of three times three values


def test_a_network_built_while_tests_are_collected_is_an_error_and_in_a_test_it_is_none(run: Run) -> None:
    code, said = run("--continue-on-collection-errors", early=BUILDS, later=BUILDS_LATER)
    assert code == 1
    assert "Linear is built while tests are collected: build it in the test or in a fixture" in said
    assert "1 passed, 1 error" in said


def test_who_starts_processes_has_to_say_so(run: Run) -> None:
    code, said = run(started=STARTS.replace("MARK\n", ""))
    assert code == 4
    assert "test_started starts processes: mark it with `processes`" in said
    assert run(started=STARTS.replace("MARK", "@pytest.mark.processes"))[0] == 0
