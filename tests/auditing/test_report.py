"""The files of an audit: two pages, of which one has no pictures, and a record that repeats the audit."""

import base64
import json
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import smooth
from torch import nn

import leakage
from leakage.auditing import Audit, saving
from leakage.auditing.report import DPIA, answers
from leakage.auditing.saving import PRIVATE, PUBLIC, RECORD
from leakage.models.mlp import MLP
from leakage.spec.conclusion import LEAK
from leakage.spec.words import LEAKS

X, Y = smooth(2, 3, 16), torch.tensor([1, 3])


def mlp() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MLP(width=64).build((3, 16, 16), 5)


@pytest.fixture(scope="module")
def audit() -> Audit:
    named = ["linear_layer", leakage.plugin("inverting_gradients", steps=40)]
    noise = leakage.plugin("gaussian_noise", scale=1e-6)
    return leakage.audit(mlp(), (X, Y), minutes=3, batch_sizes=(1, 2), defenses=[noise], attacks=named)


@pytest.fixture(scope="module")
def folder(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    audit.save(folder)
    return folder


def pixels_of(picture: torch.Tensor) -> bytes:
    return (255 * picture).round().byte().permute(1, 2, 0).numpy().tobytes()


def decoded(page: str) -> list[bytes]:
    """The pixels of the pictures in a page."""
    from io import BytesIO

    from PIL import Image

    found = re.findall(r"data:image/png;base64,([^\"]+)", page)
    return [np.asarray(Image.open(BytesIO(base64.b64decode(each)))).tobytes() for each in found]


def test_the_page_with_pictures_is_its_owners_alone_and_says_so(folder: Path) -> None:
    page = (folder / PRIVATE).read_text()
    assert stat.S_IMODE((folder / PRIVATE).stat().st_mode) == 0o600
    assert "This edition contains private pictures." in page
    assert {pixels_of(X[0]), pixels_of(X[1])} <= set(decoded(page))


def test_the_files_without_pictures_hold_none(audit: Audit, folder: Path) -> None:
    """No picture element, and no 16 pixels in a row of a private picture or of a guess, as bytes, as base64 or as floats."""
    assert audit.card.client == "The client sends its update by FedSGD, protected by Gaussian noise (scale 1e-06)."
    guesses = [finding.reconstruction for finding in audit.findings if finding.reconstruction is not None]
    assert guesses
    pictures = [*X, *(picture for guess in guesses for picture in guess)]
    assert "This edition has no pictures and no names of files, and is for passing on." in (folder / PUBLIC).read_text()
    for name in (PUBLIC, RECORD):
        content = (folder / name).read_bytes()
        assert b"<img" not in content
        assert b"data:image" not in content
        for picture in pictures:
            rows = (255 * picture).round().byte().permute(1, 2, 0).numpy()
            for row in rows.reshape(-1, 48)[:: 16 // 4]:
                assert row.tobytes() not in content
                assert base64.b64encode(row.tobytes()) not in content
                assert json.dumps(row.tolist())[1:-1].encode() not in content
    private = (folder / PRIVATE).read_text()
    assert set(decoded(private))  # the same page with pictures has some


def test_both_pages_load_nothing_and_have_no_script(folder: Path) -> None:
    for name in (PRIVATE, PUBLIC):
        page = (folder / name).read_text()
        assert not re.findall(r"<script|<link|<iframe|@import|url\(|src=\"(?!data:)|href=", page)
        assert "http" not in page


def test_the_page_answers_what_was_seen_of_which_pictures_by_whom_at_what_effort_and_what_to_do(audit: Audit, folder: Path) -> None:
    page = (folder / PUBLIC).read_text()
    assert audit.word == LEAK
    for text in (
        "What was seen",
        "Which pictures were attacked",
        "By whom",
        "At what effort",
        "To decide",
        "Bias attack",
        "adaptive",
        "naive",
        "Gaussian noise",
    ):
        assert text in page
    assert audit.card.weights in page
    assert all(effect.title in page for effect in audit.effects)
    assert len(audit.effects) >= 2  # as many as the time allows
    assert audit.effects[0].title == "none: the client as it is"
    assert "safe" not in page.lower().replace("about safety", "")


def test_the_headings_of_an_impact_assessment_are_optional(audit: Audit, folder: Path, tmp_path: Path) -> None:
    audit.save(tmp_path, dpia=True)
    with_headings, without = (tmp_path / PUBLIC).read_text(), (folder / PUBLIC).read_text()
    for heading, _ in DPIA:
        assert heading in with_headings
        assert heading not in without


def test_the_record_repeats_the_audit_to_the_last_digit(audit: Audit, folder: Path) -> None:
    again = leakage.audit(
        mlp(),
        (X, Y),
        batch_sizes=(1, 2),
        defenses=[leakage.plugin("gaussian_noise", scale=1e-6)],
        repeat=folder / RECORD,
        protections=False,
    )
    first = {(one.attack, one.attacker, one.pictures): (one.psnr, one.word, one.steps) for one in audit.findings if one.ending == "answer"}
    second = {(one.attack, one.attacker, one.pictures): (one.psnr, one.word, one.steps) for one in again.findings}
    assert first == second
    assert len(first) > 4


def test_the_record_has_the_settings_the_card_and_every_finding(audit: Audit, folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    assert (record["word"], record["people"]) == (LEAK, dict(audit.conclusion.people))
    assert record["settings"]["defenses"] == [{"id": "gaussian_noise", "scale": 1e-6}]
    assert [each["psnr"] for each in record["findings"]] == [list(finding.psnr) for finding in audit.findings]
    assert record["card"]["threads"] == torch.get_num_threads()
    assert len(record["sample"]["sha256"]) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "findings": [{"ending": "answer"}]}'])
def test_a_file_that_is_no_record_gets_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "audit.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no record of an audit"):
        leakage.audit(mlp(), (X, Y), batch_sizes=(1,), repeat=path)


def test_without_jinja_the_sentence_names_what_to_install(audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        return None

    monkeypatch.setattr(saving.importlib.util, "find_spec", missing)
    with pytest.raises(ValueError, match=r"pip install \"gradient-leakage-explorer\[app\]\""):
        audit.save(tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_the_summary_says_which_pictures_were_attacked_what_was_seen_in_updates_of_each_size_and_what_the_best_reached() -> None:
    data = (smooth(5, 3, 16), torch.tensor([1, 3, 0, 2, 4]))
    audit = leakage.audit(mlp(), data, minutes=20, batch_sizes=(1, 2), attacks=["linear_layer"], protections=False)
    said = dict(answers(audit))
    assert said["Which pictures were attacked"] == "3 of 5. The 5 pictures that were given."
    best = audit.findings[0]
    assert f"; {best.psnr[0]:.1f} dB, where a grey picture has {best.grey:.1f} dB" in said["By which attack"]
    (pair,) = (finding for finding in audit.findings if len(finding.pictures) == 2)
    shown = sum(word in LEAKS for word in pair.each)
    assert said["By the size of the update"] == (
        f"1 picture in the update: 3 of 3 recognizable or singled out. 2 pictures in the update: {shown} of 2 recognizable or singled out."
    )
    assert "on average" in dict(answers(replace(audit, findings=(pair,))))["By which attack"]
