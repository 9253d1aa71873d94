"""The choice of the frames to keep when there are too many."""


def log_spaced(numbers: list[int], count: int) -> list[int]:
    """Choose at most `count` of rising numbers, evenly spaced on a log scale; the first and the last are always chosen.

    The most crowded numbers are dropped first. Crowding depends on the numbers, so that repeated thinning leaves no holes.

    >>> log_spaced([1, 2, 3, 4, 5, 6, 7, 8, 64], 5)
    [1, 2, 4, 8, 64]
    """
    kept = list(numbers)
    while len(kept) > max(count, 2):
        crowding = [after / before for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + crowding.index(min(crowding))]
    return kept
