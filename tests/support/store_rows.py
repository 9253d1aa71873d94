"""Rows of a store that a test writes down, and processes that open the same store."""

import dataclasses
import subprocess
import sys
import textwrap
import time
from typing import Any

from leakage.runs.store import Run, Store
from leakage.settings import ROOT


def run(name: str, owner: str = "me", **values: Any) -> Run:
    return dataclasses.replace(
        Run(
            id=name,
            owner=owner,
            grp=None,
            kind="attack",
            digest=f"digest of {name}",
            version="1",
            experiment="{}",
            shareable=True,
            estimate=None,
            created=time.time(),
        ),
        **values,
    )


def queued(store: Store, *names: str, owner: str = "me") -> None:
    for name in names:
        store.add(run(name, owner), {})


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that has a Store on the path in its first argument."""
    head = "import sys, time; from pathlib import Path; from leakage.runs.store import *; store = Store(Path(sys.argv[1]))\n"
    command = [sys.executable, "-c", head + textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
