"""Texts that several packages use: choices of an experiment that are no plug-ins, verdicts on runs, and refusals. No torch."""

from dataclasses import dataclass
from reprlib import Repr

SHORT = Repr()  # of values that a user wrote, which may be of any length; a sentence shows one line
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 80


@dataclass(frozen=True)
class Words:
    """The names and the description of one option of a setting, such as "One output" of the model's outputs."""

    menu: str
    """How a menu offers the choice."""
    short: str
    """The choice in a list of what several runs have in common, after the name of the setting."""
    sentence: str
    """The choice in the threat model table."""


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
LOSSES = {  # of a model with one output; a model with several outputs has cross-entropy
    "cross-entropy": Words("Logistic (cross-entropy)", "cross-entropy", "logistic loss"),
    "exponential": Words("Exponential", "exponential loss", "exponential loss exp(-margin)"),
    "hinge": Words("Hinge", "hinge loss", "hinge loss max(0, 1 - margin): a picture that meets the margin changes nothing in what is sent"),
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
MAX_BLOCK = 20_000_000  # weights of the two layers that a server puts in front of a network; more do not fit a small machine
SERVERS = {  # what a server does with the model that it hands out
    "honest": "honest but curious: it follows the protocol, and reads what arrives",
    "parameters": "it changes the model's parameters before it hands the model out",
    "architecture": "it changes the network before it hands the network out",
}
ATTACKERS = {"adaptive": "Adaptive", "naive": "Naive"}
KNOWS = {"adaptive": "Knows the protection (adaptive)", "naive": "Does not know the protection (naive)"}  # the same attackers in a menu
# A menu lists plug-ins by these groups, in which titles begin alike. Other titles come last.
GROUPS = {
    "attack": ("Guess and compare", "Solve", "Ask"),
    "model": ("Small", "Fully connected", "Deep", "Network for equations"),
    "protocol": ("One step", "Several local steps"),
    "defense": (),
    "server": (),
    "check": (),
}
NAIVELY = "it takes what arrives for a plain gradient."
DIFFERENCE = f"Adaptive: the attacker knows what the phone does, and imitates it. Naive: {NAIVELY}"

# The verdicts on an attack, worst for privacy first. The last verdict says only that this attack showed nothing.
RECOGNIZABLE, SINGLED_OUT, PARTLY, NOT_SHOWN = VERDICTS = ("recognizable", "singled out", "partly", "not shown by this attack")
CUT_SHORT = "stopped: no verdict"  # the attack was stopped before its answer, and had shown nothing until then
INAPPLICABLE = "does not apply"  # no verdict: the attack cannot work on this setting with any picture, and was not tried
REFUSED = "refused"  # no verdict: the phone's checks tripped, and it sent nothing
LEAKS = (RECOGNIZABLE, SINGLED_OUT)
MEANING = {
    RECOGNIZABLE: "The people running the server can see who is in the picture, although the picture never left the phone.",
    SINGLED_OUT: "By eye there may be little to see. But an attacker with some candidates for the private picture can tell from the "
    "guess which candidate it is. That singles somebody out, and is a leak.",
    PARTLY: "Shapes and colours of the picture leak. Somebody who knows the picture may recognize it, and a better attack may see more.",
    NOT_SHOWN: "The result says something about this attack, and nothing about safety: another attack, more tries or another "
    "picture may show more.",
    INAPPLICABLE: "This attack cannot work with these settings, whatever the pictures are. The attack was not tried, and says "
    "nothing about what leaks.",
    CUT_SHORT: "The attack was stopped before it had an answer. What the attack did not show until then says nothing.",
}

# Reasons to refuse a setting: checked before a run from the declarations of plug-ins, and in the engine from the model itself.
MIXED = (
    "{} limits what each picture says alone, and BatchNorm with the statistics of the batch mixes the pictures. "
    "Choose its stored statistics, or a model with GroupNorm."
)
NO_STATISTICS = (
    "BatchNorm has no statistics of this batch: of {} x {} x {} pixels one number per channel is left. "
    "Choose more or larger pictures, or its stored statistics."
)
NO_LABELS = "To read the labels, an attacker needs a linear last layer, and this model has none. Grant the labels instead."
COMPILED = "formula, compiled"  # how a run got its derivatives, beside `settings.STEPS`


def short_repr(value: object) -> str:
    """Return a value as text for a sentence: in one line, without its middle if it is long.

    >>> short_repr("a word")
    "'a word'"
    >>> len(short_repr(["x" * 1000] * 1000))
    79
    """
    text = SHORT.repr(value)  # every part is short, but many parts together may be long
    return text if len(text) <= SHORT.maxstring else f"{text[:50]} … {text[-26:]}"


def format_value(value: float | str) -> str:
    """Return the value of a field as text: on or off, a number without trailing zeros, a word in quotes."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"“{value}”" if isinstance(value, str) else f"{value:g}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun, which gets an s unless the number is 1: 1 epoch, 5 epochs."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def too_large_block(name: str, pixels: int, units: int, *, inputs: int = 0) -> str:
    """Return why the two layers that a server puts in front of a network are too large; "" if they are not.

    Args:
        name: the name of the server.
        pixels: the number of pixel values of one picture.
        units: the number of units of the first layer.
        inputs: how many numbers enter the first layer; 0: the pixel values of one picture.

    >>> too_large_block("Imprint", 3072, 256)
    ''
    """
    each = pixels + (inputs or pixels)
    if each * units <= MAX_BLOCK:
        return ""
    return (
        f"server: the layers of {name} would have {each * units / 1e6:,.1f} million weights with {units:,} units; allowed are "
        f"{MAX_BLOCK / 1e6:.0f} million, which is {MAX_BLOCK // each:,} units for pictures of this size"
        f"{' and this number of phones' if inputs else ''}. Choose fewer bins{', fewer phones' if inputs else ''} or smaller pictures."
    )


def inputs_of_maps(shape: tuple[int, int, int], clients: int) -> int:
    """Return how many numbers enter a layer behind maps of each client: one map for each channel of a picture (C, H, W), and one more.

    >>> inputs_of_maps((3, 32, 32), 8)
    32768
    """
    channels, height, width = shape
    return clients * (channels + 1) * height * width
