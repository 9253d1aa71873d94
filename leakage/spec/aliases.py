"""Names that files, stores and addresses of earlier versions use: the one place that knows them. No torch."""

from pydantic import AliasChoices

EARLIER = {  # field today -> what it was called
    "adaptive": ("defense",),  # until 0.2
    "strategy": ("counter",),  # until 0.2
    "timing_key": ("like",),  # until 0.2
}


def names_of(name: str) -> tuple[str, ...]:
    """A field's name today, then its earlier ones."""
    return name, *EARLIER[name]


def also_as_before(name: str) -> AliasChoices:
    """Reads a field under today's name, and under those of earlier versions; it is written under today's alone."""
    return AliasChoices(*names_of(name))
