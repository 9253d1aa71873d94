"""The examples in docstrings compute what they say."""

import doctest

import pytest

from leakage.api import attacking, plugins, scoring
from leakage.attacks import _generative
from leakage.engine import core, model, protocol, strategy
from leakage.evaluation import metrics
from leakage.networks import rank
from leakage.runs import thin

MODULES = [_generative, attacking, core, metrics, model, plugins, protocol, rank, scoring, strategy, thin]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_of_a_module_hold(module: object) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
