"""Recordings judged again: they get the verdicts of today's rule, and nothing is run for it."""

from pathlib import Path

import pytest

from leakage.evaluation.verdict import RULE
from leakage.learn import grids, recordings
from leakage.spec.experiment import SpecError
from leakage.spec.words import NOT_SHOWN, RECOGNIZABLE, SINGLED_OUT
from leakage.workers.rejudge import rejudge


@pytest.mark.long
def test_a_recording_keeps_its_word_when_it_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """r03: a batch of eight that ends as noise; r13: a head at 11.4 dB, first of its line-up and nearer by SSIM; r17: a copy."""
    written: dict[str, recordings.RunRecording] = {}
    monkeypatch.setattr(recordings, "write", lambda _folder, name, made, _film: written.update({name: made}))
    rejudge(["r03", "r13", "r17"])
    before = {name: recordings.load(name) for name in written}
    assert {name: made.word for name, made in written.items()} == {"r03": NOT_SHOWN, "r13": SINGLED_OUT, "r17": RECOGNIZABLE}
    for name, made in written.items():
        assert made.rule == RULE
        assert made.word == before[name].word
        assert made.columns["psnr"] == before[name].columns["psnr"]


@pytest.mark.long
def test_a_grid_is_judged_by_its_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, grids.GridRecording] = {}
    monkeypatch.setattr(recordings, "write", lambda _folder, name, made, _film: written.update({name: made}))
    rejudge(["g04"])
    assert [cell.word for cell in written["g04"].cells] == [cell.word for cell in grids.load_grid("g04").cells]


def test_what_was_never_recorded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    with pytest.raises(SpecError, match="There is no recording by the name of 'r99'; expected are r01, "):
        rejudge(["r99"])
    assert list(tmp_path.iterdir()) == []
