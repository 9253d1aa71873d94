"""What a call comes to as a value: printed in a line, compared entry by entry; how far it is; and under which modes of torch it works."""

import inspect
import sys

import pytest
import torch
from problems import smooth
from torch import nn

import leakage
from leakage.api import progress
from leakage.engine.core import Snapshot
from leakage.evaluation.referee import proved

SHORT = leakage.plugin("inverting_gradients", steps=25)


def small() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 20), nn.Sigmoid(), nn.Linear(20, 5))


X, Y = smooth(1, 3, 8), torch.tensor([3])


def test_the_same_call_gives_an_equal_result_and_another_seed_another() -> None:
    one, again, other = (leakage.attack(small(), X, Y, attack=SHORT, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.seconds != again.seconds  # time alone may differ
    assert one != other
    assert one != "a result"


def test_a_result_is_printed_in_one_line() -> None:
    result = leakage.attack(small(), X, Y, attack=SHORT)
    assert repr(result) == (
        f"Result({result.verdict['word']}, {result.scores['psnr']:.1f} dB, rank {result.scores['rank']:g}, {result.seconds:.1f} s)"
    )
    update = leakage.observe(small(), X, Y).update
    alone = leakage.attack(small(), update=update, image_shape=(3, 8, 8), batch_size=1, attack=SHORT)
    distance = f"{alone.scores['relative_l2']:.2g}"
    assert repr(alone) == f"Result(an update alone, relative gradient distance {distance}, {alone.seconds:.1f} s)"


# ---------------------------------------------------------------- proofs


def test_which_pictures_are_proved_stands_in_the_order_of_the_pictures() -> None:
    """SPEAR takes a batch apart behind a fully connected layer with ReLU; its lambda proves each picture."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(192, 200), nn.ReLU(), nn.Linear(200, 5))
    x = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    result = leakage.attack(model, x, torch.tensor([0, 4, 2]), attack="exact_batches", normalization=([0.5] * 3, [0.3] * 3))
    assert result.note["proved"] == sum(result.proved)
    assert result.proved == (True, True, True)
    assert leakage.attack(small(), X, Y, attack=SHORT).proved == (False,)


def test_a_proof_moves_with_its_picture() -> None:
    found = Snapshot(1, X.expand(3, -1, -1, -1), Y.expand(3), torch.zeros(()), proved=torch.tensor([True, False, False]))
    assert proved(found, torch.tensor([2, 0, 1])) == (False, True, False)


# ---------------------------------------------------------------- progress


def test_a_function_is_told_how_far_the_attack_is_and_its_end() -> None:
    told: list[tuple[int, int | None, float]] = []
    result = leakage.attack(small(), X, Y, attack=SHORT, progress=lambda *now: told.append(now))
    assert told[-1][:2] == (25, 25)
    assert [step for step, *_ in told] == sorted(step for step, *_ in told)
    assert len(told) <= 2 + 10 * result.seconds


def test_the_steps_of_every_start_are_counted_and_of_an_attack_without_steps_none() -> None:
    assert progress.most_steps(leakage.plugin("dlg", steps=7, tries=3)) == 21
    assert progress.most_steps(leakage.plugin("linear_layer")) is None
    assert progress.most_steps(leakage.plugin("gifd")) is None  # stages have steps of their own


def test_a_bar_is_drawn_where_tqdm_is_and_asked_for_where_it_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    leakage.attack(small(), X, Y, attack=SHORT, progress=True)
    assert "25/25" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="Install tqdm, or give a function"):
        leakage.attack(small(), X, Y, attack=SHORT, progress=True)
    with pytest.raises(TypeError, match="progress must be True, or a function"):
        leakage.attack(small(), X, Y, attack=SHORT, progress="bar")


# ---------------------------------------------------------------- modes of torch


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_works_under_modes_that_record_no_derivatives(mode: type) -> None:
    plain = leakage.attack(small(), X, Y, attack=SHORT)
    with mode():
        model, x = small(), X.clone()
        assert leakage.attack(model, x, Y.clone(), attack=SHORT) == plain
        frames = list(leakage.frames(model, x, Y, attack=SHORT))
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
        assert not torch.is_grad_enabled()
        update = {name: value.clone() for name, value in leakage.observe(model, x, Y).update.items()}
        alone = leakage.attack(model, update=update, image_shape=(3, 8, 8), batch_size=1, attack=SHORT)
    assert torch.equal(frames[-1].x, plain.reconstruction)
    torch.testing.assert_close(alone.reconstruction, plain.reconstruction, atol=1e-3, rtol=0)


# ---------------------------------------------------------------- names


def test_a_plug_in_is_named_with_fields_of_its_own() -> None:
    local = leakage.plugin("fedavg", epochs=2, rate=0.01)
    assert (local.id, local.epochs, local.rate) == ("fedavg", 2, 0.01)
    assert leakage.plugin("gaussian_noise", scale=0.5) == leakage.plugin("gaussian_noise", scale=0.5) != leakage.plugin("gaussian_noise")
    with pytest.raises(ValueError, match=r"There is no plug-in 'fedvag'. There are attack: .*protocol: .*fedavg"):
        leakage.plugin("fedvag")
    with pytest.raises(TypeError, match=r"fedavg has no field 'lr'. Its fields are epochs, mini_batch, rate"):
        leakage.plugin("fedavg", lr=0.1)
    with pytest.raises(ValueError, match=r"FedAvg.epochs: allowed is a whole number from 1 to 100, given was 0"):
        leakage.plugin("fedavg", epochs=0)


def test_attack_frames_and_observe_take_the_same_arguments() -> None:
    whole = inspect.signature(leakage.frames).parameters
    assert inspect.signature(leakage.attack).parameters == whole
    part = inspect.signature(leakage.observe).parameters
    beside_an_update = ("update", "image_shape", "batch_size")
    assert [name for name in whole if name not in (*beside_an_update, "attack", "progress")] == list(part)
    assert all(part[name] == whole[name] for name in part if name not in ("x", "y"))  # which an update alone does without
