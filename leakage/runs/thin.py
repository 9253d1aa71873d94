"""Which frames to keep when there are too many."""


def log_spaced(places: list[int], count: int) -> list[int]:
    """Choose at most `count` of rising numbers, evenly spaced on a log scale: drop the most crowded first, the first and the last never.

    Thinning what was thinned before leaves no holes: what is crowded depends on the places, not on how many are left.

    >>> log_spaced([1, 2, 3, 4, 5, 6, 7, 8, 64], 5)
    [1, 2, 4, 8, 64]
    """
    kept = list(places)
    while len(kept) > max(count, 2):
        crowding = [after / before for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + crowding.index(min(crowding))]
    return kept
