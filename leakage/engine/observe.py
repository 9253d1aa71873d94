"""What the server holds: the client sends, round by round, and the attacker's imitation is built beside it, never from it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from leakage.engine.chain import TwoClasses
from leakage.engine.client import gradient_client, lanes_client, use_batch_statistics, weights_of
from leakage.engine.core import Client, Memory, Observation, Params, Round, Simulator, Statistics
from leakage.engine.setting import Setting, changed, stacked
from leakage.engine.statistics import batch_statistics, stored_statistics
from leakage.engine.trained import load_checkpoint, untrained
from leakage.spec import Experiment


def observe(experiment: Experiment, x: Tensor, y: Tensor) -> Observation:
    """All that the server holds after it has watched the client with (x, y) for the experiment's rounds.

    The attacker's replay is built beside the client, never from it: the protocol, with each defense answered by a counter, when the
    experiment says that the attacker is adaptive; else FedSGD, and the update is taken for its gradient.
    """
    model = untouched(experiment, x)
    setting = Setting.of(experiment)
    history, carried = _watch(setting, model, x, y, experiment.rounds)
    attacked, shadow = history[experiment.attacked_round - 1], carried[experiment.attacked_round - 1]
    if experiment.attacked_round > 1:
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(attacked.weights[name])
    weights = weights_of(model)
    statistics = _statistics(experiment, model, x)
    sought = setting.guess(model)  # from here on it is the attacker's

    adaptive, memory = setting.adaptive, setting.over.spread(shadow)
    update = setting.read(attacked.update, shadow)
    client = setting.imitation(gradient_client(model), update)

    def average(update: Params, memory: Memory) -> Params:
        return setting.average(update, Round(weights, attacked.update, memory, attacked.count))

    return Observation(
        model=model,
        weights=weights,
        update=update if adaptive else setting.naive(attacked),
        replay=_replay(client if adaptive else gradient_client(model), weights, memory if adaptive else {}),
        replays=_replays(setting, model, weights, memory, update),
        imitate=_imitate(setting, weights, memory, update),
        average=(lambda update: average(update, shadow)) if adaptive else (lambda update: update),
        simulator=Simulator(lambda x, y, memory: client(weights, x, y, memory), update, memory, lambda u, m: average(u, setting.one(m))),
        batch_size=len(x),
        image_shape=(x.shape[1], x.shape[2], x.shape[3]),
        num_classes=experiment.num_classes,
        adaptive=adaptive,
        history=tuple(history),
        labels=y.clone() if experiment.assume.labels else None,
        statistics=statistics,
        trust=setting.trust(attacked.update, shadow),
        sought=sought,
    )


def untouched(experiment: Experiment, x: Tensor) -> nn.Module:
    """The model as the client got it in the first round, on the device of x; what a defense puts into it is untrained."""
    outputs = 1 if experiment.task != "classes" else experiment.num_classes
    model = untrained(experiment.model, (x.shape[1], x.shape[2], x.shape[3]), outputs, seed=experiment.seed)
    if experiment.task != "classes":
        model.add_module("two", TwoClasses())  # our models are sequences
    if experiment.checkpoint:
        load_checkpoint(model, experiment.checkpoint)
    model = changed(model, stacked(experiment.defenses), seed=experiment.seed)
    model = model.to(x.device, x.dtype).eval()
    if x.device.type == "cpu":  # the colours of a pixel side by side in memory: 5 to 10 % faster there, the same numbers
        model = model.to(memory_format=torch.channels_last)
    if experiment.batch_norm == "batch":
        use_batch_statistics(model, x)
    return model


def said(experiment: Experiment, x: Tensor) -> Tensor:
    """The classes (B,) that a network of one output gives the pictures before any training, or the opposite ones (flipped)."""
    with torch.no_grad():
        own: Tensor = untouched(experiment, x)(x).argmax(1)
    return 1 - own if experiment.task == "flipped" else own


def _watch(setting: Setting, model: nn.Module, x: Tensor, y: Tensor, rounds: int) -> tuple[list[Round], list[Memory]]:
    """What the server sees of every round, and beside it what it can compute of one client's memory before it."""
    client, weights = setting.client(model), weights_of(model)
    if rounds > 1:  # the model's own will become those of the attacked round
        weights = {name: value.detach().clone().requires_grad_() for name, value in weights.items()}
    memory, shadow, history, carried = Memory(), Memory(), list[Round](), list[Memory]()
    for _ in range(rounds):
        update, memory = client(weights, x, y, memory)
        update = {name: value.detach().contiguous() for name, value in update.items()}
        seen = Round(weights, update, shadow, len(x))
        history.append(seen)
        carried.append(shadow)
        shadow = {name: value.detach() for name, value in setting.track(seen).items()}
        weights = setting.serve(seen) if len(history) < rounds else weights
    return history, carried


def _replay(client: Client, weights: Params, memory: Memory) -> Callable[[Tensor, Tensor], Params]:
    return lambda x, y: client(weights, x, y, memory)[0]


def _replays(setting: Setting, model: nn.Module, weights: Params, memory: Memory, read: Params) -> Callable[[Tensor, Tensor], Params]:
    """The replay of S guesses: together where every entry is treated alike, else one after the other."""
    if setting.adaptive and not setting.elementwise:
        alone = _replay(setting.imitation(gradient_client(model), read), weights, memory)

        def one_by_one(x: Tensor, y: Tensor) -> Params:
            sent = [alone(guess, y[lane] if y.dim() == 3 else y) for lane, guess in enumerate(x)]
            return {name: torch.stack([update[name] for update in sent]) for name in weights}

        return one_by_one
    lanes = lanes_client(model)
    client = setting.imitation(lanes, read) if setting.adaptive else lanes

    def together(x: Tensor, y: Tensor) -> Params:
        count = len(x)
        own = {name: value.expand(count, *value.shape) for name, value in weights.items()}
        labels = y.transpose(0, 1) if y.dim() == 3 else y.unsqueeze(1).expand(-1, count)
        return client(own, x.transpose(0, 1), labels, memory if setting.adaptive else {})[0]

    return together


def _imitate(setting: Setting, weights: Params, memory: Memory, read: Params) -> Callable[[Params], Params] | None:
    """What the attacker makes of gradients that were computed elsewhere, if that is all that its imitation needs."""
    if not setting.adaptive:
        return lambda gradients: gradients
    if not setting.joins:
        return None
    nothing = next(iter(weights.values())).new_zeros(0)
    return lambda gradients: setting.imitation(lambda _w, _x, _y, memory: (gradients, memory), read)(weights, nothing, nothing, memory)[0]


def _statistics(experiment: Experiment, model: nn.Module, x: Tensor) -> Statistics | None:
    """What the experiment grants of BatchNorm's statistics: nothing, those stored in the model, or exactly those of the private batch."""
    if experiment.assume.statistics == "exact":
        with torch.no_grad():
            return batch_statistics(model, x)
    return stored_statistics(model) if experiment.assume.statistics == "running" else None
