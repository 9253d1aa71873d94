"""The examples in docstrings compute what they say."""

import doctest

import pytest

import leakage
from leakage.api import arguments, attacking, normalization, plugins, scoring
from leakage.attacks import _generative
from leakage.engine import core, model, protocol, strategy
from leakage.evaluation import metrics
from leakage.networks import rank
from leakage.runs import thin

MODULES = [_generative, arguments, attacking, core, metrics, model, normalization, plugins, protocol, rank, scoring, strategy, thin]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.long
def test_the_examples_of_a_module_hold(module: object) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", leakage.__all__)
def test_each_public_name_of_the_api_has_an_example_that_holds(name: str) -> None:
    public = getattr(leakage, name)
    (found,) = [test for test in doctest.DocTestFinder(recurse=False).find(public, name) if test.examples]
    assert doctest.DocTestRunner().run(found).failed == 0
