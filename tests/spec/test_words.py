"""The options of an experiment have words in all their forms, in one place."""

import ast
from typing import Any, get_args

import pytest

from leakage.settings import ROOT
from leakage.spec import words
from leakage.spec.experiment import Assumptions, Experiment
from leakage.ui.common import forms


@pytest.mark.parametrize(
    ("model", "field", "said"),
    [
        (Experiment, "task", words.TASKS),
        (Experiment, "loss", words.LOSSES),
        (Experiment, "batch_norm", words.BATCH_NORM),
        (Assumptions, "statistics", words.STATISTICS),
    ],
    ids=["task", "loss", "batch_norm", "statistics"],
)
def test_every_value_of_a_choice_has_words_and_no_other(model: Any, field: str, said: dict[str, words.Words]) -> None:
    assert tuple(said) == get_args(model.model_fields[field].annotation)
    for form in ("menu", "short", "sentence"):
        assert len({getattr(one, form) for one in said.values()}) == len(said)


def test_menus_offer_these_words() -> None:
    assert list(forms.TASKS.values()) == [said.menu for said in words.TASKS.values()]
    assert forms.ADAPTIVE == {"true": "Knows the protection (adaptive)", "false": "Does not know the protection (naive)"}


@pytest.mark.long
def test_no_other_dictionary_tells_the_same_choices() -> None:
    choices = [set(one) for one in (words.TASKS, words.LOSSES, words.BATCH_NORM, words.STATISTICS, words.ATTACKERS)]
    for folder in ("leakage/spec", "leakage/results", "leakage/ui", "leakage/web", "pages"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file.name == "words.py":
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Dict) and all(isinstance(value, ast.Constant | ast.JoinedStr) for value in node.values):
                    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
                    assert keys not in choices, f"{file}, line {node.lineno}: leakage/spec/words.py has these"
