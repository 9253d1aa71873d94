"""Drawn X-rays: one for each person, in the gallery, and beside others of their kind in the line-up."""

import numpy as np

from leakage.data.drawn_xrays import COUNT, SIDE, xray
from leakage.data.images import find, gallery, read
from leakage.evaluation.pools import XRAY, Origin, gather, pool_of


def test_every_drawing_is_another_person_and_always_the_same() -> None:
    drawings = [xray(number) for number in range(COUNT)]
    assert {(one.shape, one.dtype.name) for one in drawings} == {((SIDE, SIDE, 1), "uint8")}
    assert all((one == xray(number)).all() for number, one in enumerate(drawings))
    apart = [np.abs(one.astype(int) - other).mean() for place, one in enumerate(drawings) for other in drawings[:place]]
    assert min(apart) > 2  # shades of 255


def test_lungs_are_dark_and_the_spine_is_bright() -> None:
    for number in range(COUNT):
        small = read("gallery", f"xray-{number}", 32, 1)[..., 0].astype(int)
        assert small[13:17, 8:11].mean() < 90 < 140 < small[13:17, 15:17].mean()


def test_the_gallery_ends_with_them_and_begins_as_before() -> None:
    ids = [item.id for item in gallery()]
    assert ids[-COUNT:] == [f"xray-{number}" for number in range(COUNT)]
    assert ids[:2] == ["astronaut", "chelsea"]
    assert "drawing" in find("gallery", "xray-3").alt


def test_a_line_up_of_drawings_has_no_other_kind_and_no_other_has_drawings() -> None:
    own = pool_of(Origin("gallery", "xray-0"), [])
    assert own == ("gallery", XRAY)
    assert {who for who in gather(own, [], (1, 32, 32), 1).identities} == {f"xray-{number}" for number in range(COUNT)}
    for other in ("astronaut", "scan-0", "face-0", "page-0"):
        pool = pool_of(Origin("gallery", other), [])
        if pool.source == "gallery":
            assert not any(str(who).startswith("xray") for who in gather(pool, [], (1, 32, 32), 1).identities)
