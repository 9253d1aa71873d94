"""The argument `loss`: any function of logits and labels, and mixed labels; impossible losses are refused with a message."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from once_differentiable import Once
from small_problems import smooth
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.attacks.inverting_gradients import InvertingGradients
from leakage.engine.federation import ThreatModel
from leakage.engine.inapplicable import UnreadableLabelsError
from leakage.engine.label_signs import SIGNS
from leakage.engine.labels import recover

K = 5
X, Y = smooth(2, 3, 8), torch.tensor([1, 3])
SEVERAL = torch.tensor([[0.0, 1, 0, 1, 0], [1.0, 0, 0, 0, 0]])
MIXED = torch.tensor([[0.6, 0.4, 0, 0, 0], [0.0, 0, 0.5, 0.25, 0.25]])
WEIGHTS = torch.tensor([10.0, 1, 1, 0.1, 1])
GRANTED = ThreatModel(labels=True)


def net() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(192, 12), nn.Sigmoid(), nn.Linear(12, K)).eval()


def weighted(z: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(z, y, weight=WEIGHTS)


def focal(z: Tensor, y: Tensor) -> Tensor:
    log = z.log_softmax(1)[range(len(z)), y]
    return -((1 - log.exp()) ** 2 * log).mean()


LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Tensor]] = {
    "class weights": (weighted, Y),
    "smoothing": (lambda z, y: F.cross_entropy(z, y, label_smoothing=0.1), Y),
    "sum": (lambda z, y: F.cross_entropy(z, y, reduction="sum"), Y),
    "several labels": (F.binary_cross_entropy_with_logits, SEVERAL),
    "squared error": (F.mse_loss, SEVERAL),
    "multi-margin": (F.multi_margin_loss, Y),
    "focal": (focal, Y),
    "mixed labels": (F.cross_entropy, MIXED),
    "divergence": (lambda z, y: F.kl_div(z.log_softmax(1), y, reduction="batchmean"), MIXED),
}


def autograd(model: nn.Module, x: Tensor, y: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss(model(x), y), list(model.parameters())))


@pytest.mark.parametrize("name", LOSSES)
def test_the_update_is_the_gradient_of_the_loss_that_was_given(name: str) -> None:
    loss, y = LOSSES[name]
    seen = leakage.observe(net(), X, y, loss=loss)
    for sent, gradient in zip(seen.received.update.values(), autograd(net(), X, y, loss), strict=True):
        torch.testing.assert_close(sent, gradient)
    again = seen.replay.single(X, y)
    assert all(torch.equal(again[layer], sent) for layer, sent in seen.received.update.items())


@pytest.mark.parametrize("name", LOSSES)
def test_several_guesses_are_replayed_at_once_as_each_alone(name: str) -> None:
    loss, y = LOSSES[name]
    seen = leakage.observe(net(), X, y, loss=loss, threat_model=GRANTED)
    assert seen.granted.labels is not None
    both = seen.replay.several(torch.stack([X, X.flip(0)]), seen.granted.labels)
    for lane, x in enumerate([X, X.flip(0)]):
        for layer, alone in seen.replay.single(x, y).items():
            torch.testing.assert_close(both[layer][lane], alone)


@pytest.mark.parametrize("name", LOSSES)
def test_local_steps_minimise_it(name: str) -> None:
    loss, y = LOSSES[name]
    trained = net()
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        loss(trained(X), y).backward()
        optimiser.step()
    sent = leakage.observe(net(), X, y, loss=loss, protocol=leakage.plugin("fedavg", epochs=2, rate=0.1)).received.history[0].update
    for moved, after, before in zip(sent.values(), trained.parameters(), net().parameters(), strict=True):
        torch.testing.assert_close(moved, after.detach() - before.detach(), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_clipping_takes_the_loss_of_each_picture_alone(name: str) -> None:
    loss, y = LOSSES[name]
    clipped = leakage.observe(
        net(), X, y, loss=loss, defenses=[leakage.plugin("dp_sgd", max_grad_norm=0.05, noise_multiplier=0)]
    ).received.update
    alone = [autograd(net(), X[place : place + 1], y[place : place + 1], loss) for place in range(2)]
    short = [[gradient * min(1, 0.05 / torch.cat([g.flatten() for g in one]).norm()) for gradient in one] for one in alone]
    for sent, one, other in zip(clipped.values(), *short, strict=True):
        torch.testing.assert_close(sent, (one + other) / 2)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "multi-margin"])  # which has no second derivative
def test_a_search_with_granted_labels_finds_the_picture(name: str) -> None:
    loss, y = LOSSES[name]
    result = leakage.attack(net(), X[:1], y[:1], loss=loss, attack=leakage.plugin("inverting_gradients", steps=200), threat_model=GRANTED)
    assert result.scores["psnr"] > 30
    assert (result.update.labels is None) == (name not in ("mixed labels", "several labels"))


def test_the_plain_cross_entropy_is_known_however_it_is_written() -> None:
    for loss in (F.cross_entropy, nn.CrossEntropyLoss(), lambda z, y: -z.log_softmax(1)[range(len(z)), y].mean()):
        assert leakage.attack(net(), X, Y, loss=loss, attack=leakage.plugin("idlg", steps=1, restarts=1)).update.labels == [1, 3]


def test_labels_are_searched_where_they_cannot_be_read() -> None:
    loss = LOSSES["class weights"][0]
    found = leakage.attack(net(), X[:1], Y[:1], loss=loss, attack=leakage.plugin("dlg", steps=100), seed=2)
    assert found.scores["psnr"] > 25
    assert (found.loss, ", loss: weighted, " in repr(found)) == ("weighted", True)
    with pytest.raises(ValueError, match=r"minimises another loss \(weighted\). Grant them"):
        leakage.attack(net(), X[:1], Y[:1], loss=loss, attack="inverting_gradients")


def test_labels_beside_an_update_alone_are_granted() -> None:
    loss, y = LOSSES["several labels"]
    update = leakage.observe(net(), X[:1], y[:1], loss=loss).received.update
    asked: dict[str, Any] = {"image_shape": (3, 8, 8), "batch_size": 1, "attack": leakage.plugin("inverting_gradients", steps=200)}
    result = leakage.attack(net(), y=y[:1], update=update, loss=loss, **asked)
    assert result.threat_model.labels
    torch.testing.assert_close(result.reconstruction, X[:1], atol=0.05, rtol=0)
    read = leakage.attack(net(), update=update, loss=loss, **asked)  # the labels are read from the signs of the bias
    torch.testing.assert_close(read.reconstruction, X[:1], atol=0.05, rtol=0)
    assert read.update.labels == [1, 3]
    assert read.fit.warnings == ()
    squared = leakage.observe(net(), X[:1], y[:1], loss=F.mse_loss).received.update
    with pytest.raises(ValueError, match="minimises another loss"):
        leakage.attack(net(), update=squared, loss=F.mse_loss, **asked)


@pytest.mark.parametrize("attack", ["linear_layer", "spear", "r_gap", "inverting_gradients", "gradinversion", "grnn", "rog"])
def test_attacks_take_mixed_labels_that_are_granted(attack: str) -> None:
    steps = {"steps": 2} if hasattr(leakage.plugin(attack), "steps") else {}
    model = net()
    if attack == "spear":  # which reads the zeros of ReLU
        model = nn.Sequential(*(nn.ReLU() if isinstance(layer, nn.Sigmoid) else layer for layer in model))
    result = leakage.attack(model, X, MIXED, attack=leakage.plugin(attack, **steps), threat_model=GRANTED)
    assert sorted(result.labels) == [0, 2]
    assert result.scores["label_accuracy"] == 1


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no function": ("mean", Y, r"loss must be a function of \(logits \(B, K\), y\)"),
    "no scalar": (lambda z, y: F.cross_entropy(z, y, reduction="none"), Y, r"got shape \(2,\). Take its mean"),
    "no number": (lambda z, y: 0.5, Y, r"one finite number, .*; got 0.5"),
    "infinite": (lambda z, y: z.sum() * torch.inf, Y, "one finite number"),
    "constant": (lambda z, y: z.detach().sum(), Y, "does not depend on the logits"),
    "random": (lambda z, y: (z * torch.rand_like(z)).sum(), Y, "another number when it is called again"),
    "other labels": (F.binary_cross_entropy_with_logits, Y, r"loss fails on logits \(2, 5\) and labels \(2,\)"),
    "margin": (F.multi_margin_loss, Y, "loss has no second derivative"),
    "once": (lambda z, y: Once.apply(z).sum(), Y, "loss has no second derivative"),
    "no distribution": (None, SEVERAL, r"y\[0\] is no distribution .* the least is 0 and the sum 2. For several labels"),
    "negative": (None, torch.tensor([[1.5, -0.5, 0, 0, 0], [1, 0, 0, 0, 0]]), r"the least is -0.5 and the sum 1"),
    "too few": (None, torch.tensor([[0.5, 0.5], [1.0, 0.0]]), r"5 probabilities for each of the 2 pictures, shape \(2, 5\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_loss_or_labels_that_cannot_work_are_refused(name: str) -> None:
    loss, y, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=words):
        leakage.attack(net(), X, y, loss=loss, attack="inverting_gradients", threat_model=GRANTED)


def test_a_search_for_labels_needs_a_loss_that_takes_probabilities() -> None:
    with pytest.raises(ValueError, match=r"searches labels as probabilities \(B, K\), which the loss does not take"):
        leakage.attack(net(), X, Y, loss=F.multi_margin_loss, attack="dlg")


def test_the_labels_of_one_picture_with_several_are_read_from_the_signs_of_the_bias() -> None:
    """dL/dz_c of binary cross-entropy is negative exactly where the label is 1: 20 pictures with random labels, all read right."""
    model, rng = net(), torch.Generator().manual_seed(0)
    for _ in range(20):
        x, y = torch.rand(1, 3, 8, 8, generator=rng), torch.randint(2, (1, K), generator=rng).float()
        result = leakage.attack(model, x, y, loss=F.binary_cross_entropy_with_logits, attack="linear_layer")
        assert result.update.labels == y[0].nonzero().flatten().tolist()
        assert result.update.rule == SIGNS
        assert result.scores["mse"] < 1e-8


@pytest.mark.parametrize(
    "loss",
    [
        lambda z, y: F.binary_cross_entropy_with_logits(z, y, reduction="sum"),
        lambda z, y: F.binary_cross_entropy_with_logits(z, y, pos_weight=WEIGHTS),
        lambda z, y: F.binary_cross_entropy(z.sigmoid(), y),
        lambda z, y: F.soft_margin_loss(z, 2 * y - 1),
    ],
    ids=["sum", "weighted", "of probabilities", "soft margin"],
)
def test_every_loss_with_such_signs_shows_the_labels(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    seen = leakage.observe(net(), X[:1], SEVERAL[:1], loss=loss)
    assert torch.equal(recover(seen).labels, SEVERAL[:1])


def test_several_labels_of_a_batch_and_labels_of_other_losses_have_to_be_granted() -> None:
    with pytest.raises(UnreadableLabelsError, match=r"each picture may have several labels.*Grant the labels"):
        leakage.attack(net(), X, SEVERAL, loss=F.binary_cross_entropy_with_logits, attack=InvertingGradients(steps=2))
    with pytest.raises(UnreadableLabelsError, match="this client minimises another loss"):
        leakage.attack(net(), X[:1], SEVERAL[:1], loss=F.mse_loss, attack=InvertingGradients(steps=2))
