"""The commit hook accepts subjects of the form `area: verb object` and refuses others."""

import re
from configparser import ConfigParser

import pytest

from leakage.settings import ROOT

RULES = ConfigParser(interpolation=None)
RULES.read(ROOT / ".gitlint")


def is_taken(subject: str) -> bool:
    """Whether both rules for a subject take it."""
    fits = len(subject) <= RULES.getint("title-max-length", "line-length")
    return fits and re.search(RULES["title-match-regex"]["regex"], subject) is not None


@pytest.mark.parametrize(
    "subject",
    [
        "matrix: stop calling adaptive attackers worse where neither shows the picture"[:72],
        "r_gap: name the recursion in the words of its paper",
        "docs, tests: move the guide to docs/api.md",
        "ui/lab: re-read the experiment of a link",
        "tests: accept 3 retries",
        "a: " + "b" * 10 + " " + "c" * 58,  # 72 characters
    ],
)
def test_a_subject_with_area_verb_and_object_is_taken(subject: str) -> None:
    assert is_taken(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "Who shows a picture that was not shown is no worse for knowing",
        "Merge branch 'main' into feature",
        "fix things",
        "matrix: Stop calling attackers worse",
        "Matrix: stop calling attackers worse",
        "matrix:stop calling attackers worse",
        "matrix: stop",
        "matrix: the attacker is no worse",
        "matrix: who knows more is no worse",
        ": stop calling attackers worse",
        "a: " + "b" * 10 + " " + "c" * 59,  # 73 characters
    ],
)
def test_another_subject_is_refused(subject: str) -> None:
    assert not is_taken(subject)


def test_a_hook_checks_the_message_with_a_pinned_gitlint_and_another_refuses_merges() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    (check,) = re.findall(r"- id: gitlint\n(?: {8}\S.*\n)+", hooks)
    assert "entry: gitlint --staged --msg-filename\n" in check
    assert re.search(r"additional_dependencies: \[gitlint-core==[\d.]+\]\n", check)
    assert "stages: [commit-msg]\n" in check
    assert re.search(r"id: no-merge, .*always_run: true, stages: \[pre-merge-commit\]", hooks)
    assert "default_install_hook_types: [pre-commit, commit-msg, pre-merge-commit]" in hooks
    assert not RULES.getboolean("general", "ignore-merge-commits")
