"""Variants of a comparison by their server: cheating servers with the attack that reads them, beside an honest server."""

from pathlib import Path

import pytest
from comparison_rows import judged
from small_problems import CATALOG

from leakage.results.accuracy_cost import CHANGED, cost, trained_in_table
from leakage.results.comparison import crossed, crossed_with_servers
from leakage.results.server_variants import cheating, differ_in_server, each_with_honest, honest, offered, server_key
from leakage.results.variant import Variant
from leakage.results.worst_case import strongest_attacks
from leakage.runs.store import Store
from leakage.spec.experiment import Experiment, Part
from leakage.spec.prepared import prepared

IMPRINT, BINS, DLG = Part(id="imprint"), Part(id="bins"), Part(id="dlg")
CHEATED = Experiment(server=IMPRINT, attack=BINS)


def test_a_server_is_a_short_text_without_its_defaults() -> None:
    usual = CATALOG.servers.get("imprint").resolve({})
    assert server_key(None, CATALOG) == "none"
    assert server_key(Part(id="imprint", fields={**usual, "bins": 64}), CATALOG) == "imprint:bins=64"
    assert [key for key in offered(CATALOG) if key.startswith("imprint:")] == ["imprint:mean=0.1307;deviation=0.0435"]  # its preset


def test_a_cheating_server_is_attacked_by_what_reads_it_and_an_honest_one_by_what_needs_no_other() -> None:
    assert cheating(IMPRINT, DLG, CATALOG) == {"server": IMPRINT, "attack": BINS}
    own = Part(id="bins", fields={"threshold": 0.5})
    assert cheating(IMPRINT, own, CATALOG)["attack"] == own  # the chosen attack keeps its settings
    assert honest(DLG, CATALOG) == {"server": None, "attack": DLG}
    assert honest(BINS, CATALOG) == {"server": None, "attack": prepared().compare.experiment.attack}


def test_each_variant_is_followed_by_the_same_one_with_an_honest_server() -> None:
    pruned = {"defenses": (Part(id="pruning"),)}
    changes = [each.change for each in each_with_honest([Variant("Pruning", pruned)], CHEATED, CATALOG, attacks_differ=False)]
    assert changes == [pruned, {**pruned, "server": None, "attack": prepared().compare.experiment.attack}]
    attacks = [Variant("Bins", {"attack": BINS}), Variant("DLG", {"attack": DLG})]
    names = [each.title for each in each_with_honest(attacks, CHEATED, CATALOG, attacks_differ=True)]
    assert names == ["Bins", "DLG", "DLG, honest server"]


@pytest.mark.parametrize(
    ("change", "alone"),
    [
        ({"server": None, "attack": DLG}, True),
        ({"server": Part(id="imprint", fields={"bins": 16})}, True),
        ({}, False),
        ({"server": None, "defenses": (Part(id="pruning"),)}, False),
        ({"server": Part(id="bisect"), "attack": DLG}, False),  # not the attack that reads it
    ],
)
def test_a_comparison_of_servers_is_told_from_others(change: dict[str, object], alone: bool) -> None:
    assert differ_in_server([CHEATED, CHEATED.model_copy(update=change)], CATALOG) is alone


def test_the_attack_that_reads_a_server_is_among_the_strongest_on_that_server_alone() -> None:
    assert strongest_attacks(CHEATED, CATALOG)[0].attack.id == "bins"
    assert "bins" not in {each.attack.id for each in strongest_attacks(Experiment(), CATALOG)}


def test_a_table_of_protections_and_servers_has_a_cell_for_every_row() -> None:
    four = [judged(stack, "both", None, server=server) for stack in ("none", "pruning") for server in ("", "Imprint")]
    assert crossed_with_servers(four)
    assert not crossed_with_servers([*four, four[0]])  # two rows for one cell
    assert not crossed_with_servers(four[:2])
    assert not crossed_with_servers([four[0], four[3]])  # a diagonal


def test_protections_with_another_server_have_lines_of_their_own_in_the_matrix_of_attacks() -> None:
    four = [Experiment(server=server, attack=attack) for server in (None, IMPRINT) for attack in (DLG, Part(id="idlg"))]
    assert crossed(four, CATALOG)


def test_an_accuracy_stands_beside_an_honest_server_alone(tmp_path: Path) -> None:
    """It was measured in trainings of the agreed model, and a server that changes the model lets the phones train another one."""
    store = Store(tmp_path / "store.db")
    measured = trained_in_table((), CATALOG)
    assert measured
    assert cost(store, Experiment(), CATALOG).accuracies == measured.accuracies
    cheated = cost(store, CHEATED, CATALOG)
    assert (cheated.accuracies, cheated.blank) == ((), CHANGED)
    store.close()
