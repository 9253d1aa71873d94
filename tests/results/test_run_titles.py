"""The title of a run names its differences from other runs."""

import re

from small_problems import CATALOG

from leakage.results.run_titles import attack_title
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture

PHONES = Part(id="secure_aggregation", fields={"clients": 4})


def test_a_title_names_what_sets_a_run_apart() -> None:
    experiment = Experiment(protocol=Part(id="fedavg"), aggregation=PHONES, rounds=3, attacked_round=2, assume=Assumptions(adaptive=False))
    assert re.search(r"by FedAvg added up over 4 phones in round 2 of 3 \(naive\), seed 1$", attack_title(experiment, CATALOG))
    assert attack_title(Experiment(), CATALOG) == "Astronaut: iDLG on LeNet with no protection, seed 1"
    pruned = Experiment(pictures=(Picture(id="cat"), Picture(id="gone")), defenses=(Part(id="pruning", fields={"fraction": 0.5}),))
    assert attack_title(pruned, CATALOG).startswith("2 pictures: iDLG")
    assert attack_title(pruned, CATALOG).endswith("with Pruning 0.5 (adaptive), seed 1")
    behind = pruned.model_copy(update={"assume": Assumptions(strategy="collect the rounds")})
    assert attack_title(behind, CATALOG).endswith("with Pruning 0.5 (adaptive: collect the rounds), seed 1")
    for alone, subject in ((Picture(id="gone"), "gone: "), (Picture(source="upload", id="a", label=1), "Own picture: ")):
        assert attack_title(Experiment(pictures=(alone,)), CATALOG).startswith(subject)
