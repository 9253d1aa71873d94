"""The API's documentation: every public part has arguments, results and errors, and a page shows it."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import leakage
from leakage.engine import core, observation, strategy
from leakage.spec.declarations import explanations

ROOT = Path(__file__).parents[1]
FUNCTIONS = [getattr(leakage, name) for name in leakage.__all__ if inspect.isfunction(getattr(leakage, name))]
VALUES = [getattr(leakage, name) for name in leakage.__all__ if inspect.isclass(getattr(leakage, name))]
VALUES = [
    *VALUES,
    observation.Batch,
    observation.Granted,
    observation.ProtectionKnowledge,
    observation.Observation,
    observation.Replay,
    observation.Round,
    observation.Simulator,
    observation.Snapshot,
    observation.TrainedGenerator,
    observation.Transcript,
    strategy.AdaptiveStrategy,
]
BASES = [core.Attack, core.Defense, core.Protocol, core.Model]


def section(doc: str, name: str) -> str:
    """What stands under "NAME:", up to the next section."""
    _, _, rest = inspect.cleandoc(doc).partition(f"\n{name}:\n")
    lines = rest.splitlines()
    ends = [number for number, line in enumerate(lines) if line and not line.startswith(" ")]
    return "\n".join(lines[: ends[0] if ends else len(lines)])


def named(doc: str) -> list[str]:
    """The arguments that a docstring explains."""
    own = section(doc, "Args").splitlines()
    rows = [line.strip() for line in own if line.startswith("    ") and not line.startswith("     ")]
    return [name.strip() for row in rows for name in row.partition(":")[0].split(",")]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_of_the_api_says_all(function: object) -> None:
    doc = inspect.getdoc(function) or ""
    assert named(doc) == list(inspect.signature(function).parameters)
    assert section(doc, "Returns")
    assert "TypeError, ValueError" in section(doc, "Raises")
    assert ">>>" in section(doc, "Example")
    assert "(B, C, H, W)" in doc


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.__name__)
def test_a_value_of_the_api_explains_its_fields(value: type) -> None:
    declared = explanations(strategy.StrategyDeclarations) if issubclass(value, strategy.StrategyDeclarations) else {}
    assert {*named(value.__doc__ or ""), *declared} == {name for name in getattr(value, "__dataclass_fields__", {}) if name != "_"}


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_a_base_class_shows_one_that_runs_and_all_that_may_be_implemented_says_what_goes_in_and_comes_out(base: type) -> None:
    assert f"({base.__name__})" in section(base.__doc__ or "", "Example") or base is core.Protocol
    methods = [method for name, method in vars(base).items() if inspect.isfunction(method) and not name.startswith("_")]
    for method in methods:
        arguments, doc = list(inspect.signature(method).parameters)[1:], method.__doc__ or ""
        assert named(doc) == arguments, method.__qualname__
        assert not arguments or section(doc, "Returns") or section(doc, "Yields"), method.__qualname__
    assert methods


@pytest.mark.long
def test_the_page_of_the_api_is_made(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "api_docs.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    pages = "".join((tmp_path / "leakage" / f"{name}.html").read_text() for name in ("api", "auditing"))
    assert all(f'id="{name}"' in pages for name in leakage.__all__)
    assert 'id="AdaptiveStrategy"' in (tmp_path / "leakage" / "engine" / "strategy.html").read_text()
    for base in BASES:
        page = tmp_path.joinpath(*base.__module__.split(".")).with_suffix(".html").read_text()
        assert f'id="{base.__name__}"' in page
