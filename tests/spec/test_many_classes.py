"""Networks of up to 10,000 classes: what is allowed, what is refused, and that nothing else changes."""

import pytest
from page_visits import Open, asked, fine, press_run
from small_problems import CATALOG

from leakage.data.datasets import CLASSES
from leakage.results.changes import changes
from leakage.runs.estimates import timing_key
from leakage.runs.service import Service
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError, parse
from leakage.spec.refusals import MAX_CLASSES, classes_of
from leakage.spec.tasks import Ranks
from leakage.spec.threat_model import assumptions


@pytest.mark.parametrize("outputs", [10, 5749, 10_000])
def test_a_network_may_have_ten_thousand_classes(outputs: int) -> None:
    found = Experiment(outputs=outputs).resolve(CATALOG)
    assert found.num_classes == outputs
    assert parse(found.model_dump_json()) == found
    told = assumptions(found, CATALOG, None, {})
    assert f"{outputs} classes, cross-entropy" in next(value for _, what, value in told if what == "The model and its weights")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"outputs": 10_001}, "outputs: allowed is 10 (the classes of these pictures) to 10,000, given was 10001. Choose a number between"),
        ({"outputs": 9}, "outputs: allowed is 10 "),
        ({"outputs": 99, "pictures": (Picture(source="cifar100", id="0"),)}, "outputs: allowed is 100 "),
        ({"outputs": 100, "pictures": (Picture(source="lfw", id="0"),)}, "outputs: allowed is 5749 "),
        ({"outputs": 20, "task": "two"}, "outputs: with task two a network has one output, given was 20. Leave outputs out"),
        ({"outputs": 20, "pictures": (Picture(id="astronaut", label=20),)}, "pictures.label: allowed is 0 to 19, given was 20."),
        ({"outputs": 20, "model": Part(id="lenet"), "checkpoint": "lenet-cifar10@1"}, "Set classes to 10, or choose an untrained model"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SpecError) as refused:
        Experiment(**settings).resolve(CATALOG)
    assert words in str(refused.value)


def test_a_label_beyond_the_pictures_own_classes_is_allowed_where_the_network_has_it() -> None:
    private = (Picture(id="astronaut", label=5748),)
    assert Experiment(pictures=private, outputs=5749).resolve(CATALOG).pictures == private
    with pytest.raises(SpecError, match="0 to 9, given was 5748"):
        Experiment(pictures=private).resolve(CATALOG)
    with pytest.raises(SpecError, match="less than or equal to 9999"):
        parse({"pictures": [{"id": "astronaut", "label": MAX_CLASSES}]})


def test_left_out_the_data_are_as_they_were() -> None:
    usual = Experiment()
    assert "outputs" not in usual.model_dump_json()
    assert usual.num_classes == 10
    assert timing_key(usual) != timing_key(Experiment(outputs=5749))
    assert changes(usual, Experiment(outputs=5749), CATALOG) == "5,749 classes instead of 10 classes"


def test_sources_have_as_many_classes_as_names() -> None:
    assert {name: classes_of(name) for name in CLASSES} == {name: len(names) for name, names in CLASSES.items()}
    assert classes_of("lfw") == 5749
    assert Experiment(pictures=(Picture(id="astronaut"), Picture(source="faces", id="3"))).num_classes == 40


def test_an_accomplice_may_have_any_class_of_the_network() -> None:
    def refused(accomplice: Picture, **settings: object) -> str:
        try:
            Experiment(assume=Assumptions(accomplice=accomplice), **settings).resolve(CATALOG)
        except SpecError as error:
            return str(error)
        return ""

    person = Picture(source="faces", id="3")
    assert "its class must be one of the model's 10" in refused(person)
    assert refused(person, outputs=40) == ""
    assert refused(Picture(source="faces", id="3", label=9)) == ""
    assert refused(Picture(id="chelsea"), pictures=(person,)) == ""


def test_ranks_are_measured_of_as_many_outputs_where_memory_allows() -> None:
    assert Ranks(network="conv 5@4 /2 - conv 5@4 /2", outputs=10_000, channels=1, size=28).directions > 0
    assert Ranks(network="conv 4@12 /2", outputs=10_000).directions == 0  # 29 million numbers: too large, and the page says so


def test_the_page_asks_for_them_and_keeps_them_in_the_address(door: Service, visit: Open) -> None:
    at = visit()
    at.number_input(key="outputs").set_value(5749).run()
    fine(at)
    assert at.query_params["outputs"] in ("5749", ["5749"])
    assert asked(door, press_run(at)).outputs == 5749
    again = visit(outputs="10001")
    assert "outputs" in " ".join(box.value for box in again.warning)
    assert asked(door, press_run(again)).outputs == 0
