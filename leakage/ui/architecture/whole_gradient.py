"""The rank of the whole gradient in words: the number that speaks of every attack near a picture, and what it does not say."""

from leakage.networks.rank import Analysis
from leakage.networks.rank_verdict import lacks_equations
from leakage.runs.event_parts import GradientRank
from leakage.ui.architecture import counts as counts
from leakage.ui.common.markdown import Markdown, escape

NOT_YET = (
    "The counts speak of attacks that go layer by layer alone. What others could use, the rank of the whole gradient, is measured below."
)
MEANS_FULL = (
    "Near this picture every change of a pixel changes the gradient: attacks that use the whole gradient can in principle tell all "
    "pictures near this one apart."
)
MEANS_SOME = "All {} random directions of the picture that were tried change the gradient: no direction was found that it leaves open."
MEANS_SHORT = (
    "Pictures near this one that differ only in the other {} directions send the same gradient, to first order and to seven digits: these "
    "have to be guessed. The {} that it tells may be enough to recognize the picture."
)
LIMITS = (
    "Measured at the astronaut, for LeakyReLU and untrained weights, in float64. It holds near this picture, and where layers are made of "
    "straight pieces (ReLU) on the piece on which it lies. A large condition means that noise drowns directions. "
    "A full rank is no proof that a search gets there."
)
SKETCHED = "Too many numbers are sent to hold them all: a random sketch of them gives singular values within a factor of two."
TRIED = "Of so large a picture only {} random directions were tried: condition and counts are at least these."
PROTECTIVE = (
    "**Protective of {} of {} directions**, at this picture: layer by layer equations are missing, and the whole gradient is short too."
)
NOT_PROTECTIVE = "**Not protective**: layer by layer equations are missing, but all layers together tell what each alone does not."
HELP = (
    "The singular values of J = d(gradient)/d(picture), one column for every pixel value. Rank: those above 10⁻⁷ of the largest. "
    "Condition: the largest by the smallest of these. Noise: all its numbers together are so long, and a direction counts that a change "
    "by one pixel from black to white moves by more than the noise in one number."
)
SHARES = {0.001: "a thousandth", 0.01: "a hundredth"}


def rank_of(found: GradientRank) -> str:
    """Rank and condition in one line."""
    if found.directions < found.unknowns and not found.short:
        rank = f"rank at least {found.rank:,} of {found.unknowns:,}"
    else:
        rank = f"rank {found.rank:,} of {found.unknowns:,}"
    if found.condition is None:
        return rank
    return f"{rank}, condition {condition(found.condition)}"


def condition(value: float) -> str:
    """Three digits; large ones as powers of ten."""
    return f"{value:,.0f}" if value < 1e5 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def noise(found: GradientRank) -> str:
    """How many directions stand out of noise."""
    parts = [
        f"{one.directions:,} above noise {SHARES.get(one.share, f'{one.share:g} times')} as long as the gradient" for one in found.above
    ]
    return f"Of its directions there are {', '.join(parts)}."


def meaning(found: GradientRank) -> str:
    """What that means."""
    if found.short:
        return MEANS_SHORT.format(f"{found.unknowns - found.rank:,}", f"{found.rank:,}")
    return MEANS_FULL if found.directions == found.unknowns else MEANS_SOME.format(f"{found.directions:,}")


def protective(counted: Analysis, found: GradientRank) -> bool:
    """Whether the network may be called so: a layer has too few equations, and this rank is short too."""
    return lacks_equations(counted) and found.short


def extent(counted: Analysis, found: GradientRank) -> Markdown:
    """Whether the network is protective, where its layers suggest that it might be; else nothing."""
    if not lacks_equations(counted):
        return Markdown("")
    if protective(counted, found):
        return Markdown(PROTECTIVE.format(f"{found.unknowns - found.rank:,}", f"{found.unknowns:,}"))
    return Markdown(NOT_PROTECTIVE if found.directions == found.unknowns else "")


def limits(found: GradientRank) -> str:
    """What it does not mean."""
    tried = [TRIED.format(f"{found.directions:,}")] if found.directions < found.unknowns else []
    return " ".join([LIMITS, *([] if found.exact else [SKETCHED]), *tried])


def sentences(counted: Analysis, found: GradientRank) -> list[Markdown]:
    """All that the page says of it, in order."""
    first = Markdown(f"**The whole gradient: {escape(rank_of(found))}**")
    said = [first, escape(f"{meaning(found)} {noise(found)}"), extent(counted, found), escape(limits(found))]
    return [one for one in said if one]
