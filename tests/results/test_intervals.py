"""How often an attack succeeds: the Wilson interval by hand and by its defining equation, and the command `run --seeds`."""

import json
from pathlib import Path

import pytest
from scipy.stats import norm, t, ttest_1samp

from leakage.__main__ import main
from leakage.results.intervals import T, Z, mean_interval, success_words, wilson


@pytest.mark.parametrize(
    ("successes", "tries", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_the_interval_by_hand(successes: int, tries: int, low: float, high: float) -> None:
    assert wilson(successes, tries) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("successes", "tries"), [(3, 7), (1, 20), (19, 20)])
def test_its_ends_are_the_rates_that_lie_z_standard_errors_from_what_was_seen(successes: int, tries: int) -> None:
    for rate in wilson(successes, tries):
        assert abs(successes / tries - rate) == pytest.approx(Z * (rate * (1 - rate) / tries) ** 0.5)


@pytest.mark.parametrize(("successes", "tries"), [(0, 0), (3, 2), (-1, 4)])
def test_what_cannot_be_counted_is_refused(successes: int, tries: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {tries}"):
        wilson(successes, tries)


def test_the_words_say_count_share_and_interval() -> None:
    assert success_words([True, False, True, True]) == "3 of 4 (75 %; with 95 % confidence between 30 % and 95 %)"


@pytest.mark.long
def test_an_experiment_is_run_with_several_seeds_and_its_successes_are_counted(tmp_path: Path) -> None:
    question = {
        "pictures": [{"id": "digit-3"}],
        "size": 28,
        "channels": 1,
        "model": {"id": "mlp", "fields": {"width": 16, "depth": 1, "activation": "sigmoid"}},
        "attack": {"id": "idlg", "fields": {"steps": 1, "restarts": 1}},
        "seed": 5,
    }
    (tmp_path / "experiment.json").write_text(json.dumps(question))
    assert main(["run", str(tmp_path / "experiment.json"), "--out", str(tmp_path / "out"), "--seeds", "2"]) == 0
    told = json.loads((tmp_path / "out" / "success.json").read_text())
    ends = [json.loads((tmp_path / "out" / f"seed-{seed}" / "metrics.json").read_text()) for seed in (5, 6)]
    assert told["seeds"] == [5, 6] == [end["experiment"]["seed"] for end in ends]
    assert ends[0]["answer"]["scores"]["psnr"] != ends[1]["answer"]["scores"]["psnr"]
    assert told["a recognizable picture"].startswith(f"{sum(end['verdict']['word'] == 'recognizable' for end in ends)} of 2 ")
    assert told["every picture picked out of its line-up"].startswith(
        f"{sum(end['answer']['scores']['identified'] == 1 for end in ends)} of 2 "
    )


def test_students_interval_is_that_of_the_textbook() -> None:
    assert pytest.approx([t.ppf(0.975, freedom) for freedom in range(1, 10)], abs=1e-4) == T
    assert pytest.approx(norm.ppf(0.975), abs=1e-6) == Z
    values = [20.0, 22.5, 19.0, 25.0]
    assert mean_interval(values) == pytest.approx(tuple(ttest_1samp(values, 0).confidence_interval(0.95)), abs=1e-3)
    for wrong in ([1.0], [1.0] * 11):
        with pytest.raises(ValueError, match=f"expected 2 to 10 values, got {len(wrong)}"):
            mean_interval(wrong)
