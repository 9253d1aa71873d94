"""Which classes were in the batch? Read from the gradient of the last layer, without any optimisation.

dL/db_c = mean_b (p_bc - [y_b = c]) = pbar_c - n_c / B: the model's mean prediction minus the share of class c. Without a bias the weight's
rows dL/dW_c = mean_b (p_bc - [y_b = c]) h_b say the same, times the features h of the last layer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from leakage.engine.core import Observation, choice
from leakage.engine.label_certainty import certainty_of
from leakage.engine.label_counts import likeliest
from leakage.engine.label_disturbance import intact
from leakage.engine.label_probes import Head, Predictions, head, predict
from leakage.engine.label_rehearsal import rehearsed
from leakage.engine.logit_layer import logit_layer
from leakage.engine.losses import derivatives_by_class, loss_of
from leakage.networks.k_curve import Loss

WORDS = {  # rule -> how the page names it for a batch
    "rehearsed": "counts learned from rehearsals of the client with known labels",
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
FITS = 0.8  # the counts are those of the matched prior when it warrants this fraction of them, and the rehearsals expect it to be right


@dataclass(frozen=True)
class Recovered:
    """What a rule found.

    labels      int64 (B,), sorted
    rule        its name, in words for the page
    certainty   the fraction, 0 to 1, that the attacker expects to be right (`single`, `certainty_of`); None where unknown
    """

    labels: Tensor
    rule: str
    certainty: float | None = None

    @property
    def note(self) -> dict[str, str | int | float]:
        """For `Snapshot.note`."""
        return {"label rule": self.rule} | ({} if self.certainty is None else {"label certainty": self.certainty})


class Means(NamedTuple):
    """(K,) each: the gradient of the last bias, and the model's mean prediction on probes before and after `moved`."""

    bias_gradient: Tensor
    plain: Tensor
    matched: Tensor


def rule_field() -> Any:
    """The field of an attack that says how it reads the labels of a batch."""
    return choice("best", RULES, "How the labels of a batch are read from the gradient, unless granted; one picture has its own rule.")


def recover(seen: Observation, rule: str = "best") -> Recovered:
    """The B labels by one of RULES.

    "best" of one picture: `single`, as long as the update shows no change after it was computed (`intact`). Of a batch: the matched prior,
    if besides the counts fit the model's predictions (`warranted`) and the rehearsals expect them. Else, behind a protection or for a
    trained model, "rehearsed". How certain any rule's labels are is read from the rehearsals too (`certainty_of`). Where these cannot be
    played (another loss than cross-entropy, an activation behind the last layer, numbers that are not finite): the matched prior, or
    without a bias the model prior; where the model's prediction is not finite, "bias-corrected".

    Raises:
        ValueError: for any other word, or where no layer's gradient speaks of labels.
    """
    return recover_by(seen, (rule,))[rule]


def recover_by(seen: Observation, rules: Sequence[str]) -> dict[str, Recovered]:
    """The same by several rules, which share their rehearsals."""
    for rule in rules:
        if rule not in RULES:
            raise ValueError(f"The rule for labels must be one of {', '.join(RULES)}; got {rule!r}. Choose one of them.")
    loss = loss_of(seen.model)  # another than cross-entropy and those of one output says so
    last, plain, size = head(seen), logit_layer(seen).plain, seen.batch.size
    if size == 1 and last.bias is None and seen.batch.num_classes == 2:
        return dict.fromkeys(rules, one_output(last.weight_gradient[1]))
    unchanged = intact(last, plain=plain)
    alone = single(sign_free(last.weight_gradient) if last.bias is None else last.bias) if size == 1 else None
    if alone and (unchanged or not {"best", "rehearsed"} & set(rules)):
        return dict.fromkeys(rules, alone)
    playable = loss == "cross-entropy" and plain and all(bool(part.isfinite().all()) for part in last if part is not None)
    probabilities = rehearsed(seen) if playable else None
    answers = dict[str, Recovered]()
    for rule in rules:
        if alone and rule not in ("best", "rehearsed"):
            found, word = alone.labels, alone.rule
        else:
            found, word = by_rule(rule, seen, last, probabilities, unchanged=unchanged)
        answers[rule] = Recovered(found.to(seen.device), word, None if probabilities is None else certainty_of(found, probabilities))
    return answers


def by_rule(rule: str, seen: Observation, last: Head, probabilities: Tensor | None, *, unchanged: bool) -> tuple[Tensor, str]:
    """Labels (B,), sorted, and which rule found them, in words; `probabilities`: what the rehearsals say, None where there are none."""
    _, weight_gradient, bias = last
    size, biased, rows = seen.batch.size, bias is not None, weight_gradient.sum(1) if bias is None else bias  # (K,)
    prior_rule = "matched prior" if biased else "model prior"
    fits = rule == "best" and unchanged and biased
    means = mean_predictions(seen) if "prior" in rule or fits or (probabilities is None and rule in ("best", "rehearsed")) else None
    if rule in ("best", "rehearsed"):
        if probabilities is not None:
            if not fits or means is None:
                return likeliest(probabilities)[0], WORDS["rehearsed"]
            matched = shares(means, prior_rule, size)
            if warranted(matched, means) < FITS or certainty_of(matched, probabilities) < FITS:
                return likeliest(probabilities)[0], WORDS["rehearsed"]
        rule = prior_rule
    if "prior" in rule:
        rule = prior_rule if rule == "matched prior" else rule
        if means is not None:
            return shares(means, rule, size), WORDS[rule]
        return counts(rows, size), f"{WORDS['bias-corrected']}: the model's prediction is not finite"
    if rule == "wainakh":
        return counts(weight_gradient.sum(1), size, factor=1 + 1 / len(rows)), WORDS[rule]
    if rule == "gradinversion":
        return again(weight_gradient.amin(1).argsort(), size), WORDS[rule]
    if rule == "sign":
        return again(rows.argsort()[: max(int((rows < 0).sum()), 1)], size), WORDS[rule]
    return counts(rows, size), WORDS[rule]


def shares(means: Means, rule: str, batch_size: int) -> Tensor:
    """Labels (B,) by one of both priors."""
    return nearest_counts(batch_size * ((means.matched if rule == "matched prior" else means.plain) - means.bias_gradient), batch_size)


# ---------------------------------------------------------------- one picture


def single(rows: Tensor) -> Recovered:
    """The label of one picture: dL/db_c = p_c - [c = y] is negative for the true class alone, so it is the smallest of `rows` (K,).

    Certain when one row is negative and no other; else rounding or a protection hides it and nothing is warranted, or all rows are 0, as
    where they did not arrive, and every class is as likely as any.
    Source: Zhao et al. 2020, section 3.
    """
    return Recovered(rows.argmin().view(1), SINGLE, float((rows < 0).sum() == 1) if rows.any() else 1 / len(rows))


def one_output(weight_gradient: Tensor) -> Recovered:
    """The class, 0 or 1, of one picture from the weight's gradient (D,) of a single output without a bias: (p - y) h.

    p - y, or another loss's derivative, is negative for class 1 alone, and features h behind a ReLU or sigmoid are not: certain when all
    entries agree and are not all 0, else their sum decides. Source: Zhu and Blaschko 2021, section 3.1.
    """
    agree = bool(weight_gradient.any()) and (bool((weight_gradient >= 0).all()) or bool((weight_gradient <= 0).all()))
    return Recovered((weight_gradient.sum() < 0).long().view(1), ONE_OUTPUT, 1.0 if agree else None)


def sign_free(weight_gradient: Tensor) -> Tensor:
    """For one picture without a bias: numbers (K,) with the signs of p_c - [c = y], whatever the signs of its features.

    Row c of the weight is (p_c - [c = y]) h. The true row points against all others and is the longest: 1 - p_y sums all other p_c.
    """
    return -weight_gradient @ weight_gradient[weight_gradient.norm(dim=1).argmax()]


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


def mean_predictions(seen: Observation) -> Means | None:
    """What the priors are made of; None where a number is not finite. Without a bias its gradient is that of `along`, and nothing moves."""
    (weight, weight_gradient, bias), probes = head(seen), predict(seen)
    bias_gradient = along(weight_gradient, probes.features) if bias is None else bias
    logits = probes.logits if bias is None else moved(probes, weight, bias_gradient, weight_gradient)
    loss = loss_of(seen.model)
    means = Means(bias_gradient, prior(loss, probes.logits, bias_gradient), prior(loss, logits, bias_gradient))
    return means if all(bool(mean.isfinite().all()) for mean in means) else None


def prior(loss: Loss, logits: Tensor, bias_gradient: Tensor) -> Tensor:
    """What, less `bias_gradient` (K,), is the share of every class, (K,): the mean prediction at logits (P, K).

    For one output behind another loss the mean derivatives l_0 > 0 and l_1 < 0 of both classes stand in its place: the gradient of z is
    share_0 l_0 + share_1 l_1, with share_0 + share_1 = 1. Not finite where the margins of all probes are met.
    """
    if loss == "cross-entropy":
        return logits.softmax(1).mean(0)
    zero, one = derivatives_by_class(loss, logits).mean(0)
    share = ((zero - bias_gradient[1]) / (zero - one)).clamp(0, 1)
    return torch.stack([1 - share, share]) + bias_gradient


def moved(probes: Predictions, weight: Tensor, rows: Tensor, weight_gradient: Tensor) -> Tensor:
    """The probes' logits (P, K) after moving their features to the batch's mean feature, which the gradient shows.

    dL/dW is about dL/db times the mean feature h, (K, D): by least squares h = dL/dW^T dL/db / ||dL/db||^2. Where dL/db is 0 nothing moves.
    """
    length = rows.dot(rows)
    step = rows @ weight_gradient / length - probes.features.mean(0) if length > 0 else torch.zeros_like(weight_gradient[0])  # (D,)
    return probes.logits + weight @ step


def along(weight_gradient: Tensor, features: Tensor) -> Tensor:
    """What a bias would have received, (K,), if every feature vector were the probes' mean h: dL/dW h / ||h||^2. Zeros where h is 0."""
    mean = features.mean(0)  # (D,)
    return weight_gradient @ mean / mean.dot(mean).clamp(min=torch.finfo(mean.dtype).tiny)


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
