"""`leakage.audit`: which attacks are tried on which updates, what they find, and what is said about those that were not tried."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from small_problems import smooth
from torch import Tensor, nn

import leakage
from leakage.api.arguments import ClientArguments
from leakage.auditing import Audit, Finding
from leakage.auditing.attempts import Attempts
from leakage.auditing.audit_arguments import AuditArguments
from leakage.auditing.audit_attackers import attackers_of, attacks, searches
from leakage.auditing.audit_outcome import NOTHING_SHOWN, UNKNOWN, sorted_findings
from leakage.auditing.card import AuditCard
from leakage.auditing.finding import FAILED, UNTRIED
from leakage.auditing.notices import FROZEN, ZERO_HEAD
from leakage.auditing.sample import Sample
from leakage.auditing.scenes import Scenes
from leakage.defenses.dp_sgd import DPSGD
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.loading import ids as known
from leakage.engine.loading import load
from leakage.models.lenet import LeNet
from leakage.models.mlp import MLP
from leakage.protocols.fedavg import FedAvg
from leakage.protocols.fedsgd import FedSGD
from leakage.spec.conclusion import LEAK
from leakage.spec.words import INAPPLICABLE, NOT_SHOWN, PARTLY, RECOGNIZABLE, REFUSED

BRIEF = 0.05  # minutes
CARD = AuditCard(
    model="Net",
    parameters=9,
    sent=9,
    weights="00",
    image_shape=(1, 8, 8),
    num_classes=2,
    loss="cross-entropy",
    batch_norm="eval",
    plugins={"server": []},
    clients=1,
    client="A client.",
    labels=False,
    statistics="none",
    helpers="none",
    seed=1,
    threads=1,
    versions={},
)


@pytest.fixture(autouse=True)
def seeded() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def mlp(channels: int = 3, side: int = 8) -> nn.Module:
    return MLP(width=64).build((channels, side, side), 5)


def finding(word: str, *, psnr: float = 10.0, pictures: tuple[int, ...] = (0,), title: str = "an attack", why: str = "") -> Finding:
    each = (
        {"each": (word,) * len(pictures), "psnr": (psnr,) * len(pictures), "grey": 9.0} if word in (RECOGNIZABLE, PARTLY, NOT_SHOWN) else {}
    )
    return Finding(attack="a", title=title, attacker="", pictures=pictures, fields={}, word=word, why=why, **each)  # type: ignore[arg-type]


def outcome(*findings: Finding) -> Audit:
    return Audit(sorted_findings(findings), Sample(torch.zeros(2, 1, 8, 8), None, ("0", "1"), "Two."), (), CARD, {}, (), 1.0)


# ---------------------------------------------------------------- what it finds


def test_a_network_whose_first_layer_is_linear_leaks_by_its_bias() -> None:
    told = list[Finding]()
    named = [leakage.plugin("inverting_gradients", steps=20), "linear_layer"]
    data = (smooth(2, 3, 8), torch.tensor([1, 3]))
    audit = leakage.audit(mlp(), data, minutes=2, batch_sizes=(1, 2), attacks=named, protections=False, on_finding=told.append)
    assert (audit.word, audit.headline) == (LEAK, "Leaks. Of 2 pictures: 2 recognizable.")
    assert audit.decision.startswith("Decide as if the people running the server had such pictures")
    best = audit.findings[0]
    assert (best.attack, best.word, best.steps) == ("linear_layer", RECOGNIZABLE, 0)
    assert min(best.psnr) > 60
    assert best.reconstruction is not None
    assert best.labels_right == 1
    assert sorted(told, key=lambda one: one.severity) == list(audit.findings)
    searching = [searches(load("attack", one.attack)()) for one in told]
    assert searching == sorted(searching)  # closed forms come first
    assert any(one.steps for one in told)
    assert "Labels (the classes of the pictures): 1 of 1 read right" in audit.notices[-1]


def test_what_too_few_pictures_cannot_show_is_said_and_a_range_is_a_list() -> None:
    data = (smooth(2, 3, 8), torch.tensor([1, 3]))
    audit = leakage.audit(mlp(), data, minutes=20, batch_sizes=range(1, 4), attacks=["linear_layer"], protections=False)
    assert audit.notices[-1] == "Updates of 3 pictures were not tried: 2 pictures cannot make them."
    assert audit.settings["batch_sizes"] == [1, 2, 3]


@pytest.mark.slow
def test_lenet_leaks_a_picture_of_the_gallery_within_a_minute() -> None:
    from leakage.data.images import gallery, read
    from leakage.evaluation.pools import tensor

    first = gallery()[0]
    told = list[Finding]()
    x = tensor([read("gallery", first.id, 32, 3)])
    audit = leakage.audit(LeNet().build((3, 32, 32), 10), (x, torch.tensor([first.label])), minutes=1, on_finding=told.append)
    best = audit.findings[0]
    assert (audit.word, best.word) == (LEAK, RECOGNIZABLE)
    assert best.grey is not None
    assert best.psnr[0] >= best.grey + 10
    assert audit.seconds < 70


def test_an_audit_repeats_itself() -> None:
    def once() -> list[tuple[float, ...]]:
        data, search = (smooth(1, 3, 8), torch.tensor([1])), leakage.plugin("inverting_gradients", steps=5)
        audit = leakage.audit(mlp(), data, minutes=2, attacks=["linear_layer", search], protections=False, seed=3)
        return [one.psnr for one in audit.findings]

    with torch.random.fork_rng():
        torch.manual_seed(1)
        first = once()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        assert once() == first


def test_the_models_own_prediction_stands_in_for_a_label(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), (250, 20, 90)).save(tmp_path / "a.png")
    model = mlp()
    audit = leakage.audit(model, tmp_path, minutes=BRIEF)
    assert audit.sample.y is not None
    with torch.no_grad():
        assert audit.sample.y.tolist() == model(audit.sample.x).argmax(1).tolist()
    assert audit.sample.origin.endswith("They have no labels; the model's own predictions stand in for them.")


def test_findings_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "leakage.audit"):
        leakage.audit(mlp(), (smooth(1, 3, 8), torch.tensor([1])), minutes=2, attacks=["linear_layer"], protections=False)
    assert any(record.getMessage().startswith("Bias attack, 1 picture in the update: recognizable") for record in caplog.records)


# ---------------------------------------------------------------- who attacks, by what


def titles(*defenses: Any, protocol: Any = None, threat: ThreatModel | None = None) -> list[str]:
    arguments = ClientArguments(defenses=defenses, protocol=protocol or FedSGD(), threat_model=threat)
    return [one.title for one in attackers_of(arguments)]


def test_the_naive_attacker_is_tried_where_it_differs_from_the_adaptive_one() -> None:
    assert titles() == [""]
    assert titles(DPSGD()) == ["adaptive", "naive"]
    assert titles(protocol=FedAvg(epochs=2)) == ["adaptive", "naive"]
    assert titles(DPSGD(), threat=ThreatModel(adaptive=False)) == ["naive"]


def test_closed_forms_come_before_searches_and_the_usual_search_first() -> None:
    ids = [attack.id for attack in attacks(Federation.of(FedSGD(), (), ThreatModel(), seed=1))]
    assert ids[:1] == ["linear_layer"]
    assert ids.index("inverting_gradients") < ids.index("gradinversion")
    assert sorted(ids) == [name for name in known("attack") if load("attack", name).strongest is not None]


def test_what_a_server_has_built_in_is_read_first() -> None:
    audit = leakage.audit(mlp(), (smooth(2, 3, 8), torch.tensor([1, 3])), server="imprint", minutes=2, batch_sizes=(2,), attacks=["bins"])
    assert audit.findings[0].attack == "bins"
    assert "The server changes the model" in audit.card.client


def test_a_check_that_trips_is_an_outcome_of_its_own() -> None:
    data = (smooth(1, 3, 8), torch.tensor([1]))
    audit = leakage.audit(mlp(), data, server="imprint", checks=["new_layers"], minutes=2, attacks=["bins"])
    assert {one.word for one in audit.findings} == {REFUSED}
    assert audit.word == REFUSED
    assert audit.headline.startswith("The client refused the model, and sent nothing.")
    assert not audit.notices


# ---------------------------------------------------------------- what is not tried


def test_attacks_that_do_not_apply_are_named_with_their_reasons_and_count_as_untried() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(4 * 36, 5))
    audit = leakage.audit(model, (smooth(1, 3, 8), torch.tensor([1])), minutes=2, attacks=["linear_layer", "r_gap", "spear"])
    idle = {one.attack: one.why for one in audit.findings if one.word == INAPPLICABLE}
    assert "whose first layer is fully connected" in idle["linear_layer"]
    assert idle["r_gap"].startswith("It needs an update in float64")
    assert idle["spear"] == "It is for 2 to 64 pictures in one update; here there are 1."
    assert not {one.attack for one in audit.tried} & idle.keys()
    assert any(line.startswith("Bias attack, update of 1 picture: does not apply. This attack needs") for line in audit.untried)


def test_without_time_nothing_is_tried_and_nothing_is_known() -> None:
    audit = leakage.audit(mlp(), (smooth(1, 3, 8), torch.tensor([1])), minutes=1e-6)
    assert {one.word for one in audit.findings} == {UNTRIED}
    assert (audit.word, audit.headline, audit.decision) == (UNKNOWN, "No attack came to an answer, so nothing is known.", "")


def test_an_attack_without_time_is_named_once_for_each_size_of_update() -> None:
    audit = leakage.audit(mlp(), (smooth(1, 3, 8), torch.tensor([1])), minutes=1e-6)
    one = replace(audit.findings[0], title="A search")
    late = [replace(one, pictures=pictures, why=why) for pictures, why in (((0,), "12 s."), ((1,), "13 s."), ((0, 1), "99 s."))]
    assert replace(audit, findings=tuple(late)).untried == (
        "A search, update of 1 picture: not tried. 12 s.",
        "A search, update of 2 pictures: not tried. 99 s.",
    )


class Once(torch.autograd.Function):
    """The identity, with a derivative that cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0]


class Blocked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(Once.apply(self.first(x).tanh()).flatten(1))


def test_a_model_without_a_second_derivative_is_no_error() -> None:
    audit = leakage.audit(Blocked(), (smooth(1, 3, 8), torch.tensor([1])), minutes=2, attacks=["inverting_gradients"])
    idle = {one.attack: one.why for one in audit.findings}
    assert "has no second derivative" in idle["inverting_gradients"]
    assert audit.word == UNKNOWN


class Cosine(nn.Module):
    """A head whose labels cannot be read: it is not linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.prototypes = nn.Linear(192, 32), nn.Parameter(torch.randn(5, 32))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x.flatten(1)).sigmoid()
        return 9 * nn.functional.normalize(h, dim=1) @ nn.functional.normalize(self.prototypes, dim=1).T


def test_labels_that_cannot_be_read_are_granted_and_that_is_said() -> None:
    audit = leakage.audit(Cosine(), (smooth(1, 3, 8), torch.tensor([1])), minutes=2, attacks=["linear_layer"], protections=False)
    best = audit.findings[0]
    assert (best.attack, best.attacker, best.word) == ("linear_layer", "labels known", RECOGNIZABLE)
    assert "Labels: not read from the update." in audit.notices[0]
    assert "(labels known)" in str(best)


# ---------------------------------------------------------------- what is said first


def test_states_of_the_model_in_which_findings_mean_little_are_said() -> None:
    zeroed, frozen, faded = (nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Sigmoid(), nn.Linear(16, 5)) for _ in range(3))
    nn.init.zeros_(zeroed[3].weight)
    frozen[1].requires_grad_(requires_grad=False)
    faded[3].bias.data[1] = 40.0  # the class is certain: the gradient of cross-entropy is about exp(-40)
    x, y = smooth(1, 3, 8), torch.tensor([1])

    def said(model: nn.Module, x: Tensor) -> tuple[str, ...]:
        return leakage.audit(model, (x, y), minutes=1e-6, batch_sizes=(1,)).notices

    assert ZERO_HEAD in said(zeroed, x)
    assert FROZEN in said(frozen, x)
    assert "the activations vanish in this model" in said(faded.double(), x.double())[0]
    assert len(said(mlp(), x)) == 1


# ---------------------------------------------------------------- what is concluded


def test_the_worst_verdict_of_each_picture_counts() -> None:
    audit = outcome(finding(NOT_SHOWN, pictures=(0, 1)), finding(RECOGNIZABLE, psnr=30), finding(PARTLY), finding(INAPPLICABLE, why="No."))
    assert dict(audit.conclusion.people) == {RECOGNIZABLE: 1, NOT_SHOWN: 1}
    assert [one.word for one in audit.findings] == [RECOGNIZABLE, PARTLY, NOT_SHOWN, INAPPLICABLE]
    assert audit.headline == "Leaks. Of 2 pictures: 1 recognizable."
    assert audit.untried == ("an attack, update of 1 picture: does not apply. No.",)


def test_a_failed_audit_says_that_it_proves_nothing() -> None:
    audit = outcome(
        finding(PARTLY), finding(FAILED, why="It broke."), finding(UNTRIED, pictures=(0, 1), why="Late."), finding(UNTRIED, why="Late.")
    )
    assert audit.word == NOTHING_SHOWN
    assert audit.headline == "No picture was recognized, and that proves nothing. Of 1 picture: 1 partly."
    assert audit.decision == "Decide as if it may leak: a failed attack proves nothing."
    assert audit.untried == (
        "an attack, update of 1 picture: failed. It broke.",
        "an attack, updates of 1 and 2 pictures: not tried. Late.",
    )


def test_the_word_safe_does_not_occur() -> None:
    for audit in (outcome(finding(RECOGNIZABLE)), outcome(finding(NOT_SHOWN)), outcome(finding(UNTRIED))):
        assert "safe" not in f"{audit} {audit!r}".lower().replace("about safety", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"minutes": 0}, "minutes must be above 0 and at most 1440; got 0"),
        ({"pictures": 0}, "pictures must be whole numbers from 1 to 128; got 0"),
        ({"batch_sizes": ()}, "batch_sizes is empty"),
        ({"normalized": True}, r"normalized=True needs normalization=\(mean, std\)"),
        ({"on_finding": 3}, "on_finding must be a function"),
        ({"batch_sizes": (4,)}, "None of the batch sizes 4 can be made of 1 picture"),
    ],
)
def test_arguments_that_are_not_allowed_get_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        leakage.audit(mlp(), (smooth(1, 3, 8), torch.tensor([1])), **arguments)


def test_a_label_beyond_the_classes_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="Labels must lie in 0 to 4"):
        leakage.audit(mlp(), (smooth(2, 3, 8), torch.tensor([1, 9])), minutes=BRIEF)


def test_an_attempt_leaves_the_attackers_guess_of_hidden_numbers_as_it_was() -> None:
    """PRECODE draws numbers that a search moves together with the pictures: the next attempt begins with the first guess."""
    search = leakage.plugin("inverting_gradients", steps=3)
    arguments = AuditArguments(mlp(), (smooth(1, 3, 8), torch.tensor([1])), defenses=["precode"], attacks=[search], batch_sizes=(1,))
    attempts = Attempts(Scenes(arguments), time.perf_counter() + 60)
    moved = 0
    for attempt in attempts.planned():
        latents = attempts.scenes.scene(attempt.group, attempt.attacker, attempt.attack).seen.knowledge.latents
        before = {name: value.detach().clone() for name, value in latents.items()}
        attempts.make(attempt, 1)
        assert all(torch.equal(value, before[name]) for name, value in latents.items())
        moved += len(latents)
    assert moved
