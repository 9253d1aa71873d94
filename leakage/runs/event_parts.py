"""The parts of a run's events that have a fixed shape, with finite numbers only. No torch.

A required number refuses NaN and infinity; a number that may be unknown (`Maybe`) becomes None instead.
"""

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from leakage.spec.aliases import verdict_today


def finite(value: Any) -> Any:
    """Return a value with None in place of every number that is not finite, in lists, tuples and dicts too: JSON has no infinity."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


Maybe = Annotated[float | None, BeforeValidator(finite)]  # None: it was not measured, or is no number
Cells = tuple[tuple[int, ...], ...]  # rows of a small drawing of a matrix, each from -100 to 100; empty: there is none
Note = Annotated[dict[str, JsonValue], BeforeValidator(finite)]  # words and numbers that an attack reports, under names that it chooses


class EventPart(BaseModel):
    """A part of an event that has a fixed shape."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, use_attribute_docstrings=True)


class PrivatePicture(EventPart):
    """The title, class name and label of one private picture; the label is an index into the names of the classes."""

    title: str
    class_name: str
    label: int


class ReceivedLayer(EventPart):
    """One tensor of the update: its norm, and `strip`, the magnitudes of its entries as a row of gray levels from 0 to 255."""

    name: str
    shape: tuple[int, ...]
    norm: Maybe
    strip: tuple[int, ...]


class ReceivedUpdate(EventPart):
    """The update that the server received, in numbers.

    norm     the l2 norm of the gradient that the attacker computes from the update
    singles  a strip, as in ReceivedLayer, for the gradient of each single picture; these gradients are never sent
    """

    entries: int
    bytes: int
    norm: Maybe = None
    layers: tuple[ReceivedLayer, ...] = ()
    singles: tuple[tuple[int, ...], ...] = ()


class BaselineScores(EventPart):
    """The scores of a baseline, a picture that does not depend on the private pictures. PSNR is in dB.

    The ranks are those of the private picture in the line-up: pictures of its kind, sorted by their distance from the baseline.
    """

    psnr: Maybe = None
    mse: Maybe = None
    ssim: Maybe = None
    lpips: Maybe = None
    rank: Maybe = None
    rank_pixel: Maybe = None
    rank_ssim: Maybe = None
    rank_lpips: Maybe = None


class GradientDistances(EventPart):
    """The distances between two updates, over all tensors together."""

    cosine: Maybe = None
    relative_l2: Maybe = None


class FrameScores(GradientDistances):
    """The scores of a frame, see `Frame` in evaluation/referee.py; scores that were not measured at this frame are left out."""

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


class CheckFacts(EventPart):
    """What one check of the received model found on the phones in one round.

    title      the short name of the check
    measures   what the number says, in words that follow "measures"
    number     the largest number that a phone measured; None where the check is not defined, or where the number is infinite
    threshold  above this number the check trips
    round      the number of the round, from 1
    """

    check: str
    title: str
    measures: str = ""
    number: Maybe
    threshold: float
    tripped: bool
    round: int


class Ending(EventPart):
    """How an attack ended, and in words; of a run that the phone refused also what its checks found.

    how  answer, limit, stopped (by hand), over (the time of its question), diverged, inapplicable or refused
    """

    how: str
    words: str
    checks: tuple[CheckFacts, ...] = Field(default=(), exclude_if=lambda given: not given)


class LineupFacts(EventPart):
    """The line-up, the private picture among others of its kind that are ranked by similarity to a guess: its size, and what it shows."""

    size: int
    words: str


class LpipsFacts(EventPart):
    """The network that computes LPIPS (empty: there is no LPIPS), and a sentence that names the network, or says why there is none."""

    net: str
    words: str


class PrivacyBound(EventPart):
    """Epsilon of differential privacy at `delta` after `times` uses; None where epsilon is too large to bound anything.

    whom  the unit that is protected: one picture, or all pictures of a client; and what that depends on
    """

    value: Maybe
    delta: float
    times: int
    whom: str = "one picture, present or absent"


class TrainingPrivacy(EventPart):
    """Epsilon of a whole training at `delta`, for the unit `whom` of one client; None where epsilon is too large to bound anything.

    sampled    if every batch were drawn at random: each of the client's pictures with probability `rate` in each of `steps` local steps
    unsampled  as it was trained: each picture takes part in `uses` steps, one in each pass over the pictures
    """

    sampled: Maybe
    unsampled: Maybe
    delta: float
    rate: float
    steps: int
    uses: int
    whom: str = "one picture, present or absent"


class NoiseCount(EventPart):
    """How many directions of a picture change the gradient by more than noise with `share` times the norm of the gradient."""

    share: float
    directions: int


class GradientRank(EventPart):
    """Rank and condition number of d(gradient)/d(picture), see `Spectrum` in engine/jacobian_rank.py.

    unknowns    the number of pixel values of the picture
    directions  the number of directions of the picture that were measured: all pixel values, or fewer random directions
    sent        the number of values of the gradient
    exact       whether the whole gradient was used, rather than a random projection
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
        """Whether the gradient does not determine this picture, to first order: some measured directions do not change the gradient."""
        return self.rank < self.directions


class FindingFacts(EventPart):
    """What one attack on a recorded update found; there is no truth to compare with.

    state            answered, does not apply, not tried or failed; `why` gives the reason of the last three
    count            how many pictures it reconstructed
    distance         the relative distance of the update that its pictures would give from the received one; `random_distance`: of
                     random pictures
    agreement        how alike the answers from different random starts are: mean PSNR in dB
    planted          PSNR in dB that the same attack reaches on public pictures under the same card; `planted_grey`: that of a grey picture
    proved           whether the attack has proved its pictures, by an equation that no other pictures satisfy
    warnings         sentences on what speaks against the card
    """

    title: str
    attacker: str
    state: str
    why: str = ""
    count: int = 0
    labels: tuple[int, ...] = ()
    distance: Maybe = None
    random_distance: Maybe = None
    agreement: Maybe = None
    planted: tuple[Maybe, ...] = ()
    planted_grey: Maybe = None
    proved: bool = False
    warnings: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0


class CopyFacts(EventPart):
    """A tensor as some clients received it, beside the agreed one; see engine/handed_layers.py. Its rows are along the first dimension.

    clients    the numbers of the clients that received it, from 1
    flat_rows  how many rows have one value throughout
    value      the value of all entries, if they are equal
    moved      pairs of a row and the other row of the agreed tensor that it equals
    cells      the tensor in at most 16 x 16 whole numbers from -100 to 100
    marks      for each row of cells, whether a row of the tensor is changed
    """

    clients: tuple[int, ...]
    changed: bool
    changed_rows: int
    zero_rows: int
    flat_rows: int
    value: Maybe
    moved: tuple[tuple[int, ...], ...] = ()
    cells: Cells
    marks: tuple[bool, ...]


class TensorFacts(EventPart):
    """A tensor of a layer: its name and shape; if the layer is not as agreed, its agreed cells, and each copy that clients received."""

    name: str
    shape: tuple[int, ...]
    agreed: Cells
    copies: tuple[CopyFacts, ...]


class LayerFacts(EventPart):
    """A layer of the model that a server hands out: its class, and whether it is the same, changed, added or removed."""

    name: str
    kind: str
    change: str
    tensors: tuple[TensorFacts, ...]

    @property
    def differs(self) -> bool:
        """Whether clients receive different values."""
        return any(len(tensor.copies) > 1 for tensor in self.tensors)
