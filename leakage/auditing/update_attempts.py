"""The attempts on a recorded update: every attack by every attacker, as the time allows, and how far to trust their answers."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from leakage.api.arguments import AttackArguments
from leakage.api.arrival import Arrival, Mode, received_update
from leakage.api.attacking import run_on_arrival
from leakage.api.model_errors import MODEL_ERRORS, first_line
from leakage.api.outcome import AttackRun
from leakage.api.progress import most_steps
from leakage.auditing.attempts import FULL, LEAST, TRIAL, mean_seconds, shortened
from leakage.auditing.audit_attackers import attacks, searches, unfit_precision, unfit_size
from leakage.auditing.calibration import agreement, measure_planted
from leakage.auditing.card_client import CardClient, card_clients, input_of, pictures_of
from leakage.auditing.recorded_client import RecordedClient
from leakage.auditing.update_finding import UpdateFinding
from leakage.engine.core import Attack, generator
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.loading import load
from leakage.evaluation.metrics import psnr
from leakage.evaluation.pairing import pair
from leakage.evaluation.referee import distances
from leakage.spec.words import INAPPLICABLE

SEARCHED = 0.5  # of the time, for searches; the rest is for other starts and planted pictures
PLANTED = 5  # public pictures, or batches of them, on which an attack is measured
MOST = 128  # pictures that are attacked together


@dataclass(frozen=True, eq=False)
class UpdateAttempt:
    """An attack on the update by an attacker, with the arguments of its call."""

    attack: Attack
    client: CardClient
    arguments: AttackArguments


class UpdateAttempts:
    """The attacks on a recorded update."""

    def __init__(
        self, client: RecordedClient, *, seed: int, until: float, pictures: Tensor | None, should_stop: Callable[[], bool]
    ) -> None:
        self.client, self.seed, self.until, self.pictures, self.should_stop = client, seed, until, pictures, should_stop
        self.began, self.answers = time.perf_counter(), 0
        self.mode: Mode = "eval"

    def attempts(self, named: Sequence[str | Attack] | None) -> list[UpdateAttempt]:
        """Return every attack by every attacker: closed forms first, and SME where the client trained; none on more than MOST pictures."""
        found = list[UpdateAttempt]()
        if pictures_of(self.client.card) > MOST:
            return found
        for number, assumed in enumerate(card_clients(self.client)):
            arguments = self._arguments(assumed)
            if number == 0:
                self.mode = received_update(arguments).batch_norm()
            arguments = replace(arguments, batch_norm=self.mode)
            tried = attacks(arguments.federation, named)
            if named is None and not self.client.is_gradient and assumed.title == "naive":
                tried.append(load("attack", "sme")())
            found += [UpdateAttempt(attack, assumed, replace(arguments, attack=attack)) for attack in tried]
        return sorted(found, key=lambda attempt: searches(attempt.attack))

    def _arguments(self, assumed: CardClient) -> AttackArguments:
        card = self.client.card
        device = next(self.client.model.parameters()).device
        labels = None if card.labels.value is None else torch.tensor(card.labels.value, device=device)
        return AttackArguments(
            self.client.model,
            y=labels,
            update=assumed.update,
            image_shape=input_of(card),
            batch_size=pictures_of(card),
            seed=self.seed,
            **assumed.arguments,
        )

    def run(self, attempts: Sequence[UpdateAttempt]) -> Iterator[tuple[UpdateAttempt, UpdateFinding]]:
        """Make each attempt once, and yield what it found; searches share half of the time."""
        waiting = sum(searches(attempt.attack) and not self._unfit(attempt.attack) for attempt in attempts)
        for attempt in attempts:
            if self.should_stop() or time.perf_counter() > self.until:
                yield attempt, _finding(attempt, state="not tried", why=FULL)
                continue
            left = (self.until - self.began) * SEARCHED - (time.perf_counter() - self.began)
            try:
                yield attempt, self._made(attempt, left / max(1, waiting))
            except DoesNotApplyError as error:
                yield attempt, _finding(attempt, state=INAPPLICABLE, why=str(error).partition(" Choose ")[0])
            except MODEL_ERRORS as error:
                yield attempt, _finding(attempt, state="failed", why=f"{first_line(error)}.")
            waiting -= searches(attempt.attack) and not self._unfit(attempt.attack)

    def judge(self, found: Sequence[tuple[UpdateAttempt, UpdateFinding]]) -> Iterator[tuple[UpdateAttempt, UpdateFinding]]:
        """Yield the most convincing findings again, with what other starts and planted pictures say of them, while there is time.

        These are the best search of each attacker and all closed forms that explain something.
        """
        answered = sorted((pair for pair in found if pair[1].explains > 0), key=lambda pair: -pair[1].explains)
        chosen, seen = list[tuple[UpdateAttempt, UpdateFinding]](), set[str]()
        for attempt, finding in answered:
            if not searches(attempt.attack) or attempt.client.title not in seen:
                chosen.append((attempt, finding))
                seen |= {attempt.client.title} if searches(attempt.attack) else set()
        for attempt, finding in chosen:
            if time.perf_counter() + finding.seconds > self.until:
                continue
            try:
                yield from self._judged(attempt, finding)
            except MODEL_ERRORS:  # an answer that cannot be judged stays as it is
                continue

    def _judged(self, attempt: UpdateAttempt, finding: UpdateFinding) -> Iterator[tuple[UpdateAttempt, UpdateFinding]]:
        """Yield a finding with the answer from another start, then with planted pictures."""
        attack = shortened(attempt.attack, finding.steps or 1) if searches(attempt.attack) else attempt.attack
        if searches(attack) and finding.pictures is not None:
            other = self._run(replace(attempt.arguments, attack=attack, seed=self.seed + 1)).result
            if self._over():
                return
            finding = replace(finding, agreement=agreement(finding.pictures, other.reconstruction))
            yield attempt, finding
        until = self.until - finding.seconds
        found = measure_planted(
            self._granted(attempt.arguments), attack, finding.labels, PLANTED, begin=lambda: time.perf_counter() < until, stop=self._over
        )
        if found.psnr:
            yield attempt, replace(finding, planted=found.psnr, planted_grey=found.grey)

    def _over(self) -> bool:
        return self.should_stop() or time.perf_counter() > self.until

    def _made(self, attempt: UpdateAttempt, share: float) -> UpdateFinding:
        """Run an attack, a search with as many steps as its share of the time allows, and return what it found."""
        attack = attempt.attack
        if why := self._unfit(attack):
            return _finding(attempt, state=INAPPLICABLE, why=why)
        if searches(attack):
            each = self._seconds_of_step(attempt)
            attack = shortened(attack, max(share / each, LEAST))
            needed = each * min(LEAST, most_steps(attack) or LEAST)
            if needed > (self.until - time.perf_counter() if self.answers == 0 else max(share, 0)):
                return _finding(attempt, state="not tried", why=FULL)
        run = self._run(replace(attempt.arguments, attack=attack))
        result, seen = run.result, run.observation
        if result.verdict and result.verdict["word"] == INAPPLICABLE:
            return _finding(attempt, state=INAPPLICABLE, why=result.verdict["why"].partition(" Choose ")[0])
        answer, labels = result.reconstruction, torch.tensor(result.labels)
        self.answers += 1
        noise = torch.rand(answer.shape, generator=generator(self.seed, "random pictures"))
        known = {} if self.pictures is None else self._compared(answer, self.pictures)
        return _finding(
            attempt,
            state="answered",
            pictures=answer,
            labels=tuple(result.labels),
            distance=unexplained(result.scores["cosine"]),
            random_distance=unexplained(distances(seen, noise, labels)["cosine"]),
            proved=bool(result.proved) and all(result.proved),
            steps=result.steps if searches(attack) else 0,
            seconds=result.seconds,
            warnings=result.fit.warnings if result.fit else (),
            **known,
        )

    def _unfit(self, attack: Attack) -> str:
        """Return why an attack does not fit the number of pictures or the precision of the update; "" where it fits."""
        precision = str(next(self.client.model.parameters()).dtype).removeprefix("torch.")
        return unfit_size(attack, pictures_of(self.client.card)) or unfit_precision(attack, precision)

    def _run(self, arguments: AttackArguments) -> AttackRun:
        """Return a run of an attack, which ends early when the audit is over."""
        return run_on_arrival(self._arrival(arguments), should_stop=self._over)

    def _arrival(self, arguments: AttackArguments) -> Arrival:
        """Return the update as an attacker gets it: with the statistics of the batch, where the buffers give them."""
        return replace(received_update(self._granted(arguments)), statistics=self.client.statistics)

    def _granted(self, arguments: AttackArguments) -> AttackArguments:
        if self.client.statistics is None:
            return arguments
        return replace(arguments, threat_model=replace(arguments.threat, statistics="exact"))

    def _seconds_of_step(self, attempt: UpdateAttempt) -> float:
        fewer: Any = attempt.attack
        changes = {name: value for name, value in (("steps", TRIAL), ("restarts", 1), ("polish", 0)) if hasattr(fewer, name)}
        trial: Attack = replace(fewer, **changes)
        return mean_seconds(run_on_arrival(self._arrival(replace(attempt.arguments, attack=trial))))

    @staticmethod
    def _compared(answer: Tensor, truth: Tensor) -> dict[str, float]:
        truth = truth.float().cpu()
        return {
            "psnr": float(psnr(answer[pair(answer, truth)], truth).mean()),
            "grey": float(psnr(torch.full_like(truth, 0.5), truth).mean()),
        }


def unexplained(cosine_distance: float) -> float:
    """Return the share of an update's length that another update leaves unexplained at the best scale: the sine of their angle.

    >>> unexplained(0.0), unexplained(1.0), round(unexplained(0.2), 3)
    (0.0, 1.0, 0.6)
    """
    cosine = min(1.0, max(-1.0, 1 - cosine_distance))
    return math.sqrt(1 - cosine**2) if cosine > 0 else 1.0


def _finding(attempt: UpdateAttempt, **more: object) -> UpdateFinding:
    attack = attempt.attack
    return UpdateFinding(title=attack.short or attack.title, attacker=attempt.client.title, attack=attack.id, **more)  # type: ignore[arg-type]
