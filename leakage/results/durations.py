"""Durations in words."""


def duration(seconds: float) -> str:
    """Write a duration in seconds, rounded for readers.

    >>> duration(0.2), duration(89), duration(150)
    ('1 s', '89 s', '2 min')
    """
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"
