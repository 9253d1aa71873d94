"""Workers on a Ray cluster of three simulated nodes: the same answers, live, stopped, killed, and found again."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from digits_data_set import write_digits
from home_fixtures import furnished
from home_processes import LONG, QUICK, Place, another, loaded, place, until
from ray_nodes import Nodes, nodes

from leakage.runs.notes import CLUSTER
from leakage.runs.store import Run
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.spec.tasks import Training
from leakage.workers.dispatcher import AGAIN, LOST

pytestmark = [pytest.mark.processes, pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed")]
NOISE = Part(id="gaussian_noise", fields={"scale": 0.001})
SUMMED = Experiment(  # two phones with two pictures each, which check the model and train it whatever they find
    pictures=tuple(Picture(id=name) for name in ("chelsea", "coffee", "rocket", "astronaut")),
    aggregation=Part(id="secure_aggregation", fields={"clients": 2}),
    checks=(Part(id="new_layers"), Part(id="same_for_all")),
    refuse=False,
)
CHEATED = [  # a server with a layer of its own, and one that separates pictures for a search; both hand out a model to each phone
    SUMMED.model_copy(update={"server": Part(id="loki", fields={"bins": 64}), "attack": Part(id="bins")}),
    SUMMED.model_copy(update={"server": Part(id="inconsistent"), "attack": QUICK.attack}),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    with nodes() as made:
        yield made


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory, written: Path, cluster: Nodes) -> Iterator[Place]:
    """A place with a dispatcher that has its workers on the cluster."""
    home = furnished(tmp_path_factory.mktemp("far"), written)
    data = write_digits(home / "data")
    if "LEAKAGE_DATA" in os.environ:  # LPIPS looks through what `dispatcher` has, too
        for name in {"lpips", "lpips_squeeze", "faces"} & set(os.listdir(os.environ["LEAKAGE_DATA"])):
            (data / name).symlink_to(Path(os.environ["LEAKAGE_DATA"], name))
    with place(home, LEAKAGE_RAY="auto", RAY_ADDRESS=cluster.address, LEAKAGE_DATA=str(data)) as made:
        made.store.put_note(CLUSTER, "auto")  # its speeds are those of the cluster: see `measured_before`
        made.dispatch()
        yield made


@pytest.fixture
def here(tmp_path: Path, written: Path) -> Iterator[Place]:
    """A place with its workers on this machine, of one thread, as on the cluster: two add up in another order."""
    with place(furnished(tmp_path, written), OMP_NUM_THREADS="1") as made:
        made.dispatch()
        yield made


@pytest.fixture(autouse=True)
def three_nodes(cluster: Nodes, far: Place) -> Iterator[None]:
    """Three nodes at the beginning, and nothing that runs at the end."""
    cluster.complete(3)
    yield
    for run in [*far.store.queue(), *far.store.running()]:
        far.store.cancel(run.id)
    until(lambda: not far.store.running())


def on_three_nodes(far: Place, seed: int) -> list[str]:
    """Three long runs under way, each on a node of its own."""
    runs = [far.submit(another(LONG, seed + number)) for number in range(3)]
    until(lambda: all(len(far.frames(run)) >= 2 for run in runs), what="all three are under way")
    assert len({far.look(run).worker for run in runs}) == 3
    return runs


def another_dispatcher(far: Place, **environment: str) -> None:
    """Kill the dispatcher, and start the next."""
    os.kill(far.dispatcher(), signal.SIGKILL)
    far.environment |= environment
    far.dispatch()


def final(place: Place, run: Run) -> tuple[object, ...]:
    """The answer of a run: its picture, its loss and its scores."""
    assert run.result is not None, run.message
    answer = place.frames(run.id)[-1]
    assert answer["seq"] == run.result["answer"]
    return place.store.frame(run.id, answer["seq"]), answer["step"], answer["loss"], answer["scores"]


def test_a_comparison_gives_equal_final_frames_here_and_on_a_cluster(far: Place, here: Place) -> None:
    """Of three seeds, so that each is played by itself: in a loop with others the last digits are others."""
    arms = [another(QUICK, 501), another(QUICK, 502).model_copy(update={"defenses": (NOISE,)}), another(QUICK, 503)]
    there = far.service.submit_all(arms, "me", anew=True)
    local = here.service.submit_all(arms, "me", anew=True)
    ended = [(far.finished(one), here.finished(other)) for one, other in zip(there, local, strict=True)]
    assert {run.status for pair in ended for run in pair} == {"done"}
    assert [final(far, one) for one, _ in ended] == [final(here, other) for _, other in ended]
    meta, other = far.store.meta(there[0]), here.store.meta(local[0])
    assert meta is not None
    assert other is not None
    assert (meta.environment.device, meta.environment.versions, meta.judging.baselines) == (
        *(other.environment.device, other.environment.versions, other.judging.baselines),
    )


def test_servers_that_change_the_model_give_equal_runs_here_and_on_a_cluster(far: Place, here: Place) -> None:
    there, local = (door.submit_all(CHEATED, "me", anew=True) for door in (far.service, here.service))
    for one, other in zip(there, local, strict=True):
        remote, own = far.finished(one), here.finished(other)
        assert (remote.status, remote.digest) == ("done", own.digest)
        assert final(far, remote) == final(here, own)
        checked, expected = far.store.meta(one), here.store.meta(other)
        assert checked is not None
        assert expected is not None
        assert checked.checks == expected.checks
        assert [found.tripped for found in checked.checks][1]  # phones that compare their models notice both servers


def test_frames_come_live_and_stop_is_obeyed_by_the_worker(far: Place) -> None:
    runs = on_three_nodes(far, 510)
    seen, since = dict[int, float](), far.store.last_seq()  # number of a frame -> when it was there
    news = dict.fromkeys(runs, 0)

    def watch() -> bool:
        nonlocal since
        for event in far.store.events(runs, since):
            since = event["seq"]
            if event["kind"] == "frame":
                seen[since] = time.monotonic()
                news[event["run"]] += 1
        return min(news.values()) >= 8

    until(watch, what="eight frames of each")
    lags = []
    for run in runs:
        frames = [frame for frame in far.frames(run) if frame["seq"] in seen]
        way = [seen[frame["seq"]] - frame["seconds"] for frame in frames]  # from the run's own clock to ours, and the way here
        lags += [late - min(way) for late in way]
    assert sorted(lags)[int(0.95 * len(lags))] < 20.0
    asked = time.monotonic()
    for run in runs:
        far.service.cancel(run, "me")
    ended = [far.finished(run) for run in runs]
    assert time.monotonic() - asked < 60.0
    assert {(run.status, run.message) for run in ended} == {("cancelled", "Cancelled; the best so far is shown.")}


def test_the_dispatcher_has_ray_and_no_torch(far: Place) -> None:
    assert "_raylet" in loaded(far.dispatcher())
    assert "libtorch" not in loaded(far.dispatcher())


def test_a_time_limit_ends_a_run_on_a_node(far: Place) -> None:
    run = far.finished(far.submit(another(LONG, 520).model_copy(update={"max_seconds": 20})))
    assert run.message == "Stopped after 20 s, the limit for one run; the best so far is shown."


def test_what_a_killed_node_ran_fails_and_the_rest_goes_on(far: Place, cluster: Nodes) -> None:
    runs = on_three_nodes(far, 530)
    cluster.kill()
    failed = until(lambda: [run for run in runs if far.status(run) == "failed"], what="a run is lost")
    assert [far.look(run).message for run in failed] == [LOST]
    going = [run for run in runs if run not in failed]
    before = [len(far.frames(run)) for run in going]
    until(lambda: all(len(far.frames(run)) > count for run, count in zip(going, before, strict=True)))


def test_a_killed_dispatcher_leaves_its_workers_to_the_next_which_begins_lost_runs_anew(far: Place, cluster: Nodes) -> None:
    runs = on_three_nodes(far, 540)
    workers = [far.look(run).worker for run in runs]
    counts = [len(far.frames(run)) for run in runs]
    another_dispatcher(far, LEAKAGE_RETRY_LOST="1")
    until(lambda: all(len(far.frames(run)) >= count + 2 for run, count in zip(runs, counts, strict=True)), what="all go on")
    assert [far.look(run).worker for run in runs] == workers
    assert all(sorted(steps) == steps for run in runs if (steps := [frame["step"] for frame in far.frames(run)]))

    cluster.kill()
    moved = until(lambda: [run for run in runs if far.look(run).worker not in workers], what="a run begins anew")
    assert len(moved) == 1
    told = far.store.events(moved, 0)
    kinds = [event["status"] if event["kind"] == "state" else event["kind"] for event in told]
    assert kinds[:4] == ["queued", "running", "restart", "queued"]
    cluster.complete(3)
    until(lambda: len(far.frames(moved[0])) >= 2, what="it is under way again")
    first = far.frames(moved[0])[0]
    assert first["step"] <= 1
    assert [far.look(run).status for run in runs] == ["running"] * 3


def test_data_sets_and_weights_travel_with_trainings_and_attacks(far: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(rounds=2, rate=0.3, batch=32, decay=0, pictures=300)
    run = far.finished(far.service.train(training, "me"))
    assert (run.message, run.status) == ("", "done")
    assert run.result is not None
    name, _, stage = run.result["checkpoint"].partition("@")
    folder = far.config.checkpoints / name
    assert sorted(path.name for path in folder.glob("*.*")) == ["1.safetensors", f"{stage}.safetensors", "card.json", "metrics.json"]
    monkeypatch.setenv("LEAKAGE_HOME", str(far.home))  # where this process looks for cards
    short = Part(id="idlg", fields={"steps": 2, "restarts": 1})
    run = far.finished(far.submit(Experiment(checkpoint=run.result["checkpoint"], size=28, channels=1, attack=short)))
    assert run.status == "done"
    meta = far.store.meta(run.id)
    assert meta is not None
    assert meta.knowledge.weights.startswith("trained for 2 of 2 epochs on 300 pictures of MNIST, names ")


def test_a_data_set_that_is_missing_where_the_store_is_is_named(far: Place) -> None:
    run = far.finished(far.service.train(Training(data="cifar10", rounds=1), "me"))
    assert run.status == "failed"
    assert run.message.startswith("The training pictures of CIFAR-10 were not found in LEAKAGE_DATA: ")


@pytest.mark.slow
def test_a_training_goes_on_where_a_killed_node_left_it(far: Place, cluster: Nodes) -> None:
    """The rounds that it tells again are those of the killed node, to the tenth of a second that they took there."""
    another_dispatcher(far, LEAKAGE_RETRY_LOST="1")
    run = far.service.train(Training(rounds=1000, rate=0.01, batch=32, decay=0, pictures=300), "me")

    def rounds() -> list[tuple[object, ...]]:
        told = [event for event in far.store.events([run], 0) if event["kind"] == "round"]
        return [tuple(event[name] for name in ("done", "loss", "accuracy", "seconds")) for event in told]

    until(lambda: len(rounds()) >= 5, what="five rounds")
    worker, before = far.look(run).worker, rounds()
    while far.look(run).worker == worker:  # on which node it is, is not known
        before = rounds()
        cluster.kill()
        with suppress(AssertionError):
            until(lambda: far.look(run).worker != worker, within=15)
    cluster.complete(3)
    until(lambda: len(rounds()) > len(before) + 3, what="it goes on")
    assert rounds()[: len(before)] == before
    assert [done for done, *_ in rounds()] == list(range(1, len(rounds()) + 1))
    (again,) = (event for event in far.store.events([run], 0) if event["kind"] == "restart")
    assert again["text"] == AGAIN
