"""PRECODE and FedKL compared with networks written by hand that hold the same secrets."""

import math
from functools import partial

import pytest
import torch
from reachable_truth import reached
from small_problems import CATALOG, FITTING, LABELS, TINY, moments, observed, precision, smooth
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from leakage.attacks._adam import Descent
from leakage.defenses.fedkl import FedKL
from leakage.defenses.precode import Precode, names_before_gate
from leakage.defenses.soteria import last_linear, scores
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import ClientState, Params, StepRng, generator
from leakage.engine.matching import distance
from leakage.engine.statistics import batch_statistics
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import plugin, prepare

SEED = 5
RESNET = FITTING["fedkl"]
PRECODE, FEDKL = Part(id="precode", fields={"size": 6, "beta": 0.5}), Part(id="fedkl")
EXACT = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])


def rng_of(name: str, place: int = 0) -> StepRng:
    """The random numbers of the first phone's protection."""
    return partial(generator, SEED, "defense", place, name)


def relative(update: Params, reference: Params) -> float:
    assert update.keys() == reference.keys()
    return gradient_distances(update, reference)["relative_l2"]


def equal(update: Params, reference: Params) -> bool:
    return all(torch.equal(value, reference[name]) for name, value in update.items())


# ---------------------------------------------------------------- PRECODE


def noise(step: int, count: int, dtype: torch.dtype) -> Tensor:
    """eps (count, 6) of this local step."""
    return torch.randn((count, 6), generator=rng_of("precode")(step)).to(dtype)


def gate_by_hand(weights: Params, x: Tensor, y: Tensor, eps: Tensor, beta: float = 0.5, *, graph: bool = False) -> Params:
    """The gradient of the tiny network's loss with a gate of 6 numbers, without any module."""
    h = (x.flatten(1) @ weights["linear1.weight"].T + weights["linear1.bias"]).sigmoid()
    both = h @ weights["bottleneck.encode.weight"].T + weights["bottleneck.encode.bias"]
    mu, std = both[:, :6], (1 + both[:, 6:].exp()).log()
    h = (mu + std * eps) @ weights["bottleneck.decode.weight"].T + weights["bottleneck.decode.bias"]
    logits = h @ weights["linear.weight"].T + weights["linear.bias"]
    bits = kl_divergence(Normal(mu, std), Normal(torch.zeros_like(mu), 1)).sum(1).mean() / math.log(2)
    loss = F.cross_entropy(logits, y) + beta * bits
    return dict(zip(weights, torch.autograd.grad(loss, list(weights.values()), create_graph=graph), strict=True))


@EXACT
@pytest.mark.parametrize("batch", [1, 3])
def test_a_client_with_precode_sends_the_gradient_of_both_losses(dtype: torch.dtype, tolerance: float, batch: int) -> None:
    with precision(dtype):
        x = smooth(batch)
        seen = observed(x, defenses=(PRECODE,), seed=SEED)
        weights, y = seen.received.weights, LABELS[:batch]
        assert relative(seen.received.update, gate_by_hand(weights, x, y, noise(0, batch, dtype))) < tolerance
        assert relative(seen.replay.single(x, y), gate_by_hand(weights, x, y, torch.zeros(6))) < tolerance  # an attacker without eps
        assert relative(seen.received.update, gate_by_hand(weights, x, y, noise(0, batch, dtype), beta=0)) > 1e-3


def test_what_precode_sends_has_the_right_derivative() -> None:
    with precision(torch.float64):
        seen, gradients = observed(smooth(3), defenses=(PRECODE,), seed=SEED), []
        client = Precode(size=6, beta=0.5).defend(gradient_client(seen.model), seen.model, rng_of("precode"))
        for own in (True, False):
            x = smooth(3).requires_grad_()
            eps = noise(0, 3, torch.float64)
            weights = seen.received.weights
            sent = client(weights, x, LABELS, {})[0] if own else gate_by_hand(weights, x, LABELS, eps, graph=True)
            gradients.append(torch.autograd.grad(sum(g.square().sum() for g in sent.values()), x)[0])
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-15)


def test_several_guesses_at_a_gated_client_are_replayed_together_like_each_alone() -> None:
    with precision(torch.float64):
        seen = observed(smooth(3), defenses=(PRECODE,), seed=SEED)
        guesses = torch.stack([smooth(3, seed=seed) for seed in (1, 2)]).requires_grad_()
        together = seen.replay.several(guesses, LABELS)
        weight = {name: torch.rand_like(g) for name, g in together.items()}
        (gradients,) = torch.autograd.grad(sum((g * weight[name]).sum() for name, g in together.items()), guesses)
        for lane in range(2):
            guess = guesses[lane].detach().requires_grad_()
            alone = seen.replay.single(guess, LABELS)
            for name, g in alone.items():
                torch.testing.assert_close(together[name][lane], g, rtol=1e-9, atol=1e-14)
            (gradient,) = torch.autograd.grad(sum((g * weight[name][lane]).sum() for name, g in alone.items()), guess)
            torch.testing.assert_close(gradients[lane], gradient, rtol=1e-9, atol=1e-14)


def test_the_noise_of_the_gate_is_fresh_in_every_step_and_the_same_when_repeated() -> None:
    x, kept = smooth(3), list[Tensor]()
    seen = observed(x, defenses=(Part(id="precode", fields={"size": 400}),), seed=SEED)

    def watched(weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> tuple[Params, ClientState]:
        kept.append(weights["bottleneck.eps"])
        return {}, state

    client = Precode(size=400).defend(watched, seen.model, rng_of("precode"))
    _, after = client(seen.received.weights, x, LABELS, {})
    client(seen.received.weights, x, LABELS, after)
    client(seen.received.weights, x, LABELS, {})
    first, second, again = kept
    assert torch.equal(first, again)
    assert first.shape == (3, 400)
    assert abs(float(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1])) < 0.15  # 1200 pairs: known to 0.03
    assert abs(float(torch.corrcoef(first)[0, 1])) < 0.25  # nor do two pictures share it: 400 pairs, known to 0.05
    assert float(first.std()) == pytest.approx(1, rel=0.1)


def test_every_local_step_of_federated_averaging_has_noise_of_its_own() -> None:
    with precision(torch.float64):
        x = smooth(3)
        protocol = Part(id="fedavg", fields={"epochs": 2, "rate": 0.1})
        seen = observed(x, defenses=(PRECODE,), seed=SEED, protocol=protocol)
        here = seen.received.weights
        for step in range(2):
            gradient = gate_by_hand(here, x, LABELS, noise(step, 3, torch.float64))
            here = {name: (value - 0.1 * gradient[name]).detach().requires_grad_() for name, value in here.items()}
        assert relative(seen.received.update, {name: here[name] - value for name, value in seen.received.weights.items()}) < 1e-10


def test_precode_before_a_protection_that_takes_single_pictures_gives_each_its_noise_and_after_it_says_why_not() -> None:
    with precision(torch.float64):
        x, dp = smooth(3), Part(id="dp_sgd", fields={"max_grad_norm": 1e6, "noise_multiplier": 0.0})
        seen = observed(x, defenses=(PRECODE, dp), seed=SEED)
        alone = [gate_by_hand(seen.received.weights, x[b : b + 1], LABELS[b : b + 1], noise(b, 1, torch.float64)) for b in range(3)]
        assert relative(seen.received.update, {name: sum(g[name] for g in alone) / 3 for name in alone[0]}) < 1e-10
        with pytest.raises(ValueError, match="Name PRECODE before it"):
            observed(x, defenses=(dp, PRECODE), seed=SEED)


NETS = {
    "mlp": TINY,
    "lenet": Part(id="lenet"),
    "convnet": Part(id="convnet", fields={"width": 4}),
    "vgg16": Part(id="vgg16", fields={"units": 16}),
    "resnet": RESNET,
}


@pytest.mark.parametrize("model", NETS)
@pytest.mark.long
def test_the_gate_stands_before_the_last_layer_and_the_old_weights_are_what_they_were(model: str) -> None:
    x = smooth(1, 3, 32)
    plain = observed(x, model=NETS[model], seed=SEED)
    state = torch.get_rng_state()
    seen = observed(x, model=NETS[model], seed=SEED, defenses=(Part(id="precode"),))
    assert torch.equal(torch.get_rng_state(), state)
    assert equal(plain.received.weights, seen.received.weights)
    old = list(plain.received.weights)
    last = old[-1].rpartition(".")[0]
    where = old.index(f"{last}.weight")
    inputs = plain.received.weights[f"{last}.weight"].shape[1]
    new = [name for name in seen.received.weights if name not in old]
    assert list(seen.received.weights) == [*old[:where], *new, *old[where:]]
    assert [tuple(seen.received.weights[name].shape) for name in new] == [(512, inputs), (512,), (inputs, 256), (inputs,)]
    assert names_before_gate(seen.received.weights) == old[:where]
    again = observed(x, model=NETS[model], seed=SEED, defenses=(Part(id="precode"),)).received.weights
    other = observed(x, model=NETS[model], seed=6, defenses=(Part(id="precode"),)).received.weights
    assert again[new[0]].equal(seen.received.weights[new[0]])
    assert not other[new[0]].equal(seen.received.weights[new[0]])


LOOKS = Assumptions(labels=True, strategy="look for the noise")
GATE = "bottleneck.eps"


@pytest.mark.parametrize("batch", [1, 3])
def test_with_the_noise_that_it_looks_for_an_attacker_replays_the_client_exactly(batch: int) -> None:
    x = smooth(batch)
    seen = observed(x, defenses=(PRECODE,), seed=SEED, assume=LOOKS)
    assert seen.knowledge.latents[GATE].tolist() == [[0] * 6] * batch  # where it begins
    far = relative(seen.gradient(x, LABELS[:batch]), seen.as_gradient())
    seen.knowledge.latents[GATE].data.copy_(noise(0, batch, torch.float32))
    assert relative(seen.gradient(x, LABELS[:batch]), seen.as_gradient()) < 1e-6
    assert relative({name: g[1] for name, g in seen.gradients(torch.stack([x, x]), LABELS[:batch]).items()}, seen.as_gradient()) < 1e-5
    assert far > 0.01


def test_a_search_for_picture_and_noise_fits_the_whole_gradient_where_one_without_noise_cannot() -> None:
    ends = {}
    for strategy in ("leave the noise out", "look for the noise"):
        seen = observed(smooth(), defenses=(PRECODE,), seed=SEED, assume=LOOKS.model_copy(update={"strategy": strategy}))
        attack = Part(id="inverting_gradients", fields={"steps": 400, "tv_weight": 0.0, "signed": False})
        ends[strategy] = float(moments(attack, seen)[-1].loss)
    assert ends["look for the noise"] < ends["leave the noise out"] / 10


def test_of_local_steps_with_fewer_pictures_it_looks_for_the_noise_of_so_many() -> None:
    protocol = Part(id="fedavg", fields={"epochs": 1, "mini_batch": 2})
    seen = observed(smooth(3), defenses=(PRECODE,), seed=SEED, protocol=protocol, assume=LOOKS)
    update = seen.gradient(smooth(3).requires_grad_(), LABELS)
    (gradient,) = torch.autograd.grad(sum(g.square().sum() for g in update.values()), [seen.knowledge.latents[GATE]])
    assert gradient.shape == (3, 6)
    assert gradient[:2].abs().min() > 0  # steps of 2 and of 1
    assert not gradient[2].any()


def test_precode_says_that_it_needs_a_last_layer_in_a_sequence() -> None:
    for model in (nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten()), plugin("model", Part(id="resnet18_imagenet")).build((3, 32, 32), 10)):
        with pytest.raises(ValueError, match=r"PRECODE goes before a last linear layer .* Choose another protection"):
            Precode().change(model)


@pytest.mark.parametrize("adaptive", [True, False])
def test_the_first_layer_of_an_mlp_says_the_picture_in_spite_of_precode(adaptive: bool) -> None:
    x = smooth(1, 3, 32)
    model = Part(id="mlp", fields={"width": 256, "depth": 2})
    seen = observed(x, model=model, defenses=(Part(id="precode"),), assume={"adaptive": adaptive})
    assert relative(seen.replay.single(x, LABELS[:1]), seen.received.update) > 0.01  # though nobody can replay what was sent
    answer = moments(Part(id="linear_layer"), seen)[-1]
    assert float((answer.x - x).abs().max()) < 1e-5
    assert answer.y.tolist() == [7]


# ---------------------------------------------------------------- FedKL


@EXACT
@pytest.mark.parametrize("batch_norm", ["eval", "batch"])
def test_a_client_with_fedkl_sends_the_gradient_of_a_network_with_its_own_scales_and_shifts(
    dtype: torch.dtype, tolerance: float, batch_norm: str
) -> None:
    with precision(dtype):
        x, settings = smooth(3), {"model": RESNET, "seed": SEED, "batch_norm": batch_norm}
        plain, seen = observed(x, **settings), observed(x, **settings, defenses=(FEDKL,), assume={"strategy": "no scales"})
        assert equal(seen.received.weights, plain.received.weights)
        norms = {name for name, layer in plain.model.named_modules() if isinstance(layer, nn.BatchNorm2d)}
        gone = plain.received.weights.keys() - seen.received.weights.keys()
        assert gone == {f"{name}.{part}" for name in norms for part in ("weight", "bias")}
        sent = gradient_client(plain.model)(plain.received.weights, x, LABELS, {})[0]  # scales 1, shifts 0
        assert relative(seen.replay.single(x, LABELS), {name: sent[name] for name in seen.received.weights}) < tolerance
        secret = FedKL().draw_secret(seen.model, rng_of("fedkl")(0))
        assert secret.keys() == gone
        with torch.no_grad():
            for name, value in secret.items():
                plain.received.weights[name].copy_(value)
        sent = gradient_client(plain.model)(plain.received.weights, x, LABELS, {})[0]
        assert relative(seen.received.update, {name: sent[name] for name in seen.received.weights}) < tolerance
        assert relative(seen.replay.single(x, LABELS), seen.received.update) > 0.1


def test_a_phones_key_is_the_same_in_every_step_and_another_phone_has_another() -> None:
    x, kept = smooth(3), list[Params]()
    seen = observed(x, model=RESNET, defenses=(FEDKL,))

    def watched(weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> tuple[Params, ClientState]:
        kept.append({name: value for name, value in weights.items() if name not in seen.received.weights})
        return {}, state

    for who in ((), (), (1,)):
        client = FedKL().defend(watched, seen.model, partial(generator, SEED, "defense", 0, "fedkl", *who))
        _, after = client(seen.received.weights, x, LABELS, {})
        client(seen.received.weights, x, LABELS, after)
    one, two, again, _, other, _ = kept
    assert equal(one, two)
    assert equal(one, again)
    assert not any(torch.equal(value, other[name]) for name, value in one.items() if float(value.std()) > 0)


@pytest.mark.parametrize("length", [16, 64])
def test_scales_and_shifts_are_what_keys_and_pytorchs_linear_layers_make(length: int) -> None:
    model = FedKL().change(nn.Sequential(*(nn.BatchNorm2d(64) for _ in range(20))))
    soft = FedKL(length=length, activation="sigmoid").draw_secret(model, generator(1))
    nonsmooth_layer = FedKL(length=length).draw_secret(model, generator(1))
    layer, opened = nn.Linear(length, 64), list[Tensor]()
    for _ in range(40):
        layer.reset_parameters()
        opened.append(layer(torch.rand(length)).detach())
    inner = torch.stack([value.logit() for value in soft.values()])  # (40, 64)
    assert float(inner.std()) == pytest.approx(float(torch.stack(opened).std()), rel=0.15)  # 40 keys: known to some 4 %
    assert float(inner.mean()) == pytest.approx(0, abs=0.05)
    for row, value in zip(inner, nonsmooth_layer.values(), strict=True):
        torch.testing.assert_close(value, row.clamp(min=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("activation", "mean"), [("relu", None), ("sigmoid", 0.5)])
@pytest.mark.long
def test_who_expects_the_mean_of_all_scales_replays_a_network_with_it(activation: str, mean: float | None) -> None:
    x, fields = smooth(3), {"activation": activation}
    settings = {"model": RESNET, "seed": SEED, "defenses": (Part(id="fedkl", fields=fields),)}
    seen, naive = (observed(x, **settings, assume=one) for one in ({"strategy": "expected scales"}, {"adaptive": False}))
    assert equal(seen.received.update, naive.received.update)  # the client has scales of its own, whatever the attacker guesses
    many = FedKL().change(nn.Sequential(*(nn.BatchNorm2d(64) for _ in range(200))))
    drawn = torch.cat(list(FedKL(**fields).draw_secret(many, generator(1)).values()))
    guessed = {name: value for name, value in seen.model.named_buffers() if name in FedKL().draw_secret(seen.model, generator(1))}
    assert float(torch.cat(list(guessed.values())).std()) == pytest.approx(0, abs=1e-6)
    assert float(next(iter(guessed.values()))[0]) == pytest.approx(float(drawn.mean()) if mean is None else mean, rel=0.05)
    with torch.no_grad():
        for name, buffer in naive.model.named_buffers():
            if name in guessed:
                buffer.copy_(guessed[name])
    assert relative(seen.replay.single(x, LABELS), naive.replay.single(x, LABELS)) < 1e-6
    together = {name: value[0] for name, value in seen.replay.several(x.unsqueeze(0), LABELS).items()}
    assert relative(together, naive.replay.single(x, LABELS)) < 1e-5


def hidden_and_found(attack: Part, **assume: object) -> tuple[Tensor, Tensor]:
    """All scales and shifts of the client, and those of the attacker's model after the attack."""
    seen = observed(smooth(1), model=RESNET, seed=SEED, defenses=(FEDKL,), assume=assume)
    moments(attack, seen)
    secret = FedKL().draw_secret(seen.model, rng_of("fedkl")(0))
    return torch.cat(list(secret.values())), torch.cat([seen.model.get_buffer(name).detach() for name in secret])


@pytest.mark.long
def test_scales_that_are_looked_for_with_the_pictures_come_close_to_the_secret_ones() -> None:
    search = Part(id="inverting_gradients", fields={"steps": 200, "distance": "cosine per layer"})
    secret, guessed = hidden_and_found(search, strategy="expected scales")
    assert float(guessed.std()) == pytest.approx(0, abs=1e-6)  # what the search starts from
    secret, found = hidden_and_found(search, strategy="look for the scales")
    assert float(torch.corrcoef(torch.stack([secret, found]))[0, 1]) > 0.6
    _, kept = hidden_and_found(Part(id="idlg", fields={"steps": 5, "restarts": 1}), strategy="look for the scales")
    assert torch.equal(kept, guessed)  # it does not look
    _, naive = hidden_and_found(search, adaptive=False)
    assert set(naive.tolist()) == {0, 1}


@pytest.mark.parametrize("strategy", list(FedKL().strategies()))
@pytest.mark.long
def test_what_a_phone_sends_and_how_far_that_is_from_its_gradient_depend_on_no_attacker(strategy: str) -> None:
    asked = Experiment(model=RESNET, defenses=(FEDKL, Part(id="soteria")), size=28, seed=SEED)
    told = [Assumptions(adaptive=False), Assumptions(strategy=strategy)]
    naive, adaptive = (prepare(asked.model_copy(update={"assume": one}).resolve(CATALOG)) for one in told)
    assert equal(adaptive.seen.received.history[0].update, naive.seen.received.history[0].update)
    assert adaptive.changed == naive.changed
    assert naive.changed["cosine"] < 0.9  # other than what the model without its secret sends


def test_soteria_hides_what_matters_in_the_network_with_the_phones_own_scales() -> None:
    x = smooth(1)
    seen = observed(x, model=RESNET, seed=SEED, defenses=(FEDKL,), assume={"strategy": "no scales"})
    secret = FedKL().draw_secret(seen.model, rng_of("fedkl")(0))
    layer = last_linear(seen.model)
    plain, own = (scores(seen.model, layer, weights, x) for weights in (seen.received.weights, seen.received.weights | secret))
    for name, value in secret.items():
        seen.model.get_buffer(name).copy_(value)
    torch.testing.assert_close(own, scores(seen.model, layer, seen.received.weights, x))
    assert not torch.allclose(own, plain)


def test_exact_statistics_are_those_of_the_attacked_round() -> None:
    x, settings = smooth(3), {"model": RESNET, "seed": SEED, "protocol": Part(id="fedsgd", fields={"rate": 0.5}), "rounds": 2}
    first, second = (observed(x, **settings, attacked_round=number, assume={"statistics": "exact"}) for number in (1, 2))
    wanted = batch_statistics(second.model, x)  # which holds the weights of that round
    assert first.granted.statistics
    assert second.granted.statistics
    for name, (mean, variance) in second.granted.statistics.items():
        torch.testing.assert_close(mean, wanted[name][0])
        torch.testing.assert_close(variance, wanted[name][1])
    assert not all(torch.allclose(mean, first.granted.statistics[name][0]) for name, (mean, _) in second.granted.statistics.items())


def test_starts_played_at_once_share_one_guess_of_the_scales_and_one_that_diverges_does_not_spoil_it() -> None:
    seen = observed(smooth(1), model=RESNET, seed=SEED, defenses=(FEDKL,))
    start = {name: value.detach().clone() for name, value in seen.knowledge.latents.items()}
    moments(Part(id="inverting_gradients", fields={"steps": 5, "starts": 2}), seen)
    assert not any(torch.equal(value, start[name]) for name, value in seen.knowledge.latents.items() if name.endswith("weight"))
    wild = Descent(steps=3, step_size=1e30, signed=False, clamped=False)
    z = torch.stack([smooth(1), torch.full_like(smooth(1), torch.nan)])
    match = distance("cosine", seen.as_gradient())
    *_, _ = wild.run(seen, z, LABELS[:1], match, None, note={}, rng=generator(1))
    assert all(bool(value.isfinite().all()) for value in seen.knowledge.latents.values())


def test_fedkl_says_that_it_needs_batchnorm() -> None:
    with pytest.raises(ValueError, match=r"FedKL locks BatchNorm layers; this model has none\. Choose a model with BatchNorm"):
        observed(smooth(), defenses=(FEDKL,))


@pytest.mark.parametrize(("part", "model"), [(PRECODE, TINY), (FEDKL, RESNET)])
@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg", "fedadmm"])
def test_nothing_that_a_phone_keeps_to_itself_can_be_reached_from_what_the_server_holds(part: Part, model: Part, protocol: str) -> None:
    x = smooth(3)
    seen = observed(x, model=model, defenses=(part,), seed=SEED, protocol=Part(id=protocol), rounds=2, attacked_round=2)
    if part is FEDKL:
        kept = [value for value in FedKL().draw_secret(seen.model, rng_of("fedkl")(0)).values() if float(value.std()) > 0]
    else:
        kept = [noise(step, 3, torch.float32) for step in range(4)]
    tensors = [thing for _, thing in reached(seen) if isinstance(thing, Tensor)]
    assert any(thing is value for thing in tensors for value in weights_of(seen.model).values())  # it does look
    assert not any(thing.shape == value.shape and torch.allclose(thing, value) for thing in tensors for value in kept)
