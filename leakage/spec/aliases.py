"""Names that files, stores and addresses of earlier versions use: the one place that knows them. No torch."""

from pydantic import AliasChoices

from leakage.spec.words import NOT_SHOWN, PARTLY, RECOGNIZABLE

EARLIER = {  # field today -> what it was called
    "adaptive": ("defense",),  # until 0.2
    "strategy": ("counter",),  # until 0.2
    "timing_key": ("like",),  # until 0.2
}

EARLIER_VERDICTS = {  # until 0.2
    "recognisable": RECOGNIZABLE,
    "partly recognisable": PARTLY,
    "not recognisable": NOT_SHOWN,
}

LAB_RUN = "r02"  # the recorded run with which the Lab opens
EARLIER_RUNS = dict.fromkeys(  # until 0.2 it had a new id with every recording
    (
        *("1XNF97x3pAYlBOUz", "5q2xguPLPj2rgbPk", "5rvDWOueJdIvVC77", "Ae0TBPQi6ou83eyH", "BKc6YftMF7m-UV63"),
        *("R4Lw0pPr91Kpz51V", "cvEWk_pO69BEBQyT", "oqZUK4keesSoZ7ud", "uzIQBq9Rjh8enReE", "z26tbcjOL8ztbPVI"),
    ),
    LAB_RUN,
)


def verdict_today(word: str) -> str:
    """The word of a verdict, also of one that an earlier version wrote."""
    return EARLIER_VERDICTS.get(word, word)


def names_of(name: str) -> tuple[str, ...]:
    """A field's name today, then its earlier ones."""
    return name, *EARLIER[name]


def also_as_before(name: str) -> AliasChoices:
    """Reads a field under today's name, and under those of earlier versions; it is written under today's alone."""
    return AliasChoices(*names_of(name))
