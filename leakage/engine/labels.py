"""Which classes were in the batch? Read from the gradient of the last layer, without any optimisation.

dL/db_c = mean_b (p_bc - [y_b = c]) = pbar_c - n_c / B: the model's mean prediction minus the share of class c. Without a bias the weight's
rows dL/dW_c = mean_b (p_bc - [y_b = c]) h_b say the same, times the features h of the last layer.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from leakage.engine.core import Observation, choice, generator
from leakage.engine.logit_layer import last_layer, logit_layer
from leakage.engine.losses import loss_of, slopes_by_class
from leakage.networks.k_curve import Loss

WORDS = {  # rule -> how the page names it for a batch
    "matched prior": "counts that fit the model's predictions (matched prior)",
    "model prior": "counts by model prior (smooth probes)",
    "bias-corrected": "bias-corrected counts of the negative rows",
    "wainakh": "counts by Wainakh et al. (sums of the weight's rows)",
    "gradinversion": "GradInversion: the lowest entry of each row of the weight, classes assumed distinct",
    "sign": "sign: every negative row once",
}
RULES = ("best", *WORDS)
SINGLE = "iDLG: the most negative row"
ONE_OUTPUT = "R-GAP: the sign of the last layer's gradient"
PROBES, AREA, FEWEST = 64, 64 * 32 * 32, 16  # probe pictures: 64 of 32 x 32, fewer of larger ones


@dataclass(frozen=True)
class Recovered:
    """What a rule found.

    labels      int64 (B,), sorted
    rule        its name, in words for the page
    certainty   the share, 0 to 1, that the attacker expects to be right at least (`single`, `warranted`); None where unknown
    """

    labels: Tensor
    rule: str
    certainty: float | None = None

    @property
    def note(self) -> dict[str, str | int | float]:
        """For `Snapshot.note`."""
        return {"label rule": self.rule} | ({} if self.certainty is None else {"label certainty": self.certainty})


class Predictions(NamedTuple):
    """What the model makes of the probe pictures: logits (P, K) and the features that enter the last layer (P, D)."""

    logits: Tensor
    features: Tensor


class Head(NamedTuple):
    """The last layer, a row per class: its weight and that weight's gradient (K, D), and the gradient of its bias (K,) or None."""

    weight: Tensor
    slopes: Tensor
    bias: Tensor | None


class Means(NamedTuple):
    """(K,) each: the gradient of the last bias, and the model's mean prediction on probes before and after `moved`."""

    bias_gradient: Tensor
    plain: Tensor
    matched: Tensor


def rule_field() -> Any:
    """The field of an attack that says how it reads the labels of a batch."""
    return choice("best", RULES, "How the labels of a batch are read from the gradient, unless granted; one picture has its own rule.")


def head(seen: Observation) -> Head:
    """The last layer as the server holds it. One output z, for two classes, stands for the logits (0, z): its row beside one of zeros."""
    weight, bias = last_layer(seen)
    gradient = seen.as_gradient()
    own, slopes, rows = seen.weights[weight].detach(), gradient[weight].detach(), gradient[bias].detach() if bias else None
    if len(own) == seen.num_classes:
        return Head(own, slopes, rows)
    return Head(torch.cat([torch.zeros_like(own), own]), torch.cat([-slopes, slopes]), None if rows is None else torch.cat([-rows, rows]))


def recover(seen: Observation, rule: str = "best") -> Recovered:
    """The B labels by one of RULES. Raises ValueError for any other word.

    One picture, whatever the rule: `single`. A batch: "best" is the matched prior. Without a bias it is the model prior, as then only the
    probes say how long the features are. Where the prediction is not finite, "bias-corrected" stands in for the priors. On trained nets a
    batch may hide more than a blind guess would find (benchmarks/published/label_counts.py); the certainty is low there.
    """
    if rule not in RULES:
        raise ValueError(f"The rule for labels must be one of {', '.join(RULES)}; got {rule!r}. Choose one of them.")
    loss_of(seen.model)  # another than cross-entropy and those of one output says so
    (_, slopes, bias), size = head(seen), seen.batch_size
    if size == 1 and bias is None and seen.num_classes == 2:
        return one_output(slopes[1])
    if size == 1:
        return single(sign_free(slopes) if bias is None else bias)
    biased, rows = bias is not None, slopes.sum(1) if bias is None else bias  # (K,)
    if rule in ("best", "matched prior"):
        rule = "matched prior" if biased else "model prior"
    words, certainty, means = WORDS[rule], None, mean_predictions(seen) if biased or rule == "model prior" else None
    if means is None and "prior" in rule:
        rule, words = "bias-corrected", f"{WORDS['bias-corrected']}: the model's prediction is not finite"

    if means and "prior" in rule:
        prior = means.matched if rule == "matched prior" else means.plain
        found = nearest_counts(size * (prior - means.bias_gradient), size)
    elif rule == "wainakh":
        found = counts(slopes.sum(1), size, factor=1 + 1 / len(rows))
    elif rule == "gradinversion":
        found = again(slopes.amin(1).argsort(), size)
    elif rule == "sign":
        found = again(rows.argsort()[: max(int((rows < 0).sum()), 1)], size)
    else:
        found = counts(rows, size)
    if biased and means and logit_layer(seen).plain:  # behind an activation the slopes are no differences of predictions
        certainty = warranted(found, means)
    return Recovered(found.to(seen.device), words, certainty)


# ---------------------------------------------------------------- one picture


def single(rows: Tensor) -> Recovered:
    """The label of one picture: dL/db_c = p_c - [c = y] is negative for the true class alone, so it is the smallest of `rows` (K,).

    Certain when one row is negative and no other; else rounding or a protection hides it and nothing is warranted.
    Source: Zhao et al. 2020, section 3.
    """
    return Recovered(rows.argmin().view(1), SINGLE, float((rows < 0).sum() == 1))


def one_output(slope: Tensor) -> Recovered:
    """The class, 0 or 1, of one picture from the weight's gradient (D,) of a single output without a bias: (p - y) h.

    p - y, or another loss's slope, is negative for class 1 alone, and features h behind a ReLU or sigmoid are not: certain when all entries
    agree and are not all 0, else their sum decides. Source: Zhu and Blaschko 2021, section 3.1.
    """
    agree = bool(slope.any()) and (bool((slope >= 0).all()) or bool((slope <= 0).all()))
    return Recovered((slope.sum() < 0).long().view(1), ONE_OUTPUT, 1.0 if agree else None)


def sign_free(slopes: Tensor) -> Tensor:
    """For one picture without a bias: numbers (K,) with the signs of p_c - [c = y], whatever the signs of its features.

    Row c of the weight is (p_c - [c = y]) h. The true row points against all others and is the longest: 1 - p_y sums all other p_c.
    """
    return -slopes @ slopes[slopes.norm(dim=1).argmax()]


# ---------------------------------------------------------------- a batch


def again(classes: Tensor, batch_size: int) -> Tensor:
    """Labels (B,) by a rule that knows no repetitions: its `classes` in their order, and where they do not suffice from the first again."""
    return classes.cpu().repeat(math.ceil(batch_size / len(classes)))[:batch_size].sort().values


def counts(rows: Tensor, batch_size: int, *, factor: float = 1) -> Tensor:
    """Labels (B,) by greedy subtraction: every occurrence of a class adds about m = factor * (sum of the negative rows) / B < 0 to its row.

    Take every class with a negative row once and subtract m from it, then the smallest row until B labels are found. Wainakh et al. take
    the sums of the weight's rows and factor 1 + 1/K; on the bias with factor 1 it is "bias-corrected".
    Unlike the published code: m is subtracted from the row that was taken, not from the last class.
    Source: Wainakh et al. 2022, algorithm 1.
    """
    left = rows.detach().cpu().double().clone()
    impact = factor * left[left < 0].sum() / batch_size
    found: list[int] = left.argsort()[: int((left < 0).sum())].tolist()[:batch_size]
    left[found] -= impact
    while len(found) < batch_size:
        smallest = int(left.argmin())
        found.append(smallest)
        left[smallest] -= impact
    return torch.tensor(sorted(found))


def nearest_counts(wanted: Tensor, batch_size: int) -> Tensor:
    """Labels (B,) whose counts n_c >= 0 are nearest to `wanted` (K,) by least squares; largest remainders if that is >= 0 and sums to B."""
    left, found = wanted.detach().cpu().double().clone(), []
    for _ in range(batch_size):
        found.append(int(left.argmax()))
        left[found[-1]] -= 1
    return torch.tensor(sorted(found))


def predict(seen: Observation) -> Predictions:
    """The model on smooth random pictures (4x4 noise, enlarged), as many at a time as the batch has: so BatchNorm may take its statistics.

    They are always the same ones: drawn by a seed of their own.
    """
    channels, height, width = seen.image_shape
    size = seen.batch_size
    number = math.ceil(min(max(AREA // (height * width), FEWEST), PROBES) / size) * size
    noise = torch.rand((number, channels, 4, 4), generator=generator(0, "label probes"), dtype=torch.float32)
    pictures = F.interpolate(noise, size=(height, width), mode="bilinear", align_corners=False).clamp(0, 1)
    pictures = pictures.to(seen.device, next(iter(seen.weights.values())).dtype)
    features: list[Tensor] = []
    layer = seen.model.get_submodule(last_layer(seen)[0].rpartition(".")[0])
    hook = layer.register_forward_pre_hook(lambda _, given: features.append(given[0]))
    try:
        with torch.no_grad():
            logits = torch.cat([seen.model(some) for some in pictures.split(size)])  # (P, K)
    finally:
        hook.remove()
    return Predictions(logits, torch.cat(features))


def mean_predictions(seen: Observation) -> Means | None:
    """What the priors are made of; None where a number is not finite. Without a bias its gradient is that of `along`, and nothing moves."""
    (weight, slopes, bias), probes = head(seen), predict(seen)
    bias_gradient = along(slopes, probes.features) if bias is None else bias
    logits = probes.logits if bias is None else moved(probes, weight, bias_gradient, slopes)
    loss = loss_of(seen.model)
    means = Means(bias_gradient, prior(loss, probes.logits, bias_gradient), prior(loss, logits, bias_gradient))
    return means if all(bool(mean.isfinite().all()) for mean in means) else None


def prior(loss: Loss, logits: Tensor, bias_gradient: Tensor) -> Tensor:
    """What, less `bias_gradient` (K,), is the share of every class, (K,): the mean prediction at logits (P, K).

    For one output behind another loss the mean slopes l_0 > 0 and l_1 < 0 of both classes stand in its place: the gradient of z is
    share_0 l_0 + share_1 l_1, with share_0 + share_1 = 1. Not finite where the margins of all probes are met.
    """
    if loss == "cross-entropy":
        return logits.softmax(1).mean(0)
    zero, one = slopes_by_class(loss, logits).mean(0)
    share = ((zero - bias_gradient[1]) / (zero - one)).clamp(0, 1)
    return torch.stack([1 - share, share]) + bias_gradient


def moved(probes: Predictions, weight: Tensor, rows: Tensor, slopes: Tensor) -> Tensor:
    """The probes' logits (P, K) after moving their features to the batch's mean feature, which the gradient shows.

    dL/dW is about dL/db times the mean feature h, (K, D): by least squares h = dL/dW^T dL/db / ||dL/db||^2. Where dL/db is 0 nothing moves.
    """
    length = rows.dot(rows)
    step = rows @ slopes / length - probes.features.mean(0) if length > 0 else torch.zeros_like(slopes[0])  # (D,)
    return probes.logits + weight @ step


def along(slopes: Tensor, features: Tensor) -> Tensor:
    """What a bias would have received, (K,), if every feature vector were the probes' mean h: dL/dW h / ||h||^2. Zeros where h is 0."""
    mean = features.mean(0)  # (D,)
    return slopes @ mean / mean.dot(mean).clamp(min=torch.finfo(mean.dtype).tiny)


def warranted(labels: Tensor, means: Means) -> float:
    """The share of labels (B,) that is right at least, as far as the gradient and the model on probes can tell.

    With q the true mean prediction the true counts n* are B (q - bias_gradient). So by the triangle inequality
        1/2 sum_c |n_c - n*_c| / B <= 1/2 sum_c |shown_c - (matched_c - n_c / B)| + 1/2 sum_c |matched_c - q_c|.
    The first term is known. For the second stands 1/2 sum_c |matched_c - plain_c|: as much as the gradient had to correct the probes.
    It is an estimate, no bound.
    """
    bias_gradient, plain, matched = means
    share = torch.bincount(labels.to(bias_gradient.device), minlength=len(bias_gradient)) / len(labels)  # (K,)
    wrong = float((bias_gradient - (matched - share)).abs().sum() + (matched - plain).abs().sum()) / 2
    return max(1 - wrong, 0.0)
