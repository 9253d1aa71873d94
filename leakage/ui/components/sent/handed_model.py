"""A drawing of the model that a server hands out: its layers in order, what was changed or added, and which phones received what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from leakage.frontend.markup import render
from leakage.runs.event_parts import Cells, CopyFacts, LayerFacts
from leakage.spec.words import counted

KINDS = {"Linear": "Fully connected layer", "Conv2d": "Convolution"}
MARKS = {"added": ("+", "added"), "changed": ("\u2260", "changed"), "removed": ("\u2212", "left out")}  # a sign and a word for each change
NAMED = 4  # layers in a row that are as agreed and that are named each; more are counted
SHOWN = 4  # different copies of a layer that are drawn
SIDE = 4  # of a cell
NOUNS = {"weight": ("rows", "weights"), "bias": ("constants", "constants")}  # of a tensor's rows, and of its numbers
AGREED, HANDED = "as agreed", "handed out"


@dataclass(frozen=True)
class LayerCopy:
    """A layer as some phones received it: the numbers of the phones, and a copy of each tensor by name."""

    clients: tuple[int, ...]
    copies: dict[str, CopyFacts]

    @property
    def changed(self) -> bool:
        """Whether it is not the layer that was agreed on."""
        return any(copy.changed for copy in self.copies.values())


def drawing(layers: Sequence[LayerFacts], clients: int) -> str:
    """Return the drawing as HTML.

    Args:
        layers: the layers of the model, in their order.
        clients: the number of phones that receive it.
    """
    return render("ui/components/sent/handed_model.html.jinja", headline=headline(layers, clients), rows=list(_rows(layers)))


def headline(layers: Sequence[LayerFacts], clients: int) -> str:
    """Say in a sentence or two what the server changed, and whether all phones received the same model."""
    counts = {change: sum(layer.change == change for layer in layers) for change in MARKS}
    done = [
        *([f"adds {counted(counts['added'], 'layer')}"] if counts["added"] else []),
        *([f"changes the numbers of {counted(counts['changed'], 'layer')}"] if counts["changed"] else []),
        *([f"leaves out {counted(counts['removed'], 'layer')}"] if counts["removed"] else []),
    ]
    if not done:
        return "In the first round the server hands out the model on which the phones agreed."
    received = "different models" if any(layer.differs for layer in layers) else "equal models"
    return f"The server {' and '.join(done)}." + (f" The {clients} phones receive {received}." if clients > 1 else "")


def received_by(layer: LayerFacts) -> list[LayerCopy]:
    """Return the different copies of a layer, each with the phones that received it."""
    copy_of = {(client, tensor.name): copy for tensor in layer.tensors for copy in tensor.copies for client in copy.clients}
    groups = dict[tuple[int, ...], list[int]]()
    for client in sorted({client for client, _ in copy_of}):
        groups.setdefault(tuple(id(copy_of[client, tensor.name]) for tensor in layer.tensors), []).append(client)
    return [
        LayerCopy(tuple(members), {tensor.name: copy_of[members[0], tensor.name] for tensor in layer.tensors})
        for members in groups.values()
    ]


def facts(layer: LayerFacts, received: LayerCopy) -> str:
    """Return what is special about the numbers of a layer, in words; "" if nothing is."""
    if layer.change == "changed" and not received.changed:
        return AGREED
    heights = {tensor.name: tensor.shape[0] for tensor in layer.tensors}
    texts = dict[str, list[str]]()  # what is special -> the tensors of which it is
    for name, copy in received.copies.items():
        if copy.changed and (text := _special(copy, heights[name], new=layer.change == "added")):
            texts.setdefault(text, []).append(name)
    nouns = {text: zip(*(NOUNS.get(name, (name, name)) for name in names), strict=True) for text, names in texts.items()}
    return "; ".join(text.format(**dict(zip(("rows", "numbers"), map(" and ".join, both), strict=True))) for text, both in nouns.items())


def _special(copy: CopyFacts, height: int, *, new: bool) -> str:
    """Return what is special about a tensor, with {rows} and {numbers} for its rows and numbers; "" if nothing is."""
    if copy.value is not None:
        return f"all {{numbers}} are {_number(copy.value)}"
    pairs = {row: source for row, source in copy.moved}
    if pairs and len(pairs) == copy.changed_rows and all(pairs.get(source) == row for row, source in pairs.items()):
        return f"{{rows}} {' and '.join(map(str, sorted(pairs)))} have changed places"
    if 2 * copy.zero_rows >= height:
        return f"{copy.zero_rows:,} of {height:,} {{rows}} are 0"
    if copy.flat_rows == height and len(copy.cells[0]) > 1:
        return "each row repeats a single number"
    return "" if new or copy.changed_rows == height else f"{copy.changed_rows:,} of {height:,} {{rows}} are changed"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def title(layer: LayerFacts) -> str:
    """Return what kind of layer it is."""
    return KINDS.get(layer.kind, layer.kind)


def size(layer: LayerFacts) -> str:
    """Return how many numbers, or how many maps of numbers, enter and leave a layer."""
    shape = next((tensor.shape for tensor in layer.tensors if tensor.name == "weight"), layer.tensors[0].shape if layer.tensors else ())
    if len(shape) < 2:
        return f"{prod(shape):,} numbers" if shape else ""
    return f"{shape[1]:,} \u2192 {shape[0]:,}{' maps' if len(shape) > 2 else ''}"


def phones(clients: Sequence[int]) -> str:
    """Return the numbers of phones in words.

    >>> phones((2,)), phones((2, 3, 4)), phones((1, 3)), phones((1, 2, 4))
    ('phone 2', 'phones 2 to 4', 'phones 1 and 3', 'phones 1, 2 and 4')
    """
    if len(clients) == 1:
        return f"phone {clients[0]}"
    if len(clients) > 2 and clients[-1] - clients[0] == len(clients) - 1:
        return f"phones {clients[0]} to {clients[-1]}"
    return f"phones {', '.join(map(str, clients[:-1]))} and {clients[-1]}"


def _rows(layers: Sequence[LayerFacts]) -> Iterator[dict[str, Any]]:
    """Yield what the template draws in each box: a layer that is not as agreed, or layers in a row that are."""
    for same, group in groupby(layers, key=lambda layer: layer.change == "same"):
        alike = list(group)
        if same:
            lines = [(title(layer), size(layer)) for layer in alike] if len(alike) <= NAMED else [(f"{len(alike)} layers", AGREED)]
            yield {"change": "same", "mark": None, "lines": lines, "figures": [], "notes": []}
            continue
        for layer in alike:
            groups = received_by(layer)
            yield {
                "change": layer.change,
                "mark": MARKS[layer.change],
                "lines": [(title(layer), size(layer))],
                "figures": list(_figures(layer, groups)),
                "notes": list(_notes(layer, groups)),
            }


def _figures(layer: LayerFacts, groups: Sequence[LayerCopy]) -> Iterator[dict[str, Any]]:
    """Yield what the template draws for each copy of a layer; first the agreed layer, if no phone received that."""
    if layer.change == "changed" and all(received.changed for received in groups):
        yield {"who": AGREED, **_squares([(tensor.agreed, ()) for tensor in layer.tensors])}
    for received in groups[:SHOWN]:
        who = phones(received.clients) if len(groups) > 1 else HANDED
        yield {"who": who, **_squares([(copy.cells, () if all(copy.marks) else copy.marks) for copy in received.copies.values()])}


def _notes(layer: LayerFacts, groups: Sequence[LayerCopy]) -> Iterator[str]:
    """Yield sentences about the numbers of a layer, one for all phones where it is the same for all."""
    told = {received.clients: facts(layer, received) for received in groups}
    if len(set(told.values())) == 1:
        text = next(iter(told.values()))
        yield from [_sentence(f"each phone receives numbers of its own; {text}" if len(groups) > 1 else text)] if text else []
    else:
        yield from (_sentence(f"{phones(clients)}: {text}") for clients, text in told.items() if text)
    if len(groups) > SHOWN:
        yield f"{len(groups) - SHOWN} more phones receive a layer of their own."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _squares(tensors: Sequence[tuple[Cells, Sequence[bool]]]) -> dict[str, Any]:
    """Return the squares of tensors side by side, each with a frame, a box around each marked row of cells, and the size of all."""
    left, squares, boxes = 0, list[dict[str, Any]](), list[dict[str, Any]]()
    for cells, marks in tensors:
        squares += [
            {"x": left + SIDE * column, "y": SIDE * row, "kind": "above" if value > 0 else "below", "shade": f"{abs(value) / 100:g}"}
            for row, line in enumerate(cells)
            for column, value in enumerate(line)
            if value
        ]
        width = SIDE * max(map(len, cells), default=0)
        boxes.append({"kind": "frame", "x": left, "y": 0, "width": width, "height": SIDE * len(cells)})
        boxes += [{"kind": "box", "x": left, "y": SIDE * row, "width": width, "height": SIDE} for row, mark in enumerate(marks) if mark]
        left += width + SIDE
    height = SIDE * max((len(cells) for cells, _ in tensors), default=0)
    return {"squares": squares, "boxes": boxes, "side": SIDE, "width": left - SIDE, "height": height}
