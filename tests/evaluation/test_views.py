"""The pictures that are drawn beside a guess."""

import pytest
import torch

from leakage.attacks.r_gap import RGap
from leakage.engine.core import generator
from leakage.evaluation.views import draw_view
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import play, prepare


def test_maps_are_stretched_and_laid_out_in_a_mosaic_with_a_grey_line_between_them() -> None:
    maps = torch.stack([torch.tensor([[0.0, 2.0]]), torch.tensor([[-1.0, -3.0]]), torch.tensor([[7.0, 7.0]])])  # (3, 1, 2)
    expected = torch.tensor([[[0, 1, 0.5, 1, 0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5, 0.5]]])
    torch.testing.assert_close(draw_view(maps), expected)


def test_pictures_stand_side_by_side_and_are_clamped_and_a_list_becomes_a_block() -> None:
    pictures = torch.tensor([[[[-1.0, 0.25]]], [[[0.75, 9.0]]]])  # (2, 1, 1, 2)
    torch.testing.assert_close(draw_view(pictures), torch.tensor([[[0.0, 0.25, 0.75, 1.0]]]))
    torch.testing.assert_close(draw_view(torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])), torch.tensor([[[0.0, 0.25, 0.5], [0.75, 1.0, 0.5]]]))
    torch.testing.assert_close(draw_view(torch.tensor([[[[torch.nan, torch.inf]]]])), torch.tensor([[[0.5, 1.0]]]))


def test_what_is_no_number_is_drawn_at_the_edge_of_the_others_or_grey() -> None:
    torch.testing.assert_close(draw_view(torch.tensor([[[-2.0, torch.inf, 2.0, torch.nan, 0.0]]])), torch.tensor([[[0, 1, 1, 0.5, 0.5]]]))
    assert torch.equal(draw_view(torch.full((1, 1, 3), torch.nan)), torch.full((1, 1, 3), 0.5))


@pytest.mark.long
def test_every_layer_of_a_recursion_is_kept_however_fast_it_comes() -> None:
    experiment = Experiment(
        pictures=(Picture(source="gallery", id="digit-3"),), model=Part(id="cnn6"), attack=Part(id="r_gap"), task="flipped"
    )
    prepared = prepare(experiment)
    snapshots = list(RGap().run(prepared.seen, generator(experiment.seed, "attack")))
    frames = list(play(experiment, prepared=prepared, per_second=0.001))
    layers = [f"conv{number}" for number in range(6, 0, -1)]
    assert [frame.note["layer"] for frame in frames if "layer" in frame.note] == ["linear", *layers]
    (mosaic,) = frames[6].views.values()  # what enters conv1: three maps of 32 x 32 in two columns
    assert mosaic.shape == (1, 65, 65)
    (found,) = snapshots[6].views.values()
    torch.testing.assert_close(mosaic[0, :32, :32], ((found[0] - found[0].min()) / (found[0].max() - found[0].min())).float())
