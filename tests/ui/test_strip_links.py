"""The strip of a run and of a comparison is linked beside their other downloads."""

from page_visits import Open, fine

from leakage.learn.restored import restore
from leakage.runs.service import Service


def test_the_lab_and_compare_link_their_strips(door: Service, visit: Open) -> None:
    for name in ("c02", "c03"):
        restore(door.store, name)
    for page, query, address in (
        ("", {"run": "c02"}, "/api/runs/c02/strip.png"),
        ("pages/compare.py", {"runs": "c02,c03"}, "/api/compare/strip.png?ids=c02,c03"),
    ):
        at = visit(page, **query)
        fine(at)
        assert [address] == [button.proto.url for button in at.get("link_button") if "strip" in str(button.proto.url)]
