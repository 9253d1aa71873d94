"""The rank of the whole gradient in sentences: what it means for every attack near a picture, and its limits."""

from leakage.networks.rank import Analysis
from leakage.networks.rank_verdict import lacks_equations
from leakage.runs.event_parts import GradientRank
from leakage.ui.architecture import counts as counts
from leakage.ui.common.markdown import Markdown, escape

NOT_YET = "The counts are about attacks that go layer by layer. Other attacks could use the whole gradient: its rank is measured below."
MEANS_FULL = (
    "Near this picture every change of a pixel changes the gradient: attacks that use the whole gradient can in principle tell all "
    "pictures near this one apart."
)
MEANS_SOME = "All {} random directions of the picture that were tried change the gradient: no direction was found that it leaves open."
MEANS_SHORT = (
    "Pictures near this one that differ only in the other {} directions send the same gradient, to first order and to seven digits: these "
    "directions have to be guessed. The {} directions that it determines may be enough to recognize the picture."
)
LIMITS = (
    "Measured at the astronaut picture, for LeakyReLU and untrained weights, in float64. The rank holds near this picture. With "
    "piecewise linear layers (ReLU) it holds while each unit stays on its side of zero. A large condition number means that noise hides "
    "some directions. A full rank is no proof that a search finds the picture."
)
SKETCHED = "Too many numbers are sent to keep them all: a random sketch of them gives singular values within a factor of two."
TRIED = "For so large a picture only {} random directions were tried: condition and counts are at least these."
PROTECTIVE = (
    "**Protective of {} of {} directions**, at this picture: layer by layer equations are missing, and the whole gradient has too few."
)
NOT_PROTECTIVE = "**Not protective**: layer by layer equations are missing, but all layers together determine what each alone does not."
HELP = (
    "From the singular values of J = d(gradient)/d(picture), one column for every pixel value. Rank: the number of singular values above "
    "10⁻⁷ of the largest. Condition: the largest of these divided by the smallest. Noise: a random vector of the "
    "stated length is added to the gradient. A direction counts if a step along it, as long as from black to white in one pixel, moves the "
    "gradient by more than the noise in one number."
)
SHARES = {0.001: "a thousandth", 0.01: "a hundredth"}


def rank_of(measured: GradientRank) -> str:
    """Return the rank and the condition number of the gradient's derivative with respect to the picture, as a phrase."""
    if measured.directions < measured.unknowns and not measured.short:
        rank = f"rank at least {measured.rank:,} of {measured.unknowns:,}"
    else:
        rank = f"rank {measured.rank:,} of {measured.unknowns:,}"
    if measured.condition is None:
        return rank
    return f"{rank}, condition {condition(measured.condition)}"


def condition(value: float) -> str:
    """Format a condition number: as an integer below 100,000, and as a power of ten above."""
    return f"{value:,.0f}" if value < 1e5 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def noise(measured: GradientRank) -> str:
    """Say for each noise level in how many directions a change of the picture changes the gradient by more than the noise."""
    parts = [
        f"{level.directions:,} above noise {SHARES.get(level.share, f'{level.share:g} times')} as long as the gradient"
        for level in measured.above
    ]
    return f"Of its directions there are {', '.join(parts)}."


def meaning(measured: GradientRank) -> str:
    """Say what the rank means for attacks that use the whole gradient."""
    if measured.short:
        return MEANS_SHORT.format(f"{measured.unknowns - measured.rank:,}", f"{measured.rank:,}")
    return MEANS_FULL if measured.directions == measured.unknowns else MEANS_SOME.format(f"{measured.directions:,}")


def protective(analysis: Analysis, measured: GradientRank) -> bool:
    """Return whether the network protects this picture in part: a layer lacks equations, and the rank of the gradient is too small."""
    return lacks_equations(analysis) and measured.short


def extent(analysis: Analysis, measured: GradientRank) -> Markdown:
    """Say whether the network protects this picture in part; return an empty text if no layer lacks equations, or it is undecided."""
    if not lacks_equations(analysis):
        return Markdown("")
    if protective(analysis, measured):
        return Markdown(PROTECTIVE.format(f"{measured.unknowns - measured.rank:,}", f"{measured.unknowns:,}"))
    return Markdown(NOT_PROTECTIVE if measured.directions == measured.unknowns else "")


def limits(measured: GradientRank) -> str:
    """Say for which pictures and networks the rank holds, and how it was approximated."""
    directions = [TRIED.format(f"{measured.directions:,}")] if measured.directions < measured.unknowns else []
    return " ".join([LIMITS, *([] if measured.exact else [SKETCHED]), *directions])


def sentences(analysis: Analysis, measured: GradientRank) -> list[Markdown]:
    """Return the sentences on the rank of the whole gradient, in the order in which the page shows them."""
    first = Markdown(f"**The whole gradient: {escape(rank_of(measured))}**")
    texts = [first, escape(f"{meaning(measured)} {noise(measured)}"), extent(analysis, measured), escape(limits(measured))]
    return [text for text in texts if text]
