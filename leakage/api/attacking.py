"""An attack on a model of your own: on pictures that you give, or on an update alone."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from torch import Tensor, nn

from leakage.api.arrival import arrived
from leakage.api.declared import fit_of
from leakage.api.model_errors import explained
from leakage.api.normalization import Constants
from leakage.api.outcome import AttackRun, Result
from leakage.api.plugins import chosen
from leakage.api.progress import Told, progress_of
from leakage.api.terms import BatchNorm, Loss, Shape, check_fit, pictured, terms_of
from leakage.api.update_check import Update
from leakage.engine.core import Attack, Defense, Observation, Protocol
from leakage.engine.devices import differentiable
from leakage.engine.federation import ThreatModel
from leakage.engine.losses import classes_of
from leakage.engine.observe import observe as observe_client
from leakage.engine.observe import ready
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.lineup import OWN
from leakage.evaluation.play import Private, play, play_blind, stage


def attack(  # noqa: PLR0913  (a call says what it means by their names)
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
    batch_norm: BatchNorm = "auto",
    loss: Loss | None = None,
    seed: int = 1,
    update: Update | None = None,
    image_shape: Shape | None = None,
    batch_size: int | None = None,
    progress: bool | Told | None = None,
) -> Result:
    """Let a client send its update for private pictures, attack that update, and score what comes back.

    With `update`, `image_shape` and `batch_size` in place of x, an update from anywhere is attacked; nothing can be scored then.
    Pictures, labels and model stay as they are: a copy is attacked. Plug-ins are named by their ids (docs/plugins.md), or given with fields
    of their own, for example `leakage.plugin("fedavg", epochs=2, rate=0.01)`.

    Args:
        model: any network of logits (B, K), K >= 2, float32 or float64. Frozen parameters are not sent.
        x: private pictures (B, C, H, W) in [0, 1], on the model's device.
        y: their labels (B,), whole numbers from 0 to K - 1; or mixed ones, probabilities (B, K); or what `loss` takes, numbers (B, K).
            Beside `update`: the labels, if the attacker knows them.
        attack: how the server reconstructs.
        defenses: what the client does before it sends, in this order.
        protocol: what the client sends.
        aggregation: laid over the protocol: the server sees a sum of several clients' updates ("secure_aggregation").
        adaptive: whether the attacker knows protocol and defenses and imitates them; else (naive) it takes what arrives for a gradient.
        threat_model: everything that the attacker is granted, in place of `adaptive`.
        normalization: (mean, std), a number for each channel, or what holds both, as `transforms.Normalize`: what is done to pictures
            before they enter the model.
        batch_norm: BatchNorm uses its stored statistics (eval), or those of the batch, as in training (batch). Dropout is off in both.
            auto: eval beside pictures; of an update alone both are tried for a moment, and the one that fits better is kept: `Result.fit`.
        loss: what the client minimises, any function (logits (B, K), y) -> scalar; default the mean cross-entropy. The attacker knows it.
            Labels are read from the update for cross-entropy alone: with another loss grant them, or let dlg search them.
        seed: of all chance.
        update: what a client sent, as the protocol sends it: tensors or arrays, by the parameters' names or in the order of
            `model.parameters()`. Prefixes of frameworks, buffers and frozen parameters are taken off.
        image_shape: (C, H, W) of its pictures.
        batch_size: how many they are.
        progress: a function of (step, steps, loss), called at most ten times a second; True: a bar, drawn by tqdm.

    Returns:
        A Result. An attack that cannot work on this setting, whatever the pictures are, was not tried: then the verdict's word is
        "does not apply", its `why` is the reason, and there are no pictures and no scores.

    Raises:
        TypeError, ValueError: with a sentence that says what was wrong, what is expected, and which layer cannot work.
        UnreadableLabelsError: a ValueError, of an attack that needs labels where the update says none; grant them.

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
        loss=loss,
        seed=seed,
        update=update,
        image_shape=image_shape,
        batch_size=batch_size,
        progress=progress,
    ).result


@differentiable()
def frames(  # noqa: PLR0913  (as `attack`)
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
    batch_norm: BatchNorm = "auto",
    loss: Loss | None = None,
    seed: int = 1,
    update: Update | None = None,
    image_shape: Shape | None = None,
    batch_size: int | None = None,
    progress: bool | Told | None = None,
) -> AttackRun:
    """The same as `attack`, frame by frame.

    Args:
        model: as in `attack`, like all other arguments.
        x: private pictures (B, C, H, W) in [0, 1]; or `update`, `image_shape` and `batch_size` in place of x and y.
        y: their labels (B,) or (B, K).
        attack: how the server reconstructs.
        defenses: what the client does before it sends.
        protocol: what the client sends.
        aggregation: laid over the protocol.
        adaptive: whether the attacker knows protocol and defenses.
        threat_model: everything that the attacker is granted, in place of `adaptive`.
        normalization: (mean, std), a number for each channel.
        batch_norm: "auto", "eval" or "batch".
        loss: what the client minimises.
        seed: of all chance.
        update: what a client sent.
        image_shape: (C, H, W) of its pictures.
        batch_size: how many they are.
        progress: a function of (step, steps, loss), or True.

    Returns:
        An iterator of at most ten Frames a second, each with `x` (B, C, H, W), `step`, `loss`, `scores`; with `result` at its end.
        There are no Frames where the attack does not apply: `result` says why.

    Raises:
        TypeError, ValueError: as in `attack`.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> run = leakage.frames(model, torch.rand(1, 3, 4, 4), torch.tensor([2]), attack="linear_layer")
        >>> [frame.final for frame in run][-1], run.result.labels
        (True, [2])
    """
    attacker: Attack = chosen("attack", attack)
    told = progress_of(progress, attacker)
    threat = threat_model or ThreatModel(adaptive=adaptive)
    if update is not None and y is not None:
        threat = replace(threat, labels=True)
    terms = terms_of(defenses, protocol, aggregation, threat, normalization, batch_norm, loss, seed)
    federation = terms.federation
    if update is not None:
        if x is not None:
            raise ValueError("Give either pictures (x), or an update: with both it is not said whose update it is.")
        arrival = arrived(model, update, terms, y, image_shape, batch_size)
        with explained(arrival.model):
            assumed = arrival.batch_norm()
            seen = arrival.observation(assumed)
            check_fit(seen.model, attacker, seen, arrival.probe)
        return AttackRun(play_blind(attacker, seen, seed=seed), seen, federation, {}, told, partial(fit_of, arrival, seen, assumed))
    if x is None or y is None:
        raise ValueError("Give pictures and labels (x, y), or an update with its image_shape and batch_size.")
    own, x, y, num_classes = pictured(model, x, y, terms)
    private = Private(x, y, num_classes, terms.simulated)
    with explained(own):
        scene = stage(own, private, federation, attacker, lambda: make_baselines([OWN], x.float().cpu(), classes_of(y).cpu(), seed=seed))
        check_fit(scene.seen.model, attacker, scene.seen, x)
    return AttackRun(play(scene), scene.seen, federation, scene.baselines.scores, told)


@differentiable()
def observe(  # noqa: PLR0913  (as `attack`)
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
    batch_norm: BatchNorm = "auto",
    loss: Loss | None = None,
    seed: int = 1,
) -> Observation:
    """What the server holds after the client has sent its update.

    Args:
        model: as in `attack`, like all other arguments.
        x: private pictures (B, C, H, W) in [0, 1].
        y: their labels (B,) or (B, K).
        defenses: what the client does before it sends.
        protocol: what the client sends.
        aggregation: laid over the protocol.
        adaptive: whether the attacker knows protocol and defenses.
        threat_model: everything that the attacker is granted, in place of `adaptive`.
        normalization: (mean, std), a number for each channel.
        batch_norm: "auto", "eval" or "batch".
        loss: what the client minimises.
        seed: of all chance.

    Returns:
        The Observation that an attack's `run` is given: `update` is a tensor for each parameter that is sent, of its shape.

    Raises:
        TypeError, ValueError: as in `attack`.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> seen = leakage.observe(model, torch.rand(2, 3, 4, 4), torch.tensor([2, 0]))
        >>> {name: tuple(value.shape) for name, value in seen.update.items()}
        {'1.weight': (5, 48), '1.bias': (5,)}
    """
    terms = terms_of(defenses, protocol, aggregation, threat_model or ThreatModel(adaptive=adaptive), normalization, batch_norm, loss, seed)
    own, x, y, num_classes = pictured(model, x, y, terms)
    federation = terms.federation
    with explained(own):
        return observe_client(ready(own, federation, x, batch_norm=terms.simulated), x, y, federation, num_classes=num_classes)
