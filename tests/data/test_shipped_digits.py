"""The digits of scikit-learn: unchanged, enough to train on, and distinguished from data sets that must be downloaded."""

from pathlib import Path

import numpy as np
import pytest
import torch

from leakage.data.datasets import datasets, training_files, training_pictures
from leakage.data.images import PictureError, read
from leakage.data.shipped_digits import LEARNT, SIDE
from leakage.spec.experiment import Part
from leakage.spec.tasks import Training
from leakage.workers.training_adapter import load, train


def test_they_are_scikit_learns_split_after_the_first_1500() -> None:
    from sklearn.datasets import load_digits

    labels = load_digits().target
    learnt, tried = training_pictures("digits"), datasets()["digits"].rows()
    np.testing.assert_array_equal(learnt.labels, labels[:LEARNT])
    np.testing.assert_array_equal(tried.labels, labels[LEARNT:])
    assert learnt.pixels.shape == (1500, SIDE, SIDE, 1)
    assert tried.pixels.shape == (297, SIDE, SIDE, 1)
    for digit in range(10):  # the gallery's ten are the first ten of the file
        np.testing.assert_array_equal(learnt.pixels[digit], read("gallery", f"digit-{digit}", SIDE, 1))


def test_they_are_there_without_a_data_folder_and_no_sentence_of_a_missing_set_names_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path / "nothing"))
    known = datasets()
    assert [name for name, one in known.items() if one.is_available] == ["digits"]
    assert datasets()["digits"].count() == 297
    told = [one.remedy for one in known.values() if not one.is_available]
    with pytest.raises(PictureError) as refused:
        training_files("mnist")
    assert len(told) == 5
    assert not [words for words in [*told, str(refused.value)] if str(tmp_path) in words]


def test_a_damaged_file_is_named_by_its_place_below_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    file = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    file.parent.mkdir()
    file.write_bytes(bytes(100))
    with pytest.raises(PictureError) as refused:
        datasets()["cifar10"].count()
    assert str(refused.value).startswith("cifar-10-batches-bin/test_batch.bin is damaged or cut short")
    assert str(tmp_path) not in str(refused.value)


def test_a_model_learns_them_in_seconds() -> None:
    """94 steps a round; guessing names 10 %."""
    task = Training(model=Part(id="mlp"), data="digits", rounds=2, batch=16)
    *_, last = train(task, *load(task), device=torch.device("cpu"))
    assert last.accuracy > 0.8
