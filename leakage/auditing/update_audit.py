"""An audit of a recorded update, of which the pictures are unknown: what it says, what attacks make of it, and how far to trust that."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from leakage.adapters.update_reader import RecordedUpdate, read_update
from leakage.api.arrival import received_update
from leakage.api.reading import reading
from leakage.auditing.card_client import assumptions_of, pictures_of
from leakage.auditing.recorded_client import load_client
from leakage.auditing.update_attempts import MOST, UpdateAttempts
from leakage.auditing.update_finding import UpdateAudit, UpdateFinding
from leakage.auditing.update_statements import reading_statements, update_statements
from leakage.engine.core import Attack
from leakage.engine.devices import differentiable
from leakage.spec.update_card import UpdateCard

MANY = "The client has {} pictures. Attacks here take at most {} together, so none is tried: more pictures hide each other better."


@differentiable()
def audit_update(  # noqa: PLR0913  (what is audited, and how its progress is told)
    model: nn.Module,
    folder: str | os.PathLike[str] | RecordedUpdate,
    *,
    card: UpdateCard | None = None,
    pictures: Tensor | None = None,
    minutes: float = 5.0,
    seed: int = 1,
    attacks: Sequence[str | Attack] | None = None,
    on_statement: Callable[[str], object] = lambda _: None,
    on_finding: Callable[[UpdateFinding], object] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> UpdateAudit:
    """Attack an update that a client sent elsewhere, and judge the answers without knowing the pictures.

    Closed forms come first, then searches. The most convincing answers are then computed again from other starts, and their attacks are
    measured on public pictures that a simulated client sends likewise.

    Args:
        model: the owner's network. It gets the weights that the client received, where these were recorded; else it must have them.
        folder: the folder of the recorded update: before and after, or difference, or gradient (.npz or .safetensors), and card.json; or
            what `read_update` made of it.
        card: what is known of the client, in place of card.json.
        pictures: the owner's pictures (B, C, H, W) in [0, 1] behind the update, if they are known: answers are then compared with them.
        minutes: the time for the audit.
        seed: of all random numbers.
        attacks: the attacks that are tried, by their ids or as `leakage.plugin` makes them; None: the strongest that there are here.
        on_statement: called with each sentence on the update, then on what is assumed of its client.
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
    update = folder if isinstance(folder, RecordedUpdate) else read_update(Path(folder))
    client = load_client(replace(update, card=card) if card else update, model)
    audit = UpdateAttempts(client, seed=seed, until=time.perf_counter() + 60 * minutes, pictures=pictures, should_stop=should_stop)
    attempts = audit.attempts(attacks)
    statements = list(update_statements(client))
    if attempts:
        statements += reading_statements(reading(received_update(attempts[0].arguments).observation(audit.mode)))
    else:
        statements.append(MANY.format(pictures_of(client.card), MOST))
    assumptions = list(assumptions_of(client))
    for sentence in (*statements, *assumptions):
        on_statement(sentence)
    findings = dict[tuple[str, str], UpdateFinding]()
    for attempt, finding in audit.run(attempts):
        findings[attempt.attack.id, attempt.client.title] = finding
        on_finding(finding)
    for attempt, finding in audit.judge([(one, findings[one.attack.id, one.client.title]) for one in attempts]):
        findings[attempt.attack.id, attempt.client.title] = finding
        on_finding(finding)
    best_first = sorted(findings.values(), key=lambda one: (one.state != "answered", -one.explains))
    return UpdateAudit(tuple(statements), tuple(assumptions), tuple(best_first))
