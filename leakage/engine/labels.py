"""The classes in a batch, read from the gradient of the last layer without any optimization.

dL/db_c = mean_b (p_bc - [y_b = c]) = pbar_c - n_c / B: the model's mean prediction minus the fraction of class c. Without a bias, the
rows of the weight, dL/dW_c = mean_b (p_bc - [y_b = c]) h_b, carry the same information, times the features h of the last layer.
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
from leakage.engine.label_signs import SIGNS, labels_by_signs
from leakage.engine.logit_layer import logit_layer
from leakage.engine.losses import CustomLoss, client_loss, derivatives_by_class, loss_of
from leakage.networks.k_curve import Loss

RULE_TITLES = {  # rule -> how the page names it for a batch
    "rehearsed": "counts learned from rehearsals of the client with known labels",
    "matched prior": "counts that fit the model's predictions (matched prior)",
    "model prior": "counts by model prior (smooth probes)",
    "bias-corrected": "bias-corrected counts of the negative rows",
    "wainakh": "counts by Wainakh et al. (sums of the weight's rows)",
    "gradinversion": "GradInversion: the lowest entry of each row of the weight, classes assumed distinct",
    "sign": "sign: every negative row once",
}
RULES = ("best", *RULE_TITLES)
SINGLE = "iDLG: the most negative row"
ONE_OUTPUT = "R-GAP: the sign of the last layer's gradient"
FITS = 0.8  # the matched prior is used if at least this fraction of its counts is warranted, and expected to be right by the rehearsals


@dataclass(frozen=True)
class Recovered:
    """The labels that a rule found.

    Args:
        labels: int64 (B,), sorted; or, where a picture may have several labels, numbers 0 and 1 (1, K)
        rule: name of the rule, for the page
        certainty: the fraction, 0 to 1, that the attacker expects to be right (`single`, `certainty_of`); None where unknown
    """

    labels: Tensor
    rule: str
    certainty: float | None = None

    @property
    def note(self) -> dict[str, str | int | float]:
        """The rule and the certainty, for `Snapshot.note`."""
        return {"label rule": self.rule} | ({} if self.certainty is None else {"label certainty": self.certainty})


class Means(NamedTuple):
    """The terms in the rules that estimate labels as the model's mean prediction minus the bias gradient, (K,) each.

    Args:
        bias_gradient: the gradient of the last bias
        plain: the model's mean prediction on random probe pictures ("model prior")
        matched: the mean prediction after `moved` shifts the mean feature of these pictures to that of the batch ("matched prior")
    """

    bias_gradient: Tensor
    plain: Tensor
    matched: Tensor


def rule_field() -> Any:
    """Return the field of an attack that selects the rule for a batch's labels."""
    return choice("best", RULES, "How the labels of a batch are read from the gradient, unless granted; one picture has its own rule.")


def recover(seen: Observation, rule: str = "best") -> Recovered:
    """Return the labels of the batch that a rule reads from the gradient of the last layer.

    The rule "best" selects another rule. For one picture it is `single`, as long as the update shows no change after it was computed
    (`intact`). For a batch it is "matched prior", if its counts fit the model's predictions (`warranted`) and simulated clients with known
    labels (rehearsals) confirm them. Otherwise, behind a protection or for a trained model, it is "rehearsed": the labels are learned from
    rehearsals, which give the certainty of every rule's labels too (`certainty_of`). Where rehearsals are impossible (another loss than
    cross-entropy, an activation behind the last layer, numbers that are not finite), it is "matched prior", or without a bias "model
    prior"; where the model's prediction is not finite, it is "bias-corrected".

    Args:
        seen: what the attacker knows.
        rule: one of RULES; RULE_TITLES describes each.

    Raises:
        ValueError: `rule` is not in RULES.
        UnreadableLabelsError: a ValueError; the loss is a CustomLoss that shows no labels, or no layer's gradient depends on labels.
    """
    return recover_by(seen, (rule,))[rule]


def recover_by(seen: Observation, rules: Sequence[str]) -> dict[str, Recovered]:
    """Return rule -> the labels that it finds, as `recover` does; the rules share their rehearsals (simulated clients)."""
    for rule in rules:
        if rule not in RULES:
            raise ValueError(f"The rule for labels must be one of {', '.join(RULES)}; got {rule!r}. Choose one of them.")
    custom = client_loss(seen.model)
    if isinstance(custom, CustomLoss) and custom.shows_labels:
        return dict.fromkeys(rules, Recovered(labels_by_signs(seen, custom), SIGNS))
    loss = loss_of(seen.model)  # raises UnreadableLabelsError for another custom loss
    last, plain, size = head(seen), logit_layer(seen).plain, seen.batch.size
    if size == 1 and last.bias is None and seen.batch.num_classes == 2:
        return dict.fromkeys(rules, one_output(last.weight_gradient[1]))
    unchanged = intact(last, plain=plain)
    alone = single(sign_free(last.weight_gradient) if last.bias is None else last.bias) if size == 1 else None
    if alone and (unchanged or not {"best", "rehearsed"} & set(rules)):
        return dict.fromkeys(rules, alone)
    possible = loss == "cross-entropy" and plain and all(bool(part.isfinite().all()) for part in last if part is not None)
    probabilities = rehearsed(seen) if possible else None
    answers = dict[str, Recovered]()
    for rule in rules:
        if alone and rule not in ("best", "rehearsed"):
            labels, title = alone.labels, alone.rule
        else:
            labels, title = by_rule(rule, seen, last, probabilities, unchanged=unchanged)
        answers[rule] = Recovered(labels.to(seen.device), title, None if probabilities is None else certainty_of(labels, probabilities))
    return answers


def by_rule(rule: str, seen: Observation, last: Head, probabilities: Tensor | None, *, unchanged: bool) -> tuple[Tensor, str]:
    """Return the sorted labels (B,) by a rule, and the name of the rule that was used, for the page.

    Args:
        rule: one of RULES.
        seen: what the attacker knows.
        last: the last layer with its gradient.
        probabilities: how probable it is that class c has k labels (`rehearsed`), (K, B + 1); None where rehearsals are impossible.
        unchanged: whether the update shows no change after it was computed.
    """
    _, weight_gradient, bias = last
    size, biased, rows = seen.batch.size, bias is not None, weight_gradient.sum(1) if bias is None else bias  # (K,)
    prior_rule = "matched prior" if biased else "model prior"
    fits = rule == "best" and unchanged and biased
    means = mean_predictions(seen) if "prior" in rule or fits or (probabilities is None and rule in ("best", "rehearsed")) else None
    if rule in ("best", "rehearsed"):
        if probabilities is not None:
            if not fits or means is None:
                return likeliest(probabilities)[0], RULE_TITLES["rehearsed"]
            matched = labels_by_prior(means, prior_rule, size)
            if warranted(matched, means) < FITS or certainty_of(matched, probabilities) < FITS:
                return likeliest(probabilities)[0], RULE_TITLES["rehearsed"]
        rule = prior_rule
    if "prior" in rule:
        rule = prior_rule if rule == "matched prior" else rule
        if means is not None:
            return labels_by_prior(means, rule, size), RULE_TITLES[rule]
        return counts(rows, size), f"{RULE_TITLES['bias-corrected']}: the model's prediction is not finite"
    if rule == "wainakh":
        return counts(weight_gradient.sum(1), size, factor=1 + 1 / len(rows)), RULE_TITLES[rule]
    if rule == "gradinversion":
        return repeated(weight_gradient.amin(1).argsort(), size), RULE_TITLES[rule]
    if rule == "sign":
        return repeated(rows.argsort()[: max(int((rows < 0).sum()), 1)], size), RULE_TITLES[rule]
    return counts(rows, size), RULE_TITLES[rule]


def labels_by_prior(means: Means, rule: str, batch_size: int) -> Tensor:
    """Return the labels (B,) with counts nearest to B (mean prediction - bias gradient), by the rule "matched prior" or "model prior"."""
    return nearest_counts(batch_size * ((means.matched if rule == "matched prior" else means.plain) - means.bias_gradient), batch_size)


# ---------------------------------------------------------------- one picture


def single(rows: Tensor) -> Recovered:
    """Return the label of one picture: the class of the smallest of `rows` (K,), usually the last bias's gradient.

    dL/db_c = p_c - [c = y] is negative for the true class only. The certainty is 1 if exactly one row is negative, and 0 if not: then
    rounding or a protection hides the label. If all rows are 0, as where they did not arrive, every class is equally likely. Source: Zhao
    et al. 2020, section 3.
    """
    return Recovered(rows.argmin().view(1), SINGLE, float((rows < 0).sum() == 1) if rows.any() else 1 / len(rows))


def one_output(weight_gradient: Tensor) -> Recovered:
    """Return the class, 0 or 1, of one picture from the weight's gradient (D,) of a single output without a bias: (p - y) h.

    p - y, or the derivative of another loss, is negative for class 1 only, and features h behind a ReLU or sigmoid are not negative. So the
    label is certain if all entries have one sign and not all are 0; otherwise the sign of their sum decides.
    Source: Zhu and Blaschko 2021, section 3.1.
    """
    agree = bool(weight_gradient.any()) and (bool((weight_gradient >= 0).all()) or bool((weight_gradient <= 0).all()))
    return Recovered((weight_gradient.sum() < 0).long().view(1), ONE_OUTPUT, 1.0 if agree else None)


def sign_free(weight_gradient: Tensor) -> Tensor:
    """Return numbers (K,) with the signs of p_c - [c = y], for one picture without a bias, whatever the signs of its features.

    Row c of the weight's gradient is (p_c - [c = y]) h. The true row points against all others and is the longest: 1 - p_y is the sum of
    all other p_c.
    """
    return -weight_gradient @ weight_gradient[weight_gradient.norm(dim=1).argmax()]


# ---------------------------------------------------------------- a batch


def repeated(classes: Tensor, batch_size: int) -> Tensor:
    """Return B sorted labels: the first B of different `classes`, which are repeated from the first where there are fewer than B."""
    return classes.cpu().repeat(math.ceil(batch_size / len(classes)))[:batch_size].sort().values


def counts(rows: Tensor, batch_size: int, *, factor: float = 1) -> Tensor:
    """Return the B labels that greedy subtraction reads from a row for each class (the gradient of the bias, or sums of the weight's rows).

    Every occurrence of a class adds about m = factor * (sum of the negative rows) / B < 0 to its row. Take every class with a negative row
    once and subtract m from its row; then take the smallest row until there are B labels. Wainakh et al. use the sums of the weight's rows
    and the factor 1 + 1/K; the bias with factor 1 gives "bias-corrected". Unlike the published code: m is subtracted from the row that was
    taken, not from the last class. Source: Wainakh et al. 2022, algorithm 1.
    """
    left = rows.detach().cpu().double().clone()
    impact = factor * left[left < 0].sum() / batch_size
    chosen: list[int] = left.argsort()[: int((left < 0).sum())].tolist()[:batch_size]
    left[chosen] -= impact
    while len(chosen) < batch_size:
        smallest = int(left.argmin())
        chosen.append(smallest)
        left[smallest] -= impact
    return torch.tensor(sorted(chosen))


def nearest_counts(wanted: Tensor, batch_size: int) -> Tensor:
    """Return labels (B,) with the counts n_c >= 0 nearest to `wanted` (K,) by least squares.

    If `wanted` is not negative and sums to B, the counts are those of the largest remainder method.
    """
    left, chosen = wanted.detach().cpu().double().clone(), []
    for _ in range(batch_size):
        chosen.append(int(left.argmax()))
        left[chosen[-1]] -= 1
    return torch.tensor(sorted(chosen))


def mean_predictions(seen: Observation) -> Means | None:
    """Return the model's mean predictions and the bias gradient, as the prior rules need them; None where a number is not finite.

    For a last layer without a bias, the bias gradient is estimated (`along`), and `matched` equals `plain`.
    """
    (weight, weight_gradient, bias), probes = head(seen), predict(seen)
    bias_gradient = along(weight_gradient, probes.features) if bias is None else bias
    logits = probes.logits if bias is None else moved(probes, weight, bias_gradient, weight_gradient)
    loss = loss_of(seen.model)
    means = Means(bias_gradient, prior(loss, probes.logits, bias_gradient), prior(loss, logits, bias_gradient))
    return means if all(bool(mean.isfinite().all()) for mean in means) else None


def prior(loss: Loss, logits: Tensor, bias_gradient: Tensor) -> Tensor:
    """Return the mean prediction (K,) for probe pictures with these logits (P, K): the fraction of every class + `bias_gradient` (K,).

    For a single output z with another loss, this is no prediction. There the gradient of z is fraction_0 l_0 + fraction_1 l_1, with the
    mean derivatives l_0 > 0 and l_1 < 0 of both classes and fraction_0 + fraction_1 = 1; the result is the solved fractions +
    `bias_gradient`. It is not finite where all probe pictures have zero hinge loss.
    """
    if loss == "cross-entropy":
        return logits.softmax(1).mean(0)
    first, second = derivatives_by_class(loss, logits).mean(0)
    fraction = ((first - bias_gradient[1]) / (first - second)).clamp(0, 1)
    return torch.stack([1 - fraction, fraction]) + bias_gradient


def moved(probes: Predictions, weight: Tensor, rows: Tensor, weight_gradient: Tensor) -> Tensor:
    """Return the probe pictures' logits (P, K) after their features are shifted so that their mean is the private batch's mean feature.

    The gradient shows that mean h: `weight_gradient` dL/dW (K, D) is about `rows` dL/db (K,) times h, by least squares
    h = dL/dW^T dL/db / ||dL/db||^2. Nothing is shifted if dL/db is 0.
    """
    length = rows.dot(rows)
    step = rows @ weight_gradient / length - probes.features.mean(0) if length > 0 else torch.zeros_like(weight_gradient[0])  # (D,)
    return probes.logits + weight @ step


def along(weight_gradient: Tensor, features: Tensor) -> Tensor:
    """Estimate the bias gradient (K,) of a last layer without a bias: dL/dW h / ||h||^2, with the mean h of probe features (P, D)."""
    mean = features.mean(0)  # (D,)
    return weight_gradient @ mean / mean.dot(mean).clamp(min=torch.finfo(mean.dtype).tiny)


def warranted(labels: Tensor, means: Means) -> float:
    """Return an estimate of the fraction of labels (B,) that is right, from the gradient and the model's predictions on probes.

    n_c are the counts of `labels`; bias_gradient, matched and plain are the fields of `means`. With q the model's true mean prediction for
    the batch, the true counts n* are B (q - bias_gradient). So by the triangle inequality
        1/2 sum_c |n_c - n*_c| / B <= 1/2 sum_c |bias_gradient_c - (matched_c - n_c / B)| + 1/2 sum_c |matched_c - q_c|.
    The first term is known. The second is replaced by 1/2 sum_c |matched_c - plain_c|: by how much the gradient corrected the probes.
    The result is an estimate, not a bound.
    """
    bias_gradient, plain, matched = means
    fraction = torch.bincount(labels.to(bias_gradient.device), minlength=len(bias_gradient)) / len(labels)  # (K,)
    wrong = float((bias_gradient - (matched - fraction)).abs().sum() + (matched - plain).abs().sum()) / 2
    return max(1 - wrong, 0.0)
