"""GPU code tested without a GPU: every plug-in runs a step on a simulated accelerator, and waits for the CPU only where listed."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from simulated_accelerator import BACK, BRANCHED, COPIED, READ, Accelerator, DeviceError
from small_problems import CATALOG, GRANTED, IDS, LABELS, TINY, light, protected, short, smooth, using
from torch import Tensor, nn

import leakage
from leakage.engine.client import weights_of
from leakage.engine.core import Attack, Client, ClientState, Defense, Observation, Params, Round, Snapshot, StepRng, Update, generator
from leakage.engine.devices import device_for, device_generator, double, exact_arithmetic, run_exactly
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.matching import distance, normal_start
from leakage.engine.observe import observe, ready
from leakage.protocols.fedsgd import FedSGD
from leakage.spec.experiment import Assumptions, Experiment, Part
from leakage.workers.adapter import federation, network, plugin
from leakage.workers.generator_adapter import with_generator

ALLOWED = {  # where a step may wait for the CPU, and why
    ("_adam.closest", READ): "once, after the last step",
    ("_adam._final_snapshots", READ): "once, after the last step",
    ("_adam._final_snapshots", COPIED): "once, after the last step",
    ("matching.diverged", READ): "once for each start of Adam; L-BFGS decides after each step whether to go on",
    ("_lbfgs.search_once", READ): "L-BFGS decides after each step whether to go on",
    ("_lbfgs.search_once", COPIED): "once for each start",
    ("_lbfgs.goal", READ): "once for each start",
    ("_lbfgs.descend", READ): "once for each start",
    ("lbfgs.step", READ): "torch's own L-BFGS takes its step sizes from the CPU",
    ("lbfgs._add_grad", READ): "torch's own line search takes its step sizes from the CPU",
    ("matching.start", COPIED): "once for each start",
    ("matching.to_pixels", READ): "once for each start",
    ("r_gap._answer", READ): "solves on the CPU, layer after layer, in float64",
    ("r_gap._answer", COPIED): "as above: its guess goes back",
    ("gifd.reconstruct", READ): "once, after the last step",
    ("gifd.chosen", READ): "once, after the last step",
    ("discrepancy.expected_distance", COPIED): "once for each start, and before polishing",
    ("discrepancy.goal_of", READ): "once for each start, and before polishing",
    ("discrepancy.entries_compared", READ): "once for each start, and before polishing",
    ("_polish.polished", READ): "once, between two polishings",
    ("_polish.most_probable", READ): "L-BFGS decides after each step whether to go on",
    ("_lbfgs.expected_squares", READ): "once for each start",
    ("_adam._descend", READ): "every 25 steps of a search that ends where known errors allow no better fit",
    ("_gauss_newton.gauss_newton", READ): "decides after each step whether to go on",
    ("r_gap_dlg.run", READ): "once, between its two parts",
    ("h_gap.salt_and_pepper", READ): "once, between its two parts",
    ("ats.translate", COPIED): "a few numbers for each picture, client only",
    **dict.fromkeys(
        (
            (f"{name}.{function}", COPIED)
            for name, function in (
                ("_per_example", "send"),
                ("fedkl", "send"),
                ("flower_local_dp", "noisy"),
                ("gaussian_noise", "noisy"),
                ("laplacian_noise", "noisy"),
                ("ldp_fl", "randomize"),
                ("low_precision", "_at_random"),
                ("minmax_sampling", "sample"),
                ("outpost", "perturb"),
                ("random_layer", "draw_buffers"),
                ("pruning", "_drawn"),
                ("svt_privacy", "filter_update"),
            )
        ),
        "the client draws on the CPU: the same random numbers on every device; no attacker's step does",
    ),
    ("minmax_sampling.sample", BACK): "sorts in float64 on the CPU, client only",
    ("svt_privacy.filter_update", BACK): "goes through the entries on the CPU, client only",
    ("outpost.risk", READ): "once for each tensor, client only",
    ("sme.run", READ): "alpha, every 25 steps and when its path is drawn",
    ("_plots.path_view", BACK): "four times in a run",
    ("adaptive_clipping.send", READ): "the limit of the next round, client only",
}
SEARCH = Part(id="inverting_gradients", fields={"steps": 2, "starts": 1})
Waits = set[tuple[str, str]]


def waits(model: nn.Module, setting: Federation, attack: Attack, shape: tuple[int, int, int, int] = (1, 1, 8, 8)) -> Waits:
    """Where the client's step, and the attack's from its first Snapshot on, wait for the CPU. Raises DeviceError as a GPU would."""
    with Accelerator() as accelerator:
        x, y = (accelerator.move(value, here=True) for value in (smooth(*shape[:3]), LABELS[: shape[0]]))
        model = ready(model, setting, x)
        accelerator.waits.clear()
        setting.client(model)(weights_of(model), x, y, {})
        client = set(accelerator.waits)
        seen = with_generator(observe(model, x, y, setting, num_classes=10), attack)
        moments = attack.run(seen, generator(1, "attack"))
        try:
            first = next(moments)
        except DoesNotApplyError:  # it takes no step here
            return client
        accelerator.waits.clear()
        *_, last = first, *moments
        assert accelerator.holds(first.x)
        assert accelerator.holds(last.x)
        return client | accelerator.waits


def played(experiment: Experiment, shape: tuple[int, int, int, int] = (1, 1, 8, 8)) -> Waits:
    """The same of an experiment."""
    return waits(network(experiment, shape[1:]), federation(experiment), plugin("attack", experiment.attack), shape)


# ---------------------------------------------------------------- every plug-in


@pytest.mark.parametrize("name", IDS["attack"])
@pytest.mark.long
def test_an_attack_waits_for_the_cpu_only_where_listed(name: str) -> None:
    assert played(Experiment(model=TINY, attack=short(name, steps=2, restarts=1))) <= ALLOWED.keys()


DEFENDED = [(name, strategy) for name in IDS["defense"] for strategy in CATALOG.defenses.get(name).strategies]


@pytest.mark.parametrize(("name", "strategy"), DEFENDED)
@pytest.mark.long
def test_a_defense_and_who_knows_it_wait_for_the_cpu_only_where_listed(name: str, strategy: str) -> None:
    setting = protected(Part(id=name))
    assert played(Experiment(**setting, attack=SEARCH, assume=Assumptions(labels=True, strategy=strategy))) <= ALLOWED.keys()


@pytest.mark.parametrize("name", IDS["protocol"])
@pytest.mark.long
def test_a_protocol_waits_for_the_cpu_only_where_listed(name: str) -> None:
    experiment = Experiment(model=TINY, **using(name), attack=SEARCH, assume=GRANTED, rounds=2, attacked_round=2)
    assert played(experiment, (3, 1, 8, 8)) <= ALLOWED.keys()


@pytest.mark.parametrize("name", IDS["model"])
@pytest.mark.long
def test_a_model_waits_for_the_cpu_only_where_listed(name: str) -> None:
    side = max(16, CATALOG.models.get(name).smallest)
    one = Part(id=SEARCH.id, fields={"steps": 1, "starts": 1})
    assert played(Experiment(model=light(name), attack=one, assume=GRANTED), (1, 3, side, side)) <= ALLOWED.keys()


VARIANTS = [
    (kind, entry.id, field.name, option)
    for kind in ("attack", "defense")
    for entry in CATALOG.of(kind)
    for field in entry.fields
    for option in (field.options or ((True, False) if field.type == "bool" else ()))
    if option != field.default and entry.id != "dlg_admm" and (field.name != "label_rule" or entry.id == SEARCH.id)
]


@pytest.mark.parametrize(("kind", "name", "field", "option"), VARIANTS)
@pytest.mark.long
def test_every_choice_waits_for_the_cpu_only_where_listed(kind: str, name: str, field: str, option: str | bool) -> None:
    if kind == "attack":
        attack = short(name, steps=2, restarts=1)
        experiment = Experiment(model=TINY, attack=Part(id=name, fields={**attack.fields, field: option}))
    else:
        experiment = Experiment(**protected(Part(id=name, fields={field: option})), attack=SEARCH, assume=GRANTED)
    assert played(experiment) <= ALLOWED.keys()


def test_statistics_of_batch_norm_are_compared_without_waiting() -> None:
    experiment = Experiment(
        model=Part(id="resnet", fields={"kind": "resnet20-4", "width": 4}),
        attack=short("gradinversion", steps=2),
        assume=Assumptions(labels=True, statistics="exact"),
    )
    assert played(experiment, (2, 3, 16, 16)) <= ALLOWED.keys()


def test_several_observations_share_a_loop_without_waiting() -> None:
    experiments = [Experiment(model=TINY, defenses=one, attack=SEARCH, assume=GRANTED) for one in ((), (Part(id="pruning"),))]
    attack = plugin("attack", SEARCH)
    with Accelerator() as accelerator:
        x, y = (accelerator.move(value, here=True) for value in (smooth(), LABELS[:1]))
        seen = []
        for experiment in experiments:
            setting = federation(experiment)
            seen.append(observe(ready(network(experiment, (1, 8, 8)), setting, x), x, y, setting, num_classes=10))
        moments = attack.run_batched(seen, [generator(1, "attack") for _ in seen])
        next(moments)
        accelerator.waits.clear()
        assert len(list(moments)) == 5  # two steps and an answer of each, less the first
    assert accelerator.waits <= ALLOWED.keys()


# ---------------------------------------------------------------- one fault of every kind


@dataclass(frozen=True, kw_only=True)
class Reading(Attack):
    """Looks at its loss after every step."""

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        z, match = normal_start(seen, rng).requires_grad_(), distance("squared", seen.as_gradient())
        y = LABELS[:1].to(seen.device)
        for step in (1, 2):
            loss = match({name: g[None] for name, g in seen.gradient(z, y).items()})[0]
            yield Snapshot(step=step, x=z.detach(), y=y, loss=loss.detach())
            (gradient,) = torch.autograd.grad(loss, z)
            if loss.item() > 0:
                z = (z - 0.1 * gradient).detach().requires_grad_()


@dataclass(frozen=True, kw_only=True)
class Noise(Defense):
    """Forgets to bring its noise to the gradient."""

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            update, state = client(weights, x, y, state)
            return {name: g + torch.randn(g.shape, generator=step_rng(0)) for name, g in update.items()}, state

        return send


@dataclass(frozen=True, kw_only=True)
class Detour(FedSGD):
    """Sends its gradient by way of the CPU."""

    def to_gradient(self, update: Params, seen: Round) -> Params:
        return {name: g.cpu().to(g.device) for name, g in update.items()}


class Gate(nn.Module):
    """A layer that computes with positive entries alone: their number depends on the values."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        out[x > 0] = x[x > 0]
        return out


class Shifted(nn.Module):
    """Adds a constant that is neither a parameter nor a buffer, so that nothing moves it."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = torch.ones(16)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.shift


def planted(*layers: nn.Module, defenses: tuple[Defense, ...] = (), protocol: FedSGD | None = None, attack: Attack | None = None) -> Waits:
    """What comes of a fault in an experiment that has none otherwise."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Sigmoid(), *layers, nn.Linear(16, 10))
    setting = Federation.of(protocol or FedSGD(), defenses, ThreatModel(labels=True), seed=1)
    return waits(model, setting, attack or plugin("attack", SEARCH)) - ALLOWED.keys()


def test_without_a_fault_nothing_is_found() -> None:
    assert planted() == set()


def test_a_number_that_an_attack_reads_in_every_step_is_found() -> None:
    assert planted(attack=Reading()) == {("test_devices.run", READ)}


def test_noise_that_a_defense_leaves_on_the_cpu_is_found() -> None:
    with pytest.raises(DeviceError, match="add mixes tensors"):
        planted(defenses=(Noise(),))


def test_a_protocol_that_takes_the_update_to_the_cpu_and_back_is_found() -> None:
    assert planted(protocol=Detour()) == {("test_devices.to_gradient", BACK), ("test_devices.to_gradient", COPIED)}


def test_a_model_whose_shapes_follow_from_its_numbers_is_found() -> None:
    found = planted(Gate())
    assert ("test_devices.forward", BRANCHED) in found
    assert {what for _, what in found} == {BRANCHED}  # its derivatives do the same


def test_a_constant_that_a_model_does_not_move_is_found() -> None:
    with pytest.raises(DeviceError, match="add mixes tensors"):
        planted(Shifted())


# ---------------------------------------------------------------- the pretence


def test_the_accelerator_refuses_what_a_gpu_refuses_and_allows_single_numbers() -> None:
    with Accelerator() as accelerator:
        there, here = torch.ones(2), accelerator.move(torch.ones(2), here=True)
        assert (here * torch.tensor(2.0) + 1).device.type == "cuda"
        assert torch.zeros(2, device=here.device).is_cuda
        assert not torch.zeros(2).is_cuda
        for refused in (
            lambda: here + there,
            lambda: there.add_(here),
            lambda: torch.tensor(0.0).add_(here.sum()),
            lambda: torch.stack([here.sum(), torch.tensor(1.0)]),
            lambda: torch.cat([here, there]),
            lambda: torch.randn(2, generator=torch.Generator(), device=here.device),
            lambda: torch.randn(2, generator=torch.Generator(here.device)),
        ):
            with pytest.raises(DeviceError):
                refused()
        with pytest.raises(DeviceError):
            here.numpy()
        assert accelerator.waits == {("test_devices.test_the_accelerator_refuses_what_a_gpu_refuses_and_allows_single_numbers", COPIED)}


# ---------------------------------------------------------------- leakage/engine/devices.py


def flags() -> tuple[str, str, str, bool, bool]:
    """How float32 is multiplied in matrix products, convolutions, recurrent layers; whether cuDNN is deterministic, and tries kernels."""
    cudnn = torch.backends.cudnn
    precisions = (one.fp32_precision for one in (torch.backends.cuda.matmul, cudnn.conv, cudnn.rnn))
    return (*precisions, cudnn.deterministic, cudnn.benchmark)


EXACT = ("ieee", "ieee", "ieee", True, False)


@pytest.fixture
def restored() -> Iterator[None]:
    """Whatever a test sets of these is as before afterwards."""
    cudnn = torch.backends.cudnn
    places = (torch.backends, torch.backends.cuda.matmul, cudnn.conv, cudnn.rnn)  # the first of all of them
    before, benchmark = [place.fp32_precision for place in places], cudnn.benchmark
    yield
    cudnn.benchmark = benchmark
    for place, precision in zip(places, before, strict=True):
        place.fp32_precision = precision


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("how", ["as torch comes", "by the old names", "by the new names"])
def test_tf32_is_off_and_cudnn_deterministic_while_an_attack_computes_and_as_before_in_between(how: str) -> None:
    cudnn = torch.backends.cudnn
    cudnn.benchmark = how != "as torch comes"
    if how == "by the old names":
        torch.backends.cuda.matmul.allow_tf32 = True
    elif how == "by the new names":
        torch.backends.fp32_precision = torch.backends.cuda.matmul.fp32_precision = cudnn.conv.fp32_precision = "tf32"
    callers = flags()
    assert callers[1] == "tf32", "convolutions use it unless told"

    def moments() -> Iterator[tuple[str, str, str, bool, bool]]:
        yield flags()
        yield flags()

    for inside in run_exactly(moments()):
        assert inside == EXACT
        assert flags() == callers
    with pytest.raises(ValueError, match="planted"), exact_arithmetic():
        raise ValueError("planted")
    assert flags() == callers


def test_client_and_attack_compute_exactly_by_every_way_in() -> None:
    seen = []

    class Watching(nn.Flatten):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(flags() == EXACT)
            return super().forward(x)

    model, x, y = nn.Sequential(Watching(), nn.Linear(16, 3)), smooth(side=4), torch.tensor([2])
    leakage.observe(model, x, y)
    assert seen[-1], "the client's step, after the model was looked at"
    next(iter(leakage.frames(model, x, y, attack="inverting_gradients")))
    assert seen[-1], "the attack's"
    assert flags() != EXACT


def test_float64_goes_to_the_cpu_where_the_device_has_none() -> None:
    mps, cuda, cpu = map(torch.device, ("mps", "cuda", "cpu"))
    assert [device_for(torch.float64, one) for one in (mps, cuda, cpu)] == [cpu, cuda, cpu]
    assert [device_for(torch.float32, one) for one in (mps, cuda, cpu)] == [mps, cuda, cpu]
    assert double(torch.ones(2)).dtype == torch.float64


def test_randomness_of_a_device_follows_from_the_seed_and_that_of_the_cpu_is_untouched() -> None:
    rng = generator(1, "attack")
    assert device_generator(rng, torch.device("cpu")) is rng
    assert torch.equal(torch.randn(3, generator=rng), torch.randn(3, generator=generator(1, "attack")))
    with Accelerator() as accelerator:
        device = accelerator.move(torch.ones(1), here=True).device
        drawn = [device_generator(generator(seed, "attack"), device) for seed in (1, 1, 2)]
        first, again, other = (torch.randn(3, generator=one, device=device) for one in drawn)
        assert first.tolist() == again.tolist() != other.tolist()
