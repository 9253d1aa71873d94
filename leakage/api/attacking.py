"""An attack on a model of your own: on pictures that you give, or on an update alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.model_check import Constants, check_head, check_second_derivative, outputs, prepared, vectorises
from leakage.api.outcome import AttackRun, Result
from leakage.engine.core import Attack, Defense, Observation, Plugin, Protocol
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.loading import ids, load
from leakage.engine.observe import Batch, ready, received
from leakage.engine.observe import observe as observe_client
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.lineup import OWN
from leakage.evaluation.play import Private, play, play_blind, stage

Shape = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """The words of a call as objects."""

    defenses: tuple[Defense, ...]
    protocol: Protocol
    aggregation: Protocol | None
    threat: ThreatModel
    normalization: Constants | None
    batch_norm: Literal["eval", "batch"]
    seed: int

    @property
    def federation(self) -> Federation:
        return Federation.of(self.protocol, self.defenses, self.threat, seed=self.seed, over=self.aggregation)


def attack(
    model: nn.Module,
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    attack: str | Attack = "inverting_gradients",
    defenses: Sequence[str | Defense] = (),
    protocol: str | Protocol = "fedsgd",
    aggregation: str | Protocol | None = None,
    adaptive: bool = True,
    threat_model: ThreatModel | None = None,
    normalization: Constants | None = None,
    batch_norm: Literal["eval", "batch"] = "eval",
    seed: int = 1,
    update: input_check.Update | None = None,
    image_shape: Shape | None = None,
    batch_size: int | None = None,
) -> Result:
    """Let a client send its update for private pictures, attack that update, and score what comes back.

    With `update`, `image_shape` and `batch_size` in place of x and y, an update from anywhere is attacked; nothing can be scored then.
    Pictures, labels and model stay as they are: a copy is attacked. Plug-ins are named by their ids (docs/plugins.md), or given as values,
    for example `FedAvg(epochs=2, rate=0.01)` from `leakage.protocols.fedavg`.

    Args:
        model: any network of logits (B, K), K >= 2, float32 or float64. Frozen parameters are not sent.
        x: private pictures (B, C, H, W) in [0, 1], on the model's device.
        y: their labels (B,), whole numbers from 0 to K - 1.
        attack: how the server reconstructs.
        defenses: what the client does before it sends, in this order.
        protocol: what the client sends.
        aggregation: laid over the protocol: the server sees a sum of several clients' updates ("secure_aggregation").
        adaptive: whether the attacker knows protocol and defenses and imitates them; else (naive) it takes what arrives for a gradient.
        threat_model: everything that the attacker is granted, in place of `adaptive`.
        normalization: (mean, std), a number for each channel: what is done to pictures before they enter the model.
        batch_norm: BatchNorm uses its stored statistics (eval), or those of the batch, as in training. Dropout is off in both.
        seed: of all chance.
        update: what a client sent, by the parameters' names or in the order of `model.parameters()`, as the protocol sends it.
        image_shape: (C, H, W) of its pictures.
        batch_size: how many they are.

    Returns:
        A Result.

    Raises:
        TypeError, ValueError: with a sentence that says what was wrong, what is expected, and which layer cannot work.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> x, y = torch.rand(1, 3, 4, 4), torch.tensor([2])
        >>> result = leakage.attack(model, x, y, attack="linear_layer")
        >>> bool((result.reconstruction - x).abs().max() < 1e-4), result.labels
        (True, [2])
    """
    return frames(
        model,
        x,
        y,
        attack=attack,
        defenses=defenses,
        protocol=protocol,
        aggregation=aggregation,
        adaptive=adaptive,
        threat_model=threat_model,
        normalization=normalization,
        batch_norm=batch_norm,
        seed=seed,
        update=update,
        image_shape=image_shape,
        batch_size=batch_size,
    ).result


def frames(
    model: nn.Module,
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    attack: str | Attack = "inverting_gradients",
    defenses: Sequence[str | Defense] = (),
    protocol: str | Protocol = "fedsgd",
    aggregation: str | Protocol | None = None,
    adaptive: bool = True,
    threat_model: ThreatModel | None = None,
    normalization: Constants | None = None,
    batch_norm: Literal["eval", "batch"] = "eval",
    seed: int = 1,
    update: input_check.Update | None = None,
    image_shape: Shape | None = None,
    batch_size: int | None = None,
) -> AttackRun:
    """The same as `attack`, frame by frame: an iterator of at most ten Frames a second, with `result` at its end.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> run = leakage.frames(model, torch.rand(1, 3, 4, 4), torch.tensor([2]), attack="linear_layer")
        >>> [frame.final for frame in run][-1], run.result.labels
        (True, [2])
    """
    attacker: Attack = chosen("attack", attack)
    terms = _terms(defenses, protocol, aggregation, threat_model or ThreatModel(adaptive=adaptive), normalization, batch_norm, seed)
    federation = terms.federation
    if update is not None:
        if x is not None or y is not None:
            raise ValueError("Give either pictures and labels (x, y), or an update: with both it is not said whose update it is.")
        own, seen = _arrived(model, update, terms, image_shape, batch_size)
        _fit(own, attacker, seen, _probe(own, image_shape, batch_size))
        return AttackRun(play_blind(attacker, seen, seed=seed), seen, terms.threat, {})
    if x is None or y is None:
        raise ValueError("Give pictures and labels (x, y), or an update with its image_shape and batch_size.")
    own, x, y, num_classes = _pictured(model, x, y, terms)
    private, lanes = Private(x, y, num_classes, batch_norm), vectorises(own, x)
    scene = stage(own, private, federation, attacker, lambda: make_baselines([OWN], x.float().cpu(), y.cpu(), seed=seed), lanes=lanes)
    _fit(scene.seen.model, attacker, scene.seen, x)
    return AttackRun(play(scene), scene.seen, terms.threat, scene.baselines.scores)


def observe(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    defenses: Sequence[str | Defense] = (),
    protocol: str | Protocol = "fedsgd",
    aggregation: str | Protocol | None = None,
    adaptive: bool = True,
    threat_model: ThreatModel | None = None,
    normalization: Constants | None = None,
    batch_norm: Literal["eval", "batch"] = "eval",
    seed: int = 1,
) -> Observation:
    """What the server holds after the client has sent its update: what an attack's `run` is given. Arguments and errors as in `attack`."""
    terms = _terms(defenses, protocol, aggregation, threat_model or ThreatModel(adaptive=adaptive), normalization, batch_norm, seed)
    own, x, y, num_classes = _pictured(model, x, y, terms)
    lanes = vectorises(own, x)
    federation = terms.federation
    return observe_client(ready(own, federation, x, batch_norm=batch_norm), x, y, federation, num_classes=num_classes, lanes=lanes)


# ---------------------------------------------------------------- from words to objects


def chosen(kind: str, given: object) -> Any:
    """The plug-in that is named, or the value itself. Raises TypeError, ValueError listing what there is."""
    base = {"attack": Attack, "defense": Defense, "protocol": Protocol}[kind]
    if isinstance(given, base):
        return given
    if not isinstance(given, str):
        what = given.__name__ if isinstance(given, type) else type(given).__name__
        hint = f" Call it: {what}()." if isinstance(given, type) and issubclass(given, Plugin) else ""
        raise TypeError(f"{kind} must be an id or a value of a {kind}; got {what}.{hint}")
    if given not in ids(kind):
        raise ValueError(f"There is no {kind} {given!r}; expected is one of {', '.join(ids(kind))}.")
    return load(kind, given)()


def _terms(
    defenses: Sequence[str | Defense],
    protocol: str | Protocol,
    aggregation: str | Protocol | None,
    threat: ThreatModel,
    normalization: Constants | None,
    batch_norm: Literal["eval", "batch"],
    seed: int,
) -> _Terms:
    if isinstance(defenses, str):
        raise TypeError(f"defenses must be a list; got the word {defenses!r}. Write [{defenses!r}].")
    if batch_norm not in ("eval", "batch"):
        raise ValueError(f"batch_norm must be eval or batch; got {batch_norm!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on; got {seed!r}.")
    own, over = chosen("protocol", protocol), None if aggregation is None else chosen("protocol", aggregation)
    if own.is_aggregation or (over and not over.is_aggregation):
        wrong, remedy = (own.id, "Name it as aggregation") if own.is_aggregation else (over.id if over else "", "Name it as protocol")
        raise ValueError(f"{wrong} is {'laid over another protocol' if own.is_aggregation else 'no aggregation'}. {remedy}.")
    protections: list[Defense] = [chosen("defense", one) for one in defenses]
    known = [name for one in protections for name in one.strategies()]
    if threat.strategy and threat.strategy not in known:
        raise ValueError(f"strategy: {threat.strategy!r} is none of these defenses; expected is one of {', '.join(known) or 'none'}.")
    if threat.statistics not in ("none", "running", "exact"):
        raise ValueError(f"statistics must be none, running or exact; got {threat.statistics!r}.")
    return _Terms(
        defenses=tuple(protections),
        protocol=own,
        aggregation=over,
        threat=threat,
        normalization=normalization,
        batch_norm=batch_norm,
        seed=seed,
    )


def _pictured(model: nn.Module, x: Tensor, y: Tensor, terms: _Terms) -> tuple[nn.Module, Tensor, Tensor, int]:
    """A copy of the model that is ready, pictures in its precision, labels, and how many classes there are."""
    x = input_check.pictures(x)
    x = x.to(next((value.dtype for value in _module(model).parameters()), x.dtype))
    own = prepared(model, x, terms.normalization)
    num_classes = outputs(own, x).shape[1]
    members = terms.aggregation.members if terms.aggregation else 1
    if len(x) % members:
        raise ValueError(f"{len(x)} pictures cannot be shared evenly by {members} clients. Give a multiple of {members}.")
    return own, x, input_check.labels(y, x, num_classes), num_classes


def _arrived(
    model: nn.Module, update: input_check.Update, terms: _Terms, image_shape: Shape | None, batch_size: int | None
) -> tuple[nn.Module, Observation]:
    """A copy of the model that is ready, and what the server holds that received the update."""
    if image_shape is None or len(image_shape) != 3 or not all(isinstance(side, int) and side > 0 for side in image_shape):
        raise ValueError(f"An update alone needs image_shape=(C, H, W), whole numbers above 0; got {image_shape!r}.")
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"An update alone needs batch_size, a whole number above 0; got {batch_size!r}.")
    probe = _probe(_module(model), image_shape, batch_size)
    own = prepared(model, probe, terms.normalization)
    num_classes, lanes = outputs(own, probe).shape[1], vectorises(own, probe)
    own = ready(own, terms.federation, probe, batch_norm=terms.batch_norm)
    sent = input_check.update_of(update, [name for name, _ in model.named_parameters()], dict(own.named_parameters()))
    input_check.check_length(sent)
    batch = Batch(batch_size, (image_shape[0], image_shape[1], image_shape[2]), num_classes)
    return own, received(own, sent, terms.federation, batch, lanes=lanes)


def _fit(model: nn.Module, attacker: Attack, seen: Observation, x: Tensor) -> None:
    """Raise ValueError where this attack cannot work on what arrived."""
    input_check.check_length(seen.update)
    if hasattr(attacker, "steps"):  # it searches
        check_second_derivative(model, x, torch.zeros(len(x), dtype=torch.long, device=x.device))
    if seen.labels is None:
        check_head(model, x)


def _probe(model: nn.Module, image_shape: Shape | None, batch_size: int | None) -> Tensor:
    """Random pictures of that shape, as the model takes them."""
    assert image_shape
    some = next(model.parameters(), torch.zeros(()))
    dtype = some.dtype if some.is_floating_point() else torch.float32
    return torch.rand((batch_size or 1, *image_shape), generator=torch.Generator().manual_seed(0), dtype=dtype).to(some.device)


def _module(model: object) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got a {type(model).__name__}.")
    return model
