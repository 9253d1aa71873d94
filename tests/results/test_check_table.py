"""The table of variants and checks: numbers, thresholds and alarms, and sentences on false alarms and on servers that were not noticed."""

from comparison_rows import judged

from leakage.results.check_table import ALARM, FALSE_ALARM, UNDEFINED, check_table
from leakage.results.comparison import Row
from leakage.runs.event_parts import CheckFacts
from leakage.spec.words import NOT_SHOWN, RECOGNIZABLE, REFUSED


def reading(check: str, number: float | None, threshold: float, *, tripped: bool, round: int = 1) -> CheckFacts:
    return CheckFacts(check=check, title=check.upper(), measures="m", number=number, threshold=threshold, tripped=tripped, round=round)


def checked(title: str, *readings: CheckFacts, server: str = "", verdict: str | None = NOT_SHOWN, **more: str) -> Row:
    return judged(title, "both", verdict, server=server, readings=readings, **more)


HONEST = checked("honest server", reading("a", 0, 0, tripped=False), reading("b", 2.5, 1.1, tripped=True))
CHEAT = reading("a", None, 0, tripped=True), reading("b", 0.2, 1.1, tripped=False)


def test_each_variant_has_a_cell_for_each_check_with_its_alarm() -> None:
    table = check_table([HONEST, checked("imprint", *CHEAT, server="Imprint", verdict=RECOGNIZABLE)])
    assert table
    assert [(each.title, each.threshold) for each in table.checks] == [("A", 0), ("B", 1.1)]
    assert [line.title for line in table.lines] == ["Honest server", "Imprint"]
    assert [[(cell.number, cell.alarm) for cell in line.cells] for line in table.lines] == [
        [("0", ""), ("2.5", FALSE_ALARM)],
        [("infinite", ALARM), ("0.2", "")],
    ]
    assert [line.result_words for line in table.lines] == [NOT_SHOWN, RECOGNIZABLE]


def test_sentences_name_false_alarms_and_servers_that_other_checks_do_not_notice() -> None:
    noticed = checked("imprint", *CHEAT, server="Imprint")
    flip = checked("flip", reading("a", 0, 0, tripped=False), reading("b", 3, 1.1, tripped=True), server="Flip")
    table = check_table([HONEST, noticed, flip])
    assert table
    assert table.sentences == [
        "False alarms with an honest server: B.",
        "Servers that were not noticed by a check without false alarms: Flip.",  # what alarms at an honest server notices nothing
    ]
    quiet = checked("honest server", reading("a", 0, 0, tripped=False), reading("b", 1, 1.1, tripped=False))
    table = check_table([quiet, noticed, flip])
    assert table
    assert table.sentences == ["False alarms with an honest server: none.", "Servers that were not noticed: none."]


def test_a_check_that_trips_late_says_the_round_and_one_that_is_not_defined_says_so() -> None:
    rounds = [reading("a", 0, 0, tripped=False), reading("a", 1, 0, tripped=True, round=2), reading("b", None, 1.1, tripped=False)]
    table = check_table([checked("flip", *rounds, server="Flip")])
    assert table
    assert [(cell.number, cell.alarm) for cell in table.lines[0].cells] == [("1", "alarm in round 2"), (UNDEFINED, "")]


def test_a_refused_run_is_told_as_refused_and_a_run_without_readings_leaves_its_cells_empty() -> None:
    waits = checked("loki", server="LOKI", verdict=None, status="queued", ended="Waiting")
    refused = checked("imprint", *CHEAT, server="Imprint", verdict=None, refused="The phone refused.")
    table = check_table([waits, refused])
    assert table
    assert [line.result_words for line in table.lines] == ["Waiting", REFUSED]
    assert [cell.number for cell in table.lines[0].cells] == ["", ""]
    assert table.sentences == ["Servers that were not noticed: none."]  # of the run that has told its readings
    assert check_table([waits]) is None
