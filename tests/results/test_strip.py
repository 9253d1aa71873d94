"""Strips of runs: every picture pixel for pixel in its place, a row for each variant, and words where pictures are missing."""

import dataclasses
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_pictures import corners
from PIL import Image
from sample_events import end, frame, meta
from small_problems import CATALOG
from store_rows import run

from leakage.data.images import Pixels, sheet
from leakage.results.lettering import ATTACKER, PRIVATE, SOFT
from leakage.results.run_strips import GONE, NOT_KEPT, describe, make
from leakage.results.strip import EDGE, GAP, INNER, Strip, StripCell, StripRow, encode
from leakage.results.strip_steps import parse_steps
from leakage.runs.housekeeping import free_one
from leakage.runs.store import Store
from leakage.spec.experiment import Experiment, Part

PLAIN = Experiment()
NOISY = PLAIN.model_copy(update={"defenses": (Part(id="gaussian_noise"),)})
PRUNED = PLAIN.model_copy(update={"defenses": (Part(id="pruning"),)})
CLIPPED = PLAIN.model_copy(update={"defenses": (Part(id="clipping"),)})
STEPS = (0, 10, 38, 60)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


def pictures(seed: int, experiment: Experiment = PLAIN) -> Pixels:
    shape = (len(experiment.pictures), experiment.size, experiment.size, experiment.channels)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def played(store: Store, name: str, steps: Sequence[int] = STEPS, *, experiment: Experiment = PLAIN, running: bool = False) -> None:
    """A run with the private pictures of seed 999, a frame of seed and PSNR `step` at each step, and the last step as its answer."""
    store.add(dataclasses.replace(run(name), experiment=experiment.model_dump_json()), {})
    store.claim("0:1")
    store.put_file(name, "private.png", sheet(pictures(999, experiment)))
    store.add_event(name, meta(baselines={"grey": {"psnr": 10.5}}))
    told: list[Any] = [frame(step, scores={"psnr": step}) for step in steps]
    seqs = [store.add_frame(name, each, sheet(pictures(each.step, experiment))) for each in told]
    if not running:
        store.finish(name, "done", result=end(seqs[-1], scores={"psnr": steps[-1] + 0.5}))


def drawn(store: Store, *ids: str, steps: str = "", kind: str = "png") -> Image.Image:
    file = make(store, ids, kind, CATALOG, parse_steps(steps))
    assert file
    assert file.type == f"image/{kind}"
    return Image.open(io.BytesIO(file.data))


def content(store: Store, *ids: str, steps: str = "") -> Strip:
    strip = describe(store, ids, CATALOG, parse_steps(steps))
    assert strip
    return strip


def captions(row: StripRow) -> list[tuple[int, float | None] | str]:
    return [cell if isinstance(cell, str) else (cell.step, cell.psnr) for cell in row.cells]


@pytest.mark.parametrize("kind", ["png", "webp"])
def test_private_picture_steps_and_answer_stand_in_a_row_pixel_for_pixel(store: Store, kind: str) -> None:
    played(store, "a")
    page = drawn(store, "a", kind=kind)
    assert page.format == kind.upper()
    places = [corners(page, pictures(999)[0], PRIVATE), *(corners(page, pictures(step)[0], SOFT) for step in STEPS[:-1])]
    places.append(corners(page, pictures(60)[0], ATTACKER))
    assert all(len(place) == 1 for place in places)
    wide = 8 * 32 + GAP  # five columns: pictures of 32 pixels fit eightfold into 256
    assert [x for [(x, _)] in places] == [EDGE + column * wide for column in range(5)]
    assert len({y for [(_, y)] in places}) == 1


def test_captions_have_steps_and_psnr_and_the_answer_its_final_score(store: Store) -> None:
    played(store, "a")
    strip = content(store, "a")
    (row,) = strip.rows
    assert captions(row) == [(0, 0.0), (10, 10.0), (38, 38.0)]
    assert row.answer
    assert (row.answer.step, row.answer.psnr, row.finished) == (60, 60.5, True)
    assert (strip.title, row.name) == ("", "iDLG")
    assert strip.notes == ["Numbers in dB: closeness to the private picture (PSNR); a plain grey picture has 10.5 dB."]
    assert strip.settings.endswith("1 picture of 32 px · no protection · FedSGD · seed 1")


def test_a_step_that_was_asked_for_in_vain_is_named_on_the_strip(store: Store) -> None:
    played(store, "a")
    strip = content(store, "a", steps="40,x,-1,999")
    assert captions(strip.rows[0]) == [(38, 38.0), (0, 0.0)]
    assert strip.notes[:-1] == [
        '"x" is no step and was left out.',
        "Step 40 was asked for; the nearest kept is 38.",
        "Step -1 was asked for; the nearest kept is 0.",
        "Step 999 was asked for; the nearest kept is 60.",
    ]
    bare = drawn(store, "a", steps="38,0")
    assert drawn(store, "a", steps="40,x,-1,999").height == bare.height + 4 * 28  # a line for each note


def test_four_variants_have_four_rows_in_order_with_their_titles(store: Store) -> None:
    variants = {"a": PLAIN, "b": NOISY, "c": PRUNED, "d": CLIPPED}
    for number, (name, experiment) in enumerate(variants.items()):
        played(store, name, [100 * number + step for step in (1, 2)], experiment=experiment)
    strip = content(store, *variants, "nobody", "a")
    assert strip.title == "What can the server see of the private picture?"
    titles = [row.name.removesuffix(" (adaptive)") for row in strip.rows]
    assert titles == ["no protection", "Gaussian noise 0.01", "Pruning 0.9", "Clipping 4"]
    page = drawn(store, *variants)
    answers = [corners(page, pictures(100 * number + 2)[0], ATTACKER) for number in range(4)]
    private = sorted(corners(page, pictures(999)[0], PRIVATE), key=lambda place: place[1])
    assert [y for [(_, y)] in answers] == [y for _, y in private]
    assert {x for x, _ in private} == {EDGE}
    assert sorted({y for _, y in private}) == [y for _, y in private]
    assert "no protection" not in strip.settings  # it is not what all have
    assert "seed 1" in strip.settings


def test_where_another_variant_kept_a_step_an_empty_place_says_so_unless_the_attack_had_ended(store: Store) -> None:
    played(store, "a", [1, 50, 90])
    played(store, "b", [1, 60], experiment=NOISY)
    first, second = content(store, "a", "b").rows
    assert captions(first) == [(1, 1.0), (50, 50.0)]
    assert captions(second) == [(1, 1.0), NOT_KEPT]
    played(store, "c", [1, 40], experiment=PRUNED)
    assert captions(content(store, "a", "c").rows[1]) == [(1, 1.0), ""]


@pytest.mark.parametrize(("count", "across"), [(2, 1), (4, 2), (8, 2), (9, 3)])
def test_a_batch_is_a_small_sheet_in_each_column(store: Store, count: int, across: int) -> None:
    batch = PLAIN.model_copy(update={"pictures": PLAIN.pictures * count})
    played(store, "a", experiment=batch)
    page = drawn(store, "a")
    for shown, colour in ((pictures(999, batch), PRIVATE), (pictures(10, batch), SOFT), (pictures(60, batch), ATTACKER)):
        places = [corners(page, picture, colour) for picture in shown]
        assert all(len(place) == 1 for place in places)
        (left, top), (x, y) = places[0][0], places[-1][0]
        side = (places[across][0][1] - top) - INNER
        assert side % 32 == 0
        assert (x, y) == (left + (count - 1) % across * (side + INNER), top + (count - 1) // across * (side + INNER))
    assert "for several pictures their mean" in content(store, "a").notes[-1]


def test_grey_pictures_are_drawn_in_grey(store: Store) -> None:
    grey = PLAIN.model_copy(update={"size": 28, "channels": 1})
    played(store, "a", experiment=grey)
    page = drawn(store, "a")
    for seed, colour in ((999, PRIVATE), (38, SOFT), (60, ATTACKER)):
        assert len(corners(page, pictures(seed, grey)[0].repeat(3, axis=2), colour)) == 1


def test_a_run_thinned_to_its_answer_says_that_its_steps_are_gone(store: Store) -> None:
    played(store, "a")
    with store.database.write() as db:
        assert free_one(db)
    played(store, "b", experiment=NOISY)
    strip = content(store, "a", steps="0,10")
    assert (strip.rows[0].missing, captions(strip.rows[0]), len(strip.notes)) == (GONE, [], 1)
    page = drawn(store, "a")
    assert len(corners(page, pictures(999)[0], PRIVATE)) == len(corners(page, pictures(60)[0], ATTACKER)) == 1
    assert not corners(page, pictures(38)[0], SOFT)
    first, second = content(store, "a", "b").rows
    assert (first.missing, captions(first), second.missing) == (GONE, ["", "", ""], "")


def test_an_attack_that_was_solved_at_once_misses_nothing(store: Store) -> None:
    played(store, "a", [1])
    (row,) = content(store, "a").rows
    assert (row.missing, captions(row)) == ("", [])
    assert len(corners(drawn(store, "a"), pictures(1)[0], ATTACKER)) == 1


def test_a_running_attack_shows_its_best_so_far(store: Store) -> None:
    played(store, "a", [1, 2, 4], running=True)  # the loss of a frame is 1 / step
    (row,) = content(store, "a").rows
    assert row.answer
    assert (row.answer.step, row.answer.psnr, row.finished) == (4, 4.0, False)


def test_an_attack_without_pictures_has_words_in_a_comparison_and_no_strip_of_its_own(store: Store) -> None:
    store.add(dataclasses.replace(run("a"), experiment=PLAIN.model_dump_json()), {})
    played(store, "b", experiment=NOISY)
    assert make(store, ["a"], "png", CATALOG) is None
    assert make(store, ["nobody"], "png", CATALOG) is None
    assert make(store, ["b"], "gif", CATALOG) is None
    first, second = content(store, "a", "b").rows
    assert first.missing.startswith("No reconstruction: ")
    assert second.missing == ""
    assert len(corners(drawn(store, "a", "b"), pictures(60)[0], ATTACKER)) == 1


@pytest.mark.parametrize(("rows", "count", "side"), [(1, 1, 8), (24, 1, 32), (4, 8, 64), (24, 128, 64), (1, 8, 256)])
@pytest.mark.parametrize("kind", ["png", "webp"])
@pytest.mark.long
def test_whatever_the_runs_a_strip_stays_below_two_megabytes(rows: int, count: int, side: int, kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    cell = StripCell(noise, 24_000, None)
    row = StripRow("A long name " * 30, "a long outcome " * 20, None, noise, [cell] * 10, cell, finished=False, missing="")
    data = encode(Strip("A title " * 40, [row] * rows, ["A note. " * 60], "every setting · " * 60), kind)
    assert len(data) < 2_000_000
    assert Image.open(io.BytesIO(data)).width <= 3000
