"""The attempts of an audit: every attack by every attacker on every group of pictures, as the time allows."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from leakage.api.model_errors import MODEL_ERRORS, explained, first_line
from leakage.api.preparation import check_fit
from leakage.api.progress import most_steps
from leakage.auditing.audit_attackers import AuditAttacker, attackers_of, attacks, searches, unfit_precision, unfit_size
from leakage.auditing.card import as_json
from leakage.auditing.finding import FAILED, UNTRIED, Finding
from leakage.auditing.scenes import Group, Scenes
from leakage.engine.check import RefusedError
from leakage.engine.core import Attack, Snapshot, generator
from leakage.engine.devices import run_exactly
from leakage.engine.inapplicable import DoesNotApplyError, UnreadableLabelsError
from leakage.evaluation.isolated_search import run_attack
from leakage.evaluation.play import PreparedAttack, play
from leakage.evaluation.referee import Frame
from leakage.spec.words import INAPPLICABLE, LEAKS, REFUSED

LEAST = 100  # steps of a search; a shorter search says little
TRIAL = 4  # steps that measure how long one takes
OVERTIME = 0.2  # of the audit's time, for a search that began in time and has not made its LEAST steps
FULL = "The time of the audit is over."
SLOW = "The shortest search that says something would take {:.0f} s, and {:.0f} s are left. Give the audit more minutes."
POINTS = 100  # of the curve of a search, at most


@dataclass(frozen=True)
class Attempt:
    """An attack by an attacker on a group of pictures."""

    attack: Attack
    attacker: AuditAttacker
    group: Group


class Attempts:
    """Makes the attempts of an audit, one after the other, until the time is over.

    Args:
        scenes: model, pictures and what the server receives
        until: the time (`time.perf_counter`) at which the audit should end
        recorded: the attempts of an earlier audit, which are repeated with the same fields, without regard to the time; None: the
            strongest attacks, with as many steps as the time allows
    """

    def __init__(self, scenes: Scenes, until: float, recorded: Sequence[Attempt] | None = None) -> None:
        self.scenes, self.until, self.recorded = scenes, until if recorded is None else math.inf, recorded
        federation = scenes.arguments.federation
        self.attackers, self.attacks = attackers_of(scenes.arguments), attacks(federation, scenes.arguments.attacks)
        self.latest = self.until + OVERTIME * max(0.0, self.until - time.perf_counter())
        self.scoring = 0.0  # seconds that the longest scoring of an answer took
        self.shown: set[Group] = set()

    def planned(self) -> list[Attempt]:
        """Return all attempts: first those without a search, and the first groups before the others.

        An attack that fits no group is attempted on the first group, whose finding gives the reason.
        """
        if self.recorded is not None:
            return list(self.recorded)
        groups, attempts = self.scenes.groups(), list[Attempt]()
        fitting = {attack: [group for group in groups if not unfit_size(attack, len(group))] or groups[:1] for attack in self.attacks}
        for searching in (False, True):
            chosen = [attack for attack in self.attacks if searches(attack) == searching]
            for group in groups:
                fit = [attack for attack in chosen if group in fitting[attack]]
                attempts += [Attempt(attack, attacker, group) for attack in fit for attacker in self.attackers]
        return attempts

    def run(self) -> Iterator[Finding]:
        """Make the attempts and yield what each found. Groups of which all pictures were shown are searched last."""
        waiting = self.planned()
        while waiting:
            attempt = min(waiting, key=lambda each: searches(each.attack) and each.group in self.shown)
            waiting.remove(attempt)
            finding = self.make(attempt, 1 + sum(searches(each.attack) for each in waiting))
            if finding.each and all(word in LEAKS for word in finding.each):
                self.shown.add(attempt.group)
            yield finding

    def make(self, attempt: Attempt, remaining: int) -> Finding:
        """Make one attempt, and return what it found.

        Args:
            attempt: the attempt.
            remaining: the number of searches among which the time that is left is divided, with this one.
        """
        untold = partial(finding_of, attempt)
        if time.perf_counter() >= self.until:
            return untold(word=UNTRIED, why=FULL)
        try:
            prepared = self.scenes.scene(attempt.group, attempt.attacker, attempt.attack)
        except RefusedError as refusal:
            return untold(word=REFUSED, why=str(refusal))
        except ValueError as error:  # such a client sends nothing that can be attacked
            return untold(word=INAPPLICABLE, why=str(error))
        except MODEL_ERRORS as error:
            return untold(word=FAILED, why=f"{first_line(error)}.")
        client = self.scenes.client(attempt.group)
        precision = str(client.x.dtype).removeprefix("torch.")
        if why := unfit_size(attempt.attack, len(attempt.group)) or unfit_precision(attempt.attack, precision):
            return untold(word=INAPPLICABLE, why=why)
        searching = searches(attempt.attack) and self.recorded is None
        try:
            with explained(prepared.seen.model):
                _check_fit(attempt, prepared, client.x)
                with kept_latents(prepared):
                    return self._searched(attempt, prepared, remaining) if searching else self._played(attempt, prepared)
        except UnreadableLabelsError as error:
            if prepared.federation.threat.labels:
                return untold(word=INAPPLICABLE, why=str(error))
            return self.make(replace(attempt, attacker=attempt.attacker.with_labels), remaining)
        except DoesNotApplyError as error:
            return untold(word=INAPPLICABLE, why=str(error).partition(" Choose ")[0])  # another network is no question here
        except MODEL_ERRORS as error:
            return untold(word=FAILED, why=f"{first_line(error)}.")

    def _searched(self, attempt: Attempt, prepared: PreparedAttack, remaining: int) -> Finding:
        """Search with as many steps as the time allows; without time for LEAST steps the search is not tried."""
        with kept_latents(prepared):
            each = seconds_of_step(prepared)
        begin = time.perf_counter()
        share = (self.until - begin) / remaining - self.scoring
        attack = shortened(attempt.attack, max(share / each, LEAST))
        needed = each * min(LEAST, most_steps(attempt.attack) or LEAST)
        if needed > self.until - begin:
            return finding_of(attempt, word=UNTRIED, why=SLOW.format(needed, max(0.0, self.until - begin)))
        return self._played(replace(attempt, attack=attack), replace(prepared, attack=attack))

    def _played(self, attempt: Attempt, prepared: PreparedAttack) -> Finding:
        """Play an attack to its end, or until the time is over, and return what it found. A search with few steps gets OVERTIME."""
        curve, last, now = list[tuple[int, float]](), None, time.perf_counter()

        def should_stop() -> bool:
            nonlocal now
            now = time.perf_counter()
            few = searches(attempt.attack) and bool(curve) and curve[-1][0] < LEAST
            return now > (self.latest if few else self.until)

        for frame in play(prepared, should_stop=should_stop):
            curve.append((frame.step, frame.loss))
            last = frame
        assert last is not None
        self.scoring = max(self.scoring, time.perf_counter() - now)  # the answer is scored after the last step
        return _answered(attempt, last, curve, prepared.baselines.scores["grey"]["psnr"])


def _check_fit(attempt: Attempt, prepared: PreparedAttack, x: Tensor) -> None:
    """Raise DoesNotApplyError if the attack cannot work on this model, whatever the pictures are."""
    try:
        check_fit(prepared.seen.model, attempt.attack, prepared.seen, x)
    except DoesNotApplyError:
        raise
    except (ValueError, TypeError) as error:
        raise DoesNotApplyError(str(error)) from None


@contextmanager
def kept_latents(prepared: PreparedAttack) -> Iterator[None]:
    """Restore, after the block, the attacker's guess of a protection's random numbers, which a search moves: each attempt begins anew."""
    latents = prepared.seen.knowledge.latents
    before = {name: value.detach().clone() for name, value in latents.items()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, value in before.items():
                latents[name].copy_(value)


def seconds_of_step(prepared: PreparedAttack) -> float:
    """Measure how long a step of a search takes, in seconds."""
    trial: Any = prepared.attack
    changes = {name: value for name, value in (("steps", TRIAL), ("restarts", 1), ("polish", 0)) if hasattr(trial, name)}
    rng = generator(prepared.federation.seed, "attack")
    return mean_seconds(run_exactly(run_attack(replace(trial, **changes), prepared.federation, prepared.seen, rng)))


def mean_seconds(states: Iterable[Snapshot | Frame]) -> float:
    """Return how long a step of a search takes, in seconds, from its states. The first is left out, since it may load modules."""
    times = [(0, time.perf_counter()), *((state.step, time.perf_counter()) for state in states)]
    if len(times) > 2:
        del times[0]
    (first, began), (last, ended) = times[0], times[-1]
    return (ended - began) / max(1, last - first)


def shortened(attack: Attack, most: float) -> Attack:
    """Return a search with at most this many steps in all its restarts, and at least one."""
    steps = most_steps(attack)
    if steps is None or steps <= most:
        return attack
    chosen: Any = attack
    fewer: Attack = replace(chosen, steps=max(1, int(chosen.steps * most / steps)))
    return fewer


def finding_of(attempt: Attempt, **more: Any) -> Finding:
    """Return a finding of an attempt; `more` are the fields of the Finding that do not follow from the attempt."""
    attack = attempt.attack
    described = as_json(attack)
    return Finding(
        attack=described.pop("id"),
        fields=described,
        title=attack.short or attack.title,
        attacker=attempt.attacker.title,
        pictures=attempt.group,
        **more,
    )


def _answered(attempt: Attempt, last: Frame, curve: list[tuple[int, float]], grey: float) -> Finding:
    """Return the finding of an attack that came to an answer, or was stopped before it."""
    verdict = last.verdict
    assert verdict is not None
    return finding_of(
        attempt,
        word=verdict["word"],
        why=verdict["why"],
        each=tuple(verdict["each"]),
        psnr=tuple(last.scores["psnr_each"]),
        grey=grey,
        labels=tuple(last.labels),
        labels_right=last.scores["label_accuracy"],
        proved=last.proved,
        ending=last.ending,
        steps=last.step if searches(attempt.attack) else 0,
        seconds=last.seconds,
        curve=tuple(curve[:: max(1, len(curve) // POINTS)]),
        reconstruction=last.x,
    )
