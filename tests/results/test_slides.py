"""Slides and small animations of runs: their size, their frames, and their layout."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from drawn_pictures import corners
from PIL import Image
from small_problems import CATALOG

from leakage.learn import recordings
from leakage.learn.restored import restore
from leakage.results import exports, slides
from leakage.results.lettering import ATTACKER, PRIVATE, in_font
from leakage.results.slides import Slide, Still
from leakage.runs.store import Store
from leakage.web.recorded_slides import recorded_slide

RECORDED = sorted(file.stem for file in recordings.FOLDER.glob("*.json"))


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.db")
    yield made
    made.close()


def test_a_slide_holds_private_picture_and_answer_side_by_side_pixel_for_pixel() -> None:
    private, *film = recordings.pictures_of("r09")
    page = opened(slides.png(recorded_slide("r09", CATALOG)))
    assert (page.format, page.size) == ("PNG", (1600, 900))
    assert corners(page, private[0], PRIVATE) == [(60, 152)]
    assert corners(page, film[-1][0], ATTACKER) == [(1600 - 60 - 16 * 32, 152)]


@pytest.mark.long
def test_in_a_batch_every_reconstruction_stands_below_its_picture() -> None:
    private, *film = recordings.pictures_of("r24")
    page = opened(slides.png(recorded_slide("r24", CATALOG)))
    for place in (0, 1, 7):
        [(x, y)] = corners(page, private[place], PRIVATE)
        [(below_x, below_y)] = corners(page, film[-1][place], ATTACKER)
        assert below_x == x
        assert 32 < below_y - y < 200


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.long
def test_an_animation_of_every_recorded_run_is_small_and_ends_with_its_answer(name: str) -> None:
    kept = len(recordings.load(name).film.places)
    data = slides.gif(recorded_slide(name, CATALOG))
    assert len(data) <= 400_000
    with opened(data) as animation:
        assert (animation.format, animation.width) == ("GIF", 480)
        assert animation.n_frames == max(2, min(24, kept))
        first = np.asarray(animation.convert("RGB")).copy()
        assert len(animation.convert("RGB").getcolors() or []) <= 64
        animation.seek(animation.n_frames - 1)
        assert animation.info["duration"] == 3000
        if kept > 1 or name == "r01":
            assert not np.array_equal(first, np.asarray(animation.convert("RGB")))


@pytest.mark.parametrize(("count", "side", "channels"), [(1, 28, 1), (4, 64, 3), (10, 224, 3), (128, 64, 3), (1, 8, 1)])
@pytest.mark.long
def test_whatever_the_run_both_fit(count: int, side: int, channels: int) -> None:
    rng = np.random.default_rng(0)
    film = [rng.integers(0, 256, (count, side, side, channels), dtype=np.uint8) for _ in range(25)]
    stills = [Still(pictures, step, None) for step, pictures in enumerate(film[1:])]
    slide = Slide("A title " * 20, film[0], stills, grey=None, word="recognizable", sent=10**9, settings="every setting · " * 40)
    assert opened(slides.png(slide)).size == (1600, 900)
    data = slides.gif(slide)
    assert len(data) <= 400_000
    assert opened(data).width == 480
    assert opened(data).height <= 620


@pytest.mark.long
def test_a_run_of_the_store_gives_the_slide_of_its_recording(store: Store) -> None:
    restore(store, "r02")
    made, moving = (exports.make(store, "r02", name, CATALOG) for name in ("slide.png", "run.gif"))
    assert made is not None
    assert moving is not None
    assert (made.type, moving.type) == ("image/png", "image/gif")
    private, *film = recordings.pictures_of("r02")
    page = opened(made.data)
    assert corners(page, private[0], PRIVATE)
    assert corners(page, film[-1][0], ATTACKER)
    assert opened(moving.data).n_frames == 24


def test_without_pictures_or_plugins_there_is_no_slide(store: Store) -> None:
    assert exports.make(store, "nobody", "slide.png", CATALOG) is None
    restore(store, "r02")
    assert exports.make(store, "r02", "slide.png") is None
    assert exports.make(store, "r02", "slide.gif", CATALOG) is None


def test_a_caption_holds_settings_and_seed_in_letters_that_the_font_has() -> None:
    settings = recorded_slide("r10", CATALOG).settings
    assert "(Inverting Gradients), steps 1000" in settings
    assert settings.endswith("round 16 of 16 · seed 1")
    for words in ("adaptive attacker", "untrained", "1 picture of 32 px", "Gaussian noise 0.01"):
        assert words in settings
    assert in_font("32 × 32 – 1 · ε…") == "32 x 32 - 1 · epsilon..."
