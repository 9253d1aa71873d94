"""Links from the lessons into the Lab open the very experiment of the recording."""

from urllib.parse import parse_qsl

import pytest
from page_visits import Open, asked, fine, press_run
from small_problems import CATALOG

from leakage.learn.lab_link import lab_query
from leakage.learn.planned import plan
from leakage.runs.service import Service
from leakage.spec.experiment import Experiment

RUNS = {name: run.experiment for name, run in plan().runs.items()}
LAST_CELLS = {name: grid.experiment(grid.cells()[-1]) for name, grid in plan().grids.items()}
LINKED = {name: experiment for name, experiment in {**RUNS, **LAST_CELLS}.items() if lab_query(experiment, CATALOG)}


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.long
def test_the_lab_opens_with_the_experiment_of_a_lesson(door: Service, visit: Open, name: str) -> None:
    experiment: Experiment = LINKED[name]
    at = visit(**dict(parse_qsl(lab_query(experiment, CATALOG) or "")))
    fine(at)
    assert [warning.value for warning in at.warning] == []
    first = [name for part in experiment.defenses for name in list(CATALOG.defenses.get(part.id).strategies)[:1]]
    if experiment.assume.strategy in first:  # the usual countermeasure by its name is the one that the Lab leaves unnamed
        experiment = experiment.model_copy(update={"assume": experiment.assume.model_copy(update={"strategy": ""})})
    assert asked(door, press_run(at)).resolve(CATALOG).digest() == experiment.resolve(CATALOG).digest()
