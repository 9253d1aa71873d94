"""Trained weights: the loaded weights are those of the card, or a message says what is wrong."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from small_problems import CATALOG

from leakage.data import checkpoints
from leakage.data.checkpoints import SHIPPED, CheckpointError, Stage, cards, describe_training, find, verified
from leakage.engine.loading import load
from leakage.engine.weights import pack, put, unpack
from leakage.settings import settings
from leakage.spec.experiment import Experiment, Part, SpecError
from leakage.workers.adapter import load_checkpoint, observe

MEGABYTES = 15  # all shipped checkpoints together
REACHED = {  # just below what they score; promised were 0.98, 0.99, 0.76 and 0.82 for the four first
    "lenet-mnist": 0.985,
    "convnet-16-mnist": 0.995,
    "convnet-16-cifar10": 0.83,
    "resnet-20-cifar10": 0.85,
    "lenet-cifar10": 0.52,
    "resnet18-16-cifar10": 0.84,
}


def lenet(shape: tuple[int, int, int] = (3, 32, 32), seed: int = 7) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: torch.nn.Module = load("model", "lenet")().build(shape, 10)
        return model


def place(folder: Path, weights: bytes, **changed: Any) -> None:
    """A checkpoint of one stage, 3 rounds, in a folder."""
    folder.mkdir(parents=True)
    (folder / "3.safetensors").write_bytes(weights)
    stage = Stage(rounds=3, file="3.safetensors", sha256=hashlib.sha256(weights).hexdigest(), accuracy=0.5, dtype="float32")
    card = {
        "model": "lenet",
        "fields": {},
        "data": "cifar10",
        "image_shape": [3, 32, 32],
        "num_classes": 10,
        "recipe": "by hand",
        "training": {},
        "pictures": 20000,
        "commit": "abc",
        "torch": "2",
        "stages": [vars(stage)],
    }
    checkpoints.write(folder / "card.json", {**card, **changed})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this machine's checkpoints."""
    monkeypatch.setenv("LEAKAGE_HOME", str(tmp_path))
    return settings().checkpoints


@pytest.fixture
def ours(home: Path) -> Path:
    """One checkpoint called "ours", a LeNet of seed 7 that no experiment draws."""
    place(home / "ours", pack(lenet().state_dict()))
    return home / "ours"


OURS = Experiment(checkpoint="ours@3")


def test_an_experiment_attacks_the_weights_of_its_checkpoint(ours: Path) -> None:
    seen = observe(OURS.resolve(CATALOG), torch.rand(1, 3, 32, 32), torch.tensor([1]))
    expected = dict(lenet().named_parameters())
    assert all(torch.equal(seen.received.weights[name], value) for name, value in expected.items())
    drawn = observe(Experiment(), torch.rand(1, 3, 32, 32), torch.tensor([1]))
    assert not torch.equal(drawn.received.weights["conv1.weight"], expected["conv1.weight"])


def test_float16_weights_arrive_as_float32_and_nearly_the_same(home: Path) -> None:
    place(home / "half", pack(lenet().state_dict(), dtype=torch.float16))
    model = lenet(seed=1)
    load_checkpoint(model, "half@3")
    for name, value in lenet().state_dict().items():
        found = model.state_dict()[name]
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, value, rtol=2**-10, atol=1e-7)


def test_counters_keep_their_type() -> None:
    state = {"n": torch.tensor(3), "w": torch.ones(2)}
    found = unpack(pack(state, dtype=torch.float16), "it")
    assert (found["n"].dtype, found["w"].dtype) == (torch.int64, torch.float16)


def test_a_changed_byte_is_noticed_before_anything_is_loaded(ours: Path) -> None:
    file = ours / "3.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(
        CheckpointError, match=r"3.safetensors is damaged or was exchanged: its sha256 begins with .* choose an untrained model"
    ):
        load_checkpoint(lenet(), "ours@3")


def test_a_missing_file_is_named(ours: Path) -> None:
    (ours / "3.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"3.safetensors cannot be read \(No such file"):
        verified(*find("ours@3"))


def test_a_file_that_is_no_safetensors_file_is_a_sentence_though_its_hash_is_right(home: Path) -> None:
    place(home / "text", b"hello, I am a pickle")
    with pytest.raises(CheckpointError, match="text@3 is no safetensors file"):
        load_checkpoint(lenet(), "text@3")


def test_another_architecture_and_another_shape_are_sentences(home: Path) -> None:
    state = lenet().state_dict()
    with pytest.raises(CheckpointError, match=r"the file has 'fc.weight', the model does not"):
        put(lenet(), {**state, "fc.weight": torch.ones(1)}, "it")
    with pytest.raises(CheckpointError, match=r"the model has 'conv1.bias', the file does not"):
        put(lenet(), {name: value for name, value in state.items() if name != "conv1.bias"}, "it")
    with pytest.raises(CheckpointError, match=r"conv1.weight is \(12, 1, 5, 5\) there and \(12, 3, 5, 5\) here"):
        put(lenet(), lenet((1, 32, 32)).state_dict(), "it")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"checkpoint": "ours"}, "'ours' is not on this machine"),
        ({"checkpoint": "theirs@3"}, "'theirs@3' is not on this machine; expected is one of .*ours.*, followed by @"),
        ({"checkpoint": "ours@4"}, "ours was not saved after 4 rounds; there are ours@3"),
        ({"checkpoint": "../ours@3"}, "not on this machine"),
        ({"checkpoint": "ours@3", "model": Part(id="mlp")}, "ours was trained with model lenet, given was mlp. Set model to lenet"),
        ({"checkpoint": "ours@3", "model": Part(id="lenet", fields={"normalise": "mnist"})}, "with normalise none, given was mnist"),
        ({"checkpoint": "ours@3", "size": 28}, "with size 32, given was 28"),
        ({"checkpoint": "ours@3", "channels": 1}, "with channels 3, given was 1"),
    ],
)
def test_a_checkpoint_that_does_not_fit_the_experiment_is_a_sentence(ours: Path, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        Experiment(**changed).resolve(CATALOG)


def test_a_damaged_card_is_passed_over_in_menus_and_named_when_asked_for(ours: Path, home: Path) -> None:
    for name, text in (("cut", '{"model": "lenet"'), ("bare", "{}"), ("list", "[]")):
        (home / name).mkdir()
        (home / name / "card.json").write_text(text)
        with pytest.raises(CheckpointError, match=r"card.json is no card of a checkpoint"):
            find(f"{name}@3")
    assert {"ours", *(folder.name for folder in SHIPPED.glob("*"))} == set(cards())


@pytest.mark.parametrize("changed", [{"stages": []}, {"data": "svhn"}, {"fields": None}, {"pictures": "many"}, {"image_shape": [3, 32]}])
def test_a_card_with_values_that_cannot_be_is_no_card(home: Path, changed: dict[str, Any]) -> None:
    place(home / "odd", pack(lenet().state_dict()), **changed)
    assert "odd" not in cards()
    with pytest.raises(CheckpointError, match=r"odd/card.json is no card of a checkpoint"):
        find("odd@3")


def test_a_name_that_leads_out_of_the_folder_finds_nothing(ours: Path, home: Path) -> None:
    (home.parent / "card.json").write_bytes((ours / "card.json").read_bytes())
    for name in ("..@3", "../checkpoints/ours@3", "@3", ""):
        with pytest.raises(CheckpointError, match="is not on this machine"):
            find(name)


def test_our_own_checkpoint_wins_over_one_of_the_same_name(home: Path) -> None:
    place(home / "lenet-mnist", pack(lenet().state_dict()))
    assert cards()["lenet-mnist"].folder == find("lenet-mnist@5")[0].folder == SHIPPED / "lenet-mnist"


def test_a_round_is_an_epoch_where_one_client_sees_all_pictures_once(home: Path) -> None:
    for name, training, unit in (("a", {}, "epoch"), ("b", {"clients": 4}, "round"), ("c", {"local_epochs": 5}, "round")):
        place(home / name, pack(lenet().state_dict()), training=training)
        assert find(f"{name}@3")[0].unit == unit


def test_the_threat_model_table_says_what_the_weights_are(ours: Path) -> None:
    assert describe_training("") == "untrained"
    assert describe_training("ours@3") == "trained for 3 of 3 epochs on 20,000 pictures of CIFAR-10, names 50.0% of the test pictures right"


# ---------------------------------------------------------------- what is shipped


def test_every_shipped_file_is_the_one_its_card_describes_and_fits_its_model() -> None:
    found = {id: card for id, card in cards().items() if card.folder.parent == SHIPPED}
    assert set(REACHED) <= set(found)
    for id, card in found.items():
        for stage in card.stages:
            model = load("model", card.model)(**card.fields).build(card.image_shape, card.num_classes)
            load_checkpoint(model, f"{id}@{stage.rounds}")
            assert all(value.isfinite().all() for value in model.state_dict().values())
    files = [file for folder in SHIPPED.iterdir() for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < MEGABYTES * 10**6


@pytest.mark.parametrize("id", REACHED)
def test_shipped_models_are_as_good_as_promised(id: str) -> None:
    card = cards()[id]
    assert [stage.rounds for stage in card.stages][:2] == [1, 5]
    assert card.stages[-1].accuracy >= REACHED[id]
    assert card.stages[0].accuracy < card.stages[-1].accuracy
    assert len(card.commit) >= 12
    assert not card.commit.endswith("-dirty")
