"""The plain verdict on a batch: what this attack showed of it. Identification first, then SSIM and LPIPS against the baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leakage.spec.words import CUT_SHORT, LEAKS, MEANING, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT, VERDICTS

CLEAR, SOME = 0.5, 0.15  # shares of the way from the best baseline to an exact copy
ROOM = 1e-4  # SSIM or LPIPS between the best baseline and an exact copy, below which the two are the same
FRONT = 0.05  # of the line-up: where a guess that knows nothing lands once in twenty times
DISTANCES = {"rank_pixel": "by pixels", "rank_ssim": "by SSIM", "rank_lpips": "by LPIPS"}  # what the line-up ranks by
RULE = (
    "The line-up puts the private picture among others of its kind and ranks them by how near they are to the guess: by pixels, SSIM "
    "and LPIPS. A distance does not count for a picture where one that knows nothing is first too: grey, black, white, its own mean "
    "colour, noise, the mean picture of the line-up. First: by two distances and by most of those that count; or by half of them, "
    "where SSIM or LPIPS goes at least 15 % of the way from the best of the pictures that know nothing to an exact copy. "
    "Recognizable: first, and at least half of that way; where no distance counts, the second is enough. Singled out: first, "
    "whatever it looks like. Partly: first by one distance and nearer than what knows nothing, or among the first 5 % and at least "
    "15 % of that way. Otherwise: not shown by this attack. A guess that knows nothing is first by one distance once in as many "
    "times as pictures stand in the line-up; in a batch more often, at most as many times as it has pictures, as every guess is held "
    "against the picture that it fits best. A batch is judged by its clearest picture."
)
Scores = Mapping[str, Tensor]  # name -> one value per picture (B,), not a number where it is unknown


@dataclass(frozen=True)
class Reference:
    """What guesses are judged against, for each picture of a batch.

    size    pictures in the line-up
    best    ssim and lpips, (B,) each: the best that a picture reaches which knows nothing
    names   which one that is
    firsts  rank_pixel, rank_ssim, rank_lpips -> which picture that knows nothing is first of the line-up as well, "" for none; a distance
            that is missing here always counts
    """

    size: int
    best: Scores
    names: Mapping[str, Sequence[str]]
    firsts: Mapping[str, Sequence[str]]

    def counting(self, scores: Scores) -> Tensor:
        """The ranks by every distance, (distances, B): not a number where one was not measured, or does not count."""
        ranks = [scores[name] if name in scores else unknown(scores["psnr"]) for name in DISTANCES]
        void = [[bool(other) for other in self.firsts.get(name, [""] * len(rank))] for name, rank in zip(DISTANCES, ranks, strict=True)]
        return torch.stack(ranks).masked_fill(torch.tensor(void), torch.nan)

    def rank(self, scores: Scores) -> Tensor:
        """The median rank by the distances that count: (B,), not a number where none does."""
        return self.counting(scores).nanquantile(0.5, dim=0)

    def first(self, scores: Scores) -> Tensor:
        """Whether a guess is first by two and most of the distances that count, or by half and nearer than what knows nothing: bool (B,).

        Where nobody can say how near it is (SSIM and LPIPS are not known), the second is first by half.
        """
        ranks, near = self.counting(scores), way(scores, self.best)
        firsts, all_that_count = (ranks == 1).sum(0), (~ranks.isnan()).sum(0)
        half = (firsts > 0) & (2 * firsts >= all_that_count)
        return ((firsts > 1) & (2 * firsts > all_that_count)) | (half & ((near >= SOME) | near.isnan()))


def way(scores: Scores, best: Scores) -> Tensor:
    """The larger share of the way from the best baseline (0) to an exact copy (1), by SSIM and by LPIPS: (B,). Not a number without both.

    (SSIM - best) / (1 - best), and 1 - LPIPS / best.
    """
    room = {"ssim": 1 - best["ssim"], "lpips": best["lpips"]}  # of a picture of one colour the baseline is an exact copy: no way to go
    by_ssim = ((scores["ssim"] - best["ssim"]) / room["ssim"]).where(room["ssim"] > ROOM, torch.nan)
    by_lpips = (1 - scores["lpips"] / room["lpips"]).where(room["lpips"] > ROOM, torch.nan)
    return by_ssim.fmax(by_lpips)


def verdict(scores: Scores, held: Reference, *, cut_short: bool = False) -> dict[str, Any]:
    """Word, why, meaning and rule, by RULE; and the word of each picture.

    scores      psnr, ssim, lpips and the ranks that were measured, (B,) each
    cut_short   the attack was stopped before its answer: then only what it shows counts, not what it does not show
    """
    ranks, first, share = held.counting(scores), held.first(scores), way(scores, held.best)  # (distances, B), (B,), (B,)
    void, front = ranks.isnan().all(0), (ranks <= FRONT * held.size).any(0)
    clear = (first | void) & (share >= CLEAR)
    singled = first & ~clear
    partly = ~clear & ~singled & (((ranks == 1).any(0) & (share > 0)) | ((front | void) & (share >= SOME)))
    found = {RECOGNIZABLE: clear, SINGLED_OUT: singled, PARTLY: partly}
    nothing = CUT_SHORT if cut_short else NOT_SHOWN
    each = tuple(next((word for word, pictures in found.items() if pictures[place]), nothing) for place in range(len(share)))
    word = min(each, key=[*VERDICTS, CUT_SHORT].index)
    near = ranks.nan_to_num(held.size).mean(0) / held.size
    clearest = int((3.0 * clear + 2.0 * singled + 1.0 * partly + share.nan_to_num(0).clamp(-1, 1) / 4 - near / 8).argmax())
    numbers = ", ".join([standing(scores, held, clearest), *closeness(scores, held, clearest)])
    total, counts = len(share), [f"{int(pictures.sum())} {word}" for word, pictures in found.items() if bool(pictures.any())]
    why = f"The attacker's picture: {numbers}."
    if total > 1:
        why = f"Of {total} pictures {', '.join(counts) or 'none shown'}. The clearest: {numbers}."
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
    return (
        " Rank 1 alone singles nobody out: only one distance counts here, and it is hardly nearer than pictures that know nothing, "
        "which chance can do."
    )


def standing(scores: Scores, held: Reference, picture: int) -> str:
    """The place of one private picture in the line-up, by every distance that was measured, in words."""
    told, void = [], []
    for name, how in DISTANCES.items():
        rank = float(scores[name][picture]) if name in scores else torch.nan
        other = held.firsts[name][picture] if name in held.firsts else ""
        if rank == rank and other:
            void.append(f"{how} {other} is first too")
        elif rank == rank:
            told.append(f"{rank:g} {how}")
    places = f"place {', '.join(told)}" if told else "no place that counts"
    return f"{places} of {held.size} in the line-up" + (f" ({', '.join(void)}: does not count)" if void else "")


def closeness(scores: Scores, held: Reference, picture: int) -> list[str]:
    """PSNR, SSIM and LPIPS of one guess in words, beside the best of the pictures that know nothing."""
    told = [f"PSNR {scores['psnr'][picture]:.1f} dB"]
    for name in ("ssim", "lpips"):
        if not bool(scores[name].isnan().any()):
            which = f", {held.names[name][picture]}" if name in held.names else ""
            told.append(f"{name.upper()} {scores[name][picture]:.2f} (best baseline {held.best[name][picture]:.2f}{which})")
    return told + ["no SSIM, whose window needs 7 pixels"] * bool(scores["ssim"].isnan().all())


def unknown(like: Tensor) -> Tensor:
    """A score that was not measured: not a number for every picture, (B,)."""
    return torch.full_like(like, torch.nan)
