"""The verdict of a row of the museum: it follows from the published number, from ours, and from the rule that compares them."""

import math
from collections.abc import Callable
from typing import assert_never

from leakage.learn.lessons import Claim
from leakage.learn.paper_rows import (
    DropRule,
    NumberRule,
    Order,
    OrderRule,
    Paper,
    PaperRow,
    ProtectionRule,
    ReferenceRule,
    StatementRule,
    Unit,
    Verdict,
)
from leakage.learn.tokens import with_power

Read = Callable[[Claim], float]  # returns the number of a claim
FACTOR = 2.0  # within which errors count as equal
WITHIN: dict[Unit, float] = {"PSNR": 3.0, "SSIM": 0.1, "count": 1.0, "share": 15.0, "accuracy": 1.0}  # the largest difference that does
MINUS = "\u2212"
LOWER_IS_STRONGER = ("MSE", "RMSE")


def verdict_of(row: PaperRow, paper: Paper, read: Read) -> Verdict:
    """Return the verdict of a row.

    Args:
        row: The row.
        paper: Its paper.
        read: Returns the number that a claim gives today.
    """
    rule = row.rule
    match rule:
        case ReferenceRule():
            return ""
        case NumberRule():
            return _by_number(row, rule, paper, read)
        case OrderRule():
            return "same conclusion" if _holds(paper.orders[rule.order], paper, read) else "differs"
        case StatementRule():
            return "reproduced" if _is_true(rule, read(row.ours), read) else "differs"
        case ProtectionRule():
            successes = read(rule.successes)
            if not successes and rule.unprotected and not read(rule.unprotected):
                return ""
            return "overturned" if 2 * successes >= read(rule.runs) else "differs" if successes else "held so far"
        case DropRule():
            drops = rule.published_without - (row.published or 0), read(rule.without) - read(row.ours)
            return "reproduced" if abs(drops[0] - drops[1]) <= WITHIN["accuracy"] else "differs"
        case _:
            assert_never(rule)


def is_close(published: float, ours: float, unit: Unit) -> bool:
    """Return whether two numbers count as equal: errors within a factor of 2, all others within a difference.

    >>> is_close(0.01, 0.019, "MSE"), is_close(25.0, 28.1, "PSNR"), is_close(14, 15, "count")
    (True, False, True)
    """
    if unit in WITHIN:
        return abs(ours - published) <= WITHIN[unit]
    return published == ours or (min(published, ours) > 0 and max(published, ours) <= FACTOR * min(published, ours))


def basis_of(row: PaperRow, paper: Paper) -> str:
    """Return what the verdict of a row rests on, beside the two numbers, as the page says it; empty if on them alone."""
    match row.rule:
        case OrderRule(order=name):
            return f"by the order {paper.orders[name].words}"
        case ProtectionRule(successes=successes, runs=runs, measure=measure):
            return f"{successes.stated} of {runs.stated} runs succeed: {measure}"
        case StatementRule(relation=relation, than=than, margin=margin):
            bound = than.stated if isinstance(than, Claim) else than
            return f"tested: {relation} {bound:g}{f', by {margin:g} at least' if margin else ''}"
        case ReferenceRule():
            return "it stands beside the other rows"
        case _:
            return ""


def comparison(row: PaperRow) -> str:
    """Return how our number stands to the published one, in words; empty if the paper prints none."""
    if row.published is None:
        return ""
    if isinstance(row.rule, DropRule):
        drops = row.rule.published_without - row.published, row.rule.without.stated - row.ours.stated
        return f"drop of {drops[1]:.2f}, published {drops[0]:.2f}"
    return difference(row.published, row.ours.stated, row.unit)


def difference(published: float, ours: float, unit: Unit) -> str:
    """Return a ratio of errors, or a difference of all others, in words. A ratio of decibels says nothing.

    >>> difference(18.0, 19.1, "PSNR"), difference(0.05, 0.145, "MSE"), difference(14, 15, "count"), difference(1e-4, 5e-27, "MSE")
    ('+1.1 dB', '× 2.9', '+1', '2 × 10²² times smaller')
    """
    if unit not in WITHIN:
        return _ratio(ours / published) if published else ""
    suffix = {"PSNR": " dB", "share": " points", "accuracy": " points"}.get(unit, "")
    gap = ours - published
    digits = 2 if unit == "SSIM" else 0 if unit == "count" else 1
    return "equal" if not round(gap, digits) else f"{gap:+.{digits}f}{suffix}".replace("-", MINUS)


def _ratio(ratio: float) -> str:
    if not ratio:
        return "exact"
    if ratio < 0.01:
        return f"{_factor(1 / ratio)} times smaller"
    return f"× {_factor(ratio)}"


def _factor(factor: float) -> str:
    three = f"{factor:.3g}"
    return f"{float(three):,.0f}" if 100 <= factor < 1e5 else with_power(three)


def _by_number(row: PaperRow, rule: NumberRule, paper: Paper, read: Read) -> Verdict:
    published, ours = row.published, read(row.ours)
    assert published is not None, "the schema demands it"
    if is_close(published, ours, row.unit):
        return "reproduced"
    cause = next((other for other in paper.rows if other.id == rule.cause), None)
    if cause and verdict_of(cause, paper, read) in ("reproduced", "stronger"):
        return "explained"
    return "stronger" if (ours < published) == (row.unit in LOWER_IS_STRONGER) else "differs"


def _holds(order: Order, paper: Paper, read: Read) -> bool:
    rows = {row.id: row for row in paper.rows}
    ours = [read(rows[id].ours) for id in order.rows]
    published = [math.nan if (value := rows[id].published) is None else value for id in order.rows]
    return all(numbers == sorted(set(numbers)) for numbers in (ours, published))


def _is_true(rule: StatementRule, ours: float, read: Read) -> bool:
    than = read(rule.than) if isinstance(rule.than, Claim) else rule.than
    match rule.relation:
        case "less than":
            return ours + rule.margin < than
        case "more than":
            return ours > than + rule.margin
        case "no less than":
            return ours >= than
        case "at most":
            return ours <= than
