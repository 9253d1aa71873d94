"""The parts of a run's events that have a fixed shape, and how their numbers are kept finite. No torch.

A number that has to be known refuses NaN and infinity; one that may honestly be unknown (`Maybe`) turns them into None.
"""

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from leakage.spec.aliases import verdict_today


def finite(value: Any) -> Any:
    """Return a value with None for every number that is not finite, in lists, tuples and dicts too: JSON knows no infinity."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


Maybe = Annotated[float | None, BeforeValidator(finite)]  # None: it was not measured, or is no number
Note = Annotated[dict[str, JsonValue], BeforeValidator(finite)]  # an attack's own words and numbers, under names of its own


class EventPart(BaseModel):
    """A part of an event that has a fixed shape."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, use_attribute_docstrings=True)


class PrivatePicture(EventPart):
    """One private picture in words; its label is an index into the names of the classes."""

    title: str
    class_name: str
    label: int


class ReceivedLayer(EventPart):
    """One tensor of the update: its norm, and shades from 0 to 255."""

    name: str
    shape: tuple[int, ...]
    norm: Maybe
    strip: tuple[int, ...]


class ReceivedUpdate(EventPart):
    """What the server received. `norm` is that of the gradient it makes of it, `singles` are strips of single pictures' gradients."""

    entries: int
    bytes: int
    norm: Maybe = None
    layers: tuple[ReceivedLayer, ...] = ()
    singles: tuple[tuple[int, ...], ...] = ()


class BaselineScores(EventPart):
    """What a picture that knows nothing scores: PSNR in dB, ranks in the line-up."""

    psnr: Maybe = None
    mse: Maybe = None
    ssim: Maybe = None
    lpips: Maybe = None
    rank: Maybe = None
    rank_pixel: Maybe = None
    rank_ssim: Maybe = None
    rank_lpips: Maybe = None


class GradientDistances(EventPart):
    """How far two updates are apart, over all tensors at once."""

    cosine: Maybe = None
    relative_l2: Maybe = None


class FrameScores(GradientDistances):
    """The scores of a frame, see `Frame` in evaluation/referee.py. What was not measured at this frame was not given and is not sent."""

    psnr: Maybe = None
    mse: Maybe = None
    ssim: Maybe = None
    lpips: Maybe = None
    label_accuracy: Maybe = None
    rank: Maybe = None
    identified: Maybe = None
    registered_psnr: Maybe = None
    rmse255: Maybe = None
    psnr_adadefense: Maybe = None
    mse_norm: Maybe = None
    psnr_each: tuple[Maybe, ...] | None = None
    ssim_each: tuple[Maybe, ...] | None = None
    lpips_each: tuple[Maybe, ...] | None = None
    rank_each: tuple[Maybe, ...] | None = None
    rank_pixel: tuple[Maybe, ...] | None = None
    rank_ssim: tuple[Maybe, ...] | None = None
    rank_lpips: tuple[Maybe, ...] | None = None


class VerdictWords(EventPart):
    """The verdict: a word, the numbers behind it, what it means, and the rule; at the end of a run also the word of each picture."""

    word: Annotated[str, BeforeValidator(verdict_today)]
    why: str
    meaning: str
    rule: str
    each: tuple[str, ...] = Field(default=(), exclude_if=lambda given: not given)


class Ending(EventPart):
    """How an attack ended: answer, limit, stopped (by hand), over (the time of its question), diverged or inapplicable; and in words."""

    how: str
    words: str


class LineupFacts(EventPart):
    """How many pictures stand in the line-up, the true picture among them, and what they show."""

    size: int
    words: str


class LpipsFacts(EventPart):
    """The network that LPIPS looks through, empty where it is off, and why."""

    net: str
    words: str


class PrivacyBound(EventPart):
    """Epsilon of differential privacy at `delta` after so many uses; None where it is above all that says anything.

    whom  what it bounds: one picture, or all that a client holds; and what that depends on
    """

    value: Maybe
    delta: float
    times: int
    whom: str = "one picture, present or absent"


class TrainingPrivacy(EventPart):
    """Epsilon of a whole training at `delta`, for the unit `whom` of one client; None where epsilon is too large to bound anything.

    sampled    were every batch drawn at random: each of the client's pictures with probability `rate` in each of `steps` local steps
    unsampled  without that assumption, as it was trained: the picture takes part in `uses` steps, one in each pass over the pictures
    """

    sampled: Maybe
    unsampled: Maybe
    delta: float
    rate: float
    steps: int
    uses: int
    whom: str = "one picture, present or absent"


class NoiseCount(EventPart):
    """Directions of a picture that stand out of noise, which is `share` times as long as the gradient."""

    share: float
    directions: int


class GradientRank(EventPart):
    """Rank and condition of d(gradient)/d(picture), see `Spectrum` in engine/jacobian_rank.py.

    directions  of the picture that were tried: all pixel values, or fewer random ones; exact: no sketch of the gradient's numbers
    sent        numbers of the gradient
    """

    rank: int
    unknowns: int
    directions: int
    sent: int
    condition: Maybe
    exact: bool
    above: tuple[NoiseCount, ...]

    @property
    def short(self) -> bool:
        """Whether the gradient leaves directions of this picture open, to first order: more were tried than move it."""
        return self.rank < self.directions
