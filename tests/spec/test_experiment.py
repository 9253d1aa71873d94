"""An experiment survives JSON; impossible settings are refused with the field, the allowed and the given value."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from small_problems import CATALOG

from leakage.settings import ROOT
from leakage.spec.catalog import Entries
from leakage.spec.experiment import MAX_BATCH, Assumptions, Experiment, Part, Picture, SpecError, parse
from leakage.spec.tasks import Training

FULL = Experiment(
    pictures=(Picture(id="chelsea"), Picture(source="cifar100", id="17", label=99), Picture(source="upload", id="a1", label=0)),
    size=64,
    channels=1,
    model=Part(id="mlp", fields={"width": 64, "activation": "tanh"}),
    batch_norm="batch",
    defenses=(Part(id="pruning", fields={"fraction": 0.5}), Part(id="gaussian_noise")),
    attack=Part(id="inverting_gradients", fields={"steps": 10, "signed": False, "tv_weight": 1e-6}),
    assume=Assumptions(labels=True, adaptive=False),
    seed=2**31 - 1,
    max_seconds=3600,
)


def refused(raw: dict[str, Any] | str | bytes) -> str:
    """The sentence with which an experiment is refused."""
    with pytest.raises(SpecError) as caught:
        parse(raw).resolve(CATALOG)
    return str(caught.value)


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("experiment", [Experiment(), FULL, FULL.resolve(CATALOG)], ids=["default", "full", "resolved"])
def test_an_experiment_survives_json(experiment: Experiment) -> None:
    text = experiment.model_dump_json()
    assert parse(text) == parse(text.encode()) == parse(json.loads(text)) == experiment
    assert parse(text).model_dump_json() == text


def test_an_empty_object_is_the_lab_as_it_opens() -> None:
    assert parse("{}") == Experiment()
    assert Experiment().pictures == (Picture(source="gallery", id="astronaut"),)


def test_resolving_spells_out_every_field_and_changes_nothing_the_second_time() -> None:
    resolved = FULL.resolve(CATALOG)
    declared = {field.name: field.default for field in CATALOG.attacks.get("inverting_gradients").fields}
    assert resolved.attack.fields == declared | {"steps": 10, "tv_weight": 1e-6, "signed": False}
    assert resolved.model.fields == {"width": 64, "depth": 2, "activation": "tanh", "normalise": "none"}
    pruning = {"fraction": 0.5, "scope": "each tensor", "feedback": False}  # also of a file from before there was a choice
    assert [part.fields for part in resolved.defenses] == [pruning, {"scale": 0.01}]
    assert resolved.resolve(CATALOG) == resolved


def test_equal_experiments_have_equal_digests_however_they_were_written() -> None:
    short = parse('{"attack": {"id": "dlg"}}').resolve(CATALOG)
    with_defaults = parse('{"attack": {"id": "dlg", "fields": {"restarts": 8, "steps": 300.0}}, "size": 32, "seed": 1}').resolve(CATALOG)
    assert short.digest() == with_defaults.digest()
    assert len(short.digest()) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"size": 28},
        {"batch_norm": "batch"},
        {"attack": {"id": "dlg"}},
        {"attack": {"id": "idlg", "fields": {"steps": 299}}},
        {"defenses": [{"id": "pruning"}]},
        {"assume": {"labels": True}},
        {"pictures": [{"id": "chelsea"}]},
        {"pictures": [{"id": "astronaut", "label": 3}]},
    ],
)
def test_another_question_has_another_digest(change: dict[str, Any]) -> None:
    assert parse(change).resolve(CATALOG).digest() != Experiment().resolve(CATALOG).digest()


def test_a_cifar100_picture_makes_it_a_hundred_classes() -> None:
    assert Experiment().num_classes == 10
    assert FULL.num_classes == 100


# ---------------------------------------------------------------- a server that changes the model, and checks of the model

SUMMED: dict[str, Any] = {
    "pictures": [{"id": "cat"}, {"id": "coffee"}],
    "protocol": {"id": "fedavg", "fields": {"epochs": 2}},
    "aggregation": {"id": "secure_aggregation", "fields": {"clients": 2}},
    "rounds": 3,
    "attacked_round": 2,
    "defenses": [{"id": "pruning"}],
    "attack": {"id": "inverting_gradients"},
}
CHEATED = Experiment(
    pictures=(Picture(id="cat"),) * 4,
    aggregation=Part(id="secure_aggregation", fields={"clients": 2}),
    server=Part(id="imprint", fields={"bins": 64}),
    checks=(Part(id="new_layers"), Part(id="new_layers", fields={"threshold": 4})),
    refuse=False,
    attack=Part(id="bins"),
)


@pytest.mark.parametrize(("raw", "digest"), [({}, "80b0255400728d5a373ef725029df0f1"), (SUMMED, "8e471e769a54b501c7b2803ffda1d9f3")])
def test_without_a_server_and_checks_an_experiment_is_stored_as_before_there_were_any(raw: dict[str, Any], digest: str) -> None:
    """Computed by version 0.3 from the same JSON."""
    assert parse(raw).digest() == digest
    assert not {"server", "checks", "refuse"} & parse(raw).model_dump().keys()
    written = {**raw, "server": None, "checks": [], "refuse": True}
    assert parse(written).digest() == digest


def test_a_recorded_run_keeps_its_digest() -> None:
    """Of the run that the tests of the lessons' reader play, stored before there were servers."""
    run = json.loads((ROOT / "tests" / "recorded.json").read_text())["run"]
    assert parse(run["experiment"]).digest() == parse(run["experiment"]).resolve(CATALOG).digest() == run["digest"]


@pytest.mark.parametrize("experiment", [CHEATED, CHEATED.resolve(CATALOG)], ids=["short", "resolved"])
def test_an_experiment_with_a_server_and_checks_survives_json(experiment: Experiment) -> None:
    text = experiment.model_dump_json()
    assert parse(text) == parse(json.loads(text)) == experiment
    assert parse(text).model_dump_json() == text
    assert {"server", "checks", "refuse"} < json.loads(text).keys()


@pytest.mark.parametrize("change", [{"server": None}, {"server": Part(id="imprint")}, {"checks": ()}, {"refuse": True}])
def test_a_server_its_fields_checks_and_refusals_are_part_of_the_digest(change: dict[str, Any]) -> None:
    assert CHEATED.model_copy(update=change).resolve(CATALOG).digest() != CHEATED.resolve(CATALOG).digest()


def test_defaults_of_a_server_and_of_checks_are_filled_in() -> None:
    resolved = CHEATED.resolve(CATALOG)
    assert resolved.server.fields == {**CATALOG.servers.get("imprint").resolve({}), "bins": 64}
    assert [part.fields for part in resolved.checks] == [{"threshold": 0}, {"threshold": 4}]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"server": {"id": "robber"}}, "server: 'robber' is not known here; allowed are "),
        ({"server": {"id": "imprint", "fields": {"bin": 3}}}, "server 'imprint' has no field 'bin'; it has bins, "),
        (
            {"server": {"id": "imprint", "fields": {"bins": 1}}},
            "server imprint.bins: allowed is a whole number from 2 to 1024, given was 1",
        ),
        ({"checks": [{"id": "nose"}]}, "check: 'nose' is not known here; allowed are "),
        ({"checks": [{"id": "new_layers", "fields": {"threshold": -1}}]}, "check new_layers.threshold: allowed is a number from 0 to 1000"),
        ({"checks": [{"id": "new_layers"}] * 9}, "checks: tuple should have at most 8 items"),
        ({"refuse": "perhaps"}, "refuse: input should be a valid boolean"),
        ({"servers": []}, "servers: this version has no such field"),
    ],
)
def test_a_wrong_server_or_check_is_refused_with_a_sentence(raw: dict[str, Any], sentence: str) -> None:
    assert refused(raw).startswith(sentence)


def test_a_server_that_needs_more_rounds_is_refused() -> None:
    patient = CATALOG.servers.get("imprint").model_copy(update={"rounds": 3})
    known = replace(CATALOG, servers=Entries("server", (patient,)))
    with pytest.raises(SpecError, match=r"^rounds: Imprint needs at least 3 watched rounds, given was 1\. Raise the number of rounds\.$"):
        CHEATED.resolve(known)
    assert CHEATED.model_copy(update={"rounds": 3}).resolve(known).rounds == 3


# ---------------------------------------------------------------- refused


def test_a_picture_too_small_for_its_model_is_refused() -> None:
    assert refused({"model": {"id": "vgg16"}, "size": 28}) == "size: VGG-16 needs pictures of at least 32 pixels, given was 28."
    assert parse({"model": {"id": "vgg16"}, "size": 32}).resolve(CATALOG).size == 32


def test_a_protection_without_a_place_in_its_model_is_refused_with_models_that_have_one() -> None:
    said = refused({"defenses": [{"id": "fedkl"}]})
    assert said.startswith("FedKL needs a model whose norm is batch; LeNet has none.")
    assert said.endswith("or with norm batch one of ConvNet, ResNet-20 / ResNet-32, ResNet, ResNet-18.")
    assert "ResNet has group. " in refused({"defenses": [{"id": "fedkl"}], "model": {"id": "resnet", "fields": {"norm": "group"}}})
    assert parse({"defenses": [{"id": "fedkl"}], "model": {"id": "resnet"}}).resolve(CATALOG).defenses[0].id == "fedkl"
    with pytest.raises(SpecError, match="FedKL needs a model whose norm is batch"):
        Training(defenses=(Part(id="fedkl"),)).resolve(CATALOG)
    Training(model=Part(id="resnet"), defenses=(Part(id="fedkl"),)).resolve(CATALOG)


def test_an_unknown_attack_is_refused_with_the_known_ones() -> None:
    known = ", ".join(entry.id for entry in CATALOG.attacks)
    assert refused({"attack": {"id": "telepathy"}}) == f"attack: 'telepathy' is not known here; allowed are {known}."


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    assert refused({"attack": {"id": "dlg", "fields": {"step": 3}}}) == "attack 'dlg' has no field 'step'; it has steps, restarts."
    assert refused({"protocol": {"id": "fedsgd", "fields": {"speed": 1}}}) == "protocol 'fedsgd' has no field 'speed'; it has rate."


@pytest.mark.parametrize(
    ("part", "allowed", "shown"),
    [
        ('"attack": {"id": "dlg", "fields": {"steps": 0}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "0"),
        ('"attack": {"id": "dlg", "fields": {"steps": 2001}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "2001"),
        ('"attack": {"id": "dlg", "fields": {"steps": 1.5}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "1.5"),
        ('"attack": {"id": "dlg", "fields": {"steps": NaN}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "nan"),
        ('"attack": {"id": "dlg", "fields": {"steps": Infinity}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "inf"),
        ('"attack": {"id": "dlg", "fields": {"steps": 1e999}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "inf"),
        ('"attack": {"id": "dlg", "fields": {"steps": "300"}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "'300'"),
        ('"attack": {"id": "dlg", "fields": {"steps": true}}', "attack dlg.steps: allowed is a whole number from 1 to 2000", "True"),
        ('"attack": {"id": "dlg", "fields": {"steps": null}}', "attack.fields.steps: allowed is a number, a word, true or false", "None"),
        (
            '"defenses": [{"id": "pruning", "fields": {"fraction": NaN}}]',
            "defense pruning.fraction: allowed is a number from 0 to 0.999",
            "nan",
        ),
        (
            '"defenses": [{"id": "pruning", "fields": {"fraction": "half"}}]',
            "defense pruning.fraction: allowed is a number from 0 to 0.999",
            "'half'",
        ),
        (
            '"attack": {"id": "inverting_gradients", "fields": {"signed": 1}}',
            "attack inverting_gradients.signed: allowed is true or false",
            "1",
        ),
        (
            '"model": {"id": "mlp", "fields": {"activation": "gelu"}}',
            "model mlp.activation: allowed is 'relu' or 'leaky_relu' or 'sigmoid' or 'tanh'",
            "'gelu'",
        ),
    ],
)
def test_a_setting_out_of_range_is_refused_with_its_name_what_is_allowed_and_what_was_given(part: str, allowed: str, shown: str) -> None:
    assert refused(f"{{{part}}}") == f"{allowed}, given was {shown}."


@pytest.mark.parametrize("kind", ["dlg.steps", "inverting_gradients.step_size"])
def test_a_number_of_400_digits_is_out_of_range_like_any_other(kind: str) -> None:
    name, field = kind.split(".")
    assert f"attack {kind}: allowed is" in refused(f'{{"attack": {{"id": "{name}", "fields": {{"{field}": {"9" * 400}}}}}}}')


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"seed": NaN}', ["seed", "finite", "nan"]),
        ('{"seed": Infinity}', ["seed", "finite", "inf"]),
        ('{"seed": "seven"}', ["seed", "integer", "'seven'"]),
        ('{"seed": -1}', ["seed", "greater than or equal to 0", "-1"]),
        ('{"seed": 2147483648}', ["seed", "less than or equal to 2147483647", "2147483648"]),
        ('{"size": 30}', ["size", "28, 32, 64, 224 or 256", "30"]),
        ('{"size": "32"}', ["size", "28, 32, 64, 224 or 256", "'32'"]),
        ('{"channels": 2}', ["channels", "1 or 3", "2"]),
        ('{"batch_norm": "train"}', ["batch_norm", "'eval' or 'batch'", "'train'"]),
        ('{"max_seconds": 0}', ["max_seconds", "greater than or equal to 1", "0"]),
        ('{"pictures": []}', ["pictures", "at least 1", "[]"]),
        ('{"pictures": [{"id": "a", "source": "web"}]}', ["pictures.0.source", "'gallery'", "'web'"]),
        ('{"pictures": [{"source": "upload", "id": "a"}]}', ["pictures.label", "needs a class"]),
        ('{"pictures": [{"id": "a", "label": 10}]}', ["pictures.label", "0 to 9", "10"]),
        ('{"pictures": [{"id": "a", "source": "cifar100", "label": 100}]}', ["pictures.label", "0 to 99", "100"]),
        ('{"attack": {}}', ["attack.id", "required"]),
        ('{"attack": "dlg"}', ["attack", "'dlg'"]),
        ('{"protection": 1}', ["protection", "no such field", "1"]),
        ('{"assume": {"gradient": true}}', ["assume.gradient", "no such field", "True"]),
    ],
)
def test_what_is_wrong_is_named(raw: str, words: list[str]) -> None:
    sentence = refused(raw)
    assert all(word in sentence for word in words), sentence


def test_one_picture_too_many_is_refused() -> None:
    pictures = [{"id": "astronaut"}] * MAX_BATCH
    assert len(parse({"pictures": pictures}).pictures) == MAX_BATCH
    assert "at most 128" in refused({"pictures": [*pictures, {"id": "astronaut"}]})


@pytest.mark.parametrize(("size", "most"), [(28, 128), (64, 128), (224, 10), (256, 8)])
def test_the_pixels_of_all_pictures_together_have_a_limit(size: int, most: int) -> None:
    assert len(parse({"pictures": [{"id": "astronaut"}] * most, "size": size}).resolve(CATALOG).pictures) == most
    if most < MAX_BATCH:
        sentence = refused({"pictures": [{"id": "astronaut"}] * (most + 1), "size": size})
        assert sentence == f"pictures: of {size} x {size} pixels allowed are at most {most}, given were {most + 1}."


@pytest.mark.parametrize("version", [2, 0, "1", None])
def test_a_file_of_a_newer_version_says_so_before_anything_else(version: Any) -> None:
    sentence = refused({"version": version, "attack": {"id": "telepathy"}, "brightness": 2})
    assert sentence == f"version: allowed is 1, given was {version!r}. Update this program to read newer files."


@pytest.mark.parametrize("text", ["", "nope", "[" * 100_000, "9" * 5_000, b"\xff\xfe\x00", "{'a': 1}"])
def test_what_is_no_json_is_said_in_a_sentence(text: str | bytes) -> None:
    assert refused(text).startswith("This is not an experiment file: expected ")


@pytest.mark.parametrize(("text", "kind"), [("[1]", "list"), ("3", "int"), ('"dlg"', "str"), ("null", "NoneType")])
def test_json_that_is_no_object_is_said_in_a_sentence(text: str, kind: str) -> None:
    assert refused(text) == f"This is not an experiment file: expected an object {{...}}, given was a {kind}."


FUZZ = settings(derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # slow machines, too
ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def outcome(raw: dict[str, Any] | str) -> Experiment | str:
    """The resolved experiment, or the sentence with which it is refused."""
    try:
        return parse(raw).resolve(CATALOG)
    except SpecError as error:
        return str(error)


@FUZZ
@given(some.dictionaries(some.sampled_from([*Experiment.model_fields, "x"]), ANYTHING, max_size=3))
@pytest.mark.long
def test_whatever_json_says_it_is_an_experiment_or_a_sentence(raw: dict[str, Any]) -> None:
    found = outcome(json.dumps(raw))
    assert isinstance(found, Experiment) or found.endswith(".")


@FUZZ
@given(
    some.sampled_from(["steps", "step_size", "tv_weight", "signed"]),
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
)
def test_whatever_a_setting_is_it_lies_in_its_range_or_is_refused_by_name(name: str, value: Any) -> None:
    entry = CATALOG.attacks.get("inverting_gradients")
    (field,) = (field for field in entry.fields if field.name == name)
    found = outcome({"attack": {"id": entry.id, "fields": {name: value}}})
    if isinstance(found, str):
        assert name in found
    else:
        kept = found.attack.fields[name]
        assert kept == value
        assert type(kept).__name__ == field.type
