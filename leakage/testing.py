"""For tests of your own: an assertion that the known attacks show no private picture."""

from typing import Any

from torch import nn

from leakage.auditing import Audit, audit
from leakage.auditing.audit_outcome import UNKNOWN
from leakage.spec.conclusion import LEAK
from leakage.spec.words import REFUSED


def assert_not_shown(model: nn.Module, data: object, *, minutes: float = 1, **settings: Any) -> Audit:
    """Fail if an attack shows a private picture of `data` from an update of the model.

    That no attack shows a picture proves nothing: it says that these attacks, with this effort, do not.

    Args:
        model: as in `leakage.audit`.
        data: as in `leakage.audit`.
        minutes: the time for the audit.
        settings: the other arguments of `leakage.audit`, such as protocol and defenses.

    Returns:
        The Audit.

    Raises:
        AssertionError: a picture is recognizable or singled out; the message is the printed Audit.
        RuntimeError: no attack came to an answer, or the client refused the model, so that nothing is known.
        TypeError, ValueError: as `leakage.audit`.

    Example:
        >>> import torch
        >>> from leakage.testing import assert_not_shown
        >>> _ = torch.manual_seed(0)
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> assert_not_shown(model, (torch.rand(1, 3, 8, 8), torch.tensor([2])), minutes=0.1)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Leaks. Of 1 picture: 1 recognizable...
    """
    found = audit(model, data, minutes=minutes, **settings)
    if found.word in (UNKNOWN, REFUSED):
        refused = "Leave out the checks to see what an update shows."
        advice = refused if found.word == REFUSED else "Give the audit more minutes, or other settings."
        raise RuntimeError(f"{found}\n\n{advice}")
    if found.word == LEAK:
        raise AssertionError(str(found))
    return found
