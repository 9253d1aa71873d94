"""LOKI: a sum over clients keeps the pictures of each client apart, and gives those alone in their client's bins exactly."""

from functools import cache

import numpy as np
import pytest
import torch
from brightness_bins import LAW, added_up, alone, among, batch, found, narrow_edges, seen_by, sorting
from small_problems import CATALOG, RELU, altered, moments, observed
from torch import Tensor

import leakage
from leakage.data.images import gallery, read
from leakage.engine.core import Observation, Params
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture, SpecError

LOKI = sorting("loki")
EDGES = narrow_edges(16)
SLOW = sorting("loki", **CATALOG.servers.get("loki").presets["Several local steps"])
STEPS = [{"epochs": 5}, {"epochs": 1, "mini_batch": 1}, {"epochs": 3, "mini_batch": 2}]  # of FedAvg, with its local learning rate of 1e-4
PUBLIC = 0.4734, 0.1252  # mean and standard deviation of the brightness of CIFAR-10's test pictures


def blocks(seen: Observation, clients: int, channels: int = 1) -> Tensor:
    """Return the columns of the added layer that belong to each client, (clients, K, C + 1, H W): its pictures, and its map of ones."""
    rows = seen.update["loki.sort.weight"]
    return rows.reshape(len(rows), clients, channels + 1, -1).transpose(0, 1)


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("size", [4, 12, 40])
def test_exactly_the_pictures_that_are_alone_in_a_bin_of_their_phone_come_back(size: int, clients: int) -> None:
    x, y = batch(size)
    single = alone(x, EDGES, clients)
    assert torch.equal(found(seen_by(LOKI, x, y, **added_up(clients)), x), single)
    assert size != 40 or 0 < int(single.sum()) < 40  # some are alone, and some share a bin


def test_the_sum_gives_more_pictures_than_the_sparse_imprint_finds_in_it() -> None:
    x, y = batch(20)
    sparse = found(seen_by(sorting("imprint_sparse"), x, y, **added_up(4)), x)
    assert torch.equal(sparse, alone(x, EDGES))
    assert int(found(seen_by(LOKI, x, y, **added_up(4)), x).sum()) == int(alone(x, EDGES, 4).sum()) > int(sparse.sum())


@pytest.mark.parametrize("clients", [1, 4])
@pytest.mark.parametrize("steps", STEPS)
def test_several_local_steps_give_the_same_pictures(steps: dict[str, int], clients: int) -> None:
    x, y = batch(12)
    seen = seen_by(SLOW, x, y, protocol=Part(id="fedavg", fields=steps), **added_up(clients))
    assert torch.equal(found(seen, x), alone(x, EDGES, clients))


@pytest.mark.parametrize("protocol", [Part(id="fedsgd"), Part(id="fedavg", fields={"epochs": 1})])
def test_the_columns_of_a_phone_do_not_depend_on_the_pictures_of_other_phones(protocol: Part) -> None:
    x, y = batch(12)
    others = batch(12, seed=1)[0]
    before = blocks(seen_by(LOKI, x, y, protocol=protocol, **added_up(4)), 4)
    for client in range(4):
        mixed = others.clone()
        mixed[3 * client : 3 * client + 3] = x[3 * client : 3 * client + 3]
        after = blocks(seen_by(LOKI, mixed, y, protocol=protocol, **added_up(4)), 4)
        assert before[client].any()
        assert [torch.equal(before[number], after[number]) for number in range(4)] == [number == client for number in range(4)]


def test_the_map_of_ones_holds_the_bias_gradient_of_its_own_phone() -> None:
    x, y = batch(12)
    ones = blocks(seen_by(LOKI, x, y, **added_up(4)), 4)[:, :, 1]  # (clients, K, H W)
    for number in range(4):
        own = slice(3 * number, 3 * number + 3)
        bias = seen_by(LOKI, x[own], y[own]).update["loki.sort.bias"]
        assert torch.allclose(ones[number], bias.unsqueeze(1).expand_as(ones[number]), rtol=1e-9, atol=0)


@cache
def forty() -> tuple[Tensor, Tensor]:
    """Return 40 gallery pictures (40, 3, 32, 32) without the X-ray images, shuffled, with their labels."""
    items = [item for item in gallery() if not item.id.startswith("xray")]
    drawn = torch.randperm(len(items), generator=torch.Generator().manual_seed(1))[:40]
    pictures = np.stack([read("gallery", items[int(number)].id, 32, 3) for number in drawn])
    return torch.tensor(pictures).permute(0, 3, 1, 2).double() / 255, torch.tensor([items[int(number)].label for number in drawn])


def test_of_forty_pictures_of_eight_phones_38_come_back_and_the_published_rescaling_gives_13() -> None:
    x, y = forty()
    server = Part(id="loki", fields={"bins": 64, "mean": PUBLIC[0], "deviation": PUBLIC[1]})
    seen = seen_by(server, x, y, model=Part(id="lenet"), **added_up(8))
    single = alone(x, narrow_edges(64, *PUBLIC), 8)
    assert int(single.sum()) == 38
    assert torch.equal(found(seen, x), single)
    rows = blocks(seen, 8, channels=3)[:, :, :3].flatten(2).abs()  # (clients, K, n)
    least, most = rows.amin(2, keepdim=True), rows.amax(2, keepdim=True)
    rescaled = ((rows - least) / (most - least).clamp_min(1e-30)).view(8, -1, 3, 32, 32)
    parts = zip(rescaled, x.split(5), strict=True)
    assert sum(int(among(candidates, own, 1e-2).sum()) for candidates, own in parts) == 13


def test_the_attack_keeps_at_most_as_many_pictures_of_a_phone_as_the_phone_has() -> None:
    x, y = batch(8)
    noise = Part(id="gaussian_noise", fields={"scale": 0.1})  # fills all 16 bins of each of the 4 phones
    answer = moments(Part(id="bins"), seen_by(LOKI, x, y, defenses=(noise,), **added_up(4)))[-1]
    assert answer.x.shape == (8, 1, 8, 8)
    assert answer.note["read from"].startswith("8 of the bins of loki.sort")


@pytest.mark.parametrize("clients", [1, 4])
def test_the_attack_converts_the_received_update_to_a_gradient_once(clients: int) -> None:
    seen, converted = seen_by(LOKI, *batch(8), **added_up(clients)), list[Params]()

    def to_gradient(update: Params) -> Params:
        converted.append(update)
        return seen.replay.to_gradient(update)

    moments(Part(id="bins"), altered(seen, to_gradient=to_gradient))
    assert [update is seen.update for update in converted] == [True, False]  # what arrived, and the replay of the answer


@pytest.mark.parametrize("granted", [True, False])
def test_the_pictures_stand_at_the_places_of_their_phones(granted: bool) -> None:
    x, y = batch(12)
    seen = seen_by(LOKI, x, y, assume=Assumptions(labels=granted), **added_up(4))
    answer, single = moments(Part(id="bins"), seen)[-1], alone(x, EDGES, 4)
    for number in range(4):
        own = slice(3 * number, 3 * number + 3)
        assert torch.equal(among(answer.x[own], x[own], 1e-5), single[own])
        assert not granted or sorted(answer.y[own].tolist()) == sorted(y[own].tolist())


def test_the_server_adds_what_it_claims_and_gives_each_phone_a_convolution_of_its_own() -> None:
    x, _ = batch(2)
    honest, changed = observed(x.float(), model=RELU), observed(x.float(), model=RELU, server=LOKI, **added_up(2))
    assert CATALOG.servers.get("loki").changes == "architecture"
    added = set(changed.received.weights) - set(honest.received.weights)
    assert added == {f"loki.{layer}.{part}" for layer in ("maps", "sort", "mix") for part in ("weight", "bias")}
    assert all(torch.equal(changed.received.weights[name], weight) for name, weight in honest.received.weights.items())
    server = leakage.plugin("loki", bins=16, **LAW)
    handed = [server.single_out(changed.model, changed.received.weights, member, 2) for member in range(2)]
    assert [weights["loki.maps.bias"].tolist() for weights in handed] == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert [weights["loki.maps.weight"][:, 0, 1, 1].tolist() for weights in handed] == [[500, 0, 0, 0], [0, 0, 500, 0]]
    assert all(torch.equal(handed[0][name], handed[1][name]) for name in changed.received.weights if "loki.maps" not in name)


def test_a_layer_for_too_many_phones_gets_a_sentence_before_the_run_and_in_the_python_interface() -> None:
    words = r"LOKI would have 36\.7 million weights with 256 units; allowed are 20 million, which is 139 units .* this number of phones"
    alone_here = Experiment(server=Part(id="loki"), size=64, pictures=(Picture(id="cat"),) * 8)
    alone_here.resolve(CATALOG)  # 7.3 million for a single phone
    with pytest.raises(SpecError, match=words + r".*Choose fewer bins, fewer phones or smaller pictures"):
        Experiment(**{**dict(alone_here), **added_up(8)}).resolve(CATALOG)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12288, 10))
    eight = leakage.plugin("secure_aggregation", clients=8)
    with pytest.raises(ValueError, match=words):
        leakage.observe(model, torch.rand(8, 3, 64, 64), torch.arange(8), server="loki", aggregation=eight)
