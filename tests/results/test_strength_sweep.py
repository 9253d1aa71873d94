"""A sweep is one number of one protection, with the same seeds for each strength."""

from leakage.results.strength_sweep import find_sweep
from leakage.spec.experiment import Assumptions, Experiment, Part

SCALES = (0.0001, 0.001, 0.01)


def noisy(scale: float, *, adaptive: bool = True, **settings: object) -> Experiment:
    return Experiment(
        defenses=(Part(id="clipping", fields={"bound": 1.0}), Part(id="gaussian_noise", fields={"scale": scale})),
        assume=Assumptions(adaptive=adaptive),
        **settings,
    )


def test_a_sweep_is_one_number_of_one_protection_and_nothing_else() -> None:
    both = [noisy(scale, adaptive=adaptive) for scale in SCALES for adaptive in (False, True)]
    assert find_sweep(both) == ("gaussian_noise", "scale", [0.0001, 0.0001, 0.001, 0.001, 0.01, 0.01])
    assert find_sweep([noisy(0.1), noisy(0.1)]) is None
    assert find_sweep([noisy(0.1), noisy(0.2, seed=7)]) is None
    assert find_sweep([noisy(0.1), Experiment()]) is None
    assert find_sweep([Experiment(), Experiment(seed=2)]) is None
    formats = [Experiment(defenses=(Part(id="low_precision", fields={"number": number}),)) for number in ("int8", "fp16")]
    assert find_sweep(formats) is None
    two = [Experiment(defenses=(Part(id="dp_sgd", fields={"max_grad_norm": clip, "noise_multiplier": clip}),)) for clip in (1.0, 2.0)]
    assert find_sweep(two) is None


def test_seeds_may_differ_where_every_strength_has_each_of_them() -> None:
    tried = [noisy(scale, seed=seed) for seed in (1, 2, 3) for scale in SCALES]
    assert find_sweep(tried) == ("gaussian_noise", "scale", [*SCALES] * 3)
    assert find_sweep(tried[:-1]) is None
