"""Attack a model of the caller: `attack` returns the result, `frames` each frame, `observe` what the attacker works with."""

from collections.abc import Callable
from functools import partial

from leakage.api.arguments import AttackArguments, ObserveArguments, takes
from leakage.api.arrival import Arrival, received_update
from leakage.api.declared import fit_of
from leakage.api.model_errors import explained
from leakage.api.outcome import AttackRun, Result, loss_words
from leakage.api.preparation import check_fit, prepare_batch
from leakage.api.progress import AttackProgress, progress_of
from leakage.api.refused_run import RefusedRun
from leakage.engine.check import RefusedError
from leakage.engine.core import Observation
from leakage.engine.devices import differentiable
from leakage.engine.losses import classes_of
from leakage.engine.observe import inspection_of, ready
from leakage.engine.observe import observe as observe_client
from leakage.evaluation.baselines import make_baselines
from leakage.evaluation.lineup import OWN
from leakage.evaluation.play import Private, play, play_blind, prepare_attack


@takes(AttackArguments)
def attack(arguments: AttackArguments) -> Result:  # noqa: D417  (its parameters are the fields of AttackArguments)
    """Reconstruct private pictures from the update that a client sends for them, and score the reconstruction.

    A client is simulated on the pictures `x` with labels `y`. Give `update`, `image_shape` and `batch_size` in place of `x` to attack an
    update that was recorded elsewhere; its reconstruction cannot be scored. Pictures, labels and model stay unchanged: a copy of the
    model is attacked. A plug-in is given by its id (docs/plugins.md), or with settings: `leakage.plugin("fedavg", epochs=2, rate=0.01)`.

    Args:
        model: a network that returns logits (B, K), K >= 2, in float32 or float64. The client does not send frozen parameters.
        x: private pictures (B, C, H, W) in [0, 1], on the model's device.
        y: labels (B,), whole numbers from 0 to K - 1; or class probabilities (B, K); or the numbers (B, K) that `loss` takes.
            With `update`: the labels, if the attacker knows them.
        defenses: what the client does to its update before it sends it, in this order.
        protocol: how the client trains and what it sends.
        aggregation: how the updates of several clients are combined before the server sees them ("secure_aggregation": their sum).
        server: the server that changes the model before the client trains it ("imprint"); None: an honest server. Not with `update`.
        checks: what each client checks of the model that it receives ("new_layers"); if a check trips, the client refuses: it sends
            nothing. Not with `update`.
        adaptive: True: the attacker knows protocol and defenses and imitates them; False (naive): it takes the update for a gradient.
        threat_model: everything that the attacker is granted, in place of `adaptive`.
        normalization: of the pictures before they enter the model: (mean, std), a number for each channel, or an object that has both,
            such as `transforms.Normalize`.
        batch_norm: the statistics that BatchNorm uses: the stored ones ("eval") or those of the batch, as in training ("batch").
            "auto": "eval" for pictures; for an update alone a short search tries both and keeps the better one (the Result's `fit`).
            Dropout is off in each case.
        loss: what the client minimizes, any function (logits (B, K), y) -> scalar; by default the mean cross-entropy. The attacker
            knows it. Labels are read from the update for cross-entropy, and of one picture for binary cross-entropy, where it may have
            several; for another loss grant the labels, or use `dlg`.
        seed: of all random numbers.
        attack: how the attacker reconstructs the pictures; None: by what `server` has built in, or by a search ("inverting_gradients").
        update: what a client sent, as `protocol` sends it: tensors or arrays, by parameter name or in the order of
            `model.parameters()`. Prefixes of frameworks, buffers and frozen parameters are removed.
        image_shape: (C, H, W) of the pictures behind `update`.
        batch_size: the number of pictures behind `update`.
        progress: a function of (step, steps, loss), called at most ten times a second; True: a progress bar by tqdm.

    Returns:
        A Result. An attack that cannot work on this setting, whatever the pictures are, is not run: its verdict's word is
        "does not apply", `why` gives the reason, and there are no pictures and no scores. If a client refuses, `refused` names the
        check, and there is no verdict.

    Raises:
        TypeError, ValueError: when an argument is not allowed; the message names what is expected, and the layer that cannot work.
        UnreadableLabelsError: a ValueError, when an attack needs labels that the update does not reveal; grant them.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> x, y = torch.rand(1, 3, 4, 4), torch.tensor([2])
        >>> result = leakage.attack(model, x, y, attack="linear_layer")
        >>> bool((result.reconstruction - x).abs().max() < 1e-4), result.labels
        (True, [2])
    """
    return attack_run(arguments).result


@takes(AttackArguments, explained_by=attack.__doc__ or "")
def frames(arguments: AttackArguments) -> AttackRun:
    """Run an attack as `attack` does, frame by frame.

    Returns:
        An iterator of at most ten Frames a second, each with `x` (B, C, H, W), `step`, `loss` and `scores`; `result` is the Result at
        its end. An attack that does not apply, or on a client that refuses, has no Frames: `result` gives the reason.

    Raises:
        TypeError, ValueError: as in `attack`.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> run = leakage.frames(model, torch.rand(1, 3, 4, 4), torch.tensor([2]), attack="linear_layer")
        >>> [frame.final for frame in run][-1], run.result.labels
        (True, [2])
    """
    return attack_run(arguments)


@differentiable()
def attack_run(arguments: AttackArguments, *, should_stop: Callable[[], bool] = lambda: False) -> AttackRun:
    """Return an attack that has not begun, and that ends early if `should_stop` returns True at one of its steps.

    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    attacker = arguments.attacker
    progress = progress_of(arguments.progress, attacker)
    federation, seed = arguments.federation, arguments.seed
    if arguments.update is not None:
        if arguments.x is not None:
            raise ValueError("Give either pictures (x), or an update: the update may not be that of the pictures.")
        if arguments.server is not None:
            raise ValueError("Give either a server, or an update: a server changes the model before the client computes its update.")
        if arguments.checks:
            raise ValueError("Give either checks, or an update: a client checks the model before it computes its update.")
        return run_on_arrival(received_update(arguments), progress, should_stop=should_stop)
    if arguments.x is None or arguments.y is None:
        raise ValueError("Give pictures and labels (x, y), or an update with its image_shape and batch_size.")
    model, x, y, num_classes = prepare_batch(arguments, arguments.model, arguments.x, arguments.y)
    private, loss = Private(x, y, num_classes, arguments.simulated_batch_norm), loss_words(model)
    try:
        with explained(model):
            prepared = prepare_attack(
                model, private, federation, attacker, lambda: make_baselines([OWN], x.float().cpu(), classes_of(y).cpu(), seed=seed)
            )
            check_fit(prepared.seen.model, attacker, prepared.seen, x)
    except RefusedError as refusal:
        return RefusedRun(refusal, tuple(x.shape), federation.threat, loss, progress)
    return AttackRun(play(prepared, should_stop=should_stop), prepared.seen, federation, lambda: prepared.baselines.scores, progress)


def run_on_arrival(
    arrival: Arrival, progress: AttackProgress | None = None, *, should_stop: Callable[[], bool] = lambda: False
) -> AttackRun:
    """Return an attack on an update that was recorded elsewhere, which has not begun; the arguments of the arrival name the attack.

    Args:
        arrival: the update.
        progress: how the progress is reported.
        should_stop: asked at each step; the attack ends early when it returns True.

    Raises:
        TypeError, ValueError: the attack cannot work on this update.
    """
    arguments = arrival.arguments
    attacker, federation = arguments.attacker, arguments.federation
    with explained(arrival.model):
        assumed = arrival.batch_norm()
        seen = arrival.observation(assumed)
        check_fit(seen.model, attacker, seen, arrival.probe)
    frames = play_blind(attacker, seen, seed=arguments.seed, should_stop=should_stop)
    return AttackRun(frames, seen, federation, dict, progress, partial(fit_of, arrival, seen, assumed))


@takes(ObserveArguments, explained_by=attack.__doc__ or "")
@differentiable()
def observe(arguments: ObserveArguments) -> Observation:
    """Return what the server has after the client sent its update.

    Returns:
        The Observation that an attack's `run` is given; its `update` has a tensor of the parameter's shape for each parameter that is sent.

    Raises:
        TypeError, ValueError: as in `attack`.
        RefusedError: a check tripped, so that the client sent nothing; the message names the check and its number.

    Example:
        >>> import torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
        >>> seen = leakage.observe(model, torch.rand(2, 3, 4, 4), torch.tensor([2, 0]))
        >>> {name: tuple(value.shape) for name, value in seen.received.update.items()}
        {'1.weight': (5, 48), '1.bias': (5,)}
    """
    model, x, y, num_classes = prepare_batch(arguments, arguments.model, arguments.x, arguments.y)
    federation = arguments.federation
    with explained(model):
        inspection = inspection_of(model, federation, x, batch_norm=arguments.simulated_batch_norm)
        prepared = ready(model, federation, x, batch_norm=arguments.simulated_batch_norm)
        return observe_client(prepared, x, y, federation, num_classes=num_classes, inspection=inspection)
