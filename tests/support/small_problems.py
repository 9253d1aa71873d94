"""Small problems that several tests share: smooth pictures, a tiny network, and what its server would see."""

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import leakage
from leakage.engine.client import weights_of
from leakage.engine.core import DoesNotApplyError, Handed, Observation, Params, Snapshot, generator
from leakage.engine.observe import inspection_of, ready
from leakage.evaluation.baselines import Baselines, make_baselines
from leakage.evaluation.lineup import Lineup, draw
from leakage.evaluation.metrics import gradient_distances
from leakage.evaluation.play import PreparedAttack, Private, prepare_attack
from leakage.evaluation.verdict import Reference
from leakage.spec import catalog
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError
from leakage.workers import plugin_catalog
from leakage.workers.adapter import federation, network, observe, origins, plugin
from leakage.workers.generator_adapter import with_generator

CATALOG = plugin_catalog.describe()
IDS = {kind: [entry.id for entry in CATALOG.of(kind)] for kind in catalog.KINDS}
TINY = Part(
    id="mlp", fields={"width": 32, "depth": 1, "activation": "sigmoid"}
)  # smooth, and its first layer has a bias: one picture is determined
RELU = Part(id="mlp", fields={**TINY.fields, "activation": "relu"})
SUITED = {"spear": RELU}  # attacks to which another network than TINY belongs
ELSEWHERE = ("bins", "twin_data")  # ... and attacks with their own tests: tests/servers/test_imprint.py, tests/attacks/test_gap_family.py
KEEPING = Part(
    id="custom", fields={"network": "conv 3@4 p1 - conv 3@4 p1 - linear 32", "activation": "relu", "bias": True}
)  # its convolutions keep the size of a picture
CHEATED: dict[str, dict[str, object]] = {  # servers to which another network, another protocol or other fields belong than `cheated` gives
    "identity_kernels": {"model": KEEPING},
    "feature_fishing": {"rounds": 12, "attacked_round": 12},
    "inconsistent": {"aggregation": Part(id="secure_aggregation", fields={"clients": 3})},
}
FITTING = {"fedkl": Part(id="resnet", fields={"kind": "resnet20-4", "width": 4})}  # needs BatchNorm
LIGHT = {"vgg16": {"units": 16}}  # what a model too large for a test is made with
SHORT = {"steps": 60, "restarts": 4, "starts": 2, "weight_steps": 20, "stage_steps": 20}  # enough for a problem of this size
GRANTED = Assumptions(labels=True)
HUGE = 1e6  # a bound that nothing reaches
NEUTRAL = {  # settings with which a defense leaves the update as it is
    "gaussian_noise": {"scale": 0.0},
    "laplacian_noise": {"scale": 0.0},
    "clipping": {"bound": HUGE},
    "pruning": {"fraction": 0.0},
    "minmax_sampling": {"ratio": 1.0},
    "dp_sgd": {"max_grad_norm": HUGE, "noise_multiplier": 0.0},
    "fed_cdp": {"bound": HUGE, "last_bound": HUGE, "noise_multiplier": 0.0},
    "soteria": {"fraction": 0.0},
    "outpost": {"prune_base": 0.0, "noise_base": 0.0},
    "ats": {"strength": 0.0},
    "percentile_privacy": {"percentile": 0.0, "gamma": HUGE},
    "exclude_vars": {"names": ""},
    "flower_local_dp": {"clipping_norm": HUGE, "sensitivity": 0.0},
    "flower_central_dp": {},
    "adaptive_clipping": {"start": HUGE},
}
SUMMED = ("dp_sgd", "fed_cdp")  # what the pictures say is added up one by one: the same sum, rounded in another order
LABELS = torch.tensor([7, 2, 4])  # distinct and not in order


def smooth(batch: int = 1, channels: int = 1, side: int = 8, seed: int = 0) -> torch.Tensor:
    """Return random pictures (B, C, side, side) in [0, 1] without fine detail: 3x3 noise, enlarged."""
    noise = torch.rand((batch, channels, 3, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    return F.interpolate(noise, size=(side, side), mode="bilinear", align_corners=True).to(torch.get_default_dtype())


def few_units(units: int) -> nn.Module:
    """Return a network of one sigmoid layer for grey pictures of 8 x 8 and ten classes; its gradient has 75 numbers a unit, and 10."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, units), nn.Sigmoid(), nn.Linear(units, 10))
    with torch.no_grad():
        for number, value in enumerate(model.parameters()):
            value.copy_(torch.rand(value.shape, generator=torch.Generator().manual_seed(number)) - 0.5)
    return model


def light(name: str) -> Part:
    """Return a model with its default fields, or with those that keep a test small."""
    return Part(id=name, fields=LIGHT.get(name, {}))


def protected(*defenses: Part) -> dict[str, object]:
    """Return the experiment's fields for these defenses, with the tiny network or another that they need."""
    return {"model": next((FITTING[part.id] for part in defenses if part.id in FITTING), TINY), "defenses": defenses}


def observed(x: torch.Tensor, *, model: Part = TINY, **settings: object) -> Observation:
    """Return what the server holds after a client had `x` and the first of LABELS."""
    return observe(Experiment(model=model, **settings), x, LABELS[: len(x)])


def altered(seen: Observation, **changes: object) -> Observation:
    """Replace fields of an observation, each in the group that has it; `model` is in none."""
    for name, value in changes.items():
        groups = (group for group in ("batch", "received", "replay", "granted", "knowledge") if hasattr(getattr(seen, group), name))
        group = next(groups, None)
        seen = replace(seen, **({group: replace(getattr(seen, group), **{name: value})} if group else {name: value}))
    return seen


def baselines_of(experiment: Experiment, x: torch.Tensor, y: torch.Tensor, uploads: Mapping[str, bytes] | None = None) -> Baselines:
    """Return the baselines of guesses of the experiment's pictures."""
    return make_baselines(origins(experiment, uploads), x, y, seed=experiment.seed)


def of_picture(held: Reference, number: int) -> Reference:
    """Return the baselines of one picture of a batch that is attacked alone."""

    def own(every: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value[number : number + 1] for name, value in every.items()}

    firsts = {name: found[number : number + 1] for name, found in held.firsts.items()}
    return Reference(held.size, own(held.best), {}, firsts, own(held.others), held.ssim_counts)


def lineup_of(experiment: Experiment, x: torch.Tensor, y: torch.Tensor, uploads: Mapping[str, bytes] | None = None) -> Lineup:
    """Return the line-up of the experiment's pictures."""
    return draw(origins(experiment, uploads), x, y, seed=experiment.seed)


def short(name: str, **fields: bool | float) -> Part:
    """Return an attack with settings that keep a test short, as far as it has such fields."""
    known = [field.name for field in CATALOG.attacks.get(name).fields]
    return Part(id=name, fields={field: value for field, value in (SHORT | fields).items() if field in known})


def part(protocol: str, *, clients: int = 3) -> Part:
    """Return a protocol with its default fields; an aggregation has as many clients as a test has pictures."""
    return Part(id=protocol, fields={"clients": clients} if CATALOG.protocols.get(protocol).is_aggregation else {})


def using(protocol: str, *, clients: int = 3) -> dict[str, Part]:
    """Return the experiment's fields for a protocol; an aggregation is combined with FedAvg."""
    if CATALOG.protocols.get(protocol).is_aggregation:
        return {"protocol": Part(id="fedavg"), "aggregation": part(protocol, clients=clients)}
    return {"protocol": part(protocol)}


def cheated(server: str) -> dict[str, object]:
    """Return the experiment's fields for a server that changes the model, with a network and the rounds that it needs."""
    rounds = CATALOG.servers.get(server).rounds
    return {"model": RELU, "server": Part(id=server), "rounds": rounds, "attacked_round": rounds, **CHEATED.get(server, {})}


def refuse_large_pictures(server: Part, words: str) -> None:
    """Assert that a server refuses a picture of 64 x 64 with these words, before a run and in the Python interface."""
    with pytest.raises(SpecError, match=words):
        Experiment(server=server, size=64, pictures=(Picture(id="chelsea"),)).resolve(CATALOG)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12288, 10))
    with pytest.raises(ValueError, match=words):
        leakage.observe(model, torch.rand(1, 3, 64, 64), torch.tensor([1]), server=plugin("server", server))


def prepared(experiment: Experiment, x: torch.Tensor) -> PreparedAttack:
    """Return the attack on this experiment, with what the clients' checks found; baselines are not needed here."""
    return prepare_attack(
        network(experiment, tuple(x.shape[1:])),
        Private(x, labels(len(x)), 10),
        federation(experiment),
        plugin("attack", Part(id="bins")),
        lambda: None,
    )


def handed_to(experiment: Experiment, x: torch.Tensor) -> list[Handed]:
    """Return what each client holds in the first round, before it trains."""
    setting, agreed = federation(experiment), network(experiment, tuple(x.shape[1:]))
    inspection, model = inspection_of(agreed, setting, x), ready(agreed, setting, x)
    return list(inspection._clients(model, setting.handed_out(model, weights_of(model), []), [], (x, labels(len(x)))))


def labels(pictures: int) -> torch.Tensor:
    """Return LABELS for so many pictures, from the start again where there are more."""
    return LABELS.repeat(-(-pictures // len(LABELS)))[:pictures]


def relative(update: Params, reference: Params) -> float:
    return gradient_distances(update, reference)["relative_l2"]


def moments(attack: Part, seen: Observation, seed: int = 1) -> list[Snapshot]:
    """Return copies of all snapshots of an attack, which gets the generator that it needs."""
    attacker = plugin("attack", attack)
    run = attacker.run(with_generator(seen, attacker), generator(seed, "attack"))
    return [replace(moment, x=moment.x.clone(), y=moment.y.clone()) for moment in run]


def applied(name: str, x: torch.Tensor, *, assume: Assumptions | None = None, **fields: bool | float) -> list[Snapshot]:
    """Return all snapshots of an attack on a suitable network; end a test of an attack in ELSEWHERE after its message."""
    seen = observed(x, model=SUITED.get(name, TINY), assume=assume or Assumptions())
    if name not in ELSEWHERE:
        return moments(short(name, **fields), seen)
    with pytest.raises(DoesNotApplyError, match=r"\.$"):
        moments(short(name, **fields), seen)
    pytest.skip("It does not apply to this network, and says so.")


def trained_norms(model: nn.Module, seed: int = 5) -> None:
    """Give every BatchNorm scales, shifts and stored statistics as after a training: random ones."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                held = (layer.running_mean, layer.running_var, layer.weight, layer.bias)
                for value, least, most in zip(held, (-0.5, 0.5, 0.5, -0.3), (0.5, 1.5, 1.5, 0.3), strict=True):
                    value.copy_(least + (most - least) * torch.rand(len(value), generator=rng, dtype=torch.float64))


def by_hand(replay: Callable[[torch.Tensor], torch.Tensor], target: torch.Tensor, *, side: int = 1) -> Observation:
    """Return an Observation with a formula as client: one grey picture, label 7 granted, `replay` maps it to an update."""
    seen = observed(smooth(side=side), assume=GRANTED)
    return altered(
        seen,
        update={"w": target},
        from_gradients=None,
        single=lambda x, _labels: {"w": replay(x)},
        several=lambda x, _labels: {"w": torch.stack([replay(guess) for guess in x])},
    )


@contextmanager
def precision(dtype: torch.dtype):
    """Build models and pictures in this precision within the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
