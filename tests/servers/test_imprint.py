"""The imprint, and the attack that reads its bins: which pictures come back, exactly, and where the layer does not fit."""

import pytest
import torch
from brightness_bins import DEVIATION, LAW, MEAN, added_up, alone, batch, bins_between, found, seen_by, sorting
from small_problems import CATALOG, RELU, observed, relative, smooth

import leakage
from leakage.servers._block import normal_edges
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError

EDGES = [*normal_edges(16, MEAN, DEVIATION), float("inf")]


def imprint(**fields: float) -> Part:
    return sorting("imprint", **fields)


@pytest.mark.parametrize("size", [1, 4, 9, 20])
def test_exactly_the_pictures_that_are_alone_in_their_bins_come_back(size: int) -> None:
    x, y = batch(size)
    assert torch.equal(found(seen_by(imprint(), x, y), x), alone(x, EDGES))
    assert size != 9 or 0 < int(alone(x, EDGES).sum()) < 9  # some are alone, and some share a bin


def test_a_picture_in_the_last_bin_comes_back_too_and_the_published_differencing_loses_it() -> None:
    edges = torch.tensor(normal_edges(16, MEAN, DEVIATION))
    middles = [0.1, *((edges[1:-1] + edges[2:]) / 2).tolist(), 0.9]  # a brightness in each bin
    wanted = [middles[number] for number in (1, 4, 7, 10, 13, 15)]
    x, y = batch(6)
    x = torch.stack([(picture - picture.mean()) * 0.05 + brightness for picture, brightness in zip(x, wanted, strict=True)])
    assert bins_between(x, EDGES).tolist() == [1, 4, 7, 10, 13, 15]
    seen = seen_by(imprint(), x, y)
    assert found(seen, x).sum() == 6
    rows, d = seen.as_gradient()["imprint.sort.weight"], seen.as_gradient()["imprint.sort.bias"]
    published = (rows[1:] - rows[:-1]) / (d[1:] - d[:-1]).unsqueeze(1)  # row i - 1 from row i, and no row after the last
    flat = x.flatten(1)
    assert sum(bool(((published - picture).abs().amax(1) < 1e-5).any()) for picture in flat) == 5


@pytest.mark.parametrize("cheating", ["imprint", "imprint_sparse", "bisect"])
def test_a_sum_over_phones_gives_the_same_as_one_phone_with_all_pictures(cheating: str) -> None:
    x, y = batch(8)
    watched = {"rounds": 3, "attacked_round": 3} if cheating == "bisect" else {}
    apart, together = (seen_by(sorting(cheating), x, y, **watched, **added_up(clients)) for clients in (4, 1))
    assert relative(apart.as_gradient(), together.as_gradient()) < 1e-12
    assert torch.equal(found(apart, x), found(together, x))
    assert found(apart, x).any()


def test_a_server_adds_what_it_claims_and_leaves_all_other_parameters_alone() -> None:
    x, _ = batch(2)
    honest, changed = observed(x.float(), model=RELU), observed(x.float(), model=RELU, server=imprint())
    assert CATALOG.servers.get("imprint").changes == "architecture"
    added = set(changed.received.weights) - set(honest.received.weights)
    assert added == {f"imprint.{layer}.{part}" for layer in ("sort", "mix") for part in ("weight", "bias")}
    assert all(torch.equal(changed.received.weights[name], weight) for name, weight in honest.received.weights.items())
    assert (honest.secret, changed.secret.layer) == (None, "imprint.sort")


def test_an_experiment_without_a_server_says_nothing_of_servers() -> None:
    assert "server" not in Experiment().model_dump_json()
    asked = Experiment(server=imprint(bins=32.0)).resolve(CATALOG)
    assert asked.server.fields == {"bins": 32, **LAW, "gain": 1.0}
    assert Experiment.model_validate_json(asked.model_dump_json()) == asked


def test_a_layer_that_is_too_large_and_a_wrong_field_get_a_sentence_before_the_run() -> None:
    large = Experiment(server=imprint(bins=1024), size=64, pictures=(Picture(id="cat"),))
    with pytest.raises(SpecError, match=r"Imprint would have 25\.2 million weights with 1,024 units; allowed are 20 million, which is 813"):
        large.resolve(CATALOG)
    with pytest.raises(SpecError, match=r"server imprint.*bins.*2 to 1024.*given was 1"):
        Experiment(server=imprint(bins=1)).resolve(CATALOG)
    with pytest.raises(SpecError, match=r"server: 'robbing' is not known here; allowed are .*imprint"):
        Experiment(server=Part(id="robbing")).resolve(CATALOG)


def test_the_attack_says_that_it_needs_a_server_that_cheats() -> None:
    x = smooth(2)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    result = leakage.attack(model, x, torch.tensor([1, 2]), attack="bins")
    assert result.verdict["word"] == "does not apply"
    assert "here the server follows the protocol. Choose such a server" in result.verdict["why"]


def test_the_python_interface_takes_a_server_and_uses_the_attack_that_reads_it() -> None:
    x, y = batch(4)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)).double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    result = leakage.attack(model, x, y, server=leakage.plugin("imprint", bins=16, **LAW))
    exact = [bool(((result.reconstruction.double() - picture).abs().amax((1, 2, 3)) < 1e-5).any()) for picture in x]
    assert exact == alone(x, EDGES).tolist()
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    seen = leakage.observe(model, x, y, server="imprint")
    assert seen.secret.layer == "imprint.sort"
    with pytest.raises(ValueError, match="Give either a server, or an update"):
        leakage.attack(model, update=dict(model.named_parameters()), image_shape=(1, 8, 8), batch_size=1, server="imprint")
    with pytest.raises(ValueError, match=r"would have 25\.2 million weights"):
        leakage.observe(
            torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12288, 10)),
            torch.rand(1, 3, 64, 64),
            torch.tensor([1]),
            server=leakage.plugin("imprint", bins=1024),
        )


def test_a_naive_attacker_reads_the_bins_of_fedavg_as_of_one_step() -> None:
    x, y = batch(4)
    one = {"protocol": Part(id="fedavg", fields={"epochs": 1})}
    for adaptive in (True, False):
        seen = seen_by(imprint(), x, y, **one, assume=Assumptions(adaptive=adaptive))
        assert torch.equal(found(seen, x), alone(x, EDGES))
