"""The Result of an attack as a value: one line in print, comparison entry by entry, progress, and torch's gradient modes."""

import inspect
import sys

import pytest
import torch
from small_problems import smooth
from torch import nn

import leakage
from leakage.api import progress
from leakage.attacks._read_layers import FIRST
from leakage.engine.core import Snapshot, UnreadableLabelsError
from leakage.engine.federation import ThreatModel
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
    update = leakage.observe(small(), X, Y).received.update
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
    result = leakage.attack(model, x, torch.tensor([0, 4, 2]), attack="spear", normalization=([0.5] * 3, [0.3] * 3))
    assert result.note["proved"] == sum(result.proved)
    assert result.proved == (True, True, True)
    assert leakage.attack(small(), X, Y, attack=SHORT).proved == (False,)


def test_a_proof_moves_with_its_picture() -> None:
    found = Snapshot(1, X.expand(3, -1, -1, -1), Y.expand(3), torch.zeros(()), proved=torch.tensor([True, False, False]))
    assert proved(found, torch.tensor([2, 0, 1])) == (False, True, False)


# ---------------------------------------------------------------- attacks that do not apply


def convolution() -> nn.Sequential:
    """What the bias attack does not apply to."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Sequential(nn.Conv2d(3, 6, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(216, 5))


@pytest.mark.parametrize("labels", ["read", "granted"])
@pytest.mark.parametrize("alone", [False, True])
def test_an_attack_that_does_not_apply_ends_in_a_result_that_says_why(*, alone: bool, labels: str) -> None:
    model, why = convolution(), FIRST.format("a convolution")
    held: dict[str, object] = {"x": X, "y": Y, "threat_model": ThreatModel(labels=labels == "granted")}
    if alone:
        held = {"update": leakage.observe(model, X, Y).received.update, "image_shape": (3, 8, 8), "batch_size": 1}
        held["y"] = Y if labels == "granted" else None
    result, run = (door(model, attack="linear_layer", **held) for door in (leakage.attack, leakage.frames))
    assert list(run) == []  # nothing was tried
    assert run.result == result
    assert (result.verdict["word"], result.verdict["why"]) == ("does not apply", why)
    assert result.reconstruction.shape == (0, 3, 8, 8)
    assert (result.scores, result.note, result.steps, result.fit, result.proved) == ({}, {}, 0, None, ())
    assert result.labels == result.update.labels == [3]
    assert result.baselines == {}  # there is nothing to compare with them
    assert repr(result) == f"Result(does not apply: {why})"


def test_labels_that_cannot_be_read_are_an_error_and_no_result() -> None:
    """The caller can grant them; then the same attack gets as far as its layers."""
    model = convolution()
    model[3].weight.requires_grad_(False)
    with pytest.raises(UnreadableLabelsError, match=r"has a weight that is frozen, so that its gradient is not sent\. Grant the labels"):
        leakage.attack(model, X, Y, attack="linear_layer")
    granted = leakage.attack(model, X, Y, attack="linear_layer", threat_model=ThreatModel(labels=True))
    assert (granted.verdict["word"], granted.labels, granted.update.labels) == ("does not apply", [3], None)


# ---------------------------------------------------------------- progress


def test_a_function_is_told_how_far_the_attack_is_and_its_end() -> None:
    told: list[tuple[int, int | None, float]] = []
    result = leakage.attack(small(), X, Y, attack=SHORT, progress=lambda *now: told.append(now))
    assert told[-1][:2] == (25, 25)
    assert [step for step, *_ in told] == sorted(step for step, *_ in told)
    assert len(told) <= 2 + 10 * result.seconds


def test_the_steps_of_every_start_are_counted_and_of_an_attack_without_steps_none() -> None:
    assert progress.most_steps(leakage.plugin("dlg", steps=7, restarts=3)) == 21
    assert progress.most_steps(leakage.plugin("inverting_gradients", steps=7, polish=3)) == 13  # polishes twice where it reads errors
    assert progress.most_steps(leakage.plugin("linear_layer")) is None
    assert progress.most_steps(leakage.plugin("gifd")) is None  # stages have steps of their own


def test_a_bar_is_drawn_where_tqdm_is_and_asked_for_where_it_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    leakage.attack(small(), X, Y, attack=SHORT, progress=True)
    assert "25/25" in capsys.readouterr().err
    assert leakage.attack(convolution(), X, Y, attack="linear_layer", progress=True).steps == 0
    assert "0step" in capsys.readouterr().err  # of an attack that does not apply, and closed
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
        update = {name: value.clone() for name, value in leakage.observe(model, x, Y).received.update.items()}
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
