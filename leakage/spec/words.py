"""Words that the whole house shares: choices of an experiment that are no plug-ins, and what a run came to; refusals. No torch."""

from dataclasses import dataclass
from reprlib import Repr

SHORT = Repr()  # of what somebody else wrote: files may hold anything, a sentence has a line
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 80


@dataclass(frozen=True)
class Words:
    """One choice.

    menu    as a menu offers it
    short   in a list of what runs have in common, after what it is about
    sentence  as the threat model table states it
    """

    menu: str
    short: str
    sentence: str


TASKS = {
    "classes": Words("One output for each class", "one output for each class", "{0} classes, cross-entropy"),
    "two": Words(
        "One output (label = the model's own prediction)",
        "one output",
        "one output, {1}; the label is what the network says itself",
    ),
    "flipped": Words(
        "One output (label = the opposite of its prediction)",
        "one output, label the opposite",
        "one output, {1}; the label is the opposite of what the network says, as R-GAP's authors ran it",
    ),
}
LOSSES = {  # of one output; cross-entropy is the only one of several
    "cross-entropy": Words("Logistic (cross-entropy)", "cross-entropy", "logistic loss"),
    "exponential": Words("Exponential", "exponential loss", "exponential loss exp(-margin)"),
    "hinge": Words("Hinge", "hinge loss", "hinge loss max(0, 1 - margin): a picture whose margin is met changes nothing in what is sent"),
}
BATCH_NORM = {
    "eval": Words(
        "stored statistics (eval)", "stored statistics", "uses the statistics stored in the model, not those of this batch (eval mode)"
    ),
    "batch": Words(
        "statistics of this batch",
        "statistics of this batch",
        "uses the statistics of the batch (as while training); the replay takes those of the attacker's guess, never the true ones",
    ),
}
STATISTICS = {
    "none": Words("none", "not granted", "not granted"),
    "running": Words("those stored in the model", "granted as stored", "those stored in the model, which the attacker holds anyway"),
    "exact": Words("exactly those of the batch", "granted for this very batch", "exactly those of the private batch"),
}
ATTACKERS = {"adaptive": "Adaptive", "naive": "Naive"}
KNOWS = {"adaptive": "Knows the protection (adaptive)", "naive": "Does not know it (naive)"}  # the same, as a menu offers it
# Menus of plug-ins go group by group: their titles begin with what they do. What begins otherwise comes last.
GROUPS = {
    "attack": ("Guess and compare", "Solve", "Ask"),
    "model": ("Small", "Fully connected", "Deep", "Network for equations"),
    "protocol": ("One step", "Several local steps"),
    "defense": (),
}
NAIVELY = "it takes what arrives for a plain gradient."
DIFFERENCE = f"Adaptive: it knows what the phone does, and imitates that. Naive: {NAIVELY}"

# What an attack showed of the private pictures, worst first. Of one that showed nothing no more is known than that.
RECOGNIZABLE, SINGLED_OUT, PARTLY, NOT_SHOWN = VERDICTS = ("recognizable", "singled out", "partly", "not shown by this attack")
CUT_SHORT = "stopped: no verdict"  # it was stopped before its answer, and showed nothing until then
INAPPLICABLE = "does not apply"  # no verdict: the attack cannot work on this setting, whatever the pictures are, and was not tried
LEAKS = (RECOGNIZABLE, SINGLED_OUT)
MEANING = {
    RECOGNIZABLE: "Whoever is in the picture can be seen by whoever holds the update, although the picture never left the phone.",
    SINGLED_OUT: "By eye there may be little to see. But whoever has candidates for the private picture can tell from the guess which of "
    "them it is: that singles somebody out, and is a leak.",
    PARTLY: "Shapes and colours leak: somebody who knows the picture may guess it, and a better attack may see more.",
    NOT_SHOWN: "This says something of this attack, and nothing of safety: another attack, more tries or another picture may show it.",
    INAPPLICABLE: "This attack cannot work on this setting, whatever the pictures are. It was not tried, and says nothing of what leaks.",
    CUT_SHORT: "It was stopped before it had an answer. What it did not show until then says nothing.",
}

# Why a setting is refused, by whoever meets it first: before a run from what plug-ins declare, in the engine from the model itself.
MIXED = (
    "{} limits what each picture says alone, and BatchNorm with the statistics of the batch mixes the pictures. "
    "Choose its stored statistics, or a model with GroupNorm."
)
NO_STATISTICS = (
    "BatchNorm has no statistics of this batch: of {} x {} x {} pixels one number per channel is left. "
    "Choose more or larger pictures, or its stored statistics."
)
NO_LABELS = "Reading labels needs a linear last layer; this model has none. Grant the labels instead."


def short_repr(value: object) -> str:
    """A value as a sentence repeats it: in one line, its middle left out where it is long.

    >>> short_repr("a word")
    "'a word'"
    >>> len(short_repr(["x" * 1000] * 1000))
    79
    """
    text = SHORT.repr(value)  # of many parts: each is short, not all together
    return text if len(text) <= SHORT.maxstring else f"{text[:50]} … {text[-26:]}"
