"""What the page says of a guess of a visitor's own picture is what the program says of it without LPIPS.

`tests/js/likeness_cases.json` holds pictures with the program's scores; `tests/js/likeness.test.js` reads it. To write it anew after a
change of the rule: `PYTHONPATH=. python tests/ui/test_browser_likeness.py`.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter
from torch import Tensor

from leakage.evaluation.baselines import BLIND, CONTRAST, SCALES, measure, reference
from leakage.evaluation.lineup import Lineup, best_of_others
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.verdict import Reference, verdict
from leakage.frontend.own_script import LINEUP
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

FILE = Path(__file__).resolve().parent.parent / "js" / "likeness_cases.json"
WORDS = {RECOGNIZABLE: "recognizable", SINGLED_OUT: "singled", PARTLY: "partly", NOT_SHOWN: "hidden"}
SIDE = 32  # pixels of a picture of the line-up
OFF = Perceptual("", "off")


def lehmer(state: int = 1) -> Iterator[float]:
    """Yield the numbers in (0, 1) that the page draws: x -> 48271 x modulo 2^31 - 1 (Lehmer's generator)."""
    while True:
        state = state * 48271 % (2**31 - 1)
        yield state / (2**31 - 1)


def blind_scores(truth: Tensor, lineup: Lineup) -> tuple[dict[str, dict[str, Tensor]], list[dict[str, Tensor]]]:
    """Return the scores of the pictures that show nothing of the private one (1, C, S, S), and those of blurred noise."""
    draw, side = lehmer(), truth.shape[-1]
    guesses = {
        "grey": torch.full_like(truth, 0.5),
        "black": torch.zeros_like(truth),
        "white": torch.ones_like(truth),
        "mean_colour": truth.mean((2, 3), keepdim=True).expand_as(truth),
        "mean": lineup.mean,
        "noise": torch.tensor([next(draw) for _ in range(truth.numel())], dtype=torch.float32).view_as(truth),
    }
    assert set(guesses) == set(BLIND)
    smooth = []
    for scale in SCALES:
        noise = gaussian_filter(np.array([next(draw) for _ in range(side * side)]).reshape(side, side), scale * side, mode="reflect")
        unit = (noise - noise.mean()) / noise.std()
        smooth.append(torch.tensor((0.5 + CONTRAST * unit).clip(0, 1), dtype=torch.float32).expand_as(truth))
    scored = [measure(picture, truth, lineup, OFF) for picture in (*guesses.values(), *smooth)]
    return dict(zip(guesses, scored, strict=False)), scored[len(guesses) :]


def judged(guess: Tensor, truth: Tensor, others: Tensor, count: int) -> dict[str, Any]:
    """Return PSNR, SSIM, word and rank of a guess (1, C, S, S) of the private picture among others (P, C, S, S).

    It is one of `count` guesses in a batch; the rest are grey.
    """
    lineup = Lineup(others, torch.ones(1, len(others), dtype=torch.bool), torch.full_like(truth, torch.nan), "")
    held = reference(*blind_scores(truth, lineup), best_of_others(truth, lineup), lineup.size)
    scores = measure(guess, truth, lineup, OFF)
    rank = float(held.rank(scores))
    grey = measure(torch.full_like(truth, 0.5), truth, lineup, OFF)
    batch = {name: torch.cat([scores[name], *[grey[name]] * (count - 1)]) for name in scores}
    word = WORDS[verdict(batch, repeated(held, count))["each"][0]]
    return {"psnr": float(scores["psnr"]), "ssim": float(scores["ssim"]), "word": word, "rank": None if rank != rank else rank}


def repeated(held: Reference, count: int) -> Reference:
    """Return the reference of a batch of one for a batch of `count` such pictures."""
    best, others = ({name: score.repeat(count) for name, score in one.items()} for one in (held.best, held.others))
    names, firsts = ({name: [*words] * count for name, words in one.items()} for one in (held.names, held.firsts))
    return Reference(held.size, best, names, firsts, others, held.ssim_counts)


def pictures() -> tuple[dict[str, Tensor], list[Tensor]]:
    """Return pictures by name, and the others of a line-up, (3, 32, 32) each with values n / 255."""
    with Image.open(LINEUP) as image:
        sheet = np.asarray(image.convert("RGB"))
    gallery = torch.from_numpy(np.stack(np.split(sheet, sheet.shape[1] // SIDE, axis=1))).permute(0, 3, 1, 2).float() / 255
    photo, another, *others = gallery[:: len(gallery) // 9][:9]
    pale = 0.5 + 0.3 * (photo - photo.mean())
    noise = torch.randn(photo.shape, generator=torch.Generator().manual_seed(0))

    def blurred(picture: Tensor, deviation: float) -> Tensor:
        return torch.from_numpy(gaussian_filter(picture.numpy(), (0, deviation, deviation), mode="nearest"))

    almost = others[0] + 0.2 * (photo - others[0])
    apart = (almost - others[0]).square().mean().sqrt()

    made = {
        "photo": photo,
        "photo with little noise": photo + 0.05 * noise,
        "photo with much noise": photo + 0.5 * noise,
        "blurred photo": blurred(photo, 1),
        "photo out of focus": blurred(photo, 4),
        "pale photo": pale,
        "pale photo out of focus": blurred(pale, 3),
        "another photo": another,
        "one of the line-up": others[0],
        "grey": torch.full_like(photo, 0.5),
        "almost one of the line-up": almost,
        "10 % nearer to it than that one": almost + 0.95 * apart * noise,  # by squared error: 1 - 0.95^2
        "20 % nearer to it than that one": almost + 0.9 * apart * noise,
    }
    return {name: (picture.clamp(0, 1) * 255).round() / 255 for name, picture in made.items()}, [*others]


def cases() -> dict[str, Any]:
    """Return the content of the file."""
    named, others = pictures()
    apart = [guess for guess in named if "nearer" in guess]
    pairs = [("photo", guess) for guess in named if guess not in apart]
    pairs += [("pale photo", guess) for guess in ("pale photo", "pale photo out of focus", "another photo")]
    pairs += [("grey", guess) for guess in ("grey", "another photo")]
    every = [(private, guess, 1) for private, guess in pairs]
    every += [("almost one of the line-up", guess, count) for guess in apart for count in (1, 8)]
    return {
        "pictures": {name: _text(picture) for name, picture in named.items()},
        "others": [_text(picture) for picture in others],
        "judged": [
            {
                **{"private": private, "guess": guess, "count": count},
                **judged(named[guess][None], named[private][None], torch.stack(others), count),
            }
            for private, guess, count in every
        ],
    }


def _text(picture: Tensor) -> str:
    return base64.b64encode((picture * 255).round().byte().numpy().tobytes()).decode()


@pytest.mark.long
def test_the_file_for_the_page_says_what_the_program_says() -> None:
    written, computed = json.loads(FILE.read_text()), cases()
    assert (written["pictures"], written["others"]) == (computed["pictures"], computed["others"])
    assert len(written["judged"]) == len(computed["judged"])
    for one, other in zip(written["judged"], computed["judged"], strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_the_file_is_small_and_has_every_word() -> None:
    assert FILE.stat().st_size < 120_000
    assert {one["word"] for one in json.loads(FILE.read_text())["judged"]} == set(WORDS.values())


def test_of_eight_guesses_one_needs_more_evidence_than_a_single_guess() -> None:
    """Both are nearest to the private picture among the line-up. In a batch a guess must be 15 % nearer than the rest of the line-up."""
    words = {(one["guess"], one["count"]): one["word"] for one in json.loads(FILE.read_text())["judged"] if "nearer" in one["guess"]}
    closer, close = "20 % nearer to it than that one", "10 % nearer to it than that one"
    assert words == {(closer, 1): "singled", (closer, 8): "singled", (close, 1): "singled", (close, 8): "hidden"}


if __name__ == "__main__":
    FILE.write_text(json.dumps(cases(), indent=1) + "\n")
