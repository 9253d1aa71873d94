"""Local steps, hidden duals, sums and rounds: the updates, what the server can compute of hidden state, and joint guesses."""

import pytest
import torch
from small_problems import IDS, LABELS, light, observed, precision, protected, smooth
from torch import nn

import leakage.protocols._local as local
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.core import ClientState, Params, Round, generator
from leakage.evaluation.metrics import gradient_distances
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import plugin

SUM = Part(id="secure_aggregation", fields={"clients": 3})
LENET = Part(id="lenet")


def relative(one: Params, other: Params) -> float:
    return gradient_distances(one, other)["relative_l2"]


# ---------------------------------------------------------------- FedAvg


@pytest.mark.parametrize("protocol", ["fedavg", "fedprox", "fedadmm"])
def test_one_local_step_is_fedsgd_as_a_gradient(protocol: str) -> None:
    with precision(torch.float64):
        x = smooth(3)
        once = observed(x, protocol=Part(id=protocol, fields={"epochs": 1}))
        gradient = observed(x).received.update
    assert relative(once.as_gradient(), gradient) < 1e-12  # float64


def test_the_average_of_fedavg_counts_every_step_as_often_as_momentum_repeats_it() -> None:
    """Where the gradient does not change on the way (step -> 0), the average is the gradient: T = 4, momentum 0.5, in all 6.125 of them."""
    fields = {"epochs": 4, "rate": 1e-6, "momentum": 0.5}
    with precision(torch.float64):
        seen = observed(smooth(3), protocol=Part(id="fedavg", fields=fields))
        plain = observed(smooth(3)).received.update
        sent = {name: value / (-1e-6 * 6.125) for name, value in seen.received.update.items()}  # 1 + 1.5 + 1.75 + 1.875
    assert relative(seen.as_gradient(), plain) < 1e-4
    assert relative(seen.as_gradient(), sent) < 1e-12


def test_the_derivative_over_many_steps_is_that_of_steps_whose_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for followed in (20, 100):
        monkeypatch.setattr(local, "FOLLOWED", followed)
        with precision(torch.float64):
            fields = {"epochs": 13, "mini_batch": 2, "rate": 0.05, "momentum": 0.3}  # 26 steps
            seen = observed(smooth(3), protocol=Part(id="fedavg", fields=fields))
            x, y = smooth(3, seed=5).requires_grad_(), torch.full((3, 10), 0.1).requires_grad_()
            sent = seen.replay.single(x, y)
            total = sum((value * torch.linspace(0, 1, value.numel()).view_as(value)).sum() for value in sent.values())
            found.append((sent, torch.autograd.grad(total, [x, y])))
    assert relative(found[0][0], found[1][0]) < 1e-15  # the first step by formula, or by autograd where it is computed again
    for few, many in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(few, many, atol=1e-14, rtol=1e-10)  # float64


def test_a_random_order_is_the_clients_own_and_the_same_whenever_it_is_asked() -> None:
    fields = {"epochs": 2, "mini_batch": 1, "rate": 0.5}
    known, hidden = (observed(smooth(3), protocol=Part(id="fedavg", fields=fields | {"shuffled": shuffled})) for shuffled in (False, True))
    again = observed(smooth(3), protocol=Part(id="fedavg", fields=fields | {"shuffled": True}))
    assert relative(known.replay.single(smooth(3), LABELS), known.received.update) == 0
    assert relative(hidden.replay.single(smooth(3), LABELS), hidden.received.update) > 1e-3  # in the order that the server does not know
    assert relative(hidden.replay.single(smooth(3), LABELS), known.received.update) == 0
    assert relative(hidden.received.update, again.received.update) == 0


def test_with_all_pictures_in_every_step_a_random_order_changes_nothing() -> None:
    with precision(torch.float64):
        sent = [
            observed(smooth(3), protocol=Part(id="fedavg", fields={"rate": 0.1, "shuffled": shuffled})).received.update
            for shuffled in (False, True)
        ]
    assert relative(*sent) < 1e-12


# ---------------------------------------------------------------- FedADMM


def hand_written(
    model: nn.Module, z: Params, w: Params, pi: Params, x: torch.Tensor, y: torch.Tensor, *, steps: int, rate: float, rho: float
) -> tuple[Params, Params, Params]:
    """One round of algorithm 2 as it stands, w and pi absolute: the increment of w + pi / rho, the new w, the new pi."""
    new, z = dict(w), {name: value.detach() for name, value in z.items()}
    for _ in range(steps):
        here = {name: value.detach().requires_grad_() for name, value in new.items()}
        g, _ = gradient_client(model)(here, x, y, {})
        new = {name: (new[name] - rate * (g[name] + pi[name] + rho * (new[name] - z[name]))).detach() for name in new}
    dual = {name: pi[name] + rho * (new[name] - z[name]) for name in new}
    increment = {name: (new[name] + dual[name] / rho) - (w[name] + pi[name] / rho) for name in new}
    return increment, new, dual


def test_the_server_computes_what_a_fedadmm_client_hides_over_three_rounds() -> None:
    rate, rho = 0.05, 0.3
    with precision(torch.float64):
        model, x = observed(smooth(3), model=LENET).model, smooth(3)
        z = weights_of(model)
        w, pi = {n: v.detach() for n, v in z.items()}, {n: torch.zeros_like(v) for n, v in z.items()}
        state, shadow = ClientState(), ClientState()
        for steps in (1, 4, 2):
            protocol = plugin("protocol", Part(id="fedadmm", fields={"epochs": steps, "rate": rate, "penalty": rho}))
            sent, state = protocol.client(gradient_client(model))(z, x, LABELS, state)
            start = w
            increment, w, pi_next = hand_written(model, z, w, pi, x, LABELS, steps=steps, rate=rate, rho=rho)
            assert relative(sent, increment) < 1e-12  # the client is algorithm 2
            seen = Round(z, sent, shadow, len(x))
            if steps == 1:  # then the sum of gradients is one gradient, at the client's own weights
                own = {name: value.detach().requires_grad_() for name, value in start.items()}
                assert relative(protocol.to_gradient(sent, seen), gradient_client(model)(own, x, LABELS, {})[0]) < 1e-10
            shadow = protocol.infer_state(seen)
            for name in z:
                assert float((shadow[f"fedadmm.model.{name}"] - w[name]).abs().max()) < 1e-10
                assert float((shadow[f"fedadmm.dual.{name}"] - pi_next[name]).abs().max()) < 1e-10
            pi, z = pi_next, {name: value.detach().requires_grad_() for name, value in protocol.server_update(seen).items()}


def test_the_first_increment_of_one_local_step_is_twice_the_step_times_the_gradient() -> None:
    with precision(torch.float64):
        seen = observed(smooth(3), model=LENET, protocol=Part(id="fedadmm", fields={"rate": 0.03, "penalty": 0.7}))
        gradient = observed(smooth(3), model=LENET).received.update
    for name, value in seen.received.update.items():
        torch.testing.assert_close(value, -2 * 0.03 * gradient[name], atol=1e-14, rtol=0)  # float64


def test_a_naive_attacker_takes_the_increment_for_a_gradient_twice_as_large() -> None:
    with precision(torch.float64):
        seen = observed(smooth(3), protocol=Part(id="fedadmm"), assume=Assumptions(adaptive=False))
        gradient = observed(smooth(3)).received.update
    assert relative({name: value / 2 for name, value in seen.as_gradient().items()}, gradient) < 1e-12


@pytest.mark.parametrize(("attacked", "times"), [(1, 2.0), (2, None), (3, None)])
def test_what_a_fedadmm_client_sends_is_twice_a_gradient_in_the_first_round_alone(attacked: int, times: float | None) -> None:
    """Increment = 2 d_T - d_0, and d_0 = 0 in the first round alone: later neither its length nor its direction is that of 2 g."""
    with precision(torch.float64):
        seen = observed(smooth(3), protocol=Part(id="fedadmm"), rounds=3, attacked_round=attacked)
    sent = {name: value / -0.01 for name, value in seen.received.update.items()}  # by the usual local rate
    off = relative(sent, {name: 2 * value for name, value in seen.as_gradient().items()})
    assert off < 1e-12 if times else off > 0.1


# ---------------------------------------------------------------- rounds


@pytest.mark.pairwise
@pytest.mark.parametrize("aggregation", [None, SUM])
@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg", "fedprox", "fedadmm"])
@pytest.mark.parametrize("attacked", [1, 3])
def test_the_attacked_round_is_replayed_from_its_own_weights_and_memory(protocol: str, aggregation: Part | None, attacked: int) -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, protocol=Part(id=protocol), aggregation=aggregation, rounds=3, attacked_round=attacked)
        replayed = seen.replay.single(x, LABELS)
    assert len(seen.received.history) == 3
    assert relative(seen.received.weights, seen.received.history[attacked - 1].weights) == 0
    assert relative(seen.received.update, seen.received.history[attacked - 1].update) == 0
    if not (protocol == "fedadmm" and aggregation and attacked > 1):  # there the server knows what the phones carry on average only
        assert relative(replayed, seen.received.update) < 1e-10
    others = [past.weights for number, past in enumerate(seen.received.history, 1) if number != attacked]
    assert all(relative(seen.received.weights, weights) > 1e-6 for weights in others)


def test_the_next_round_starts_from_what_the_server_made_of_this_one() -> None:
    with precision(torch.float64):
        seen = observed(smooth(3), protocol=Part(id="fedsgd", fields={"rate": 0.3}), rounds=2)
    first, second = seen.received.history
    stepped = {name: value - 0.3 * first.update[name] for name, value in first.weights.items()}
    assert relative(second.weights, stepped) < 1e-15


# ---------------------------------------------------------------- sums


@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg", "fedadmm"])
def test_the_server_sees_the_sum_of_what_every_phone_would_have_sent_alone(protocol: str) -> None:
    with precision(torch.float64):
        x = smooth(3)
        seen = observed(x, protocol=Part(id=protocol), aggregation=SUM)
        client = plugin("protocol", Part(id=protocol)).client(gradient_client(seen.model))
        alone = [client(seen.received.weights, x[n : n + 1], LABELS[n : n + 1], {})[0] for n in range(3)]
    assert relative(seen.received.update, {name: sum(one[name] for one in alone) for name in seen.received.update}) < 1e-12


def test_every_phone_of_a_sum_draws_noise_of_its_own() -> None:
    """Three noises of deviation 1 add up to one of 1.73; the same noise three times would have 3."""
    noise = (Part(id="gaussian_noise", fields={"scale": 1.0}),)
    noisy, plain = (observed(smooth(3), aggregation=SUM, defenses=parts).received.update for parts in (noise, ()))
    std = float(torch.cat([(noisy[name] - plain[name]).flatten() for name in plain]).std())
    assert std == pytest.approx(3**0.5, rel=0.05)  # 2,410 entries: 1.4 % standard error


def test_settings_that_do_not_go_together_are_said() -> None:
    known, two = plugin_catalog.describe(), (Picture(id="astronaut"), Picture(id="coffee"))
    cases = {
        "pictures: 2 cannot be shared evenly by 3 phones": {"pictures": two, "aggregation": SUM},
        "aggregation: fedavg is no aggregation": {"aggregation": Part(id="fedavg")},
        "protocol: secure_aggregation is laid over another": {"protocol": SUM},
        "attacked_round: allowed is 1 to 2": {"rounds": 2, "attacked_round": 3},
    }
    for words, settings in cases.items():
        with pytest.raises(SpecError, match=words):
            Experiment(**settings).resolve(known)


def test_a_file_from_before_says_defense_where_it_now_says_adaptive() -> None:
    assert not Experiment.model_validate({"assume": {"defense": False}}).assume.adaptive


# ---------------------------------------------------------------- several guesses at once


def close(seen, guesses: torch.Tensor, labels: torch.Tensor, *, tolerance: float = 1e-10) -> None:
    together = seen.gradients(guesses, labels)
    for lane, guess in enumerate(guesses):
        alone = seen.gradient(guess, labels[lane] if labels.dim() == 3 else labels)
        assert relative({name: value[lane] for name, value in together.items()}, alone) < tolerance


@pytest.mark.pairwise
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("protocol", ["fedsgd", "fedavg", "fedprox", "fedadmm"])
@pytest.mark.parametrize("aggregation", [None, SUM])
@pytest.mark.parametrize("protection", [(), *((Part(id=name),) for name in IDS["defense"])], ids=str)
@pytest.mark.long
def test_guesses_replayed_together_are_replayed_as_alone(
    known: bool, protocol: str, aggregation: Part | None, protection: tuple[Part, ...]
) -> None:
    with precision(torch.float64):
        settings = {"protocol": Part(id=protocol), "aggregation": aggregation, **protected(*protection)}
        seen = observed(smooth(3), **settings, assume=Assumptions(adaptive=known))
        guesses = torch.stack([smooth(3, seed=seed) for seed in (5, 6)])
        close(seen, guesses, LABELS)
        close(seen, guesses, torch.rand((2, 3, 10), generator=generator(1, "soft")).softmax(2))


@pytest.mark.parametrize("batch_norm", ["eval", "batch"])
@pytest.mark.parametrize("model", IDS["model"])
@pytest.mark.long
def test_every_model_replays_guesses_together(model: str, batch_norm: str) -> None:
    with precision(torch.float64):
        seen = observed(smooth(2, channels=3, side=32), model=light(model), batch_norm=batch_norm)
        guesses = torch.stack([smooth(2, channels=3, side=32, seed=seed) for seed in (5, 6)])
        close(seen, guesses, LABELS[:2], tolerance=1e-8)  # BatchNorm over two numbers of a channel magnifies rounding


def test_what_does_not_treat_every_entry_alike_is_replayed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from leakage.defenses.pruning import Pruning

    def halved(self, client, received):
        """An imitation that looks at the whole update: it would mix the guesses, were they replayed together."""

        def send(weights, x, y, state):
            update, state = client(weights, x, y, state)
            norm = torch.cat([value.flatten() for value in update.values()]).norm()
            return {name: value / norm for name, value in update.items()}, state

        return send

    monkeypatch.setattr(Pruning, "surrogate", halved)
    monkeypatch.setattr(Pruning, "elementwise", False)
    with precision(torch.float64):
        seen = observed(smooth(3), defenses=(Part(id="pruning"),))
        close(seen, torch.stack([smooth(3, seed=seed) for seed in (5, 6)]), LABELS)


# ---------------------------------------------------------------- granted statistics


def test_granted_statistics_are_those_of_the_private_batch_or_of_the_model() -> None:
    model = Part(id="convnet", fields={"width": 4, "normalise": "none"})
    x = smooth(2, channels=3, side=28)
    none, running, exact = (
        observed(x, model=model, batch_norm="batch", assume=Assumptions(statistics=kind)).granted.statistics
        for kind in ("none", "running", "exact")
    )
    assert none is None
    assert running is not None
    assert exact is not None
    assert all(float(mean.abs().max()) == 0 and float((variance - 1).abs().max()) == 0 for mean, variance in running.values())
    seen = observed(x, model=model, batch_norm="batch")
    first = next(layer for layer in seen.model.modules() if isinstance(layer, nn.Conv2d))
    with torch.no_grad():
        entering = nn.functional.conv2d(x, first.weight, first.bias, padding=1)
    mean, variance = next(iter(exact.values()))
    torch.testing.assert_close(mean, entering.mean((0, 2, 3)), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(variance, entering.var((0, 2, 3), unbiased=False), atol=1e-6, rtol=1e-5)


def test_what_enters_batch_norm_is_seen_in_eval_mode_too_and_looking_changes_nothing() -> None:
    from leakage.engine.statistics import batch_statistics

    x = smooth(2, channels=3, side=28)
    seen = observed(x, model=Part(id="convnet", fields={"width": 4}))
    before = seen.model(x)
    found = batch_statistics(seen.model, x)
    assert len(found) == 8
    assert torch.equal(seen.model(x), before)


def test_a_random_order_is_a_new_one_in_every_round() -> None:
    model, x = observed(smooth(3)).model, smooth(3)
    protocol = plugin("protocol", Part(id="fedavg", fields={"epochs": 1, "mini_batch": 1, "rate": 0.5, "shuffled": True}))
    client = protocol.client(gradient_client(model), lambda epoch: generator(epoch, "order"))
    state, sent = ClientState(), []
    for _ in range(4):
        update, state = client(weights_of(model), x, LABELS, state)
        sent.append(update)
    assert int(state["epoch"]) == 4
    assert max(relative(later, sent[0]) for later in sent[1:]) > 1e-3  # the same weights and pictures, in another order
