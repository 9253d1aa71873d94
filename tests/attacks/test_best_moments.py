"""What an attack has found it keeps: behind noise no search goes on until it shows the noise."""

import pytest
import torch

from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Picture
from leakage.spec.simple_choice import SimpleChoice
from leakage.workers.adapter import play, prepare


def ends(picture: str, force: str, *, adaptive: bool = True) -> tuple[float, float, str]:
    """PSNR where the Lab's simple form ends behind noise, the best on the way, and what the attacker assumes of the errors."""
    choice = SimpleChoice("small", 1, "noise", force, adaptive)  # type: ignore[arg-type]
    scene = prepare(choice.experiment((Picture(id=picture),)))
    frames = list(play(choice.experiment((Picture(id=picture),)), scene=scene))
    scores = torch.cat([psnr(frame.x, scene.x) for frame in frames])
    return float(scores[-1]), float(scores.max()), str(frames[-1].note["errors"])


@pytest.mark.parametrize(("picture", "least"), [("chelsea", 20.0), ("astronaut", 13.0)])
def test_the_cat_and_the_astronaut_stay_what_they_were_before_polishing(picture: str, least: float) -> None:
    """They ended at 12.6 and 11.8 dB: polishing fitted the noise."""
    end, best, words = ends(picture, "middle")
    assert end > least
    assert end > best - 1
    assert words.startswith("known from the protection")


def test_who_does_not_know_the_noise_reads_it_from_what_polishing_leaves() -> None:
    end, best, words = ends("chelsea", "middle", adaptive=False)
    assert end > max(20, best - 1)
    assert words.startswith("read from what polishing leaves")


def test_weak_noise_leaves_polishing_its_use() -> None:
    end, best, _ = ends("chelsea", "weak")
    assert end > max(24, best - 1)
