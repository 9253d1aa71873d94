"""The plain verdict on a batch: what this attack showed of it that luck does not explain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from leakage.spec.words import CUT_SHORT, LEAKS, MEANING, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT, VERDICTS

CLEAR, NEAR, SOME = 0.5, 0.3, 0.15  # shares of the way to an exact copy
COMPANY = 4  # of so many pictures of a batch one must be first of its line-up, and two at least, before that alone counts
ROOM = 1e-4  # SSIM or LPIPS between the best baseline and an exact copy, below which the two are the same
ROOM_MSE = 1e-6  # likewise, mean squared error: 60 dB
DISTANCES = {"rank_pixel": "by pixels", "rank_ssim": "by SSIM", "rank_lpips": "by LPIPS"}  # what the line-up ranks by
RULE = (
    "A guess counts as a leak if it passes two tests. First, it is nearer to the private picture than pictures that show nothing of it: "
    "grey, black, white, noise, blurred noise, its mean colour, the mean picture of the line-up. By PSNR or SSIM it must go at least 15 % "
    "of the way from the best of these to an exact copy. Second, among the pictures of the line-up the private one is the nearest to the "
    "guess, by at least half of the distances that count: pixels, SSIM and LPIPS. A distance does not count where a picture that shows "
    "nothing comes first too. In a batch luck has more tries. There the guess must also be 15 % nearer than the others of the line-up, or "
    "two pictures and a quarter of the batch must pass both tests. A guess that is half of the way nearer than the others of the line-up "
    "needs no first place. "
    "Recognizable: it is also 30 % nearer than the others, and by SSIM or LPIPS half of the way from pictures that show nothing to an "
    "exact copy. Singled out: it passes both tests, whatever it looks like. Partly: it counts without a first place. Otherwise: not shown "
    "by this attack. Of 1,260 verdicts on guesses that knew nothing, 5 were wrong. A batch is judged by its clearest picture."
)
Scores = Mapping[str, Tensor]  # name -> one value per picture (B,), not a number where it is unknown


@dataclass(frozen=True)
class Reference:
    """What guesses are judged against, for each picture of a batch.

    size    pictures in the line-up
    best    psnr, ssim and lpips, (B,) each: the best that a picture reaches which knows nothing
    names   which one that is
    firsts  rank_pixel, rank_ssim, rank_lpips -> which picture that knows nothing is first of the line-up as well, "" for none; a distance
            that is missing here always counts
    others  psnr and ssim, (B,) each: the best that another picture of the line-up reaches
    ssim_counts  whether the pictures are large enough that SSIM tells a guess from luck; else it is ranked by, and is no sign of a leak
    """

    size: int
    best: Scores
    names: Mapping[str, Sequence[str]]
    firsts: Mapping[str, Sequence[str]]
    others: Scores
    ssim_counts: bool = True

    def ranks(self, scores: Scores) -> Tensor:
        """The ranks by every distance, (distances, B): not a number where one was not measured, or one that knows nothing is first too."""
        ranks = [scores[name] if name in scores else unknown(scores["psnr"]) for name in DISTANCES]
        void = [[bool(other) for other in self.firsts.get(name, [""] * len(rank))] for name, rank in zip(DISTANCES, ranks, strict=True)]
        return torch.stack(ranks).masked_fill(torch.tensor(void), torch.nan)

    def counting(self, scores: Scores) -> Tensor:
        """The same of the distances that count for a verdict."""
        return self.ranks(scores if self.ssim_counts else {**scores, "rank_ssim": unknown(scores["psnr"])})

    def rank(self, scores: Scores) -> Tensor:
        """The median of `ranks`: (B,), not a number where there are none."""
        return self.ranks(scores).nanquantile(0.5, dim=0)

    def first(self, scores: Scores) -> Tensor:
        """Whether the private picture is first by at least half of the distances that count: bool (B,)."""
        ranks = self.counting(scores)
        return (ranks == 1).any(0) & (2 * (ranks == 1).sum(0) >= (~ranks.isnan()).sum(0))

    def above_others(self, scores: Scores) -> Tensor:
        """`nearer` than the pictures that know nothing and than the others of the line-up: (B,)."""
        return self._nearer(scores, {name: self.best[name].fmax(self.others[name]) for name in ("psnr", "ssim")})

    def _nearer(self, scores: Scores, best: Scores) -> Tensor:
        return nearer(scores if self.ssim_counts else {**scores, "ssim": unknown(scores["psnr"])}, best)

    def is_evidence(self, scores: Scores) -> Tensor:
        """Whether a guess shows something of its picture that luck does not explain, by RULE: bool (B,)."""
        both, above = self.first(scores) & (self._nearer(scores, self.best) >= SOME), self.above_others(scores)
        alone, company = len(both) == 1, int(both.sum()) >= max(2, len(both) / COMPANY)
        return (both & ((above >= SOME) | alone | company)) | (above >= CLEAR)

    def identified(self, scores: Scores) -> Tensor:
        """Whether the private picture can be picked out of its line-up by the guess: bool (B,)."""
        return self.first(scores) & self.is_evidence(scores)


class Clarity(NamedTuple):
    """How clearly a guess shows its picture, as a key to sort by: the verdict describes the first of the largest of a batch.

    word       0 for the strongest word of the rule, then -1, -2 and -3: a stronger word comes before every weaker one
    closeness  the way to an exact copy, less half of the mean place in the line-up: it decides between pictures of the same word
    """

    word: int
    closeness: float

    @classmethod
    def of(cls, weaker: int, way: float, place: float) -> "Clarity":
        """Return the key of a picture.

        Args:
            weaker: how many words of the rule are stronger than that of the picture.
            way: to an exact copy, from -1 to 1.
            place: the mean over the distances that count, as a fraction of the line-up, from 0 to 1.
        """
        return cls(word=-weaker, closeness=way - place / 2)


def nearer(scores: Scores, best: Scores) -> Tensor:
    """The larger share of the way from the best of others (0) to an exact copy (1), by squared error and by SSIM: (B,).

    1 - MSE / MSE of the best, and (SSIM - best) / (1 - best). Not a number where the best is a copy itself.

    Unlike `way` it leaves LPIPS out: by LPIPS any natural picture is about half of the way nearer to another than grey or noise is.
    """
    least = 10 ** (-best["psnr"] / 10)
    by_error = (1 - 10 ** (-scores["psnr"] / 10) / least).where(least > ROOM_MSE, torch.nan)
    return by_error.fmax(_by_ssim(scores, best))


def way(scores: Scores, best: Scores) -> Tensor:
    """The larger share of the way from the best baseline (0) to an exact copy (1), by SSIM and by LPIPS: (B,). Not a number without both.

    (SSIM - best) / (1 - best), and 1 - LPIPS / best.
    """
    by_lpips = (1 - scores["lpips"] / best["lpips"]).where(best["lpips"] > ROOM, torch.nan)
    return _by_ssim(scores, best).fmax(by_lpips)


def _by_ssim(scores: Scores, best: Scores) -> Tensor:
    room = 1 - best["ssim"]  # of a picture of one colour the baseline is an exact copy: no way to go
    return ((scores["ssim"] - best["ssim"]) / room).where(room > ROOM, torch.nan)


def verdict(scores: Scores, held: Reference, *, cut_short: bool = False) -> dict[str, Any]:
    """Word, why, meaning and rule, by RULE; and the word of each picture.

    scores      psnr, ssim, lpips and the ranks that were measured, (B,) each
    cut_short   the attack was stopped before its answer: then only what it shows counts, not what it does not show
    """
    evident, first, share = held.is_evidence(scores), held.first(scores), way(scores, held.best)  # (B,) each
    clear = evident & (held.above_others(scores) >= NEAR) & (share >= CLEAR)
    singled, partly = evident & first & ~clear, evident & ~first & ~clear
    found = {RECOGNIZABLE: clear, SINGLED_OUT: singled, PARTLY: partly}
    nothing = CUT_SHORT if cut_short else NOT_SHOWN
    each = tuple(next((word for word, pictures in found.items() if pictures[place]), nothing) for place in range(len(share)))
    word = min(each, key=[*VERDICTS, CUT_SHORT].index)
    near = held.counting(scores).nan_to_num(held.size).mean(0) / held.size
    words, ways = [*found, nothing], share.nan_to_num(0).clamp(-1, 1)
    keys = [Clarity.of(words.index(own), float(ways[place]), float(near[place])) for place, own in enumerate(each)]
    clearest = keys.index(max(keys))
    numbers = ", ".join([standing(scores, held, clearest), *closeness(scores, held, clearest)])
    total, counts = len(share), [f"{int(pictures.sum())} {word}" for word, pictures in found.items() if bool(pictures.any())]
    why = f"The attacker's picture: {numbers}."
    if total > 1:
        why = f"Of {total} pictures {', '.join(counts) or 'none shown'}. The clearest: {numbers}."
    if evident[clearest] and not first[clearest]:
        why += " It is so much nearer to the private picture than all the others in the line-up that this needs no first place."
    if word in LEAKS or first[clearest]:  # else a rank of 1 is that of a distance which does not count, as `standing` says
        why += odd_rank(word, held.rank(scores), clearest)
    return {"word": word, "why": why, "meaning": MEANING[word], "rule": RULE, "each": each}


def odd_rank(word: str, ranks: Tensor, clearest: int) -> str:
    """Why the rank that stands beside the verdict seems to say something else, in a sentence; empty where it does not.

    ranks   the median over the distances that count, of every picture (B,); the median of these is what stands there
    """
    rank = float(ranks.nanquantile(0.5))
    if word in LEAKS:
        several = len(ranks) > 1 and rank > 1
        return f" Rank {rank:g} is the median of all pictures; the verdict is that of the clearest." if several else ""
    if float(ranks[clearest]) != 1:
        return ""
    luck = "its guess is hardly nearer to it than pictures that know nothing" if len(ranks) == 1 else "one of several is first by luck"
    return f" Rank 1 alone singles nobody out: {luck}."


def standing(scores: Scores, held: Reference, picture: int) -> str:
    """The place of one private picture in the line-up, by every distance that was measured, in words."""
    told, void = [], []
    for name, how in DISTANCES.items():
        rank = float(scores[name][picture]) if name in scores else torch.nan
        other = held.firsts[name][picture] if name in held.firsts else ""
        if rank == rank and other:
            void.append(f"{how} {other} is first too")
        elif rank == rank and name == "rank_ssim" and not held.ssim_counts:
            void.append(f"{rank:g} {how}, which luck reaches in pictures so small")
        elif rank == rank:
            told.append(f"{rank:g} {how}")
    if not told:
        return f"no place in the line-up of {held.size} ({', '.join(void) or 'nobody ranked it'}, so it says nothing)"
    return f"place {', '.join(told)} of {held.size} in the line-up" + (f" ({', '.join(void)}: does not count)" if void else "")


def closeness(scores: Scores, held: Reference, picture: int) -> list[str]:
    """PSNR, SSIM and LPIPS of one guess in words, beside the best of the pictures that know nothing."""
    told = []
    for name, form, unit in (("psnr", ".1f", " dB"), ("ssim", ".2f", ""), ("lpips", ".2f", "")):
        if not bool(scores[name].isnan().any()):
            which = f", {held.names[name][picture]}" if name in held.names else ""
            best = f"{held.best[name][picture]:{form}}{unit}{which}"
            told.append(f"{name.upper()} {scores[name][picture]:{form}}{unit} (best baseline {best})")
    return told + ["no SSIM, whose window needs 7 pixels"] * bool(scores["ssim"].isnan().all())


def unknown(like: Tensor) -> Tensor:
    """A score that was not measured: not a number for every picture, (B,)."""
    return torch.full_like(like, torch.nan)
