"""Training compared with gradients computed by hand and with an interrupted training, and on handwritten digits."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from digits_data_set import LEARNT, write_digits
from torch import Tensor

from leakage.__main__ import main
from leakage.data.checkpoints import CheckpointError, read
from leakage.data.datasets import PictureError, training_pictures
from leakage.engine import federated_training as engine
from leakage.engine.accounting import epsilon
from leakage.engine.client import gradient_client, weights_of
from leakage.engine.fed_client import FedClient
from leakage.engine.federated_training import PADDING, Pictures, Progress, TrainingError, augment, average_states, factor, partition
from leakage.spec.experiment import Part
from leakage.spec.tasks import Training
from leakage.workers import training_folder
from leakage.workers.training_adapter import build, train

CPU = torch.device("cpu")
PLAIN = Training(rounds=1, schedule="constant", momentum=0, decay=0, batch=1000)


def few(count: int = 40) -> Pictures:
    """Random pictures of MNIST's shape."""
    rng = torch.Generator().manual_seed(5)
    x = torch.randint(0, 256, (count, 1, 28, 28), generator=rng, dtype=torch.uint8)
    return Pictures(x, torch.randint(0, 10, (count,), generator=rng))


def trained(training: Training, data: Pictures) -> dict[str, Tensor]:
    """The weights after the last round."""
    *_, last = train(training, data, data, device=CPU)
    assert last.weights is not None
    return last.weights


def one_step(training: Training, data: Pictures) -> dict[str, Tensor]:
    """w - rate * dL/dw, by hand."""
    model = build(training)
    gradient, _ = gradient_client(model)(weights_of(model), data.x.float() / 255, data.y, {})
    return {name: value.detach() - training.rate * gradient[name] for name, value in weights_of(model).items()}


def test_a_round_of_one_batch_is_one_step_of_gradient_descent() -> None:
    data = few()
    expected = one_step(PLAIN, data)
    found = trained(PLAIN, data)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)


def test_clients_of_equal_size_that_take_one_step_each_average_to_the_central_step() -> None:
    """The mean of w - rate * g_i is w - rate * mean g_i (McMahan et al. 2017, section 2)."""
    data = few()
    central = one_step(PLAIN, data)
    for clients in (2, 4):
        found = trained(PLAIN.model_copy(update={"clients": clients}), data)
        for name, value in central.items():
            torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)


def test_two_local_epochs_of_one_batch_are_two_rounds_of_one() -> None:
    data = few()
    epochs = trained(PLAIN.model_copy(update={"local_epochs": 2}), data)
    rounds = trained(PLAIN.model_copy(update={"rounds": 2}), data)
    for name, value in rounds.items():
        torch.testing.assert_close(epochs[name], value, rtol=1e-5, atol=1e-6)
    assert not torch.equal(rounds["linear.weight"], trained(PLAIN, data)["linear.weight"])


def test_an_average_weighs_states_by_their_pictures_and_leaves_counters_whole() -> None:
    a = {"w": torch.tensor([1.0, 2.0]), "n": torch.tensor(3)}
    b = {"w": torch.tensor([5.0, 6.0]), "n": torch.tensor(7)}
    mean = average_states([a, b], [3, 1])
    assert mean["w"].tolist() == [2.0, 3.0]
    assert mean["n"].item() == 3


@pytest.mark.parametrize("kind", ["iid", "shards"])
def test_a_partition_gives_every_picture_to_one_client(kind: str) -> None:
    labels = torch.arange(200) % 10
    parts = partition(labels, Training(clients=5, partition=kind))
    assert sorted(torch.cat(parts).tolist()) == list(range(200))
    assert [len(part) for part in parts] == [40] * 5


def test_shards_leave_a_client_few_classes_and_an_iid_share_all() -> None:
    labels = torch.arange(2000) % 10  # two shards of 200 hold one class each
    classes = {
        kind: [len(labels[part].unique()) for part in partition(labels, Training(clients=5, partition=kind))] for kind in ("iid", "shards")
    }
    assert classes["iid"] == [10] * 5
    assert max(classes["shards"]) <= 2


def test_an_augmented_picture_is_the_picture_shifted_and_perhaps_mirrored() -> None:
    x = few(24).x
    found = augment(x, torch.Generator().manual_seed(3))
    padded = torch.nn.functional.pad(x, (PADDING,) * 4)
    kinds = set()
    for picture, frame in zip(found, padded, strict=True):
        corners = [(top, left) for top in range(2 * PADDING + 1) for left in range(2 * PADDING + 1)]
        crops = {(*corner, False): frame[:, corner[0] : corner[0] + 28, corner[1] : corner[1] + 28] for corner in corners}
        crops |= {(top, left, True): crop.flip(2) for (top, left, _), crop in crops.items()}
        same = [how for how, crop in crops.items() if torch.equal(picture, crop)]
        assert len(same) == 1
        kinds.add(same[0])
    assert {flip for _, _, flip in kinds} == {True, False}
    assert len({top for top, _, _ in kinds}) > 4


def test_the_rate_rises_and_falls_between_its_ends() -> None:
    assert [round(factor("cosine", at), 6) for at in (0, 0.1, 1)] == [0, 1, 0]
    assert [round(factor("steps", at), 6) for at in (0.374, 0.376, 0.626, 0.876)] == [1, 0.1, 0.01, 0.001]


def test_bfloat16_is_for_the_arithmetic_only() -> None:
    found = trained(PLAIN.model_copy(update={"precision": "bfloat16"}), few())
    exact = trained(PLAIN, few())
    assert all(value.dtype == torch.float32 for value in found.values())
    difference = max(float((found[name] - value).abs().max()) for name, value in exact.items())
    assert 0 < difference < 0.05


def test_dropout_draws_from_the_training_and_leaves_the_global_generator_alone() -> None:
    def steps() -> list[float]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 50), torch.nn.Dropout(0.5), torch.nn.Linear(50, 10))
        training = PLAIN.model_copy(update={"batch": 10, "rate": 0.01})
        losses = engine.local_steps(FedClient(model, training), few(), torch.arange(40), round_number=0)
        return [loss for _, loss in losses]

    state = torch.get_rng_state()
    first = steps()
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(1)
    assert steps() == first


def test_every_round_and_every_client_has_an_order_of_its_own() -> None:
    """With a rate of nothing the weights stay, and the losses of the batches tell which pictures were in them."""
    training = PLAIN.model_copy(update={"batch": 10, "rate": 1e-12})

    def losses(round_number: int, client: int) -> list[float]:
        steps = engine.local_steps(FedClient(build(PLAIN), training, (), client), few(), torch.arange(40), round_number=round_number)
        return [round(loss, 5) for _, loss in steps]

    told = [losses(0, 0), losses(0, 0), losses(1, 0), losses(0, 1)]
    assert told[0] == told[1]
    assert len({tuple(one) for one in told}) == 3
    assert all(sum(one) == pytest.approx(sum(told[0]), abs=1e-3) for one in told)


def test_a_last_batch_of_one_picture_is_left_out() -> None:
    def count(pictures: int) -> int:
        training = PLAIN.model_copy(update={"batch": 10})
        return len(list(engine.local_steps(FedClient(build(PLAIN), training), few(), torch.arange(pictures), round_number=0)))

    assert [count(pictures) for pictures in (1, 10, 11, 12)] == [1, 1, 1, 2]


def test_weights_without_bound_end_the_training_with_a_sentence() -> None:
    deep = Part(id="mlp", fields={"width": 64, "depth": 6, "activation": "leaky_relu"})
    wild = PLAIN.model_copy(update={"model": deep, "rate": 10.0, "rounds": 20, "batch": 4})
    with pytest.raises(TrainingError, match=r"round .* Choose a smaller learning rate"):
        trained(wild, few())


# ---------------------------------------------------------------- in a folder, on digits


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEAKAGE_DATA", str(write_digits(tmp_path / "data")))
    return tmp_path


DIGITS = Training(rounds=6, rate=0.3, batch=32, decay=0)


def run(training: Training, folder: Path, *, should_stop: Callable[[], bool] = lambda: False) -> list[Progress]:
    """The words at the end of each round."""
    return [word for word in training_folder.train(training, folder, device=CPU, should_stop=should_stop) if word.accuracy is not None]


@pytest.mark.long
def test_lenet_learns_digits_and_its_card_says_how_well(digits: Path) -> None:
    words = run(DIGITS, digits / "out")
    assert [word.done for word in words] == [1, 2, 3, 4, 5, 6]
    assert words[-1].accuracy is not None
    assert words[-1].accuracy > 0.7  # guessing: 0.1
    assert words[-1].loss < words[0].loss
    card = read(digits / "out" / "card.json")
    assert [(stage.rounds, stage.dtype) for stage in card.stages] == [(1, "float16"), (5, "float16"), (6, "float32")]
    assert card.stages[-1].accuracy == words[-1].accuracy
    assert abs(card.stages[0].accuracy - (words[0].accuracy or 0)) < 0.01  # rounded to float16
    assert (card.pictures, card.data, card.image_shape) == (LEARNT, "mnist", (1, 28, 28))
    assert not (digits / "out" / "state.safetensors").exists()


@pytest.mark.long
def test_a_training_that_is_interrupted_twice_ends_with_the_same_files(digits: Path) -> None:
    whole = [(word.done, word.accuracy, word.loss) for word in run(DIGITS, digits / "whole")]
    steps = iter(range(10**6))
    # 47 steps and 3 blocks of test pictures a round: stopped in the third
    first = run(DIGITS, digits / "parts", should_stop=lambda: next(steps) >= 120)
    assert [word.done for word in first] == [1, 2]
    assert not (digits / "parts" / "card.json").exists()
    second = run(DIGITS, digits / "parts", should_stop=lambda: next(steps) >= 230)
    assert [word.done for word in second] == [1, 2, 3, 4]
    third = run(DIGITS, digits / "parts")
    assert [(word.done, word.accuracy, word.loss) for word in third] == whole
    for name in ("1", "5", "6"):
        assert (digits / "whole" / f"{name}.safetensors").read_bytes() == (digits / "parts" / f"{name}.safetensors").read_bytes()


@pytest.mark.long
def test_a_training_stopped_while_it_is_tried_out_keeps_the_rounds_before(digits: Path) -> None:
    """47 steps and 3 blocks of test pictures a round; asked at each."""
    asked = iter(range(10**6))
    words = run(DIGITS, digits / "out", should_stop=lambda: next(asked) >= 50 + 48)
    assert [word.done for word in words] == [1]
    assert [word.done for word in run(DIGITS, digits / "out")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_a_training_stopped_before_its_card_is_written_writes_it_when_asked_again(digits: Path) -> None:
    short, asked = DIGITS.model_copy(update={"rounds": 2}), iter(range(10**6))
    words = run(short, digits / "out", should_stop=lambda: next(asked) >= 2 * 50 + 1)
    assert [word.done for word in words] == [1, 2]
    assert not (digits / "out" / "card.json").exists()
    run(short, digits / "out")
    assert read(digits / "out" / "card.json").stages[-1].accuracy == words[-1].accuracy


@pytest.mark.long
def test_two_cannot_train_in_one_folder(digits: Path) -> None:
    begun = training_folder.train(DIGITS, digits / "out", device=CPU)
    next(begun)
    with pytest.raises(CheckpointError, match=r"Another process is at this training, in .* Wait until it has ended"):
        run(DIGITS, digits / "out", should_stop=lambda: True)
    begun.close()
    assert run(DIGITS, digits / "out")[-1].done == 6


def test_a_finished_training_is_told_again_without_training(digits: Path) -> None:
    first = run(DIGITS.model_copy(update={"rounds": 1}), digits / "out")
    (digits / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte").unlink()
    again = run(DIGITS.model_copy(update={"rounds": 1}), digits / "out")
    assert [(word.done, word.accuracy) for word in again] == [(word.done, word.accuracy) for word in first]


def test_a_folder_with_another_training_is_left_alone(digits: Path) -> None:
    run(DIGITS.model_copy(update={"rounds": 1}), digits / "out")
    with pytest.raises(CheckpointError, match=r"holds another training. Name another folder"):
        run(DIGITS, digits / "out")


def test_a_damaged_metrics_file_is_named(digits: Path) -> None:
    (digits / "out").mkdir()
    (digits / "out" / "metrics.json").write_text('{"rounds": [')
    with pytest.raises(CheckpointError, match=r"metrics.json is damaged .* begin anew"):
        run(DIGITS, digits / "out")


def test_too_few_pictures_and_none_at_all_are_sentences(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match=f"has {LEARNT} training pictures of mnist, asked were more"):
        run(DIGITS.model_copy(update={"pictures": LEARNT + 1}), digits / "out")
    monkeypatch.setenv("LEAKAGE_DATA", str(digits / "nowhere"))
    with pytest.raises(PictureError, match=r"training pictures of MNIST were not found .* leakage fetch mnist"):
        run(DIGITS, digits / "out")


def test_a_training_file_that_is_cut_short_is_named_with_the_remedy(digits: Path) -> None:
    file = digits / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PictureError, match=r"train-images-idx3-ubyte is damaged or cut short .* leakage fetch mnist"):
        run(DIGITS, digits / "out")


def test_cifar_batches_are_read_in_their_order_one_label_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The official binary version: a label byte, then the planes R, G, B of 1,024 bytes each."""
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for number in (2, 1):
        records = b"".join(
            bytes([number + place]) + bytes([10 * number]) * 1024 + bytes([place]) * 1024 + bytes(1024) for place in range(3)
        )
        (folder / f"data_batch_{number}.bin").write_bytes(records)
    monkeypatch.setenv("LEAKAGE_DATA", str(tmp_path))
    rows = training_pictures("cifar10")
    assert rows.labels.tolist() == [1, 2, 3, 2, 3, 4]
    assert rows.pixels.shape == (6, 32, 32, 3)
    assert rows.pixels[4, 31, 31].tolist() == [20, 1, 0]


# ---------------------------------------------------------------- without a page


def test_the_command_and_the_card_state_the_privacy_budget(
    digits: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """320 pictures, each in one of 10 noisy sums with sigma 1: epsilon 4.39 at delta 1e-5, less had the batches been drawn at random."""
    monkeypatch.setenv("LEAKAGE_HOME", str(digits / "home"))
    caplog.set_level("INFO", "leakage")
    words = ["train", "--rounds", "1", "--batch", "32", "--pictures", "320", "--defense", "dp_sgd,noise_multiplier=1"]
    assert main(words) == 0
    (folder,) = (digits / "home" / "checkpoints").iterdir()
    facts = read(folder / "card.json").privacy
    assert facts is not None
    assert facts["epsilon"] == epsilon(1.0, 1)
    assert facts["epsilon_if_sampled"] == epsilon(1.0, 10, sample_rate=0.1)
    assert (facts["delta"], facts["uses"], facts["steps"], facts["unit"]) == (1e-5, 1, 10, "one picture, present or absent")
    assert "takes part in 1 noisy sum, and the noise stays secret" in facts["assumption"]
    assert caplog.messages[-2] == facts["words"]
    assert facts["words"].startswith("Privacy budget: epsilon 4.39 at delta 1e-05, for one picture, present or absent; ")


def test_the_command_trains_and_evaluates(digits: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(digits / "home"))
    caplog.set_level("INFO", "leakage")
    assert main(["train", "--field", "bias=false", "--rounds", "1", "--batch", "32", "--pictures", "320"]) == 0
    (folder,) = (digits / "home" / "checkpoints").iterdir()
    card = read(folder / "card.json")
    assert (card.fields["bias"], card.pictures, card.training["rounds"]) == (False, 320, 1)
    caplog.clear()
    assert main(["evaluate", folder.name]) == 0
    (line,) = caplog.messages
    share = f"{100 * card.stages[0].accuracy:.2f} %"
    assert line.split(None, 1)[0] == folder.name
    assert line.count(share) == 2  # measured now, and on the card


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--model", "nobody"], "model: 'nobody' is not known here; allowed are"),
        (["train", "--field", "width=16"], "model 'lenet' has no field 'width'"),
        (["train", "--model", "vgg16"], "size: VGG-16 needs pictures of at least 32 pixels, given was 28"),
        (["train", "--rounds", "0"], "rounds: input should be greater than or equal to 1; given was '0'"),
        (["train", "--data", "cifar100"], "data: input should be 'digits', 'mnist' or 'cifar10'; given was 'cifar100'"),
        (["train", "--rounds", "50", "--max-seconds", "1", "--rate", "0.01"], "Stopped after 1 s, as --max-seconds says. The same command"),
        (["evaluate", "nobody"], "checkpoint: 'nobody@0' is not on this machine; expected is one of"),
    ],
)
@pytest.mark.long
def test_a_command_that_cannot_be_done_says_why(
    digits: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, words: list[str], sentence: str
) -> None:
    monkeypatch.setenv("LEAKAGE_HOME", str(digits / "home"))
    assert main(words) == 1
    assert sentence in caplog.text
