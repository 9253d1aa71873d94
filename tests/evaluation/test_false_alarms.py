"""Fewer than one in a hundred guesses without information count as a leak; guesses with information keep their verdict."""

import sys
from functools import cache
from importlib import import_module
from types import ModuleType

import pytest

from leakage.settings import ROOT
from leakage.spec.words import NOT_SHOWN, RECOGNIZABLE

QUICK = (1, 4, 8)  # of the gallery's batches: eight faces in colour, an astronaut, a document


@cache
def cards() -> ModuleType:
    """The guesses of benchmarks/published/false_alarms.py: the figure in the docs is of the same ones."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module("_cards")
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def alarms(places: tuple[int, ...], repeats: int) -> tuple[int, int, list[str]]:
    """Cards, and of these that get a word of a leak as an answer or on the way; and every word that was given."""
    count, wrong, words = 0, 0, list[str]()
    for place, (source, ids, channels, side) in enumerate(cards().of_gallery()):
        if place in places:
            own = cards().batch(source, ids, channels=channels, side=side, seed=place + 1)
            found = cards().judge(own, [one for repeat in range(repeats) for one in cards().blind(own, repeat)])
            count += len(found)
            wrong += sum(set(card.each + card.live) != {NOT_SHOWN} for card in found)
            words += [word for card in found for word in card.each + card.live]
    return count, wrong, words


@pytest.mark.long
def test_sixty_guesses_that_know_nothing_get_no_word_of_a_leak() -> None:
    count, wrong, _ = alarms(QUICK, repeats=2)
    assert count >= 60
    assert wrong == 0


@pytest.mark.slow
def test_of_five_hundred_guesses_that_know_nothing_one_in_a_hundred_gets_a_word_at_most_and_none_is_recognizable() -> None:
    count, wrong, words = alarms(tuple(range(len([*cards().of_gallery()]))), repeats=2)
    assert count >= 500
    assert wrong <= count / 100
    assert RECOGNIZABLE not in words


@pytest.mark.long
def test_copies_under_noise_or_out_of_focus_keep_a_word() -> None:
    own = cards().batch("gallery", ("astronaut", "chelsea", "coffee", "face-0"), channels=3, side=32, seed=1)
    for card in cards().judge(own, [*cards().copies(own)]):
        assert NOT_SHOWN not in card.each, card.kind
        assert NOT_SHOWN not in card.without, card.kind
