"""A training from the page's request to the stored model: real workers, real digits, and an attack on the model."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from digits_data_set import write_digits
from home_processes import Place, place, until

from leakage.engine.accounting import epsilon
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment, Part
from leakage.spec.tasks import Training

pytestmark = pytest.mark.processes

SHORT = Training(rounds=2, rate=0.3, batch=32, decay=0, pictures=300)
ENDLESS = SHORT.model_copy(update={"rounds": 1000, "rate": 0.01})


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory, written: Path) -> Iterator[Place]:
    """A place with a dispatcher and digits to learn from."""
    home = tmp_path_factory.mktemp("school")
    (home / "catalog.json").write_bytes(written.read_bytes())
    with place(home, LEAKAGE_DATA=str(write_digits(home / "data"))) as made:
        made.dispatch()
        yield made


def rounds(school: Place, run: str) -> list[dict[str, object]]:
    return [event for event in school.store.events([run], 0) if event["kind"] == "round"]


def finished(school: Place, training: Training) -> Run:
    return school.finished(school.service.train(training, "me"))


def test_a_training_tells_every_round_and_leaves_a_checkpoint(school: Place) -> None:
    run = finished(school, SHORT)
    assert (run.kind, run.status, run.message) == ("train", "done", "")
    told = rounds(school, run.id)
    assert [event["done"] for event in told] == [1, 2]
    assert run.result is not None
    assert run.result["accuracy"] == told[-1]["accuracy"]
    assert run.result["rounds"] == 2
    name, _, stage = run.result["checkpoint"].partition("@")
    assert (school.config.checkpoints / name / f"{stage}.safetensors").is_file()


def test_a_training_behind_differential_privacy_says_its_epsilon(school: Place) -> None:
    private = SHORT.model_copy(update={"pictures": 100, "defenses": (Part(id="dp_sgd", fields={"noise_multiplier": 2.0}),)})
    result = finished(school, private).result
    assert result is not None
    told = result["privacy"]
    assert (told["rate"], told["steps"], told["uses"]) == (0.32, 2 * 4, 2)  # two rounds of four batches
    assert told["unsampled"] == pytest.approx(epsilon(2.0, 2), rel=1e-6)
    assert told["sampled"] == pytest.approx(epsilon(2.0, 8, sample_rate=0.32), rel=1e-6)
    assert finished(school, SHORT).result.get("privacy") is None  # type: ignore[union-attr]


def test_what_was_learned_can_be_attacked(school: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    result = finished(school, SHORT).result
    assert result is not None
    monkeypatch.setenv("LEAKAGE_HOME", str(school.home))  # where this process looks for cards
    short = Part(id="idlg", fields={"steps": 2, "restarts": 1})
    run = school.finished(school.submit(Experiment(checkpoint=result["checkpoint"], size=28, channels=1, attack=short)))
    assert run.status == "done"
    meta = school.store.meta(run.id)
    assert meta is not None
    assert meta.knowledge.weights.startswith("trained for 2 of 2 epochs on 300 pictures of MNIST, names ")


def test_the_same_training_is_shared_and_deleting_it_forgets_what_it_learned(school: Place) -> None:
    other = SHORT.model_copy(update={"seed": 9})
    run = finished(school, other)
    folder = school.config.checkpoints / other.resolve(school.service.catalog()).name  # type: ignore[arg-type]
    assert school.service.train(other, "you") == run.id
    school.service.delete(run.id, "me")
    assert folder.is_dir()
    school.service.delete(run.id, "you")
    assert not folder.exists()


def test_a_stopped_training_goes_on_when_asked_for_again(school: Place) -> None:
    first = school.service.train(ENDLESS, "me")
    until(lambda: len(rounds(school, first)) >= 2, what="two rounds are over")
    school.service.cancel(first, "me")
    ended = school.finished(first)
    assert ended.status == "cancelled"
    assert "goes on from its last full round" in ended.message
    before = rounds(school, first)
    again = school.service.train(ENDLESS, "me")
    assert again != first
    until(lambda: len(rounds(school, again)) > len(before), what="it is further than before")
    school.service.cancel(again, "me")
    school.finished(again)
    after = rounds(school, again)
    assert [event["accuracy"] for event in after[: len(before)]] == [event["accuracy"] for event in before]


def test_a_training_that_meets_its_time_limit_goes_on_when_asked_for_again(school: Place) -> None:
    short = ENDLESS.model_copy(update={"seed": 4, "max_seconds": 3})
    first = finished(school, short)
    assert first.status == "cancelled"
    assert "Stopped after 3 s" in first.message
    assert school.service.train(short, "me") != first.id


def test_deleting_the_stopped_beginning_leaves_what_was_learned_in_the_end(school: Place) -> None:
    training = SHORT.model_copy(update={"seed": 5})
    resolved = training.resolve(school.service.catalog())  # type: ignore[arg-type]
    first = school.service.train(training, "me")
    school.service.cancel(first, "me")
    school.finished(first)
    last = finished(school, training)
    assert (last.status, last.id == first) == ("done", False)
    school.service.delete(first, "me")
    assert (school.config.checkpoints / resolved.name / "card.json").is_file()
    school.service.delete(last.id, "me")
    assert not (school.config.checkpoints / resolved.name).exists()


def test_a_training_whose_worker_was_killed_goes_on_too(school: Place) -> None:
    training = ENDLESS.model_copy(update={"seed": 3})
    first = school.service.train(training, "me")
    until(lambda: len(rounds(school, first)) >= 2, what="two rounds are over")
    worker = school.look(first).worker
    assert worker is not None

    os.kill(int(worker.split(":")[1]), signal.SIGKILL)
    assert school.finished(first).status == "failed"
    again = school.service.train(training, "me")
    until(lambda: len(rounds(school, again)) > len(rounds(school, first)), what="it is further than before")
    school.service.cancel(again, "me")
    school.finished(again)
    assert rounds(school, again)[1]["accuracy"] == rounds(school, first)[1]["accuracy"]


def test_missing_pictures_are_a_sentence(school: Place) -> None:
    run = finished(school, SHORT.model_copy(update={"data": "cifar10"}))
    assert run.status == "failed"
    assert "The training pictures of CIFAR-10 were not found" in run.message
    assert "leakage fetch cifar10" in run.message


def test_a_training_without_room_ends_with_a_sentence_and_leaves_its_room_to_others(home: Path) -> None:
    """Of 16 MB one owner's models have 1 MB: LeNet's 60 kB fit, a wide ConvNet does not, of which three copies may lie there at once."""
    with place(home, LEAKAGE_STORE_MB="16", LEAKAGE_DATA=str(write_digits(home / "data"))) as made:
        made.dispatch()
        wide = finished(made, SHORT.model_copy(update={"model": Part(id="convnet", fields={"width": 64})}))
        assert (wide.status, wide.message[:41]) == ("failed", "Your trained models would hold 33.3 MB wi")  # 3 x 11,628,144 bytes
        assert made.store.models.total()[1] == 0
        assert finished(made, SHORT).status == "done"
        count, size = made.store.models.total()
        assert count == 2
        assert size == sum(path.stat().st_size for path in made.config.checkpoints.rglob("*") if path.is_file())
