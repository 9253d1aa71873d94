"""The architecture page: the counts of a template, of edited lines and of a cut skip, in words, bars, a table and the address."""

import pytest
from page_visits import Open, fine, words, write

from leakage.networks.grammar import parse, unroll
from leakage.networks.rank import Analysis, analyse
from leakage.networks.rank_verdict import layer_label, missing_equations, open_unknowns, verdict
from leakage.networks.templates import TEMPLATES
from leakage.runs.service import Service
from leakage.ui.architecture.counts import PARTS, figure, sentences, shares, table
from leakage.ui.compare import width

SHAPE = (3, 32, 32)
RESNET18 = "ResNet18, width 16"


def counted(text: str, outputs: int = 10, **settings: object) -> Analysis:
    return analyse(unroll(parse(TEMPLATES.get(text, text)), SHAPE, outputs), **settings)


# ---------------------------------------------------------------- the page


def test_the_page_opens_with_a_template_and_its_verdict(look: Open) -> None:
    at = look()
    assert at.selectbox(key="architecture.template").value == "CNN6"
    assert "Layer by layer, the equations suffice" in words(at)
    assert "**Unknowns minus equations (RA-i): -972**, decided by **layer conv1**" in words(at)
    assert dict(at.query_params) == {}


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("R-GAP's net A", "-484"),
        ("R-GAP's net B", "405"),
        ("CNN6-d", "-708"),
        (RESNET18, "-11,392"),
        ("ResNet101, width 16", "-13,744"),
    ],
)
def test_a_template_brings_its_lines_and_its_index(look: Open, name: str, index: str) -> None:
    at = look()
    at.selectbox(key="architecture.template").select(name).run()
    fine(at)
    assert at.text_area[0].value == TEMPLATES[name].replace(" - ", "\n")
    assert f"**Unknowns minus equations (RA-i): {index}**" in words(at)


def test_editing_a_line_changes_the_verdict_and_the_address(look: Open) -> None:
    at = write(look(net="conv 4@4"), "conv 4@3")
    assert "Layer by layer, not enough equations in layer conv1: 2,658 of 3,072 unknowns determined" in words(at)
    assert at.selectbox(key="architecture.template").value == "R-GAP's net B"
    assert at.query_params["net"] == "conv 4@3"
    at = write(at, "conv 4@3\nconv 3@8")
    assert at.selectbox(key="architecture.template").value is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("conv 4@12\ncnv 3@8", "Step 2: 'cnv 3@8' is not a step"),
        ("linear 10\nconv 3@8", "Step 2 (conv 3@8) needs a picture"),
        ("mean\nconv 3@8", "Step 2 (conv 3@8) needs at least 3 pixels a side"),
    ],
)
def test_a_wrong_line_is_explained_and_kept(look: Open, text: str, sentence: str) -> None:
    at = write(look(), text)
    assert sentence in at.error[0].value
    assert at.text_area[0].value == text
    again = look(net=at.query_params["net"])
    assert again.text_area[0].value == text
    assert "RA-i" in words(write(again, "conv 4@4"))


def test_a_skip_is_cut_by_one_click_and_put_back_by_another(look: Open) -> None:
    at = look(net=TEMPLATES[RESNET18])
    buttons = [button.label for button in at.button if (button.key or "").startswith("cut-")]
    assert buttons[0] == "Block 3: -7,808"
    assert len(buttons) == 8
    at = at.button(key="cut-3").click().run()
    fine(at)
    assert "**Unknowns minus equations (RA-i): -7,808**" in words(at)
    assert "Layer by layer, enough equations in all, but not in block 3 conv1 alone: 11,776 of 16,384 unknowns determined" in words(at)
    at = at.button(key="back-3").click().run()
    assert at.selectbox(key="architecture.template").value == RESNET18
    assert "**Unknowns minus equations (RA-i): -11,392**" in words(at)


def test_fewer_filters_protect_by_one_click(look: Open) -> None:
    at = look(net="conv 4@4")
    at = at.button(key="filters-0").click().run()
    assert at.text_area[0].value == "conv 4@3"
    assert "not enough equations" in words(at)


def test_the_address_repeats_the_page(look: Open) -> None:
    at = look(net=TEMPLATES[RESNET18])
    at.number_input(key="architecture.outputs").set_value(1).run()
    at.slider(key="architecture.batch").set_value(4).run()
    at.segmented_control(key="architecture.size").set_value(64).run()
    at.segmented_control(key="architecture.channels").set_value(1).run()
    at.radio(key="architecture.convention").set_value("w1_plus_shortcut").run()
    fine(at)
    address = dict(at.query_params)
    given = {"outputs": "1", "batch": "4", "size": "64", "channels": "1", "convention": "w1_plus_shortcut"}
    assert address == {"net": TEMPLATES[RESNET18], **given}
    again = look(**address)
    assert words(again) == words(at)
    assert dict(again.query_params) == dict(at.query_params)


def test_an_address_that_is_not_allowed_is_passed_over(look: Open) -> None:
    at = look(size="31", batch="many", outputs="0", convention="both", channels="2")
    assert "**Unknowns minus equations (RA-i): -972**" in words(at)
    assert dict(at.query_params) == {}


def test_the_other_convention_gives_the_printed_index_of_resnet18(look: Open) -> None:
    assert "**Unknowns minus equations (RA-i): -10,240**" in words(look(net=TEMPLATES[RESNET18], convention="w1_plus_shortcut"))


# ---------------------------------------------------------------- words, bars, table


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("batch", [1, 8])
def test_every_template_is_told_drawn_and_tabled(name: str, batch: int) -> None:
    steps, found = parse(TEMPLATES[name]), counted(name, batch=batch)
    assert verdict(found, steps, batch).headline
    assert len(figure(found, steps).data) == len(PARTS)
    assert table(found, steps).count("<tr") == len(found.rows) + 1
    for row in found.rows:
        assert 0 <= sum(shares(row)) <= 200 + 1e-9
        assert (shares(row)[-1] > 0) == (open_unknowns(row) > 0 and missing_equations(row) > 0)
        assert f"{row.x:,} " in sentences(row, layer_label(row, steps))


def test_a_bar_that_lacks_equations_ends_at_all_unknowns() -> None:
    row = counted("R-GAP's net B").rows[0]
    assert shares(row) == pytest.approx([100 * 144 / 3072, 100 * (2658 - 144) / 3072, 0, 100 * 414 / 3072])
    assert sum(shares(row)) == pytest.approx(100)


def test_the_table_says_what_is_exact_what_is_counted_and_what_is_not_known() -> None:
    text = table(counted("CNN6-d"), parse(TEMPLATES["CNN6-d"]))
    assert "<td>3,188</td><td>280, exact</td>" in text
    assert "<td>–</td><td>0, by counting</td>" in table(counted(RESNET18), parse(TEMPLATES[RESNET18]))


def test_the_measured_figure_of_width_has_the_index_of_every_network_and_halves_only_where_that_is_below_0(look: Open) -> None:
    rows = width.measured()["rows"]
    for row in rows:
        found = analyse(unroll(parse(row["network"]), SHAPE, 1))
        assert (row["index"], row["critical"]) == (found.index, found.critical.name if found.critical else "")
    drawn = {line.name: list(zip(line.x, line.y, strict=True)) for line in width.figure().data}
    parts = dict.fromkeys(row["wider"] for row in rows)
    assert drawn == {part: [(row["index"], row["mse"][width.NOISE]) for row in rows if row["wider"] == part] for part in parts}
    first = rows[0]
    halved = [row for row in rows if row["mse"][width.NOISE] < 0.5 * first["mse"][width.NOISE]]
    assert halved
    assert all(row["index"] < 0 < first["index"] for row in halved)
    assert "Does a wider network (more numbers in each layer) give away more of its pictures?" in [box.label for box in look().expander]


def test_the_page_says_what_ends_when_tensors_stay_on_the_phone(look: Open, door: Service) -> None:
    assert any(
        "If the phone keeps a part of its numbers back, attacks that solve equations stop: " in caption.value for caption in look().caption
    )
