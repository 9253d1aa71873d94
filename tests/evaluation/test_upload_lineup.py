"""Line-ups of uploads: other uploads of their kind if there are enough; baselines are not first in distances that count."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from reachable_truth import leaks
from scipy.io import savemat
from small_problems import TINY, baselines_of, lineup_of, of_picture

from leakage.data.decoder import decode
from leakage.data.images import GALLERY_CLASSES, PictureError, Pixels, portraits, read
from leakage.evaluation.baselines import measure
from leakage.evaluation.lineup import Lineup, pixel_ranks
from leakage.evaluation.perceptual import Perceptual
from leakage.evaluation.pools import ENOUGH, OLIVETTI, OWN, SIZE, Origin, gather, kind_of, pool_of
from leakage.evaluation.verdict import DISTANCES, verdict
from leakage.spec.experiment import Experiment, Picture
from leakage.spec.words import NOT_SHOWN, RECOGNIZABLE
from leakage.workers.adapter import origins, prepare
from leakage.workers.private_pictures import load

CLASS = {name: label for label, name in enumerate(GALLERY_CLASSES)}
WHERE = {  # left and top of crops of a quarter of the side, as shares of it: four of the eye, inside its disc, and three of the tissue
    "retina": ("eye scan", [(0.2, 0.2), (0.4, 0.2), (0.2, 0.4), (0.5, 0.5)]),
    "immunohistochemistry": ("tissue scan", [(0.0, 0.0), (0.5, 0.0), (0.25, 0.5)]),
}
Uploads = dict[str, tuple[bytes, int]]  # id -> file, and the class that its visitor has chosen


@pytest.fixture(autouse=True)
def off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Perceptual:
    """Without LPIPS, which takes long, and without data sets."""
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    eye = Perceptual("", "off")
    monkeypatch.setattr("leakage.evaluation.baselines.perceptual", lambda _: eye)
    return eye


def file_of(picture: Pixels) -> bytes:
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(picture.squeeze())).save(file, "PNG")
    return decode(file.getvalue(), "a picture")


def scans() -> Uploads:
    """Seven crops of the gallery's two scans."""
    found = {}
    for source, (name, places) in WHERE.items():
        whole = read("gallery", source, 512, 3)
        for number, (left, top) in enumerate(places):
            row, column = int(512 * top), int(512 * left)
            found[f"{source} {number}"] = (file_of(whole[row : row + 128, column : column + 128]), CLASS[name])
    return found


def faces(count: int = 8) -> Uploads:
    return {f"face {number}": (file_of(portraits()[number]), CLASS["face"]) for number in range(count)}


def uploaded(uploads: Uploads, channels: int = 3, *more: Picture) -> tuple[Experiment, torch.Tensor, torch.Tensor, dict[str, bytes]]:
    """The experiment that a visitor makes of them, its pictures and labels, and the files."""
    pictures = [Picture(source="upload", id=id, label=label) for id, (_, label) in uploads.items()]
    experiment, files = Experiment(pictures=(*pictures, *more), channels=channels), {id: file for id, (file, _) in uploads.items()}
    return experiment, *load(experiment, files), files


def stand(uploads: Uploads, channels: int = 3, *more: Picture) -> Lineup:
    experiment, x, y, files = uploaded(uploads, channels, *more)
    return lineup_of(experiment, x, y, files)


# ---------------------------------------------------------------- the pictures in a line-up


def test_beside_an_upload_stand_crops_of_all_the_others_of_its_kind_and_none_of_itself() -> None:
    experiment, x, y, files = uploaded(scans())
    held, batch = lineup_of(experiment, x, y, files), origins(experiment, files)
    assert held.words == "99 crops of the 6 other scans that you uploaded"
    assert held.size == SIZE
    pool = gather(pool_of(batch[0], batch), batch, (3, 32, 32), 1)
    assert torch.equal(pool.pictures, held.others)
    for number, one in enumerate(batch):
        beside = [identity for identity, stands in zip(pool.identities, held.competitors[number].tolist(), strict=True) if stands]
        counts = {other.identity: beside.count(other.identity) for other in batch}
        assert counts.pop(one.identity) == 0
        assert sum(counts.values()) == 99
        assert set(counts.values()) <= {16, 17}  # 6 x 17 = 102, three more than are needed
    assert float((held.others[:7] - x).abs().mean()) < 0.02  # the pool begins with the wholes, resized twice


def test_five_others_of_its_kind_are_enough_and_four_are_not() -> None:
    assert ENOUGH == 5
    assert stand(faces(6)).words == "99 crops of the 5 other faces that you uploaded"
    assert stand(faces(6)).uploaded  # so a worker remembers nothing of it
    assert "uploaded" not in stand(faces(5)).words
    assert not stand(faces(5)).uploaded


def test_the_same_picture_uploaded_twice_counts_once_and_does_not_stand_beside_itself() -> None:
    twin = {**faces(5), "again": faces(1)["face 0"]}
    assert "uploaded" not in stand(twin).words
    held = stand({**faces(6), "again": faces(1)["face 0"]})
    assert held.words == "99 crops of the 5 other faces that you uploaded"
    assert torch.equal(held.competitors[0], held.competitors[6])
    assert held.size == SIZE


def test_faces_are_compared_with_faces_and_scans_with_scans_though_they_are_in_one_batch() -> None:
    held = stand({**scans(), **faces()}, 3, Picture(id="coffee"))
    assert held.words == (
        "99 crops of the 6 other scans that you uploaded; 99 crops of the 7 other faces that you uploaded; "
        "99 crops of the other photographs in the gallery"
    )
    assert held.competitors.sum(1).tolist() == [99] * 16
    kinds = [held.competitors[rows].any(0) for rows in (slice(0, 7), slice(7, 15), slice(15, 16))]
    assert int(torch.stack(kinds).sum(0).max()) == 1
    colour = (held.others.amax(1) - held.others.amin(1)).amax((1, 2))
    assert float(colour[kinds[1]].max()) == 0  # faces are grey
    assert float(colour[kinds[0]].min()) > 0.1


@pytest.mark.parametrize(
    ("name", "others", "kind"),
    [
        ("face", "99 others of the hundred faces in scikit-image, drawn by the seed", "face"),
        ("digit", "99 crops of the other digits in the gallery", "digit"),
        ("eye scan", "99 crops of the other scans in the gallery", "scan"),
        ("tissue scan", "99 crops of the other scans in the gallery", "scan"),
        ("cup", "99 crops of the other photographs in the gallery", "photograph"),
    ],
)
def test_one_upload_alone_stands_among_what_its_class_says(name: str, others: str, kind: str) -> None:
    held = stand({"one": (scans()["retina 0"][0], CLASS[name])})
    assert (held.words, held.size, kind_of(CLASS[name])) == (others, SIZE, kind)


def test_a_face_stands_among_99_different_people_who_are_not_the_same_one() -> None:
    _, x, _, _ = uploaded(faces(1), 1)
    held = stand(faces(1), 1)
    assert len(held.others) == 100
    assert held.competitors.sum().item() == 99
    (out,) = (~held.competitors[0]).nonzero()[0].tolist()
    assert float((held.others[out] - x[0]).abs().max()) < 1 / 255  # the one that was uploaded
    assert float(torch.cdist(held.others.flatten(1), held.others.flatten(1)).fill_diagonal_(9).min()) > 0.5


def test_the_olivetti_faces_join_them_where_they_are_in_the_data_folder(tmp_path: Path) -> None:
    people = np.arange(40, dtype=np.uint8) * 5 + 20  # every person is a plain shade, darker above the middle
    pictures = np.repeat(people, 10)[:, None, None] * np.ones((1, 64, 64), np.uint8)
    pictures[:, :32] //= 2
    (tmp_path / OLIVETTI).parent.mkdir()
    savemat(tmp_path / OLIVETTI, {"faces": pictures.transpose(0, 2, 1).reshape(400, 4096).T})
    held = stand(faces(1), 1)
    assert held.words == "99 others of the hundred faces in scikit-image, and of the Olivetti faces, one of each person, drawn by the seed"
    plain = held.others[held.others[:, 0, 20:].flatten(1).std(1) == 0][:, 0]
    shades = (plain[:, 31, 0] * 255).round().int().tolist()
    assert 20 < len(shades) < 40  # of 109 out of 140, about 31
    assert len(set(shades)) == len(shades)
    assert set(shades) <= set(people.tolist())
    assert (plain[:, 0] < plain[:, 31]).all()
    (tmp_path / OLIVETTI).write_bytes(b"these are words")
    with pytest.raises(PictureError, match=r"olivettifaces\.mat is damaged"):
        stand(faces(1), 1)


def test_uploads_of_other_runs_do_not_exist_for_a_line_up() -> None:
    experiment, x, y, files = uploaded(faces(6))
    first = experiment.model_copy(update={"pictures": experiment.pictures[:1]})
    assert origins(first, files) == origins(experiment, files)[:1]  # though the page has sent all six files
    assert "uploaded" not in lineup_of(first, x[:1], y[:1], files).words


def test_somebodys_own_pictures_have_no_class_that_says_anything() -> None:
    assert pool_of(OWN, [OWN] * 9) == pool_of(Origin("gallery", "coffee"), [])


def test_a_run_compares_uploads_with_each_other_and_its_attack_sees_none_of_it() -> None:
    experiment, _, y, files = uploaded(faces(6), 1)
    scene = prepare(experiment.model_copy(update={"model": TINY, "size": 28}), uploads=files, device=torch.device("cpu"))
    assert scene.baselines.lineup.words == "99 crops of the 5 other faces that you uploaded"
    assert leaks((scene.seen, scene.attack), scene.x, y) == []
    assert leaks((scene.seen, scene.attack), scene.baselines.lineup.others, y) == []


# ---------------------------------------------------------------- what knows nothing is not first in what counts


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.long
def test_the_mean_colour_of_seven_scans_and_eight_faces_is_not_first_by_a_distance_that_counts(channels: int) -> None:
    experiment, x, y, files = uploaded({**scans(), **faces()}, channels)
    held = baselines_of(experiment, x, y, files)
    guesses = {
        "mean_colour": x.mean((2, 3), keepdim=True).expand_as(x),
        "grey": torch.full_like(x, 0.5),
        "mean": held.lineup.mean,
    }
    for name, guess in guesses.items():
        found = measure(guess, x, held.lineup, held.perceptual)
        assert held.scores[name]["rank_pixel"] == float(found["rank_pixel"].quantile(0.5))  # it stands beside
        for number in range(len(x)):
            one, judge = {key: value[number : number + 1] for key, value in found.items()}, of_picture(held.reference, number)
            counted = judge.counting(one)
            assert not (counted < 2).any()
            assert (counted.isnan() == torch.tensor([[bool(judge.firsts[how][0]) or bool(one[how].isnan())] for how in DISTANCES])).all()
            assert verdict(one, judge)["word"] == NOT_SHOWN
    copies = measure(x, x, held.lineup, held.perceptual)
    words = [verdict({k: v[n : n + 1] for k, v in copies.items()}, of_picture(held.reference, n))["word"] for n in range(len(x))]
    assert words == [RECOGNIZABLE] * len(x)


def test_among_photographs_the_mean_colour_of_a_scan_is_first_and_among_scans_it_is_not() -> None:
    experiment, x, y, files = uploaded(scans())
    guess = x.mean((2, 3), keepdim=True).expand_as(x)
    photographs = experiment.model_copy(
        update={"pictures": tuple(one.model_copy(update={"label": CLASS["thing"]}) for one in experiment.pictures)}
    )
    before = torch.cat([pixel_ranks(guess[n : n + 1], x[n : n + 1], beside(photographs, x, y, n, files)) for n in range(len(x))])
    after = pixel_ranks(guess, x, lineup_of(experiment, x, y, files))
    assert (before == 1).sum() == 7  # there is no orange photograph
    assert (after == 1).sum() <= 2
    assert after.median() > 5


def beside(experiment: Experiment, x: torch.Tensor, y: torch.Tensor, number: int, files: dict[str, bytes]) -> Lineup:
    """The line-up of one picture that was uploaded alone."""
    only = experiment.model_copy(update={"pictures": experiment.pictures[number : number + 1]})
    return lineup_of(only, x[number : number + 1], y[number : number + 1], files)
