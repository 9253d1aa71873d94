"""`leakage.attack` on a user's model and data: with pictures or with an update alone; the model is unchanged afterwards."""

import copy
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from reachable_truth import leaks
from small_problems import smooth
from torch import Tensor, nn

import leakage
import leakage.api
import leakage.auditing
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.engine.federation import ThreatModel
from leakage.protocols.fedavg import FedAvg
from leakage.settings import ROOT

SHORT = InvertingGradients(steps=25)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
LOCAL = FedAvg(epochs=2, rate=0.01)


class Own(nn.Module):
    """A network as people write them: no Sequential, BatchNorm, Dropout, pictures of 3x48x48, 7 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 5, stride=4, padding=2)
        self.norm = nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.4)
        self.last = nn.Linear(6 * 12 * 12, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(self.norm(self.first(x)).sigmoid()).flatten(1))


@pytest.fixture
def own() -> Iterator[Own]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield Own()


@pytest.fixture
def x() -> Tensor:
    return smooth(2, 3, 48)


Y = torch.tensor([5, 2])


def state(model: nn.Module) -> dict[str, object]:
    """All of a model that could change."""
    return {
        "numbers": {name: value.clone() for name, value in model.state_dict().items()},
        "modes": [layer.training for layer in model.modules()],
        "trained": [value.requires_grad for value in model.parameters()],
        "gradients": [value.grad for value in model.parameters()],
        "places": [value.data_ptr() for value in model.parameters()],
        "hooks": [len(layer._forward_hooks) + len(layer._forward_pre_hooks) for layer in model.modules()],
        "names": [name for name, _ in model.named_modules()],
    }


def same(one: dict[str, object], other: dict[str, object]) -> bool:
    numbers, others = one.pop("numbers"), other.pop("numbers")
    return one == other and numbers.keys() == others.keys() and all(torch.equal(numbers[name], others[name]) for name in numbers)


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("batch_norm", ["eval", "batch"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.long
def test_a_model_of_ones_own_is_attacked_and_comes_back_unchanged(own: Own, x: Tensor, batch_norm: str, training: bool) -> None:
    own.train(training)
    own.first.bias.requires_grad_(False)
    before, pictures, rng_state = state(own), x.clone(), torch.get_rng_state()
    result = leakage.attack(own, x, Y, attack=SHORT, protocol=LOCAL, batch_norm=batch_norm, normalization=(MEAN, STD), seed=1)
    assert same(before, state(own))
    assert torch.equal(x, pictures)
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert result.reconstruction.shape == x.shape
    assert 0 <= float(result.reconstruction.min()) <= float(result.reconstruction.max()) <= 1
    mse = (result.reconstruction - x).square().mean((1, 2, 3))
    assert result.scores["psnr"] == pytest.approx(float((-10 * mse.log10()).mean()), abs=1e-4)
    grey = (x - 0.5).square().mean((1, 2, 3))
    assert result.baselines["grey"]["psnr"] == pytest.approx(float((-10 * grey.log10()).mean()), abs=1e-4)
    assert sorted(result.labels) == sorted(result.update.labels or []) == [2, 5]
    assert result.threat_model == ThreatModel(adaptive=True)


def test_earlier_names_of_the_api_go_on_working() -> None:
    """Scripts of version 0.2 read `.update` of an observation and set a plug-in's fields by their earlier names."""
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Flatten(), nn.Linear(48, 5)), torch.rand(1, 3, 4, 4), torch.tensor([2])
    gradient = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), [*model.parameters()])
    update = leakage.observe(model, x, y).update
    for name, expected in zip(("1.weight", "1.bias"), gradient, strict=True):
        torch.testing.assert_close(update[name], expected)
    assert leakage.plugin("dp_sgd", clip=2.0, sigma=0.1) == leakage.plugin("dp_sgd", max_grad_norm=2.0, noise_multiplier=0.1)
    assert leakage.plugin("dlg", tries=3) == leakage.plugin("dlg", restarts=3) != leakage.plugin("dlg")


def test_one_picture_comes_back_exactly_from_a_linear_layer() -> None:
    """dL/dW_c = dL/db_c x: the picture is a row of one divided by an entry of the other."""
    x = smooth(1, 3, 16)
    model = nn.Sequential(nn.Flatten(), nn.Linear(768, 20), nn.ReLU(), nn.Linear(20, 4))
    result = leakage.attack(model, x, torch.tensor([1]), attack="linear_layer")
    torch.testing.assert_close(result.reconstruction, x, atol=1e-4, rtol=0)
    assert result.labels == [1]
    assert result.scores["rank"] == 1
    assert result.update.ranks["1.weight"] == 1  # a sum of one outer product for each picture
    assert result.verdict
    assert result.verdict["word"] == "recognizable"


def test_the_search_finds_the_picture_and_the_seed_repeats_it() -> None:
    x, y = smooth(1, 1, 8), torch.tensor([3])
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.Sigmoid(), nn.Linear(40, 5))
    searched = leakage.attack(model, x, y, attack="idlg", seed=4)
    again = leakage.attack(model, x, y, attack="idlg", seed=4)
    assert searched.scores["psnr"] > 30 > 20 > searched.baselines["grey"]["psnr"]
    assert torch.equal(searched.reconstruction, again.reconstruction)


def test_normalization_is_the_models_own_first_step() -> None:
    """(x - m) / s before a linear layer is a linear layer of other weights, with the gradient g (x - m)^T / s."""
    x, y = smooth(2, 3, 4), torch.tensor([0, 1])
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    seen = leakage.observe(model, x, y, normalization=(MEAN, STD))
    normalised = (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    loss = nn.functional.cross_entropy(model(normalised), y)
    for name, gradient in zip(["1.weight", "1.bias"], torch.autograd.grad(loss, list(model.parameters())), strict=True):
        torch.testing.assert_close(seen.received.update[name], gradient)
    torch.testing.assert_close(seen.scale[0].flatten(), torch.tensor(MEAN))
    own = Own()
    hooked = leakage.observe(own, smooth(1, 3, 48), torch.tensor([1]), normalization=(MEAN, STD))
    plain = leakage.observe(own, smooth(1, 3, 48), torch.tensor([1]))
    assert list(hooked.received.update) == list(plain.received.update) == [name for name, _ in own.named_parameters()]
    assert not torch.allclose(hooked.received.update["first.weight"], plain.received.update["first.weight"])


def test_frozen_and_unused_parameters_are_not_sent(own: Own, x: Tensor) -> None:
    own.norm.requires_grad_(False)
    own.extra = nn.Linear(3, 3)
    seen = leakage.observe(own, x, Y)
    assert list(seen.received.update) == ["first.weight", "first.bias", "last.weight", "last.bias"]


@pytest.mark.long
def test_naive_and_adaptive_attackers_differ_behind_a_defense(own: Own, x: Tensor) -> None:
    naive = leakage.attack(own, x, Y, attack=SHORT, defenses=["pruning"], adaptive=False)
    adaptive = leakage.attack(own, x, Y, attack=SHORT, defenses=["pruning"], adaptive=True)
    assert not naive.threat_model.adaptive
    assert adaptive.threat_model.adaptive
    assert not torch.equal(naive.reconstruction, adaptive.reconstruction)
    assert naive.update.numbers == adaptive.update.numbers < sum(value.numel() for value in own.parameters())


def test_pictures_of_any_channels_and_sides_are_scored() -> None:
    x = torch.rand(1, 2, 9, 14, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Flatten(), nn.Linear(2 * 9 * 14, 3))
    result = leakage.attack(model, x, torch.tensor([2]), attack="linear_layer")
    torch.testing.assert_close(result.reconstruction, x, atol=1e-4, rtol=0)
    assert result.scores["rank"] == 1
    assert "lpips" not in result.scores


def test_double_precision_stays_double() -> None:
    x = smooth(1, 1, 6).double()
    seen = leakage.observe(nn.Sequential(nn.Flatten(), nn.Linear(36, 3)).double(), x, torch.tensor([2]))
    assert {value.dtype for value in seen.received.update.values()} == {torch.float64}


def test_a_sum_of_clients_is_attacked_as_a_sum(own: Own, x: Tensor) -> None:
    seen = leakage.observe(own, x, Y, protocol=LOCAL, aggregation="secure_aggregation")
    alone = [leakage.observe(own, x[n : n + 1], Y[n : n + 1], protocol=LOCAL).received.history[0].update for n in range(2)]
    for name, value in seen.received.history[0].update.items():
        torch.testing.assert_close(value, alone[0][name] + alone[1][name])


def test_frames_come_one_by_one_and_end_with_the_result() -> None:
    x, y = smooth(1, 1, 8), torch.tensor([3])
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    run = leakage.frames(model, x, y, attack=SHORT)
    frames = list(run)
    assert [frame.final for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert torch.equal(run.result.reconstruction, frames[-1].x)
    assert run.result.steps == 25


def test_guesses_are_scored_by_the_pictures_that_they_fit() -> None:
    x = smooth(3, 3, 16)
    found = leakage.score(x[[2, 0, 1]], x)
    assert found.order == [1, 2, 0]
    assert found.scores["mse"] == 0
    assert found.verdict["word"] == "recognizable"
    half = leakage.score(torch.full_like(x, 0.5), x)
    assert half.scores["psnr"] == pytest.approx(half.baselines["grey"]["psnr"])


# ---------------------------------------------------------------- an update alone


@pytest.mark.parametrize("form", ["by name", "in order"])
@pytest.mark.long
def test_an_update_alone_is_attacked_as_that_of_a_client_would_be(own: Own, x: Tensor, form: str) -> None:
    held = leakage.observe(own, x, Y, protocol=LOCAL).received.history[0].update
    update = held if form == "by name" else list(held.values())
    result = leakage.attack(own, update=update, image_shape=(3, 48, 48), batch_size=2, attack=SHORT, protocol=LOCAL)
    beside = leakage.attack(own, x, Y, attack=SHORT, protocol=LOCAL)
    assert result.scores.keys() == {"cosine", "relative_l2"}  # no truth, so no score
    assert (result.baselines, result.verdict) == ({}, None)
    assert result.scores == {name: pytest.approx(beside.scores[name], rel=1e-4) for name in result.scores}
    assert sorted(map(float, result.reconstruction.mean((1, 2, 3)))) == pytest.approx(
        sorted(map(float, beside.reconstruction.mean((1, 2, 3)))), abs=1e-4
    )
    assert result.update == beside.update
    assert result.update.labels == [2, 5]
    assert result.update.unknowns == 2 * 3 * 48 * 48


def test_an_update_by_hand_from_a_torch_optimiser_gives_the_picture() -> None:
    """One step of SGD at rate 0.1 moves the weights by -0.1 times the gradient: FedAvg of one epoch."""
    x, y = smooth(1, 3, 8), torch.tensor([2])
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    trained = copy.deepcopy(model)
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.1)
    nn.functional.cross_entropy(trained(x), y).backward()
    optimiser.step()
    moved = [after.detach() - before.detach() for after, before in zip(trained.parameters(), model.parameters(), strict=True)]
    local = FedAvg(epochs=1, rate=0.1)
    result = leakage.attack(model, update=moved, image_shape=(3, 8, 8), batch_size=1, attack="linear_layer", protocol=local)
    torch.testing.assert_close(result.reconstruction, x, atol=1e-3, rtol=0)
    assert result.labels == [2]


# ---------------------------------------------------------------- the package


@pytest.mark.long
def test_importing_the_package_brings_no_torch_until_something_is_asked_of_it() -> None:
    script = "import sys, leakage; print('torch' in sys.modules); leakage.attack; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert set(leakage.__all__) <= set(dir(leakage))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        leakage.nothing  # noqa: B018


# ---------------------------------------------------------------- what no attacker may get


@pytest.mark.parametrize("setting", [{}, {"batch_norm": "batch"}, {"normalization": (MEAN, STD)}, {"aggregation": "secure_aggregation"}])
def test_the_server_holds_neither_pictures_nor_labels_unless_they_are_granted(own: Own, x: Tensor, setting: dict[str, object]) -> None:
    seen = leakage.observe(own, x, Y, **setting)
    assert seen.granted.labels is None
    assert leaks(seen, x, Y) == []
    granted = leakage.observe(own, x, Y, threat_model=ThreatModel(labels=True), **setting).granted.labels
    assert granted is not None
    assert granted.tolist() == Y.tolist()
    assert granted.data_ptr() != Y.data_ptr()


def test_a_model_that_is_no_sequence_sees_normalised_pictures(own: Own, x: Tensor) -> None:
    own.eval()
    normalised = (x - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    gradients = torch.autograd.grad(nn.functional.cross_entropy(own(normalised), Y), list(own.parameters()))
    seen = leakage.observe(own, x, Y, normalization=(MEAN, STD))
    for (name, value), gradient in zip(seen.received.update.items(), gradients, strict=True):
        torch.testing.assert_close(value, gradient, msg=name)


@pytest.mark.long
def test_an_update_alone_leaves_model_and_rng_state_as_they_were_and_follows_its_seed(own: Own, x: Tensor) -> None:
    update = leakage.observe(own, x, Y, batch_norm="batch").received.update
    asked = {"update": update, "image_shape": (3, 48, 48), "batch_size": 2, "attack": InvertingGradients(steps=3), "batch_norm": "batch"}
    own.train()
    before, rng_state = state(own), torch.get_rng_state()
    one, again, other = (leakage.attack(own, seed=seed, **asked) for seed in (1, 1, 2))
    assert same(before, state(own))
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert torch.equal(one.reconstruction, again.reconstruction)
    assert not torch.equal(one.reconstruction, other.reconstruction)
    beside = leakage.attack(own, x, Y, attack=InvertingGradients(steps=3), batch_norm="batch", seed=1)
    assert one.scores == {name: pytest.approx(beside.scores[name], rel=1e-4) for name in one.scores}


def test_the_package_offers_what_the_api_and_audits_do() -> None:
    attacks = {*("Result", "Scores", "ThreatModel", "attack", "frames", "observe", "plugin", "score")}
    assert {*leakage.api.__all__} == attacks
    assert {*leakage.__all__} == attacks | {"Audit", "UpdateAudit", "UpdateCard", "audit", "audit_update"}
    assert all(getattr(leakage, name) is getattr(leakage.api, name) for name in attacks)
    assert leakage.audit is leakage.auditing.audit
