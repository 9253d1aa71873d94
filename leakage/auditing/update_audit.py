"""An audit of a recorded update, of which the pictures are unknown: what it says, what attacks make of it, and how far to trust that."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from leakage.adapters.update_reader import read_update
from leakage.api.arguments import AttackArguments
from leakage.api.arrival import Arrival, received_update
from leakage.api.attacking import run_on_arrival
from leakage.api.model_errors import MODEL_ERRORS, first_line
from leakage.api.outcome import AttackRun
from leakage.api.progress import most_steps
from leakage.api.reading import reading
from leakage.auditing import audit_attackers
from leakage.auditing.attempts import LEAST, shortened
from leakage.auditing.audit_attackers import searches, unfit_precision, unfit_size
from leakage.auditing.calibration import agreement, measure_planted
from leakage.auditing.card_client import CardClient, assumptions_of, card_clients, input_of, pictures_of
from leakage.auditing.recorded_client import RecordedClient, load_client
from leakage.auditing.update_finding import UpdateAudit, UpdateFinding
from leakage.auditing.update_statements import reading_statements, update_statements
from leakage.engine.core import Attack, generator
from leakage.engine.devices import differentiable
from leakage.engine.inapplicable import DoesNotApplyError
from leakage.engine.loading import load
from leakage.evaluation.metrics import psnr
from leakage.evaluation.pairing import pair
from leakage.evaluation.referee import distances
from leakage.spec.update_card import UpdateCard
from leakage.spec.words import INAPPLICABLE

SEARCHED = 0.5  # of the time, for searches; the rest is for other starts and planted pictures
PLANTED = 5  # public pictures, or batches of them, on which an attack is measured
TRIAL = 4  # steps that measure how long one takes
FULL = "The time of the audit is over."


@dataclass(frozen=True, eq=False)
class _Attempt:
    """An attack on the update by an attacker, with the arguments of its call."""

    attack: Attack
    client: CardClient
    arguments: AttackArguments


@differentiable()
def audit_update(  # noqa: PLR0913  (what is audited, and how its progress is told)
    model: nn.Module,
    folder: str | os.PathLike[str],
    *,
    card: UpdateCard | None = None,
    pictures: Tensor | None = None,
    minutes: float = 5.0,
    seed: int = 1,
    attacks: Sequence[str | Attack] | None = None,
    on_statement: Callable[[str], None] = lambda _: None,
    on_finding: Callable[[UpdateFinding], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> UpdateAudit:
    """Attack an update that a client sent elsewhere, and judge the answers without knowing the pictures.

    Closed forms come first, then searches. The most convincing answers are then computed again from other starts, and their attacks are
    measured on public pictures that a simulated client sends likewise.

    Args:
        model: the owner's network. It gets the weights that the client received, where these were recorded; else it must have them.
        folder: the recorded update: before and after, or difference, or gradient (.npz or .safetensors), and card.json.
        card: what is known of the client, in place of card.json.
        pictures: the owner's pictures (B, C, H, W) in [0, 1] behind the update, if they are known: answers are then compared with them.
        minutes: the time for the audit.
        seed: of all random numbers.
        attacks: the attacks that are tried, by their ids or as `leakage.plugin` makes them; None: the strongest that there are here.
        on_statement: called with each sentence on the update.
        on_finding: called with each finding as soon as it is there, and again when it was judged.
        should_stop: asked between the attacks, and at each of their steps; the audit ends when it returns True.

    Returns:
        An UpdateAudit. `print` shows it.

    Raises:
        UpdateFileError: the update or its card cannot be read, or is that of another network; the message says what to do.
        TypeError, ValueError: the model cannot be attacked.

    Example:
        >>> import tempfile, numpy, torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> gradient = leakage.observe(model, torch.rand(1, 3, 8, 8), torch.tensor([2])).received.update
        >>> folder = tempfile.mkdtemp()
        >>> numpy.savez(f"{folder}/gradient.npz", **{name: value.numpy() for name, value in gradient.items()})
        >>> card = leakage.UpdateCard(input=(3, 8, 8), pictures=1)
        >>> found = leakage.audit_update(model, folder, card=card, minutes=0.1, attacks=["linear_layer"])
        >>> found.findings[0].labels, found.findings[0].distance < 0.01
        ((2,), True)
    """
    update = read_update(Path(folder))
    client = load_client(replace(update, card=card) if card else update, model)
    audit = _UpdateAttacks(client, seed=seed, until=time.perf_counter() + 60 * minutes, pictures=pictures, should_stop=should_stop)
    attempts = audit.attempts(attacks)
    statements = [*update_statements(client), *reading_statements(reading(received_update(attempts[0].arguments).observation(audit.mode)))]
    for sentence in statements:
        on_statement(sentence)
    findings = dict[tuple[str, str], UpdateFinding]()
    for attempt, finding in audit.run(attempts):
        findings[attempt.attack.id, attempt.client.title] = finding
        on_finding(finding)
    for attempt, finding in audit.judge([(one, findings[one.attack.id, one.client.title]) for one in attempts]):
        findings[attempt.attack.id, attempt.client.title] = finding
        on_finding(finding)
    best_first = sorted(findings.values(), key=lambda one: (one.state != "answered", -one.explains))
    return UpdateAudit(tuple(statements), tuple(assumptions_of(client)), tuple(best_first))


class _UpdateAttacks:
    """The attacks on a recorded update."""

    def __init__(
        self, client: RecordedClient, *, seed: int, until: float, pictures: Tensor | None, should_stop: Callable[[], bool]
    ) -> None:
        self.client, self.seed, self.until, self.pictures, self.should_stop = client, seed, until, pictures, should_stop
        self.began, self.answers = time.perf_counter(), 0
        self.mode = client.card.batch_norm.value or "eval"

    def attempts(self, named: Sequence[str | Attack] | None) -> list[_Attempt]:
        """Return every attack by every attacker: closed forms first, and SME where the client trained for several steps."""
        found = list[_Attempt]()
        for assumed in card_clients(self.client):
            arguments = self._arguments(assumed)
            tried = audit_attackers.attacks(arguments.federation, named)
            if named is None and not self.client.is_gradient and assumed.title == "naive":
                tried.append(load("attack", "sme")())
            found += [_Attempt(attack, assumed, replace(arguments, attack=attack)) for attack in tried]
        return sorted(found, key=lambda attempt: searches(attempt.attack))

    def _arguments(self, assumed: CardClient) -> AttackArguments:
        card = self.client.card
        labels = None if card.labels.value is None else torch.tensor(card.labels.value)
        return AttackArguments(
            self.client.model,
            y=labels,
            update=assumed.update,
            image_shape=input_of(card),
            batch_size=pictures_of(card),
            seed=self.seed,
            **assumed.arguments,
        )

    def run(self, attempts: Sequence[_Attempt]) -> Iterator[tuple[_Attempt, UpdateFinding]]:
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

    def judge(self, found: Sequence[tuple[_Attempt, UpdateFinding]]) -> Iterator[tuple[_Attempt, UpdateFinding]]:
        """Yield the most convincing findings again, with what other starts and planted pictures say of them, while there is time.

        These are the best search of each attacker and all closed forms that explain something.
        """
        answered = sorted((pair for pair in found if pair[1].state == "answered"), key=lambda pair: -pair[1].explains)
        chosen, seen = list[tuple[_Attempt, UpdateFinding]](), set[str]()
        for attempt, finding in answered:
            if not searches(attempt.attack) or attempt.client.title not in seen:
                chosen.append((attempt, finding))
                seen |= {attempt.client.title} if searches(attempt.attack) else set()
        for attempt, finding in chosen:
            if self.should_stop() or time.perf_counter() + finding.seconds > self.until:
                return
            attack = shortened(attempt.attack, finding.steps or 1) if searches(attempt.attack) else attempt.attack
            judged = finding
            if searches(attack) and finding.pictures is not None:
                other = self._run(replace(attempt.arguments, attack=attack, seed=self.seed + 1))
                judged = replace(judged, agreement=agreement(finding.pictures, other.result.reconstruction))
                yield attempt, judged
            planted = measure_planted(attempt.arguments, attack, finding.labels, PLANTED, stop=self._over)
            if planted.psnr:
                judged = replace(judged, planted=planted.psnr, planted_grey=planted.grey)
                yield attempt, judged

    def _over(self) -> bool:
        return self.should_stop() or time.perf_counter() > self.until

    def _made(self, attempt: _Attempt, share: float) -> UpdateFinding:
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
            distance=result.scores["relative_l2"],
            random_distance=distances(seen, noise, labels)["relative_l2"],
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
        """Run an attack until it ends, or until the audit is over."""
        run = run_on_arrival(self._arrival(arguments))
        for _ in run:
            if self._over():
                break
        return run

    def _arrival(self, arguments: AttackArguments) -> Arrival:
        """Return the update as an attacker gets it: with the statistics of the batch, where the buffers give them."""
        if self.client.statistics is None:
            return received_update(arguments)
        granted = replace(arguments, threat_model=replace(arguments.threat, statistics="exact"))
        return replace(received_update(granted), statistics=self.client.statistics)

    def _seconds_of_step(self, attempt: _Attempt) -> float:
        trial = shortened(attempt.attack, TRIAL)
        run, times = run_on_arrival(self._arrival(replace(attempt.arguments, attack=trial))), [time.perf_counter()]
        for _ in run:
            times.append(time.perf_counter())
        return (times[-1] - times[0]) / TRIAL

    @staticmethod
    def _compared(answer: Tensor, truth: Tensor) -> dict[str, float]:
        truth = truth.float().cpu()
        return {
            "psnr": float(psnr(answer[pair(answer, truth)], truth).mean()),
            "grey": float(psnr(torch.full_like(truth, 0.5), truth).mean()),
        }


def _finding(attempt: _Attempt, **more: object) -> UpdateFinding:
    attack = attempt.attack
    return UpdateFinding(title=attack.short or attack.title, attacker=attempt.client.title, attack=attack.id, **more)  # type: ignore[arg-type]
