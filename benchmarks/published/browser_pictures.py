"""iDLG by the browser's code on sixteen pictures, one start each: eight of the gallery, two photographs, six screenshots."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[1:3]]  # benchmarks, the project
import numpy as np
from _table import save, say, table
from PIL import Image
from sklearn.datasets import load_sample_images

from leakage.data.images import Pixels, gallery, read
from leakage.frontend.scripts import FOLDER
from leakage.settings import ROOT

SIDE, STEPS, LEAST = 32, 150, 30.0  # pixels; L-BFGS steps, as on the page; dB
SCREENSHOTS = ("lab-1440-light", "compare-1440-dark", "door-1280-light", "ask-1280-light", "learn-guess-1280-light", "audit-report-1440")
PLAY = f"""
import {{ readFileSync }} from 'node:fs';
import {{ play }} from '{(FOLDER / "attack" / "attack_worker.js").as_uri()}';
for (const order of JSON.parse(readFileSync(0, 'utf8'))) {{
  let [last, grey] = [null, 0];
  for (const message of play({{ ...order, pictures: Float32Array.from(order.pictures) }})) {{
    if (message.kind === 'sent') grey = message.grey;
    last = message;
  }}
  console.log(JSON.stringify({{ steps: last.step, psnr: last.psnr, grey, label: last.labelsRight === 1 }}));
}}
"""


def middle(picture: Image.Image) -> Pixels:
    """Return the middle square of a picture, reduced to SIDE x SIDE pixels, uint8 (H, W, C)."""
    size = min(picture.size)
    left, top = (picture.width - size) // 2, (picture.height - size) // 2
    square = picture.convert("RGB").crop((left, top, left + size, top + size))
    pixels: Pixels = np.asarray(square.resize((SIDE, SIDE), Image.Resampling.BOX))
    return pixels


def pictures() -> dict[str, Pixels]:
    """Return the sixteen pictures by name."""
    found = {f"gallery: {item.id}": read("gallery", item.id, SIDE, 3) for item in gallery()[:8]}
    samples = zip(("china", "flower"), load_sample_images().images, strict=True)
    found |= {f"photograph: {name}": middle(Image.fromarray(pixels)) for name, pixels in samples}
    for name in SCREENSHOTS:
        with Image.open(ROOT / "docs" / f"{name}.png") as screenshot:
            found[f"screenshot: {name}"] = middle(screenshot)
    return found


def order(pixels: Pixels) -> dict[str, Any]:
    """Return the attack on a picture as the page's worker reads it."""
    numbers = (pixels.transpose(2, 0, 1) / 255).ravel().tolist()
    fixed = {"network": "lenet", "shape": [3, SIDE, SIDE], "classes": 10, "labels": [3], "seed": 1}
    return {**fixed, "pictures": numbers, "attack": "idlg", "steps": STEPS, "restarts": 1}


if __name__ == "__main__":
    chosen = pictures()
    played = subprocess.run(
        ["node", "--input-type=module", "-e", PLAY],
        input=json.dumps([order(pixels) for pixels in chosen.values()]),
        text=True,
        capture_output=True,
        check=True,
    )
    runs = [{"picture": name, **json.loads(line)} for name, line in zip(chosen, played.stdout.splitlines(), strict=True)]
    table(
        ["picture", "steps", "PSNR, dB", "grey, dB", "label right"],
        [[run["picture"], run["steps"], f"{run['psnr']:.1f}", f"{run['grey']:.1f}", run["label"]] for run in runs],
    )
    say(f"{sum(run['psnr'] > LEAST for run in runs)} of {len(runs)} above {LEAST:.0f} dB at the first start")
    save("browser_pictures", {"runs": runs})
