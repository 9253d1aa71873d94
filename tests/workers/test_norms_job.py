"""The norms of single pictures' gradients, against plain autograd, and how their run ends."""

from pathlib import Path

import pytest
import torch
from digits_data_set import write_digits
from home_processes import until
from small_problems import CATALOG, TINY
from torch.nn import functional as F

from leakage.data.images import PictureError, datasets
from leakage.engine.stopping import StoppedError
from leakage.runs.events import GradientNormsEnd
from leakage.runs.service import Service
from leakage.runs.store import Run
from leakage.spec.experiment import Part, SpecError
from leakage.spec.tasks import GradientNorms
from leakage.workers.adapter import network
from leakage.workers.job import Job
from leakage.workers.norms_job import norms
from leakage.workers.worker import perform

FIRST = GradientNorms(source="mnist", count=6, size=28, channels=1, model=TINY, seed=3)


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of data sets, with scikit-learn's digits where MNIST is looked for."""
    folder = write_digits(tmp_path / "digits")
    monkeypatch.setenv("LEAKAGE_DATA", str(folder))
    return folder


@pytest.mark.usefixtures("digits")
def test_each_norm_is_that_of_the_gradient_of_one_picture() -> None:
    task = FIRST.resolve(CATALOG)
    rows = datasets()["mnist"].rows()
    model = network(task.experiment, (1, 28, 28))
    for index, (id, norm) in enumerate(norms(task).items()):
        x = torch.from_numpy(rows.pixels[[index]]).permute(0, 3, 1, 2).float() / 255
        loss = F.cross_entropy(model(x), torch.tensor([int(rows.labels[index])]))
        parts = torch.autograd.grad(loss, list(model.parameters()))
        assert id == str(index)
        assert norm == pytest.approx(sum(float((part**2).sum()) for part in parts) ** 0.5, rel=1e-5)
    assert index == 5


@pytest.mark.usefixtures("digits")
def test_of_a_network_with_one_output_the_label_is_what_it_predicts_or_the_opposite() -> None:
    """Of two classes with probabilities p > 1/2 and 1 - p, the loss has the derivative 1 - p or p in the output."""
    shallow = FIRST.model_copy(update={"model": Part(id="custom", fields={"network": "conv 3@2"})})
    right = norms(shallow.model_copy(update={"task": "two"}).resolve(CATALOG))
    wrong = norms(shallow.model_copy(update={"task": "flipped"}).resolve(CATALOG))
    assert all(0 < right[id] < wrong[id] for id in right)


@pytest.mark.usefixtures("digits")
def test_it_stops_when_told_to() -> None:
    with pytest.raises(StoppedError):
        norms(FIRST.resolve(CATALOG), lambda: True)


def performed(service: Service, task: GradientNorms) -> Run:
    """Let a worker measure, and return the ended run."""
    id = service.measure(task.resolve(service.ready()), "me")
    run = service.store.claim("0:1")
    assert run is not None
    assert perform(service.store, run, torch.device("cpu"))
    ended = service.look(id)
    assert ended is not None
    return ended


@pytest.mark.usefixtures("digits")
def test_a_worker_stores_the_norms_and_equal_requests_share_them(door: Service) -> None:
    run = performed(door, FIRST)
    assert (run.kind, run.status, run.message) == ("norms", "done", "")
    end = run.outcome(GradientNormsEnd)
    assert end is not None
    assert end.norms == norms(FIRST.resolve(CATALOG))
    assert door.measurement(FIRST.resolve(CATALOG), "you") == run
    for name, other in {"seed": 4, "weights": "0123456789ab", "size": 32, "channels": 3, "source": "cifar10"}.items():
        assert door.measurement(FIRST.resolve(CATALOG).model_copy(update={name: other}), "me") is None, name


def test_a_damaged_data_set_ends_the_run_with_a_sentence(door: Service, digits: Path) -> None:
    file = digits / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(PictureError):
        norms(FIRST.resolve(CATALOG))
    run = performed(door, FIRST)
    assert run.status == "failed"
    assert "t10k-images-idx3-ubyte is damaged or cut short" in run.message


def until_stopped(job: Job) -> None:
    """Wait until the worker has read from the store that the run was cancelled."""
    until(job.heartbeat.should_stop, what="the worker knows of it")


@pytest.mark.usefixtures("digits")
def test_a_part_of_the_pictures_gives_no_order(door: Service) -> None:
    door.measure(FIRST.resolve(CATALOG), "me")
    run = door.store.claim("0:1")
    assert run is not None
    door.cancel(run.id, "me")
    perform(door.store, run, torch.device("cpu"), until_stopped)
    ended = door.look(run.id)
    assert ended is not None
    assert (ended.status, ended.result) == ("cancelled", {"norms": {}})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"model": Part(id="vgg16")}, "size: VGG-16 needs pictures of at least 32 pixels, given was 28"),
        ({"checkpoint": "nobody@3"}, "checkpoint: 'nobody@3' is not on this machine"),
        ({"task": "two", "outputs": 3}, "outputs"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_it_is_queued(changed: dict[str, object], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        FIRST.model_copy(update=changed).resolve(CATALOG)
