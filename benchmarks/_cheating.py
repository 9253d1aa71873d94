"""Shared parts of the benchmark of cheating servers: one run of a server and its attack, scored against the private pictures."""

from functools import cache
from statistics import mean
from typing import Any

import numpy as np
import torch
from _bins import (
    ROUNDING,
    SAME,
    are_alone,
    are_among,
    bins_of,
    blocks_of,
    come_first_alone,
    mean_psnr,
    predicted_mse,
    predicted_mse_loki,
    published_pictures,
    stretched,
)
from _table import ACCOMPLICE, WATCHED, Watched, attacker
from torch import Tensor

from leakage.data.datasets import DataSet, datasets, training_files
from leakage.engine.core import Attack, Observation, generator
from leakage.evaluation.metrics import ssim
from leakage.evaluation.pairing import pair
from leakage.servers._block import normal_edges
from leakage.spec.experiment import Experiment, Part
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe, plugin

STEPS = Part(id="fedavg", fields={"epochs": 1, "mini_batch": 8, "rate": 1e-4})
SCALE = 500.0  # of LOKI's maps, its default
Found = dict[str, Any]


def drawn(name: str, draw: int, count: int) -> tuple[Tensor, Tensor]:
    """Return test pictures (B, C, H, W) of a data set at random, and their labels (B,)."""
    held = datasets()[name].rows()
    chosen = torch.randperm(len(held.labels), generator=generator(draw, "pictures", count))[:count].numpy()
    return torch.from_numpy(held.pixels[chosen]).permute(0, 3, 1, 2).contiguous().float() / 255, torch.from_numpy(held.labels[chosen])


@cache
def law(name: str) -> dict[str, float]:
    """Return the mean and the standard deviation of the brightness of public pictures: of the first training file."""
    light = brightness(DataSet(name, training_files(name)[0]).rows().pixels)
    return {"mean": float(light.mean()), "deviation": float(light.std())}


def brightness(pixels: np.ndarray) -> np.ndarray:
    """Return the mean (N,) of all pixels of pictures (N, H, W, C), from 0 to 1."""
    light: np.ndarray = pixels.reshape(len(pixels), -1).mean(1) / 255
    return light


def setting(server: str, name: str = "cifar10", *, bins: int, **more: Any) -> Experiment:
    """Return an experiment with a server that knows the law of brightness."""
    side, channels = (28, 1) if name == "mnist" else (32, 3)
    shape: dict[str, Any] = {"pictures": ({"source": name, "id": "0"},), "size": side, "channels": channels}
    part = Part(id=server, fields={"bins": bins, **law(name)})
    return Experiment(server=part, **shape, **more)


def attacked(seen: Observation) -> Tensor:
    """Return the pictures of the attack that reads bins, (B, C, H, W)."""
    attack: Attack = plugin("attack", Part(id="bins"))
    *_, last = attack.run(seen, generator(1, "attack"))
    return last.x


def sum_of(phones: int) -> Part | None:
    return Part(id="secure_aggregation", fields={"clients": phones}) if phones > 1 else None


def imprint_bins(x: Tensor, bins: int) -> Tensor:
    """Return the bin (B,) of each picture in an imprint."""
    return bins_of(x.double().mean((1, 2, 3)), normal_edges(bins, **law("cifar10")))


def sparse_bins(x: Tensor, bins: int, name: str = "cifar10") -> Tensor:
    """Return the bin (B,) of each picture in a sparse imprint or LOKI; -1 or `bins` where it is lost."""
    return bins_of(x.double().mean((1, 2, 3)), normal_edges(bins + 2, **law(name))[1:])


# ---------------------------------------------------------------- how many come back


def share(batch: int, bins: int, draws: int = 200) -> Found:
    """Return the share of pictures that are alone by their brightness."""
    light, rng = torch.from_numpy(brightness(datasets()["cifar10"].rows().pixels)), np.random.default_rng(1)
    edges, sparse = normal_edges(bins, **law("cifar10")), normal_edges(bins + 2, **law("cifar10"))[1:]
    both = []
    for _ in range(draws):
        own = light[rng.choice(len(light), batch, replace=False)]
        both.append([float(are_alone(bins_of(own, those), bins).double().mean()) for those in (edges, sparse)])
    return {"alone": mean(one[0] for one in both), "sparse": mean(one[1] for one in both)}


def through_engine(batch: int, bins: int, phones: int, draw: int) -> Found:
    """Return how many pictures are alone, and how many the attack and the published differencing find."""
    x, y = drawn("cifar10", draw, batch)
    seen = observe(setting("imprint", bins=bins, aggregation=sum_of(phones), precision="float64", seed=draw), x.double(), y)
    single = are_alone(imprint_bins(x, bins), bins)
    here = are_among(attacked(seen), x, ROUNDING)
    published = are_among(published_pictures(seen).clamp(-1, 2), x, ROUNDING)
    return {
        "alone": int(single.sum()),
        "found": int(here.sum()),
        "equal": bool(torch.equal(here, single)),
        "published": int(published.sum()),
        "alone_in_the_last_bin": int((single & (imprint_bins(x, bins) == bins - 1)).sum()),
    }


def last_bin(draw: int, bins: int = 64) -> Found:
    """Return what ours and the published differencing find of six pictures, each alone in its bin, one of them in the last."""
    x, y = drawn("cifar10", draw, 2000)
    of = imprint_bins(x, bins)
    rest = [int((of == number).nonzero()[0]) for number in of.unique().tolist() if number < bins - 1]
    order = torch.randperm(len(rest), generator=generator(draw, "others"))[:5]
    chosen = [int((of == bins - 1).nonzero()[0]), *(rest[place] for place in order.tolist())]
    x, y = x[chosen], y[chosen]
    seen = observe(setting("imprint", bins=bins, precision="float64", seed=draw), x.double(), y)
    pair_of = attacked(seen), published_pictures(seen)
    return dict(zip(("ours", "published"), (int(are_among(one, x, ROUNDING).sum()) for one in pair_of), strict=True))


def bisected(number: int, draw: int, batch: int = 64, bins: int = 256) -> Found:
    """Return the share of pictures alone between the thresholds of a round, and the share that the attack finds in it."""
    x, y = drawn("cifar10", draw, batch)
    asked = setting("bisect", bins=bins, precision="float64", rounds=number, attacked_round=number, seed=draw)
    seen = observe(asked, x.double(), y)
    assert seen.secret
    edges = -seen.received.history[-1].weights[f"{seen.secret.layer}.bias"].detach()
    single = are_alone(torch.searchsorted(edges, x.double().mean((1, 2, 3)), right=True) - 1, bins)
    return {"alone": float(single.double().mean()), "found": float(are_among(attacked(seen), x, ROUNDING).double().mean())}


def sparse_once(batch: int, bins: int, draw: int, *, steps: bool) -> Found:
    """Return how many pictures are alone in a sparse imprint, and how many of them are found exactly."""
    x, y = drawn("cifar10", draw, batch)
    protocol = STEPS if steps else Part(id="fedsgd")
    seen = observe(setting("imprint_sparse", bins=bins, protocol=protocol, seed=draw), x, y)
    single = are_alone(sparse_bins(x, bins), bins)
    here = are_among(attacked(seen), x, SAME)
    return {"alone": int(single.sum()), "exact": int(here.sum()), "of_those_alone": int((here & single).sum())}


def loki(name: str, phones: int, each: int, bins: int, draw: int) -> Found:
    """Return how many pictures of a sum LOKI gives back, and their quality by either way of scaling them."""
    x, y = drawn(name, draw, phones * each)
    several = name == "cifar10"
    asked = setting(
        "loki",
        name,
        bins=bins,
        aggregation=sum_of(phones),
        protocol=STEPS if several else Part(id="fedsgd"),
        seed=draw,
    )
    seen = observe(asked, x, y)
    total, good = {"alone": 0, "first_in_their_bin": 0, "exact": 0, "exact_and_alone": 0}, [list[Tensor](), list[Tensor](), list[Tensor]()]
    for block, own in zip(blocks_of(seen), x.split(each), strict=True):
        of = sparse_bins(own, bins, name)
        single, first = are_alone(of, bins), come_first_alone(of, bins, 8)
        here = are_among(block.pictures(SCALE), own, SAME)
        total["alone"] += int(single.sum())
        total["first_in_their_bin"] += int(first.sum())
        total["exact"] += int(here.sum())
        total["exact_and_alone"] += int((here & single).sum())
        rows, d = block.rows[of[here]], block.d[of[here]].unsqueeze(1)
        for place, pictures in enumerate((own[here].flatten(1).double(), rows / d / SCALE, stretched(rows))):
            good[place].append(pictures)
    truth, ours, demo = (torch.cat(parts).view(-1, *x.shape[1:]).float() for parts in good)
    quality = {"psnr": mean_psnr(ours, truth), "psnr_stretched": mean_psnr(demo, truth)}
    quality |= {"ssim": float(ssim(ours, truth).mean()), "ssim_stretched": float(ssim(demo, truth).mean())}
    return {**total, **quality, "grey_psnr": mean_psnr(torch.full_like(x, 0.5), x)}


def grey_psnr(name: str) -> float:
    """Return the mean PSNR of a grey picture beside 1,000 test pictures of a data set."""
    x, _ = drawn(name, 0, 1000)
    return mean_psnr(torch.full_like(x, 0.5), x)


# ---------------------------------------------------------------- behind protections


def noise_on(server: str, multiplier: float, draw: int, *, batch: int = 8, bins: int = 64) -> list[tuple[float, float]]:
    """Return the predicted and the measured MSE of each picture alone in its bin, behind DP-SGD with a bound of 1."""
    phones = 2 if server == "loki" else 1
    x, y = drawn("cifar10", draw, batch * phones)

    def seen_behind(strength: float) -> Observation:
        defense = Part(id="dp_sgd", fields={"max_grad_norm": 1.0, "noise_multiplier": strength})
        more: dict[str, Any] = {"defenses": (defense,), "aggregation": sum_of(phones), "precision": "float64", "seed": draw}
        return observe(setting(server, bins=bins, **more), x.double(), y)

    clear, noisy = blocks_of(seen_behind(0.0)), blocks_of(seen_behind(multiplier))
    s = multiplier / (batch * phones) * phones**0.5  # of an entry of the mean gradient over all phones
    pairs = []
    for own, before, after in zip(x.double().split(batch), clear, noisy, strict=True):
        of = imprint_bins(own, bins) if server == "imprint" else sparse_bins(own, bins)
        single = are_alone(of, bins)
        own, of = own[single], of[single]
        guess = after.rows[of] / after.d[of].unsqueeze(1) / (SCALE if server == "loki" else 1)
        if server == "loki":
            predicted = predicted_mse_loki(own, before.d[of], s, scale=SCALE)
        else:
            predicted = predicted_mse(own, before.d[of], s, subtracted=server == "imprint")
        pairs += list(zip(predicted.tolist(), (guess - own.flatten(1)).square().mean(1).tolist(), strict=True))
    return pairs


def protected(server: str, defense: str, who: str, precision: str, draw: int) -> Found:
    """Return how many of 8 pictures come back exactly from 64 bins behind a protection with its defaults, and their PSNR.

    The imprint has one phone with 8 pictures, LOKI a sum over two phones with 4 each.
    """
    bins, phones, (x, y) = 64, 2 if server == "loki" else 1, drawn("cifar10", draw, 8)
    x = x.double() if precision == "float64" else x
    if server == "loki":
        single = torch.cat([are_alone(sparse_bins(own, bins), bins) for own in x.split(4)])
    else:
        single = are_alone(imprint_bins(x, bins), bins)
    entry = plugin_catalog.describe().defenses.get(defense) if defense else None
    averaging = entry is not None and who in entry.strategies and entry.strategies[who].averaging
    watched: Watched = WATCHED if averaging else {"protocol": WATCHED["protocol"]}
    defenses = (Part(id=defense, fields=entry.resolve({})),) if entry else ()
    assume = attacker(who, ACCOMPLICE if "accomplice" in who else None).model_copy(update={"labels": True})  # they change no pixel
    more: dict[str, Any] = {"defenses": defenses, "assume": assume, "precision": precision, "seed": draw, "aggregation": sum_of(phones)}
    try:
        answer = attacked(observe(setting(server, bins=bins, **more, **watched), x, y)).float()
    except ValueError as error:
        return {"refused": str(error)}
    return {
        "alone": int(single.sum()),
        "exact": int(are_among(answer, x, SAME).sum()),
        "psnr": mean_psnr(answer[pair(answer, x)], x),
        "grey_psnr": mean_psnr(torch.full_like(x, 0.5), x),
        "rounds": watched.get("rounds", 1),
    }
