"""An audit with its files: a page with the private pictures, a page without them, and a record that repeats it."""

import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path

from leakage.auditing.audit_outcome import Outcome
from leakage.auditing.record import audit_as_json

PRIVATE, PUBLIC, RECORD = "audit-with-private-pictures.html", "audit.html", "audit.json"
NO_TEMPLATES = 'The report is written from a template, by Jinja2. Run `pip install "gradient-leakage-explorer[app]"`.'


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Outcome):
    """The outcome of an audit, as `leakage.audit` returns it. `print` shows what was found, what to assume, and what was not tried.

    Args:
        findings: what each attack showed of each group of pictures, the worst first
        sample: the pictures
        notices: what the model and its update say before any attack, as sentences
        card: the model, what the client does, and on what the digits depend
        settings: the settings as an audit file has them (docs/audit.md)
        effects: what the fastest attack that showed pictures shows of planted pictures behind several protections
        seconds: the time that the audit took

    Example:
        >>> import torch, leakage
        >>> _ = torch.manual_seed(0)
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> audit = leakage.audit(model, (torch.rand(1, 3, 8, 8), torch.tensor([2])), minutes=0.2)
        >>> audit.word, audit.findings[0].attack, audit.findings[0].word
        ('leaks', 'linear_layer', 'recognizable')
    """

    def save(self, folder: str | Path, *, dpia: bool = False) -> None:
        """Write the report: a page with the private pictures, a page without them to pass on, and audit.json, which repeats the audit.

        The page with pictures and the record, which has a hash of each picture, can be read by their owner alone (mode 0600). Each page is
        one file, which loads nothing.

        Args:
            folder: where the files are written; it is made if it does not exist.
            dpia: whether the pages have the headings of a data-protection impact assessment (Art. 35 GDPR), with room to write.

        Raises:
            ValueError: Jinja2 is not installed, which writes the pages.
            OSError: a file cannot be written.
        """
        if importlib.util.find_spec("jinja2") is None:
            raise ValueError(NO_TEMPLATES)
        from leakage.auditing.report import report_page

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        write_private(place / PRIVATE, report_page(self, pictures=True, dpia=dpia).encode())
        (place / PUBLIC).write_text(report_page(self, pictures=False, dpia=dpia), encoding="utf-8")
        write_private(place / RECORD, (json.dumps(audit_as_json(self), indent=2) + "\n").encode())


def write_private(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read; a file that was there gets these rights too."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        path.chmod(0o600)
        file.write(data)
