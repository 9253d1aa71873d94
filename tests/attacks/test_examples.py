"""Searches that start from another picture of the class: the example of each guess, and the start of every search."""

import pytest
import torch
from reachable_truth import leaks
from small_problems import CATALOG, GRANTED, altered, moments, observed, short, smooth

from leakage.attacks._examples import with_examples
from leakage.data.images import gallery
from leakage.engine.core import Observation
from leakage.spec.cautions import warnings
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, parse
from leakage.spec.threat_model import assumptions
from leakage.workers.adapter import prepare
from leakage.workers.class_examples import MOST, class_examples
from leakage.workers.private_pictures import load

OWNS = Assumptions(examples=True)
FACES = [item.id for item in gallery() if item.label == 6]


def owning(count: int, batch: int = 1, **settings: object) -> Observation:
    """An observation with so many granted examples of class 7: the first is 0.1 in every pixel, the second 0.2."""
    pictures = torch.arange(1, count + 1).div(10).view(-1, 1, 1, 1).expand(-1, 1, 8, 8)
    return altered(observed(smooth(batch), **settings), examples={7: pictures})


# ---------------------------------------------------------------- which example


def test_no_example_is_taken_twice_and_where_none_is_left_noise_stays() -> None:
    z = torch.full((2, 3, 1, 8, 8), 9.0)
    found, words = with_examples(owning(3), z, torch.tensor([7, 7, 2]))
    taken = found[..., 0, 0, 0].tolist()
    assert taken == [pytest.approx([0.1, 0.2, 9]), pytest.approx([0.3, 9, 9])]
    assert words == {"begins": "another picture of the class for 3 of 6 guesses, else noise"}
    assert z.unique().tolist() == [9]  # what was given is left as it was


def test_a_later_try_takes_the_next_example() -> None:
    z = torch.zeros(1, 1, 1, 8, 8)
    values = [float(with_examples(owning(2), z, torch.tensor([7]), before=before)[0].mean()) for before in range(3)]
    assert values == pytest.approx([0.1, 0.2, 0])


def test_who_owns_none_starts_as_before_and_says_nothing() -> None:
    z = torch.ones(1, 1, 1, 8, 8)
    found, words = with_examples(observed(smooth()), z, torch.tensor([7]))
    assert found is z
    assert words == {}


def test_a_class_without_another_picture_is_named() -> None:
    z = torch.ones(1, 1, 1, 8, 8)
    found, words = with_examples(owning(1), z, torch.tensor([2]))
    assert torch.equal(found, z)
    assert words == {"begins": "noise: the attacker owns no other picture of this class"}


def test_an_example_stands_in_the_models_own_units() -> None:
    model = Part(id="mlp", fields={"normalise": "mnist"})  # mean 0.1307, deviation 0.3081
    seen = altered(observed(smooth(1, 1, 28), model=model), examples={7: torch.full((1, 1, 28, 28), 0.5)})
    found, _ = with_examples(seen, torch.zeros(1, 1, 1, 28, 28), torch.tensor([7]))
    assert float(found.mean()) == pytest.approx((0.5 - 0.1307) / 0.3081, rel=1e-4)


# ---------------------------------------------------------------- where searches begin


@pytest.mark.parametrize("attack", ["dlg", "idlg", "dlg_admm", "idlg_admm", "inverting_gradients", "gradinversion", "sme"])
@pytest.mark.parametrize("assume", [Assumptions(), GRANTED], ids=["labels read", "labels granted"])
def test_every_search_of_pixels_begins_at_the_example_of_the_class(attack: str, assume: Assumptions) -> None:
    seen = owning(2, assume=assume)  # its label is 7, and one label is read exactly
    first = moments(short(attack, steps=1, restarts=1, starts=1), seen)[0]
    assert first.x.unique().tolist() == pytest.approx([0.1])
    assert first.note["begins"] == "another picture of the class"


def test_two_pictures_of_one_class_part_as_they_start_apart() -> None:
    seen = altered(owning(2, batch=2), labels=torch.tensor([7, 7]))
    first = moments(short("inverting_gradients", steps=1, starts=1), seen)[0]
    assert first.x[:, 0, 0, 0].tolist() == pytest.approx([0.1, 0.2])


# ---------------------------------------------------------------- what is handed over


def test_the_examples_of_a_class_are_others_of_it_and_none_is_private() -> None:
    asked = Experiment(pictures=(Picture(id=FACES[0]), Picture(id=FACES[1])), assume=OWNS)
    x, _ = load(asked, {})
    found = class_examples(asked, x)
    assert sorted(found) == list(range(10))  # the astronaut, the gallery's only person, is not private here
    assert found[6].shape == (MOST, 3, 32, 32)  # of ten faces that are left
    others, _ = load(Experiment(pictures=tuple(Picture(id=id) for id in FACES[2:])), {})
    assert all(bool((others == one).flatten(1).all(1).any()) for one in found[6])
    assert torch.equal(class_examples(asked, x)[6], found[6])
    assert not torch.equal(class_examples(asked.model_copy(update={"seed": 2}), x)[6], found[6])


def test_a_class_of_one_picture_has_no_other_and_a_copy_under_another_name_is_none() -> None:
    asked = Experiment(assume=OWNS)
    x, _ = load(asked, {})
    assert 0 not in class_examples(asked, x)
    upload = Experiment(pictures=(Picture(source="upload", id="mine", label=0),), assume=OWNS)
    assert 0 not in class_examples(upload, x)  # the astronaut, uploaded: the gallery's own is the same picture


def test_of_large_pictures_fewer_are_handed_over() -> None:
    asked = Experiment(pictures=(Picture(id=FACES[0]),), size=224, assume=OWNS)
    x, _ = load(asked, {})
    assert len(class_examples(asked, x)[6]) == 1


def test_no_private_picture_is_reached_from_the_examples() -> None:
    asked = Experiment(pictures=(Picture(id=FACES[0]),), attack=short("inverting_gradients"), assume=OWNS).resolve(CATALOG)
    scene = prepare(asked)
    assert len(scene.seen.granted.examples[6]) == MOST
    assert leaks(scene.seen, scene.x, scene.y) == []


def test_a_model_of_one_output_has_no_examples_and_that_is_said_beforehand() -> None:
    asked = Experiment(task="two", assume=OWNS).resolve(CATALOG)
    assert warnings(asked, CATALOG)[0].startswith("Other pictures of every class do nothing here")
    assert prepare(asked).seen.granted.examples == {}


# ---------------------------------------------------------------- what is said


def test_the_threat_model_table_says_what_the_attacker_owns_and_what_it_did_with_it() -> None:
    asked = Experiment(assume=OWNS).resolve(CATALOG)

    def told(note: dict[str, object]) -> tuple[str, str]:
        return {about: (tag, words) for tag, about, words in assumptions(asked, CATALOG, None, note)}["Other pictures of every class"]

    assert told({}) == ("granted", "where the private ones are from, never one of these")
    assert told({"begins": "another picture of the class"})[1].endswith("; it started from another picture of the class")
    assert told({"start": 1})[1].endswith("; this attack starts from no picture")
    usual = assumptions(Experiment().resolve(CATALOG), CATALOG, None, {})
    assert "Other pictures of every class" not in {about for _, about, _ in usual}


def test_an_experiment_without_examples_is_written_as_before() -> None:
    assert "examples" not in Experiment().model_dump_json()
    assert parse(Experiment(assume=OWNS).model_dump_json()) == Experiment(assume=OWNS)
    assert Experiment(assume=OWNS).digest() != Experiment().digest()
