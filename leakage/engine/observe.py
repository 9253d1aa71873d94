"""From a private batch to an Observation: the client sends its updates, and the attacker's replay is built without the private batch."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from leakage.engine.capabilities import capabilities_of, set_capabilities
from leakage.engine.client import Gradient, use_batch_statistics, weights_of
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
from leakage.engine.imitation import Imitation
from leakage.engine.inspection import Inspection
from leakage.engine.observation import NO_GENERATOR
from leakage.engine.rehearsed_client import rehearsed_client
from leakage.engine.reported_gradient import ReportedGradient
from leakage.engine.statistics import batch_statistics, stored_statistics
from leakage.engine.strategy import ACCOMPLICE
from leakage.engine.update_errors import expected_errors


def ready(model: nn.Module, federation: Federation, x: Tensor, *, batch_norm: Literal["eval", "batch"] = "eval") -> nn.Module:
    """Prepare the model that the client receives in the first round: `model` itself, altered in place.

    Args:
        model: the model; it is put into eval mode, which turns dropout off.
        federation: the federation; a layer that a protection adds to the model is untrained.
        x: pictures (B, C, H, W), which give device and precision, and for batch_norm = "batch" the statistics.
        batch_norm: BatchNorm uses its stored statistics (eval), or those of the batch (batch), as in training.

    Returns:
        The model in eval mode, on the device of x and in its precision.
    """
    capabilities = capabilities_of(model)
    model = federation.changed(model, (x.shape[1], x.shape[2], x.shape[3])).to(x.device, x.dtype).eval()
    set_capabilities(model, replace(capabilities, image_shape=tuple(x.shape[1:])))
    if x.device.type == "cpu" and capabilities.channels_last:  # 5 to 10 % faster there, the same numbers
        model = model.to(memory_format=torch.channels_last)
    if batch_norm == "batch":
        use_batch_statistics(model, x)
    return model


def inspection_of(
    model: nn.Module, federation: Federation, x: Tensor, *, batch_norm: Literal["eval", "batch"] = "eval"
) -> Inspection | None:
    """Return the inspection that clients make of each received model; None where they check nothing.

    Call it before `ready`, which alters the model; the arguments are those of `ready`.
    """
    honest = replace(federation, server=None)
    return Inspection(federation, ready(deepcopy(model), honest, x, batch_norm=batch_norm)) if federation.checks else None


@exact_arithmetic()
def observe(  # noqa: PLR0913  (the clients, the server and who may stop them)
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    federation: Federation,
    *,
    num_classes: int,
    inspection: Inspection | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Observation:
    """Let the client with (x, y) send its updates for all rounds, and return everything that the server has afterwards.

    The attacker's replay never uses the private batch. An adaptive attacker replays the protocol, with a strategy against each
    protection. A naive attacker replays FedSGD, and takes the update for a gradient.

    Args:
        model: the result of `ready`, altered in place: it gets the weights of the attacked round, and the attacker's initial guess of the
            random numbers that a protection draws.
        x: private pictures (B, C, H, W) in [0, 1].
        y: private labels (B,).
        federation: protocol, protections, rounds and threat model.
        num_classes: K.
        inspection: how clients check each received model (`inspection_of`); the attacker does not learn what they find.
        should_stop: called before every local step of every round.

    Raises:
        RefusedError: a check tripped in the attacked round or before it, and the clients refuse (`Federation.refuse`).
        StoppedError: `should_stop` returned True.
    """
    imitation = Imitation(federation)
    history = _watch(imitation, federation.client(model, should_stop=should_stop), model, x, y, inspection)
    if federation.attacked_round > 1 or federation.server:
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(history[federation.attacked_round - 1].weights[name])
    statistics = stored_statistics(model) if federation.threat.statistics == "running" else None
    if federation.threat.statistics == "exact":
        with torch.no_grad():
            statistics = batch_statistics(model, x)
    server = _Server(model, imitation, tuple(history), history[federation.attacked_round - 1].state)
    return server.observation(Batch.of(x, num_classes), y.clone() if federation.threat.labels else None, statistics)


def received(
    model: nn.Module,
    update: Params,
    federation: Federation,
    batch: Batch,
    *,
    labels: Tensor | None = None,
    statistics: Statistics | None = None,
) -> Observation:
    """Return an observation of a given update, without its private batch; the update counts as that of the first round.

    Args:
        model: the result of `ready`, altered in place: it gets the attacker's initial guess of the random numbers that a protection draws.
        update: what the client sent; names and shapes are those of the model's parameters.
        federation: protocol, protections and threat model.
        batch: number, shape and classes of the private pictures.
        labels: private labels (B,); None: they are unknown.
        statistics: those of the private batch, by BatchNorm layer, where the client sent them too; None: they are unknown.

    Raises:
        ValueError: the threat model grants exact statistics or labels of the batch, and these are None.
    """
    threat, imitation = federation.threat, Imitation(federation)
    if (threat.labels and labels is None) or (threat.statistics == "exact" and statistics is None):
        what = "exact statistics" if threat.statistics == "exact" else "labels"
        raise ValueError(f"{what} of the private batch cannot be granted: only its update is here. Let the attack find them out.")
    sent = {name: value.detach().contiguous() for name, value in update.items()}
    state = imitation.accomplice_state(model, weights_of(model))
    server = _Server(model, imitation, (Round(weights_of(model), sent, state, batch.size),), state)
    granted = {"none": None, "running": stored_statistics(model), "exact": statistics}[threat.statistics]
    return server.observation(batch, labels, granted)


def _watch(imitation: Imitation, client: Client, model: nn.Module, x: Tensor, y: Tensor, inspection: Inspection | None) -> list[Round]:
    """Run all rounds and return them as the server sees them; the attacked round also has the client's state as the server infers it.

    After the attacked round a refusal of the clients ends the rounds.
    """
    federation, weights = imitation.federation, weights_of(model)
    if federation.rounds > 1 or federation.server:  # `observe` later overwrites the model's parameters with those of the attacked round
        weights = {name: value.detach().clone().requires_grad_() for name, value in weights.items()}
    state, shadow, history = ClientState(), ClientState(), list[Round]()
    for number in range(1, federation.rounds + 1):
        handed = federation.handed_out(model, weights, history)
        if inspection and not inspection.accepts(model, handed, history, x, y):
            break
        shadow = {**shadow, **imitation.accomplice_state(model, handed)}
        update, state = client(handed, x, y, state)
        update = {name: value.detach().contiguous() for name, value in update.items()}
        seen = Round(handed, update, shadow, len(x))
        # Only the attacked round keeps its state, which can be several times as large as an update.
        history.append(seen if number == federation.attacked_round else replace(seen, state=ClientState()))
        shadow = {name: value.detach() for name, value in imitation.infer_state(seen).items()}
        if federation.server is None and number < federation.rounds:  # the base weights of any other server stand still
            weights = federation.server_update(seen)
    return history


@dataclass(frozen=True)
class _Server:
    """The server, which attacks, with everything that it received."""

    model: nn.Module
    imitation: Imitation
    history: tuple[Round, ...]
    shadow: ClientState
    """What the server can compute of the state that a client had before the attacked round."""

    @cached_property
    def gradient(self) -> Gradient:
        """The client without protections that the attacker replays."""
        return Gradient(self.model)

    @property
    def attacked(self) -> Round:
        return self.history[self.imitation.federation.attacked_round - 1]

    def observation(self, batch: Batch, labels: Tensor | None, statistics: Statistics | None) -> Observation:
        """Build the observation of the attack; `labels` and `statistics` are what the threat model grants."""
        imitation, attacked, weights = self.imitation, self.attacked, weights_of(self.model)
        federation, adaptive = imitation.federation, imitation.adaptive
        # Writes the attacker's initial guess into buffers of the model.
        latents = imitation.initialize_latents(self.model, -(-batch.size // federation.aggregation.members))
        state = federation.aggregation.broadcast_state(self.shadow)
        update = imitation.invert_update(attacked.update, self.shadow)
        client = imitation.client(self.gradient, self.model, update)

        def to_gradient(update: Params, state: ClientState) -> Params:
            return imitation.to_gradient(update, Round(weights, attacked.update, state, attacked.count))

        def replay_one(x: Tensor, y: Tensor, state: ClientState) -> Update:
            return client(weights, x, y, state)

        replayed, replay_state = (client, state) if adaptive else (self.gradient, ClientState())
        return Observation(
            model=self.model,
            batch=batch,
            received=Transcript(weights, update if adaptive else imitation.naive_gradient(attacked), self.history),
            replay=Replay(
                single=lambda x, y: replayed(weights, x, y, replay_state)[0],
                several=self._replay_several(weights, replay_state, update),
                to_gradient=(lambda update: to_gradient(update, self.shadow)) if adaptive else (lambda update: update),
                simulator=Simulator(replay_one, update, state, lambda u, m: to_gradient(u, federation.aggregation.member_state(m, 0))),
                from_gradients=self._replay_gradients(weights, state, update),
                formula=self.gradient.formula(weights, batch.image_shape),
                rehearse=self._rehearse(batch) if imitation.protections else None,
                rehearses_each=federation.separates_pictures,
                client_weights=lambda: imitation.client_weights(Round(weights, attacked.update, self.shadow, attacked.count)),
            ),
            granted=Granted(labels, statistics, generator=federation.threat.generator or NO_GENERATOR),
            knowledge=ProtectionKnowledge(
                adaptive=adaptive,
                entry_weights=imitation.entry_weights(attacked.update, self.shadow),
                errors=expected_errors(imitation, attacked, update, self.shadow),
                latents=latents,
            ),
            secret=federation.server.secret(self.model, federation.aggregation.members) if federation.server else None,
        )

    def _rehearse(self, batch: Batch) -> Callable[[Params, int], Params]:
        """Return `Replay.rehearse`: it sends given gradients through all rounds and protections, with random numbers of another seed.

        In every step of every round picture number b has the gradient in row b.
        """
        imitation, attacked = self.imitation, self.attacked
        weight = next(iter(attacked.weights.values()))
        x, indices = weight.new_zeros((batch.size, *batch.image_shape)), torch.arange(batch.size, device=weight.device)

        accomplice = {name: value for name, value in self.shadow.items() if name.startswith(ACCOMPLICE)}

        def rehearse(gradients: Params, seed: int) -> Params:
            client = rehearsed_client(imitation.federation, self.model, gradients, attacked.update, seed=seed)
            state, shadow = ClientState(), dict(accomplice)
            for number in range(1, imitation.federation.attacked_round + 1):
                update, state = client(attacked.weights, x, indices, state)
                seen = Round(attacked.weights, update, shadow, batch.size)
                if number < imitation.federation.attacked_round:
                    shadow = imitation.infer_state(seen)
            return imitation.to_gradient(imitation.invert_update(update, shadow), seen)

        return rehearse

    def _replay_several(self, weights: Params, state: ClientState, inverted: Params) -> Callable[[Tensor, Tensor], Params]:
        """Return the replay of S guesses: vectorised where model and protections allow it, else a loop over the guesses."""
        imitation = self.imitation
        if not capabilities_of(self.model).vectorised or not imitation.elementwise:
            single = imitation.client(self.gradient, self.model, inverted) if imitation.adaptive else self.gradient

            def one_by_one(x: Tensor, y: Tensor) -> Params:
                sent = [single(weights, guess, y[lane] if y.dim() == 3 else y, state)[0] for lane, guess in enumerate(x)]
                return {name: torch.stack([update[name] for update in sent]) for name in sent[0]}

            return one_by_one
        vectorised = self.gradient.lanes
        client = imitation.client(vectorised, self.model, inverted) if imitation.adaptive else vectorised

        def replay_many(x: Tensor, y: Tensor) -> Params:
            count = len(x)
            repeated = {name: value.expand(count, *value.shape) for name, value in weights.items()}
            labels = y.transpose(0, 1) if y.dim() == 3 else y.unsqueeze(1).expand(-1, count, *y.shape[1:])
            return client(repeated, x.transpose(0, 1), labels, state)[0]

        return replay_many

    def _replay_gradients(self, weights: Params, state: ClientState, inverted: Params) -> Callable[[Params], Params] | None:
        """Return the replay of gradients that were computed elsewhere; None where the imitation is not `batchable`."""
        imitation = self.imitation
        if not imitation.batchable:
            return None
        if not imitation.adaptive:
            return lambda gradients: gradients
        nothing, reported = next(iter(weights.values())).new_zeros(0), ReportedGradient()
        # Built once, because an imitation reads the update when it is built.
        client = imitation.client(reported, self.model, inverted)

        def replay_gradients(gradients: Params) -> Params:
            with reported.reporting(gradients):
                return client(weights, nothing, nothing, state)[0]

        return replay_gradients
