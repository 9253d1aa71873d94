"""The rank of the whole gradient in sentences: what it means for every attack near a picture, and its limits."""

from leakage.networks.rank import Analysis
from leakage.networks.rank_verdict import lacks_equations
from leakage.runs.event_parts import GradientRank
from leakage.ui.architecture import counts as counts
from leakage.ui.common.markdown import Markdown, escape

NOT_YET = (
    "The counts of equations and unknown numbers are about attacks that solve one layer after the other. Other attacks could use the "
    "whole gradient: how much it says (its rank) is measured below."
)
MEANS_FULL = (
    "Near this picture every change of a pixel changes the gradient: attacks that use the whole gradient can in principle tell all "
    "pictures near this one apart."
)
MEANS_SOME = (
    "The picture was changed at random in {} ways, and every change altered the gradient: no change was found that the gradient hides."
)
MEANS_SHORT = (
    "There are {} independent ways to change this picture a little that leave the gradient the same (to seven "
    "digits): an attacker has to guess there. The other {} ways change the gradient, and may be enough to recognize the picture."
)
LIMITS = (
    "The rank was measured with the picture of the astronaut, on an untrained network (with LeakyReLU), with exact numbers (64 bits). The "
    "rank (how many changes of the picture the gradient shows) holds for pictures close to this picture. If small parts of the "
    "network (units) can switch on and off (ReLU), the rank stays the same as long as none of them switches. A large condition "
    "number means that random numbers added to the gradient (noise) hide some changes of the picture. If the gradient shows all "
    "changes of the picture (full rank), this is no proof that an attack finds the picture."
)
SKETCHED = (
    "The gradient has too many numbers to keep them all: the rank was measured on sums that mix them at random. How strongly "
    "each change of the picture shows (its singular value) may be half or twice the stated number."
)
TRIED = (
    "The picture is large, so {} random changes of it were tried, not more. The true rank and the true condition are at least as large as "
    "stated."
)
PROTECTIVE = (
    "**Protective of {} of {} ways to change this picture**: single layers lack equations, and the whole gradient has too few of them."
)
NOT_PROTECTIVE = (
    "**Not protective**: single layers have too few equations, but all layers together tell this picture from all pictures near it."
)
HELP = (
    "Rank: how many independent changes of the picture the gradient shows. A change counts if it shows at least a ten-millionth as clearly "
    "as the clearest one (singular values of d(gradient)/d(picture)). Condition: how many times as clearly the gradient shows the clearest "
    "of these changes as the faintest. Noise means that random numbers were added to the gradient. Taken together, they are as large as "
    "the stated share of the gradient. A change of the picture, as large as turning one pixel from black to white, can be told from noise "
    "if it changes the gradient by more than the noise typically changes a single number of the gradient."
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
        f"{level.directions:,} can be told from noise of {SHARES.get(level.share, f'{level.share:g} times')} the gradient's size"
        for level in measured.above
    ]
    return f"A change of the picture changes the gradient too. Of the independent changes of the picture, {', '.join(parts)}."


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
