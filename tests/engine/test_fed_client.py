"""Training with protections, compared with loops by hand and with an interrupted training; earlier trainings are unchanged."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from digits_data_set import write_digits
from small_problems import CATALOG, LABELS, NEUTRAL, SUMMED, TINY, observed, relative, smooth

from leakage.__main__ import main
from leakage.data.checkpoints import read
from leakage.defenses import _per_example
from leakage.engine.client import Gradient, gradient_client, weights_of
from leakage.engine.core import Params, Update, generator
from leakage.engine.fed_client import FedClient
from leakage.engine.federated_training import Pictures, Progress, partition
from leakage.spec.experiment import Part, SpecError, parse
from leakage.spec.tasks import Training, parse_training
from leakage.workers import training_folder
from leakage.workers.adapter import plugin
from leakage.workers.training_adapter import build, protections, train

CPU = torch.device("cpu")
PLAIN = Training(rounds=1, schedule="constant", momentum=0, decay=0, batch=1000)
BATCHES = PLAIN.model_copy(update={"model": TINY, "rounds": 2, "clients": 2, "batch": 5, "momentum": 0.9, "rate": 0.05})
NORMED = Part(id="convnet", fields={"width": 4, "normalise": "none"})


def few(count: int = 24) -> Pictures:
    """Smooth pictures of MNIST's shape."""
    return Pictures((smooth(count, side=28) * 255).round().to(torch.uint8), torch.arange(count) % 10)


def behind(training: Training, name: str, **fields: bool | float | str) -> Training:
    return training.model_copy(update={"defenses": (Part(id=name, fields=fields),)})


def trained(training: Training, data: Pictures) -> Params:
    """The weights after the last round."""
    *_, last = train(training, data, data, device=CPU)
    assert last.weights is not None
    return last.weights


def orders(training: Training, data: Pictures, round_number: int, client: int) -> list[torch.Tensor]:
    """Which pictures each local step of a round takes."""
    mine = partition(data.y, training)[client]
    return list(mine[torch.randperm(len(mine), generator=generator(training.seed, "training", round_number, client))].split(training.batch))


def by_hand(training: Training, data: Pictures, change: Callable[[Params, int, int], Params]) -> Params:
    """Federated averaging without momentum, its gradients changed by `change` (gradient, client, local step since the beginning)."""
    model = build(training)
    weights = {name: value.detach().clone() for name, value in weights_of(model).items()}
    steps = [0] * training.clients
    for number in range(training.rounds):
        sent = []
        for client in range(training.clients):
            own = {name: value.clone() for name, value in weights.items()}
            for chosen in orders(training, data, number, client):
                model.load_state_dict(own)
                g, _ = gradient_client(model)(weights_of(model), data.x[chosen].float() / 255, data.y[chosen], {})
                g = change(g, client, steps[client])
                own = {name: value - training.rate * g[name] for name, value in own.items()}
                steps[client] += 1
            sent.append(own)
        weights = {name: sum((own[name] for own in sent), torch.zeros(())) / len(sent) for name in weights}
    return weights


def close(found: Params, expected: Params, *, atol: float = 1e-6) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=atol)


# ---------------------------------------------------------------- what a protection does to a training


@pytest.mark.parametrize("name", NEUTRAL)
def test_a_neutral_protection_leaves_every_weight_as_it_is(name: str) -> None:
    data = few()
    plain, neutral = trained(BATCHES, data), trained(behind(BATCHES, name, **NEUTRAL[name]), data)
    if name in SUMMED or CATALOG.defenses.get(name).stage == "update":  # the difference of weights is made, and added again
        close(neutral, plain)
    else:
        assert all(torch.equal(neutral[layer], value) for layer, value in plain.items())


def test_clipped_rounds_are_those_of_a_loop_by_hand() -> None:
    data, training = few(), PLAIN.model_copy(update={"clients": 2, "rounds": 2, "batch": 5})

    def clipped(g: Params, _client: int, _step: int) -> Params:
        length = torch.cat([value.flatten() for value in g.values()]).norm()
        assert length > 0.1
        return {name: value * 0.1 / length for name, value in g.items()}

    close(trained(behind(training, "clipping", bound=0.1), data), by_hand(training, data, clipped))


@pytest.mark.parametrize("feedback", [False, True])
def test_pruned_rounds_are_those_of_a_loop_by_hand_and_what_is_owed_is_carried_over_rounds(feedback: bool) -> None:
    data, training = few(), PLAIN.model_copy(update={"clients": 2, "rounds": 2, "batch": 7})
    owed: list[Params] = [{}, {}]

    def pruned(g: Params, client: int, _step: int) -> Params:
        whole = {name: value + owed[client].get(name, 0) for name, value in g.items()}
        sent = {}
        for name, value in whole.items():
            flat = value.clone().flatten()
            flat[flat.abs().argsort()[: int(0.8 * len(flat))]] = 0
            sent[name] = flat.view(value.shape)
        if feedback:
            owed[client] = {name: whole[name] - value for name, value in sent.items()}
        return sent

    close(trained(behind(training, "pruning", fraction=0.8, feedback=feedback), data), by_hand(training, data, pruned))


def test_noise_is_fresh_in_every_local_step_of_every_round_for_every_client() -> None:
    data, training = few(), PLAIN.model_copy(update={"clients": 2, "rounds": 2, "batch": 6})

    def noisy(g: Params, client: int, step: int) -> Params:
        rng = generator(training.seed, "defense", 0, "gaussian_noise", *([client] if client else []), step)
        return {name: value + 0.1 * torch.randn(value.shape, generator=rng) for name, value in g.items()}

    close(trained(behind(training, "gaussian_noise", scale=0.1), data), by_hand(training, data, noisy))


def test_the_optimisers_momentum_and_decay_come_after_the_protection() -> None:
    """One step: w - rate (g~ + decay w), the decay untouched by a clipping of g to nearly nothing."""
    training = behind(PLAIN.model_copy(update={"decay": 0.1}), "clipping", bound=1e-6)
    start = weights_of(build(training))
    close(trained(training, few()), {name: value.detach() * (1 - 0.1 * training.rate) for name, value in start.items()})


def test_two_protections_act_in_their_order() -> None:
    noise, clip = Part(id="gaussian_noise", fields={"scale": 1.0}), Part(id="clipping", fields={"bound": 0.5})
    start = weights_of(build(PLAIN))

    def length(*stack: Part) -> float:
        found = trained(PLAIN.model_copy(update={"defenses": stack}), few())
        return float(torch.cat([(found[name] - value.detach()).flatten() for name, value in start.items()]).norm()) / PLAIN.rate

    assert length(noise, clip) == pytest.approx(0.5, rel=1e-3)
    assert length(clip, noise) > 50  # sqrt(13,426) is 116


# ---------------------------------------------------------------- what acts on what is sent


def test_a_stand_in_takes_the_place_of_how_far_the_weights_moved_and_the_server_steps_along_the_mean() -> None:
    """Round 1: the server steps by rate * mean of d / (|d| + eps), d = how far a client moved (Hu et al. 2024, equation 19)."""
    data, training = few(), PLAIN.model_copy(update={"clients": 2, "server_rate": 0.25})
    start = {name: value.detach() for name, value in weights_of(build(training)).items()}
    moved = []
    for client in range(2):
        (chosen,) = orders(training, data, 0, client)
        model = build(training)
        g, _ = gradient_client(model)(weights_of(model), data.x[chosen].float() / 255, data.y[chosen], {})
        moved.append({name: (value - training.rate * g[name]) - value for name, value in start.items()})
    for eps in (0.01, 1.0):
        expected = {name: value + 0.25 * sum(d[name] / (d[name].abs() + eps) for d in moved) / 2 for name, value in start.items()}
        close(trained(behind(training, "ada_defense", eps=eps), data), expected, atol=1e-5)


def test_the_moments_of_a_stand_in_are_each_clients_own_and_go_on_over_rounds() -> None:
    training = behind(PLAIN, "ada_defense", variant="as in the code", eps=1e-3)
    client, weights = (
        FedClient(build(training), training, protections(training)),
        {name: value.detach() for name, value in weights_of(build(training)).items()},
    )
    m, v = torch.zeros(10, dtype=torch.float64), torch.zeros(10, dtype=torch.float64)
    for number in (1, 2, 3):
        d = torch.linspace(-1, 1, 10) * number
        state = {**weights, "linear.bias": weights["linear.bias"] + d}
        sent = client.sent(weights, state)["linear.bias"] - weights["linear.bias"]
        m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d.double().square()
        expected = 0.001 * (1 - 0.999**number) ** 0.5 / (1 - 0.9**number) * m / (v.sqrt() + 1e-3)
        torch.testing.assert_close(sent.double(), expected, rtol=1e-4, atol=1e-7)
    assert torch.equal(
        FedClient(build(training), training, protections(training), 1).sent(weights, weights)["linear.bias"], weights["linear.bias"]
    )


def test_the_step_of_the_server_scales_how_far_the_average_moves() -> None:
    data, training = few(), PLAIN.model_copy(update={"clients": 3})
    start, whole, half = (
        weights_of(build(training)),
        trained(training, data),
        trained(training.model_copy(update={"server_rate": 0.5}), data),
    )
    for name, value in start.items():
        torch.testing.assert_close(half[name], (value.detach() + whole[name]) / 2)


def test_statistics_of_batch_norm_are_sent_as_they_are_and_protections_that_look_again_do_not_move_them() -> None:
    data, training = few(4), PLAIN.model_copy(update={"model": NORMED, "rate": 1e-6})
    plain = trained(training, data)
    statistics = [name for name in plain if name not in weights_of(build(training))]
    assert any("running_mean" in name for name in statistics)
    for name in ("ada_defense", "soteria"):
        found = trained(behind(training, name), data)
        assert all(torch.equal(found[layer], plain[layer]) for layer in statistics)


def test_what_a_batch_mixes_is_refused_for_a_protection_of_single_pictures() -> None:
    with pytest.raises(ValueError, match="BatchNorm with the statistics of the batch mixes the pictures"):
        trained(behind(PLAIN.model_copy(update={"model": NORMED}), "dp_sgd"), few())


# ---------------------------------------------------------------- single pictures, together


@pytest.mark.parametrize("at_once", [1, 30_000, 2**24])  # one after the other, two at a time, all five
@pytest.mark.parametrize("name", SUMMED)
@pytest.mark.parametrize("model", [Part(id="lenet"), Part(id="convnet", fields={"width": 4, "norm": "group"})])
@pytest.mark.long
def test_gradients_of_single_pictures_computed_together_are_those_of_a_loop(
    name: str, model: Part, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = smooth(5, side=28), torch.tensor([3, 1, 4, 1, 5])
    net = build(PLAIN.model_copy(update={"model": model}))
    weights, plain = weights_of(net), Gradient(net)
    monkeypatch.setattr(_per_example, "AT_ONCE", at_once)

    def looped(weights: Params, x: torch.Tensor, y: torch.Tensor, state: Params) -> Update:
        return plain(weights, x, y, state)

    bound = {"max_grad_norm": 0.3} if name == "dp_sgd" else {"bound": 0.1, "last_bound": 0.1}
    defense = plugin("defense", Part(id=name, fields={**bound, "noise_multiplier": 0.1}))
    one, other = (defense.defend(client, net, partial(generator, 1)) for client in (plain, looped))
    guess = x.clone().requires_grad_()
    gradients = []
    for client in (one, other):
        update, state = client(weights, guess, y, {})
        assert int(state[f"{name}.step"]) == 1
        gradients.append(torch.autograd.grad(sum(value.square().sum() for value in update.values()), guess)[0])
    assert relative(one(weights, x, y, {})[0], other(weights, x, y, {})[0]) < 1e-5
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-6)


def test_gradients_of_single_pictures_behind_another_protection_are_changed_one_by_one() -> None:
    """Clipping first, to less than DP-SGD's bound: of B pictures the mean of B gradients of that length."""
    x = smooth(3)
    seen = observed(x, defenses=(Part(id="clipping", fields={"bound": 1e-3}), Part(id="dp_sgd", fields={"noise_multiplier": 0.0})))
    singles = [observed(x[place : place + 1]).model for place in range(3)]
    gradients = [gradient_client(net)(weights_of(net), x[i : i + 1], LABELS[i : i + 1], {})[0] for i, net in enumerate(singles)]
    lengths = [torch.cat([value.flatten() for value in g.values()]).norm() for g in gradients]
    mean = {name: sum(g[name] * 1e-3 / length for g, length in zip(gradients, lengths, strict=True)) / 3 for name in gradients[0]}
    assert relative(seen.received.update, mean) < 1e-5


def test_the_loss_told_is_the_mean_over_the_pictures_whichever_way_it_was_computed() -> None:
    data = few()
    net = build(PLAIN)
    expected = torch.nn.functional.cross_entropy(net(data.x.float() / 255), data.y).item()
    for stack in ((), ("dp_sgd",), ("clipping", "dp_sgd")):
        training = PLAIN.model_copy(update={"defenses": tuple(Part(id=name) for name in stack)})
        client = FedClient(net, training, protections(training))
        _, loss = client.gradient(weights_of(net), data.x.float() / 255, data.y)
        assert loss.item() == pytest.approx(expected, rel=1e-5)


# ---------------------------------------------------------------- as data, in a folder, without a page


def test_a_training_without_protection_keeps_the_name_that_it_had_before_there_were_any() -> None:
    assert Training().name == "lenet-mnist-db04733f"
    assert Training(rounds=3, clients=2, defenses=(), server_rate=1).name == "lenet-mnist-e3b40b08"
    assert not {"defenses", "server_rate"} & Training().model_dump().keys()
    names = {Training().name, behind(Training(), "clipping").name, behind(Training(), "pruning").name, Training(server_rate=0.5).name}
    assert len(names) == 4
    known = behind(Training(server_rate=0.5), "clipping")
    assert parse_training(known.model_dump_json()) == known


def test_protections_are_spelled_out_or_refused() -> None:
    (part,) = behind(Training(), "clipping", bound=2.0).resolve(CATALOG).defenses
    assert part.fields == {"bound": 2.0, "scope": "whole gradient"}
    with pytest.raises(SpecError, match="nobody"):
        behind(Training(), "nobody").resolve(CATALOG)
    with pytest.raises(SpecError, match="bound"):
        behind(Training(), "clipping", bound=-1.0).resolve(CATALOG)
    with pytest.raises(SpecError, match=r"defenses: .* at most 4"):
        parse_training({"defenses": [{"id": "clipping"}] * 5})
    assert parse({}).defenses == ()


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path / "data")))
    return tmp_path


STACK = (
    Part(id="pruning", fields={"fraction": 0.5, "feedback": True}),
    Part(id="gaussian_noise", fields={"scale": 0.01}),
    Part(id="ada_defense", fields={"variant": "as in the code"}),
)
STATEFUL = Training(rounds=4, clients=2, rate=0.3, batch=50, pictures=500, decay=0, defenses=STACK)


def run(training: Training, folder: Path, *, should_stop: Callable[[], bool] = lambda: False) -> list[Progress]:
    """The words at the end of each round."""
    return [word for word in training_folder.train(training, folder, device=CPU, should_stop=should_stop) if word.accuracy is not None]


@pytest.mark.long
def test_what_clients_carry_is_kept_so_that_an_interrupted_training_ends_with_the_same_weights(digits: Path) -> None:
    run(STATEFUL, digits / "whole")
    asked = iter(range(10**6))
    # 10 steps and 3 blocks of test pictures a round: stopped in the third
    first = run(STATEFUL, digits / "parts", should_stop=lambda: next(asked) >= 30)
    assert [word.done for word in first] == [1, 2]
    state, _ = training_folder.resume(STATEFUL, digits / "parts")
    assert state is not None
    carried = [name.split(".")[0] for name in state.client_states[1]]
    assert {"pruning", "gaussian_noise", "ada_defense"} <= set(carried)
    assert int(state.client_states[1]["gaussian_noise.step"]) == 10
    run(STATEFUL, digits / "parts")
    for name in ("1", "4"):
        assert (digits / "whole" / f"{name}.safetensors").read_bytes() == (digits / "parts" / f"{name}.safetensors").read_bytes()


def test_the_command_takes_protections_with_their_fields(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(digits / "home"))
    words = ["train", "--rounds", "1", "--pictures", "320", "--clients", "2", "--server-rate", "0.5"]
    assert main([*words, "--defense", "clipping,bound=2,scope=each layer", "--defense", "gaussian_noise"]) == 0
    (folder,) = (digits / "home" / "checkpoints").iterdir()
    card = read(folder / "card.json")
    assert card.training["defenses"] == [
        {"id": "clipping", "fields": {"bound": 2, "scope": "each layer"}},
        {"id": "gaussian_noise", "fields": {"scale": 0.01}},
    ]
    for sentence in ("protected by clipping (bound 2.0, scope each layer)", "gaussian_noise (scale 0.01)", "the server steps by 0.5"):
        assert sentence in card.recipe
