"""Write leakage/ui/components/own/lineup.webp: the pictures among which a web page looks for a visitor's own picture.

They stand side by side, 32 x 32 pixels each, and are those of the program's line-up for a user's picture: crops of the
photographs in the gallery. Run: `python -m scripts.make_lineup`.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from leakage.data.images import Pixels
from leakage.evaluation.lineup import OWN, draw
from leakage.frontend.own_script import LINEUP

SIDE = 32
QUALITY = 85  # of WebP: a page compares guesses with these pictures, and their noise is far below the distance of two of them


def lineup_pictures() -> Pixels:
    """Return the other pictures of the line-up of a user's picture, uint8 (N, H, W, C)."""
    lineup = draw([OWN], torch.zeros(1, 3, SIDE, SIDE), torch.zeros(1, dtype=torch.long), seed=1)
    chosen = lineup.others[lineup.competitors[0]]
    pictures: Pixels = (chosen * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return pictures


def write(file: Path) -> None:
    """Write the pictures side by side as WebP."""
    Image.fromarray(np.concatenate([*lineup_pictures()], axis=1)).save(file, quality=QUALITY, method=6)


if __name__ == "__main__":
    write(LINEUP)
