"""The real test sets, if present: first labels, counts and pixels."""

import hashlib

import numpy as np
import pytest
from scipy.io import loadmat

from leakage.data.images import datasets, read
from leakage.spec.experiment import Experiment, Picture
from leakage.workers.private_pictures import load

FIRST = {
    "mnist": [7, 2, 1, 0, 4, 1, 4, 9, 5, 9],
    "cifar10": [3, 8, 8, 0, 6, 6, 1, 6, 3, 1],
    "cifar100": [49, 33, 72, 51, 71, 92, 15, 14, 23, 0],
    "faces": [0] * 10,
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_ten_labels_are_the_published_ones(name: str) -> None:
    assert [item.label for item in datasets()[name].items(0, 10)] == FIRST[name]


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
@pytest.mark.long
def test_there_are_ten_thousand_pictures_and_the_last_can_be_read(name: str) -> None:
    found = datasets()[name]
    assert found.count() == 10_000
    assert found.items(9_999, 60)[0].id == "9999"


def test_cifar10_has_a_thousand_pictures_of_every_class() -> None:
    labels = [item.label for item in datasets()["cifar10"].items(0, 10_000)]
    assert np.bincount(labels).tolist() == [1_000] * 10


def test_mnist_classes_are_as_frequent_as_published() -> None:
    labels = [item.label for item in datasets()["mnist"].items(0, 10_000)]
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_a_native_mnist_picture_is_bit_exact_and_upright() -> None:
    seven = read("mnist", "0", 28, 1)[:, :, 0]
    np.testing.assert_array_equal(seven, datasets()["mnist"].picture("0")[:, :, 0])
    assert (seven > 0).sum(axis=1).argmax() < 14  # a seven carries its bar, the widest row, at the top


@pytest.mark.long
def test_cifar10_read_picture_by_picture_is_the_official_file() -> None:
    digest, cifar = hashlib.md5(usedforsecurity=False), datasets()["cifar10"]
    for item in cifar.items(0, 10_000):
        digest.update(bytes([item.label]) + cifar.picture(item.id).transpose(2, 0, 1).tobytes())
    assert digest.hexdigest() == "803d5f7f4d78ea53de84dbe85f74fb6d"  # of test_batch.bin as published
    np.testing.assert_array_equal(read("cifar10", "9999", 32, 3), cifar.picture("9999"))


def test_the_olivetti_faces_are_those_of_another_reader() -> None:
    faces = datasets()["faces"]
    columns = loadmat(str(faces.path))["faces"]  # (4096, 400), a picture in each, itself column by column
    assert faces.count() == columns.shape[1] == 400
    for index in (0, 123, 399):
        np.testing.assert_array_equal(faces.picture(str(index))[:, :, 0], columns[:, index].reshape(64, 64).T)
    assert [item.label for item in faces.items(0, 400)] == [index // 10 for index in range(400)]


def test_one_experiment_may_mix_every_source() -> None:
    sources = [("mnist", "0"), ("cifar10", "0"), ("cifar100", "0"), ("gallery", "astronaut")]
    x, y = load(Experiment(pictures=tuple(Picture(source=source, id=id) for source, id in sources)), {})  # type: ignore[arg-type]
    assert (x.shape, y.tolist()) == ((4, 3, 32, 32), [7, 3, 49, 0])
    assert x.amin() >= 0
    assert x.amax() <= 1
