"""SME: at alpha 0 it is Inverting Gradients on the mean gradient; alpha follows the gradient along the change of the weights."""

import pytest
import torch
from small_problems import CATALOG, GRANTED, LABELS, TINY, altered, moments, observed, smooth

from leakage.attacks.sme import SurrogateModel
from leakage.engine.core import Observation
from leakage.engine.matching import distance
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.threat_model import assumptions

LENET = Part(id="lenet")  # smooth


def fedavg(steps: int, rate: float = 0.1, **fields: float) -> Part:
    return Part(id="fedavg", fields={"epochs": steps, "rate": rate, **fields})


def far(seen: Observation, x: torch.Tensor, alpha: float) -> float:
    """1 - cos(grad L(w_alpha; x), w_0 - w_T)."""
    gradient = SurrogateModel(seen, alpha_start=alpha, per_layer=False).gradient(x, LABELS[: len(x)])
    moved = {name: value.detach() - seen.replay.client_weights()[name] for name, value in seen.received.weights.items()}
    return float(distance("cosine", moved)({name: g.detach().unsqueeze(0) for name, g in gradient.items()})[0])


@pytest.mark.long
def test_with_alpha_fixed_at_0_it_is_inverting_gradients_without_the_sign_step_by_step() -> None:
    seen, shared = observed(smooth(2), protocol=fedavg(1), assume=GRANTED), {"steps": 30, "step_size": 0.1, "tv_weight": 0.01}
    ours = moments(Part(id="sme", fields={**shared, "alpha_start": 0, "alpha_step": 0}), seen)
    theirs = moments(Part(id="inverting_gradients", fields={**shared, "signed": False}), seen)
    assert len(ours) == len(theirs) == 31
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.x, other.x, atol=1e-4, rtol=0)  # float32 sums in another order, through 30 steps of Adam


@pytest.mark.parametrize(
    ("eigenvalues", "everywhere", "somewhere"), [((1, 1, 1), True, True), ((1, 1, 0.1), False, True), ((1, 0.5, 0.1), False, False)]
)
def test_of_a_quadratic_loss_gradient_and_movement_are_parallel(eigenvalues: tuple[float, ...], everywhere: bool, somewhere: bool) -> None:
    """Linear regression by full batches: grad = H (w - w*). With one eigenvalue the path is straight, and every alpha is right.

    With two it curves within a plane, where one equation fixes alpha: the authors' two-dimensional flow. With three no alpha is right.
    """
    hessian, best, w = torch.diag(torch.tensor(eigenvalues).double()), torch.tensor([1.0, -2.0, 3.0]).double(), torch.zeros(3).double()
    begun = w.clone()
    for _ in range(20):
        w = w - 0.2 * hessian @ (w - best)
    seen = altered(observed(smooth().double()), weights={"w": begun}, client_weights=lambda: {"w": w})

    def cosine(alpha: float) -> float:
        here = SurrogateModel(seen, alpha_start=alpha, per_layer=False).weights()["w"].detach()
        return float(torch.cosine_similarity(hessian @ (here - best), begun - w, dim=0))

    found = [cosine(alpha) for alpha in torch.linspace(0, 1, 1001).tolist()]
    assert (min(found) > 1 - 1e-6, max(found) > 1 - 1e-6) == (everywhere, somewhere)


@pytest.mark.parametrize("per_layer", [False, True])
def test_the_gradient_of_alpha_is_what_central_differences_say(per_layer: bool) -> None:
    x, guess = smooth(2).double(), smooth(2, seed=1).double()
    seen = observed(x, protocol=fedavg(10, 0.3), assume=GRANTED)
    between, h = SurrogateModel(seen, alpha_start=0.4, per_layer=per_layer), 1e-5
    match = distance("cosine", seen.as_gradient())

    def loss() -> torch.Tensor:
        return match({name: g.unsqueeze(0) for name, g in between.gradient(guess.requires_grad_(), LABELS[:2]).items()})[0]

    (gradient,) = torch.autograd.grad(loss(), between.alpha)
    assert len(gradient) == (2 if per_layer else 1)  # the network has two layers
    for place in range(len(gradient)):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                between.alpha[place] += sign * h
            ends.append(float(loss().detach()))
            with torch.no_grad():
                between.alpha[place] -= sign * h
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(float(gradient[place]), rel=1e-4)


def test_alpha_stays_between_0_and_1_however_large_its_steps() -> None:
    seen = observed(smooth(2), protocol=fedavg(5), assume=GRANTED)
    fields = {"steps": 60, "alpha_start": 0.9, "alpha_step": 0.7, "per_layer": True}
    run = moments(Part(id="sme", fields=fields), seen)
    told = [moment.note["alpha"] for moment in run]
    assert all(0 <= alpha <= 1 for alpha in told)
    assert len(set(told)) > 1
    (name,) = run[-1].views
    assert name.startswith("Alpha after 60 of 60 steps")


def test_at_the_truth_some_alpha_points_better_than_0_after_50_local_steps() -> None:
    x = smooth(2)
    seen = observed(x, protocol=fedavg(50), assume=GRANTED)
    found = [far(seen, x, alpha) for alpha in (0, 0.25, 0.5, 0.75, 1)]
    assert min(found[1:]) < 0.5 * found[0]


def test_a_free_alpha_ends_no_further_than_0_on_three_seeds() -> None:
    seen, shared = observed(smooth(2), protocol=fedavg(50), assume=GRANTED), {"steps": 100, "tv_weight": 0}
    for seed in (1, 2, 3):
        free, fixed = (
            float(moments(Part(id="sme", fields=shared | own), seen, seed)[-1].loss)
            for own in ({"alpha_step": 0.01}, {"alpha_start": 0, "alpha_step": 0})
        )
        assert free <= fixed


# ---------------------------------------------------------------- where the client ended


def test_the_weights_at_the_end_are_those_of_torchs_own_optimiser_for_one_phone_and_the_mean_for_two() -> None:
    x = smooth(2)
    seen = observed(x, protocol=fedavg(4), assume=GRANTED)
    own, ended = {name: value.clone() for name, value in seen.model.state_dict().items()}, seen.replay.client_weights()

    def trained(pictures: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        seen.model.load_state_dict(own)
        optimiser = torch.optim.SGD(seen.model.parameters(), lr=0.1)
        for _ in range(4):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(seen.model(pictures), labels).backward()
            optimiser.step()
        return {name: value.detach().clone() for name, value in seen.model.named_parameters()}

    for name, value in trained(x, LABELS[:2]).items():
        torch.testing.assert_close(ended[name], value, atol=1e-6, rtol=0)
    one, other = (trained(x[place : place + 1], LABELS[place : place + 1]) for place in (0, 1))
    summed = Part(id="secure_aggregation", fields={"clients": 2})
    for name, value in observed(x, protocol=fedavg(4), aggregation=summed, assume=GRANTED).replay.client_weights().items():
        torch.testing.assert_close(value, (one[name] + other[name]) / 2, atol=1e-6, rtol=0)


def test_of_fedadmm_the_server_works_out_the_clients_own_model_and_a_naive_one_overshoots_it_twice() -> None:
    """In the first round what is sent is twice as far as the model has moved."""
    admm = Part(id="fedadmm", fields={"epochs": 3, "rate": 0.1})
    adaptive, naive = (observed(smooth(), protocol=admm, assume=assume) for assume in (GRANTED, Assumptions(adaptive=False)))
    for name, received in adaptive.received.weights.items():
        moved = adaptive.replay.client_weights()[name] - received
        torch.testing.assert_close(moved, adaptive.received.update[name] / 2, atol=1e-6, rtol=0)
        torch.testing.assert_close(naive.replay.client_weights()[name] - received, 2 * moved, atol=1e-6, rtol=0)


def test_the_threat_model_table_says_that_local_steps_are_not_used() -> None:
    experiment = Experiment(pictures=(Picture(id="astronaut"),), attack=Part(id="sme"), protocol=fedavg(50), model=TINY)
    rows = {about: (tag, words) for tag, about, words in assumptions(experiment, CATALOG, None, {})}
    assert rows["What the client does"][0] == "does not use"
    assert "between the one sent out and the one that came back" in rows["Naive or adaptive"][1]
    assert "imitates" not in rows["Naive or adaptive"][1]
