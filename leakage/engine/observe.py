"""What the server holds: the client sends, round by round, and the attacker's imitation is built beside it, never from it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from leakage.engine.capabilities import capabilities_of, set_capabilities
from leakage.engine.client import gradient_client, lanes_client, use_batch_statistics, weights_of
from leakage.engine.core import (
    Batch,
    Client,
    ClientState,
    Granted,
    Observation,
    Params,
    ProtectionKnowledge,
    Replay,
    Round,
    Simulator,
    Statistics,
    Transcript,
    Update,
)
from leakage.engine.devices import exact_arithmetic
from leakage.engine.federation import Federation
from leakage.engine.observation import NO_GENERATOR
from leakage.engine.rehearsed_client import rehearsed_client
from leakage.engine.statistics import batch_statistics, stored_statistics
from leakage.engine.strategy import ACCOMPLICE
from leakage.engine.update_errors import expected_errors


def ready(model: nn.Module, federation: Federation, x: Tensor, *, batch_norm: Literal["eval", "batch"] = "eval") -> nn.Module:
    """The model as the client got it in the first round, on the device of x and in its precision; `model` itself, altered in place.

    What a defense puts into it is untrained. `batch_norm`: BatchNorm uses its stored statistics, or those of the batch, as in training;
    nothing is dropped out.
    """
    found = capabilities_of(model)
    model = federation.changed(model).to(x.device, x.dtype).eval()
    set_capabilities(model, found)
    if x.device.type == "cpu" and found.channels_last:  # 5 to 10 % faster there, the same numbers
        model = model.to(memory_format=torch.channels_last)
    if batch_norm == "batch":
        use_batch_statistics(model, x)
    return model


@exact_arithmetic()
def observe(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    federation: Federation,
    *,
    num_classes: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Observation:
    """All that the server holds after it has watched the client with (x, y) for the federation's rounds.

    The attacker's replay is built beside the client, never from it: the protocol, with each defense answered by a strategy, when it is
    adaptive; else FedSGD, and the update is taken for its gradient. `model` is `ready`, and from here on the attacker's: it holds the
    weights of the attacked round, and what the attacker guesses of a defense. `should_stop` is called before every local step of every
    round; when it says stop: StoppedError.
    """
    history = _watch(federation, federation.client(model, should_stop=should_stop), model, x, y)
    if federation.attacked_round > 1:
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(history[federation.attacked_round - 1].weights[name])
    statistics = stored_statistics(model) if federation.threat.statistics == "running" else None
    if federation.threat.statistics == "exact":
        with torch.no_grad():
            statistics = batch_statistics(model, x)
    server = _Server(model, federation, tuple(history), history[federation.attacked_round - 1].state)
    return server.observation(Batch.of(x, num_classes), y.clone() if federation.threat.labels else None, statistics)


def received(model: nn.Module, update: Params, federation: Federation, batch: Batch, *, labels: Tensor | None = None) -> Observation:
    """The same for an update alone, taken for that of a first round: of the truth only `labels` may be known.

    `update` has the names and shapes of the model's parameters. Raises ValueError when labels that are not here are to be granted, or exact
    statistics.
    """
    threat = federation.threat
    if (threat.labels and labels is None) or threat.statistics == "exact":
        what = "exact statistics" if threat.statistics == "exact" else "labels"
        raise ValueError(f"{what} of the private batch cannot be granted: only its update is here. Let the attack find them out.")
    sent = {name: value.detach().contiguous() for name, value in update.items()}
    state = federation.collusion(model, weights_of(model))
    server = _Server(model, federation, (Round(weights_of(model), sent, state, batch.size),), state)
    return server.observation(batch, labels, stored_statistics(model) if threat.statistics == "running" else None)


def _watch(federation: Federation, client: Client, model: nn.Module, x: Tensor, y: Tensor) -> list[Round]:
    """What the server sees of every round, and of the attacked one also what it can compute of one client's state before it."""
    weights, rounds = weights_of(model), federation.rounds
    if rounds > 1:  # the model's own will become those of the attacked round
        weights = {name: value.detach().clone().requires_grad_() for name, value in weights.items()}
    state, shadow, history = ClientState(), ClientState(), list[Round]()
    for _ in range(rounds):
        shadow = {**shadow, **federation.collusion(model, weights)}
        update, state = client(weights, x, y, state)
        update = {name: value.detach().contiguous() for name, value in update.items()}
        seen = Round(weights, update, shadow, len(x))
        attacked = len(history) + 1 == federation.attacked_round
        history.append(seen if attacked else replace(seen, state=ClientState()))  # sums over rounds are several times as large as an update
        shadow = {name: value.detach() for name, value in federation.infer_state(seen).items()}
        weights = federation.server_update(seen) if len(history) < rounds else weights
    return history


@dataclass(frozen=True)
class _Server:
    """Who attacks, with all that arrived.

    shadow     what it can compute of one client's state before the attacked round
    """

    model: nn.Module
    federation: Federation
    history: tuple[Round, ...]
    shadow: ClientState

    @property
    def attacked(self) -> Round:
        return self.history[self.federation.attacked_round - 1]

    def observation(self, batch: Batch, labels: Tensor | None, statistics: Statistics | None) -> Observation:
        """What it holds; `labels` and `statistics` are granted."""
        federation, attacked, weights = self.federation, self.attacked, weights_of(self.model)
        latents = federation.latent_init(self.model, -(-batch.size // federation.aggregation.members))  # from here on it is the attacker's
        adaptive, state = federation.adaptive, federation.aggregation.broadcast_state(self.shadow)
        update = federation.invert_update(attacked.update, self.shadow)
        client = federation.imitation(gradient_client(self.model), update)

        def to_gradient(update: Params, state: ClientState) -> Params:
            return federation.to_gradient(update, Round(weights, attacked.update, state, attacked.count))

        def replay_one(x: Tensor, y: Tensor, state: ClientState) -> Update:
            return client(weights, x, y, state)

        replaying, own = (client, state) if adaptive else (gradient_client(self.model), ClientState())
        return Observation(
            model=self.model,
            batch=batch,
            received=Transcript(weights, update if adaptive else federation.naive(attacked), self.history),
            replay=Replay(
                single=lambda x, y: replaying(weights, x, y, own)[0],
                several=self._replay_several(weights, own, update),
                to_gradient=(lambda update: to_gradient(update, self.shadow)) if adaptive else (lambda update: update),
                simulator=Simulator(replay_one, update, state, lambda u, m: to_gradient(u, federation.one(m))),
                from_gradients=self._replay_gradients(weights, state, update),
                rehearse=self._rehearse(batch) if adaptive and federation.protections else None,
                rehearses_each=federation.tells_pictures_apart,
                client_weights=lambda: federation.client_weights(Round(weights, attacked.update, self.shadow, attacked.count)),
            ),
            granted=Granted(labels, statistics, generator=federation.threat.generator or NO_GENERATOR),
            knowledge=ProtectionKnowledge(
                adaptive=adaptive,
                entry_weights=federation.entry_weights(attacked.update, self.shadow),
                errors=expected_errors(federation, attacked, update, self.shadow),
                latents=latents,
            ),
        )

    def _rehearse(self, batch: Batch) -> Callable[[Params, int], Params]:
        """What the attacker would read of a client whose picture number b had row b of the gradients in every step of every round."""
        federation, attacked = self.federation, self.attacked
        some = next(iter(attacked.weights.values()))
        x, numbers = some.new_zeros((batch.size, *batch.image_shape)), torch.arange(batch.size, device=some.device)

        accomplice = {name: value for name, value in self.shadow.items() if name.startswith(ACCOMPLICE)}

        def rehearse(gradients: Params, seed: int) -> Params:
            client = rehearsed_client(federation, self.model, gradients, attacked.update, seed=seed)
            state, shadow = ClientState(), dict(accomplice)
            for number in range(1, federation.attacked_round + 1):
                update, state = client(attacked.weights, x, numbers, state)
                seen = Round(attacked.weights, update, shadow, batch.size)
                if number < federation.attacked_round:
                    shadow = federation.infer_state(seen)
            return federation.to_gradient(federation.invert_update(update, shadow), seen)

        return rehearse

    def _replay_several(self, weights: Params, state: ClientState, inverted: Params) -> Callable[[Tensor, Tensor], Params]:
        """The replay of S guesses: together where every entry is treated alike, else one after the other."""
        federation = self.federation
        if not capabilities_of(self.model).vectorised or (federation.adaptive and not federation.elementwise):
            gradient = gradient_client(self.model)
            single = federation.imitation(gradient, inverted) if federation.adaptive else gradient

            def one_by_one(x: Tensor, y: Tensor) -> Params:
                sent = [single(weights, guess, y[lane] if y.dim() == 3 else y, state)[0] for lane, guess in enumerate(x)]
                return {name: torch.stack([update[name] for update in sent]) for name in sent[0]}

            return one_by_one
        vectorised = lanes_client(self.model)
        client = federation.imitation(vectorised, inverted) if federation.adaptive else vectorised

        def replay_many(x: Tensor, y: Tensor) -> Params:
            count = len(x)
            own = {name: value.expand(count, *value.shape) for name, value in weights.items()}
            labels = y.transpose(0, 1) if y.dim() == 3 else y.unsqueeze(1).expand(-1, count, *y.shape[1:])
            return client(own, x.transpose(0, 1), labels, state)[0]

        return replay_many

    def _replay_gradients(self, weights: Params, state: ClientState, inverted: Params) -> Callable[[Params], Params] | None:
        """What the attacker makes of gradients that were computed elsewhere, if that is all that its imitation needs."""
        federation = self.federation
        if not federation.adaptive:
            return lambda gradients: gradients
        if not federation.batchable:
            return None
        nothing, reported = next(iter(weights.values())).new_zeros(0), _ReportedGradient()
        # Built once: what an imitation reads of the update it would read again in every step.
        client = federation.imitation(reported, inverted)

        def replay_gradients(gradients: Params) -> Params:
            with reported.reporting(gradients):
                return client(weights, nothing, nothing, state)[0]

        return replay_gradients


class _ReportedGradient:
    """A client that reports gradients computed elsewhere, whatever its pictures."""

    def __init__(self) -> None:
        self._gradients: Params = {}

    def __call__(self, _weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> Update:
        return self._gradients, state

    @contextmanager
    def reporting(self, gradients: Params) -> Iterator[None]:
        """Report these gradients within the block."""
        self._gradients = gradients
        try:
            yield
        finally:
            self._gradients = {}
