"""An attack keeps what it has found: behind noise no search goes on until it fits the noise."""

import pytest
import torch

from leakage.evaluation.metrics import psnr
from leakage.spec.experiment import Picture
from leakage.spec.simple_choice import SimpleChoice
from leakage.workers.adapter import play, prepare


def ends(picture: str, strength: str, *, adaptive: bool = True) -> tuple[float, float, str]:
    """PSNR where the Lab's simple form ends behind noise, the best on the way, and what the attacker assumes of the errors."""
    choice = SimpleChoice("small", 1, "noise", strength, adaptive)  # type: ignore[arg-type]
    prepared = prepare(choice.experiment((Picture(id=picture),)))
    frames = list(play(choice.experiment((Picture(id=picture),)), prepared=prepared))
    scores = torch.cat([psnr(frame.x, prepared.x) for frame in frames])
    return float(scores[-1]), float(scores.max()), str(frames[-1].note["errors"])


@pytest.mark.parametrize(("picture", "least"), [("chelsea", 25.0), ("astronaut", 22.0)])
@pytest.mark.long
def test_the_cat_and_the_astronaut_stay_what_they_were_before_polishing(picture: str, least: float) -> None:
    """They ended at 12.6 and 11.8 dB: polishing fitted the noise. Where it stopped in time they ended at 21.0 and 13.5."""
    end, best, words = ends(picture, "middle")
    assert end > least
    assert end > best - 1
    assert words.startswith("known from the protection")


@pytest.mark.parametrize(("picture", "least"), [("chelsea", 25.0), ("astronaut", 22.0)])
@pytest.mark.long
def test_an_attacker_who_does_not_know_the_noise_reads_it_from_what_polishing_leaves(picture: str, least: float) -> None:
    end, best, words = ends(picture, "middle", adaptive=False)
    assert end > max(least, best - 1)
    assert words.startswith("read from what a fit to the end leaves")


@pytest.mark.parametrize(("strength", "least"), [("weak", 30.0), ("strong", 16.0)])
@pytest.mark.long
def test_polishing_follows_the_size_of_the_noise(strength: str, least: float) -> None:
    end, best, _ = ends("chelsea", strength)
    assert end > max(least, best - 1)
