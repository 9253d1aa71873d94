"""A plug-in that cannot be read is named with what is wrong and what to do; the sentence goes when the file is corrected."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import leakage
import leakage.attacks
from leakage.spec import catalog
from leakage.workers import plugin_catalog

WHOLE = '''"""Planted by a test."""

from dataclasses import dataclass

from leakage.engine.core import Attack, param


@dataclass(frozen=True, kw_only=True)
class Mine(Attack):
    """Planted by a test."""

    title = "Your own attack"
    plain = "It does nothing."
    hint = "Nothing."
    source = "https://example.org"

    steps: int = param(3, 1, 9, "Steps.")
'''
MINE = "leakage/attacks/mine.py"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of one more attack, `mine`, which is the only attack in its folder."""
    folder = tmp_path / "leakage" / "attacks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(leakage.attacks, "__path__", [str(folder)])
    monkeypatch.setattr(plugin_catalog, "ids", lambda kind: ["mine"] if kind == "attack" else [])
    yield folder / "mine.py"
    sys.modules.pop("leakage.attacks.mine", None)


def fault_of(planted: Path, text: str) -> str:
    """The sentence with which the catalog is not written."""
    planted.write_text(text)
    catalog_file = planted.with_name("catalog.json")
    with pytest.raises(Exception):  # noqa: B017, PT011  (any error of a plug-in)
        plugin_catalog.write(catalog_file)
    assert not catalog_file.exists()
    return catalog.read_fault(catalog_file)


@pytest.mark.parametrize(
    ("line", "replacement", "sentence"),
    [
        ('    title = "Your own attack"\n', "", 'the class Mine has no title. Add a line title = "..." to it.'),
        (
            '    source = "https://example.org"\n',
            "",
            f'{MINE} is incomplete: the class Mine has no source. Add a line source = "..." to it.',
        ),
        (
            'param(3, 1, 9, "Steps.")',
            "3",
            f"{MINE} is incomplete: the field steps has no help text. Declare it with param, choice, flag or text",
        ),
        (
            'param(3, 1, 9, "Steps.")',
            "param(3, 1, 9)",
            f"{MINE}, line 17: TypeError: param() missing 1 required positional argument: 'sentence'.",
        ),
        ("@dataclass(frozen=True, kw_only=True)\n", "", "Mine is no dataclass. Write @dataclass(frozen=True, kw_only=True) above it."),
        ("(Attack):", "(Attack)", f"{MINE}, line 9: SyntaxError: expected ':'."),
        ("import Attack, param", "import Attack, parameter", f"{MINE}, line 5: ImportError: cannot import name 'parameter'"),
        ("class Mine(Attack)", "class Mine", f"{MINE} must define exactly one Attack; found 0."),
    ],
)
def test_a_plug_in_that_cannot_be_read_is_named_with_the_remedy(planted: Path, line: str, replacement: str, sentence: str) -> None:
    assert line in WHOLE
    said = fault_of(planted, WHOLE.replace(line, replacement))
    assert sentence in said
    assert said.startswith("The plug-ins cannot be listed")
    assert said.endswith("Correct the file, or move it elsewhere; then everything goes on by itself.")


def test_a_fault_is_forgotten_when_the_plug_in_is_corrected(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_of(planted, "1 / 0")
    file = planted.with_name("catalog.json")
    assert catalog.read_fault(file)
    with monkeypatch.context() as later:
        later.setattr(catalog, "version", lambda: "another")
        assert catalog.read_fault(file) == "", "of other files"
    planted.write_text(WHOLE)
    plugin_catalog.write(file)
    assert [entry.id for entry in catalog.read(file).attacks] == ["mine"]
    assert catalog.read_fault(file) == ""
    assert not catalog.fault_file(file).exists()


def test_a_model_is_no_value_for_an_attack_and_the_caller_reads_how_to_build_it() -> None:
    with pytest.raises(ValueError, match="'lenet' is a model") as raised:
        leakage.plugin("lenet")
    code = str(raised.value).split("you build: ")[1]
    assert code == "from leakage.models.lenet import LeNet; LeNet().build((1, 28, 28), 10)"
    exec(code)
