"""Where a picture stands on a page that a test has drawn."""

import numpy as np
from PIL import Image, ImageColor


def corners(page: Image.Image, picture: np.ndarray, outline: str) -> list[tuple[int, int]]:
    """Where a picture stands within an outline of that colour, enlarged by a whole number."""
    pixels, side = np.asarray(page.convert("RGB")), picture.shape[0]
    lines = (pixels == ImageColor.getrgb(outline)).all(axis=2)
    inside = np.argwhere(lines[:-1, :-1] & lines[1:, :-1] & lines[:-1, 1:] & ~lines[1:, 1:]) + 1
    return [
        (int(x), int(y))
        for y, x in inside
        for scale in range(1, 17)
        if (whole := pixels[y : y + side * scale, x : x + side * scale]).shape[:2] == (side * scale, side * scale)
        and (whole == picture.repeat(scale, 0).repeat(scale, 1)).all()
    ]
