"""How often guesses without information on the private pictures count as a leak, and noisy or blurred copies do not.

A card is one verdict, on a batch of 1 or 8. Pictures: the gallery (its first eight, faces, digits, documents), and, where they are in the
data folder, CIFAR-10, MNIST and Olivetti faces; colour and grey, 8, 28 and 32 px. A guess without information is paired with the private
pictures that it fits best, as an answer is. Each card is judged with LPIPS if its network is present, without LPIPS, and as a frame of a
running attack.

    python benchmarks/published/false_alarms.py [--repeats 3]        about 6 minutes on one core
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _table import save, say, table

# isort: split
import _cards
from _cards import Card

from leakage.data.images import datasets
from leakage.results.intervals import wilson
from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT

READINGS: dict[str, Callable[[Card], tuple[str, ...]]] = {
    "answers": lambda card: card.each,
    "answers without LPIPS": lambda card: card.without,
    "live frames": lambda card: card.live,
}
WORDS = (RECOGNIZABLE, SINGLED_OUT, PARTLY, NOT_SHOWN)


def batches() -> list[tuple[str, tuple[str, ...], int, int]]:
    """Return source, ids, channels and side of all batches."""
    found = [*_cards.of_gallery()]
    for source, channels, side in (("cifar10", 3, 32), ("cifar10", 1, 32), ("mnist", 1, 28), ("faces", 1, 32)):
        if datasets()[source].is_available:
            found += _cards.of_data_set(source, channels=channels, side=side, batches=6, of=400 if source == "faces" else 2000)
    return found


def tally(words: Iterable[str]) -> dict[str, int]:
    """Count how often each of WORDS occurs, without those that do not occur."""
    every = list(words)
    return {word: every.count(word) for word in WORDS if word in every}


def counted(found: list[tuple[int, Card]]) -> list[dict[str, Any]]:
    """Count the verdicts for every kind of guess and both sizes of batches, by each of READINGS."""
    rows = []
    for size, kind in sorted({(size, card.kind) for size, card in found}):
        own = [card for of, card in found if (of, card.kind) == (size, kind)]
        words = {name: tally(min(read(card), key=WORDS.index) for card in own) for name, read in READINGS.items()}
        rows.append({"batch": size, "guess": kind, "cards": len(own), **words})
    return rows


def kept(found: list[tuple[int, Card]]) -> list[dict[str, Any]]:
    """Count the verdicts on pictures for every kind of copy."""
    rows = []
    for kind in dict.fromkeys(card.kind for _, card in found):
        own = [card for _, card in found if card.kind == kind]
        words = {name: tally(word for card in own for word in read(card)) for name, read in READINGS.items()}
        rows.append({"copy": kind, "pictures": sum(len(card.each) for card in own), **words})
    return rows


def alarms(rows: list[dict[str, Any]], which: str) -> int:
    """Count the cards that count as a leak."""
    return sum(count for row in rows for word, count in row[which].items() if word != NOT_SHOWN)


def report(rows: list[dict[str, Any]], heads: list[str], which: str) -> None:
    """Print the words of each row."""
    table([*heads, *WORDS], [[*(row[head] for head in heads), *(row[which].get(word, 0) for word in WORDS)] for row in rows])


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--repeats", type=int, default=3, help="guesses of every kind for each batch")
given = parser.parse_args()
torch.set_num_threads(1)
blind, true, net = list[tuple[int, Card]](), list[tuple[int, Card]](), ""
for number, (source, ids, channels, side) in enumerate(batches()):
    own = _cards.batch(source, ids, channels=channels, side=side, seed=number + 1)
    net, size = own.held.perceptual.net, len(ids)
    here = [(size, card) for card in _cards.judge(own, [one for repeat in range(given.repeats) for one in _cards.blind(own, repeat)])]
    blind += here
    true += [(size, card) for card in _cards.judge(own, [*_cards.copies(own)])]
    say(f"{own.name}: {len(here)} cards, {', '.join(f'{alarms(counted(here), name)} {name}' for name in READINGS)}")
rows, copies, cards = counted(blind), kept(true), len(blind)
sums = {}
for name in READINGS:
    found = alarms(rows, name)
    low, high = wilson(found, cards)
    sums[name] = {"alarms": found, "cards": cards, "interval": [low, high]}
    say(f"\n{name}: {found} of {cards} cards that know nothing get a word of a leak, {found / cards:.2%} (95 %: {low:.2%} to {high:.2%})")
    report(rows, ["batch", "guess", "cards"], name)
    say()
    report(copies, ["copy", "pictures"], name)
save("false_alarms", {"about": __doc__, "lpips": net, "repeats": given.repeats, **sums, "guesses": rows, "copies": copies})
