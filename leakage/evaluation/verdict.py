"""The verdict on a batch in a word: what the guesses show of the private pictures that luck does not explain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leakage.spec.words import CUT_SHORT, LEAKS, MEANING, NOT_SHOWN, PARTLY, RECOGNIZABLE, SINGLED_OUT, VERDICTS

CLEAR, NEAR, SOME = 0.5, 0.3, 0.15  # fractions of the way to an exact copy
COMPANY = 4  # one in this many pictures of a batch, and at least two, must pass both tests before these alone count
ROOM = 1e-4  # a baseline with an SSIM or LPIPS nearer than this to that of an exact copy counts as a copy
ROOM_MSE = 1e-6  # likewise for the mean squared error: 60 dB
DISTANCES = {"rank_pixel": "by pixels", "rank_ssim": "by SSIM", "rank_lpips": "by LPIPS"}  # by which the line-up is ranked
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
Scores = Mapping[str, Tensor]  # name -> one value per picture (B,), NaN where it is unknown


@dataclass(frozen=True)
class Reference:
    """What the guesses of a batch are compared with, for each private picture. A baseline here has no information about the picture."""

    size: int
    """The number of pictures in the line-up."""
    best: Scores
    """psnr, ssim and lpips, (B,) each: the best score of a baseline."""
    names: Mapping[str, Sequence[str]]
    """psnr, ssim and lpips -> for each picture the title of the baseline with that score."""
    firsts: Mapping[str, Sequence[str]]
    """rank_pixel, rank_ssim and rank_lpips -> for each picture the title of a baseline that is first in the line-up too, "" for none. Such
    a distance does not count; a distance that is missing here always counts."""
    others: Scores
    """psnr and ssim, (B,) each: the best score of another picture of the line-up."""
    ssim_counts: bool = True
    """Whether the pictures are large enough for SSIM to distinguish a guess from luck. Else SSIM is ranked, but is no evidence."""

    def ranks(self, scores: Scores) -> Tensor:
        """Return the ranks of each private picture in its line-up by every distance in DISTANCES, (distances, B).

        A rank is NaN where it was not measured, or where a baseline puts the private picture first too.
        """
        ranks = [scores[name] if name in scores else unknown(scores["psnr"]) for name in DISTANCES]
        void = [[bool(other) for other in self.firsts.get(name, [""] * len(rank))] for name, rank in zip(DISTANCES, ranks, strict=True)]
        return torch.stack(ranks).masked_fill(torch.tensor(void), torch.nan)

    def counting(self, scores: Scores) -> Tensor:
        """Return `ranks` with NaN for SSIM if the pictures are too small for it to count (`ssim_counts`), (distances, B)."""
        return self.ranks(scores if self.ssim_counts else {**scores, "rank_ssim": unknown(scores["psnr"])})

    def rank(self, scores: Scores) -> Tensor:
        """Return the median of `ranks` over the distances (B,); NaN where there is no rank."""
        return self.ranks(scores).nanquantile(0.5, dim=0)

    def first(self, scores: Scores) -> Tensor:
        """Return whether each private picture is first in its line-up by at least half of the distances that count, bool (B,)."""
        ranks = self.counting(scores)
        return (ranks == 1).any(0) & (2 * (ranks == 1).sum(0) >= (~ranks.isnan()).sum(0))

    def above_others(self, scores: Scores) -> Tensor:
        """Return how much nearer each guess is to its private picture than the baselines and the other pictures of the line-up are, (B,).

        0 is as near as the best of these, 1 an exact copy; see `nearer`.
        """
        return self._nearer(scores, {name: self.best[name].fmax(self.others[name]) for name in ("psnr", "ssim")})

    def _nearer(self, scores: Scores, best: Scores) -> Tensor:
        return nearer(scores if self.ssim_counts else {**scores, "ssim": unknown(scores["psnr"])}, best)

    def is_evidence(self, scores: Scores) -> Tensor:
        """Return whether each guess shows something of its picture that luck does not explain, by RULE, bool (B,)."""
        both, above = self.first(scores) & (self._nearer(scores, self.best) >= SOME), self.above_others(scores)
        single, several = len(both) == 1, int(both.sum()) >= max(2, len(both) / COMPANY)
        return (both & ((above >= SOME) | single | several)) | (above >= CLEAR)

    def identified(self, scores: Scores) -> Tensor:
        """Return whether each guess picks its private picture out of the line-up, bool (B,): it is first, and is evidence."""
        return self.first(scores) & self.is_evidence(scores)


def clarity(weaker: int, way: float, rank: float) -> tuple[int, float]:
    """Return a key that sorts the pictures of a batch by how clearly their guesses show them: the clearest has the largest key.

    The key is first the verdict's word, then the closeness `way - rank / 2`.

    Args:
        weaker: how many of the verdict's words are stronger than the picture's word.
        way: how far the guess goes from the best baseline to an exact copy (`way`), from -1 to 1.
        rank: the mean rank over the distances that count, as a fraction of the line-up, from 0 to 1.
    """
    return -weaker, way - rank / 2


def nearer(scores: Scores, best: Scores) -> Tensor:
    """Return how far each guess goes from the best other score (0) to an exact copy of its private picture (1), by PSNR or SSIM, (B,).

    It is the larger of 1 - MSE / MSE of the best, and (SSIM - best) / (1 - best). NaN where both best scores are those of a copy.
    Unlike `way` this leaves LPIPS out, because by LPIPS any natural picture is about half of the way nearer to another than grey or noise.

    Args:
        scores: psnr and ssim of the guesses, (B,) each.
        best: psnr and ssim of the best other picture, (B,) each.
    """
    least = 10 ** (-best["psnr"] / 10)
    by_error = (1 - 10 ** (-scores["psnr"] / 10) / least).where(least > ROOM_MSE, torch.nan)
    return by_error.fmax(_by_ssim(scores, best))


def way(scores: Scores, best: Scores) -> Tensor:
    """Return how far each guess goes from the best baseline (0) to an exact copy of its private picture (1), by SSIM or LPIPS, (B,).

    It is the larger of (SSIM - best) / (1 - best), and 1 - LPIPS / best; NaN where neither is known.

    Args:
        scores: ssim and lpips of the guesses, (B,) each.
        best: ssim and lpips of the best baseline, (B,) each.
    """
    by_lpips = (1 - scores["lpips"] / best["lpips"]).where(best["lpips"] > ROOM, torch.nan)
    return _by_ssim(scores, best).fmax(by_lpips)


def _by_ssim(scores: Scores, best: Scores) -> Tensor:
    room = 1 - best["ssim"]  # 0 for a private picture of one colour, of which a baseline is an exact copy
    return ((scores["ssim"] - best["ssim"]) / room).where(room > ROOM, torch.nan)


def verdict(scores: Scores, reference: Reference, *, cut_short: bool = False) -> dict[str, Any]:
    """Judge by RULE what the guesses of a batch show of its private pictures: recognizable, singled out, partly, or not shown.

    Args:
        scores: psnr, ssim, lpips and the ranks that were measured, (B,) each.
        reference: what the guesses are compared with.
        cut_short: whether the attack was stopped before its result. Then a picture that is not shown gets CUT_SHORT in place of NOT_SHOWN.

    Returns:
        "word": the strongest word of a picture; "why": a sentence about the clearest picture; "meaning": that of the word; "rule": RULE;
        "each": the word of each picture.
    """
    evident, first, fraction = reference.is_evidence(scores), reference.first(scores), way(scores, reference.best)  # (B,) each
    clear = evident & (reference.above_others(scores) >= NEAR) & (fraction >= CLEAR)
    singled, partly = evident & first & ~clear, evident & ~first & ~clear
    by_word = {RECOGNIZABLE: clear, SINGLED_OUT: singled, PARTLY: partly}
    nothing = CUT_SHORT if cut_short else NOT_SHOWN
    each = tuple(next((word for word, pictures in by_word.items() if pictures[index]), nothing) for index in range(len(fraction)))
    word = min(each, key=[*VERDICTS, CUT_SHORT].index)
    mean_rank = reference.counting(scores).nan_to_num(reference.size).mean(0) / reference.size
    words, ways = [*by_word, nothing], fraction.nan_to_num(0).clamp(-1, 1)
    keys = [clarity(words.index(label), float(ways[index]), float(mean_rank[index])) for index, label in enumerate(each)]
    clearest = keys.index(max(keys))
    numbers = ", ".join([standing(scores, reference, clearest), *closeness(scores, reference, clearest)])
    total, counts = len(fraction), [f"{int(pictures.sum())} {word}" for word, pictures in by_word.items() if bool(pictures.any())]
    why = f"The attacker's picture: {numbers}."
    if total > 1:
        why = f"Of {total} pictures {', '.join(counts) or 'none shown'}. The clearest: {numbers}."
    if evident[clearest] and not first[clearest]:
        why += " It is so much nearer to the private picture than all the others in the line-up that this needs no first place."
    if word in LEAKS or first[clearest]:  # else a rank of 1 is by a distance that does not count, which `standing` states
        why += odd_rank(word, reference.rank(scores), clearest)
    return {"word": word, "why": why, "meaning": MEANING[word], "rule": RULE, "each": each}


def odd_rank(word: str, ranks: Tensor, clearest: int) -> str:
    """Return a sentence on why the line-up rank that the page shows seems to contradict the verdict; empty where it does not.

    Args:
        word: the word of the verdict.
        ranks: for every picture the median of its ranks, (B,); the page shows the median of these.
        clearest: the index of the picture that the verdict describes.
    """
    rank = float(ranks.nanquantile(0.5))
    if word in LEAKS:
        several = len(ranks) > 1 and rank > 1
        return f" Rank {rank:g} is the median of all pictures; the verdict is that of the clearest." if several else ""
    if float(ranks[clearest]) != 1:
        return ""
    luck = "its guess is hardly nearer to it than pictures that know nothing" if len(ranks) == 1 else "one of several is first by luck"
    return f" Rank 1 alone singles nobody out: {luck}."


def standing(scores: Scores, reference: Reference, picture: int) -> str:
    """Describe in a phrase the ranks of one private picture in its line-up by every distance; `picture` is its index in the batch."""
    counted, void = [], []
    for name, how in DISTANCES.items():
        rank = float(scores[name][picture]) if name in scores else torch.nan
        other = reference.firsts[name][picture] if name in reference.firsts else ""
        if rank == rank and other:
            void.append(f"{how} {other} is first too")
        elif rank == rank and name == "rank_ssim" and not reference.ssim_counts:
            void.append(f"{rank:g} {how}, which luck reaches in pictures so small")
        elif rank == rank:
            counted.append(f"{rank:g} {how}")
    if not counted:
        return f"no place in the line-up of {reference.size} ({', '.join(void) or 'nobody ranked it'}, so it says nothing)"
    return f"place {', '.join(counted)} of {reference.size} in the line-up" + (f" ({', '.join(void)}: does not count)" if void else "")


def closeness(scores: Scores, reference: Reference, picture: int) -> list[str]:
    """Return a phrase each for PSNR, SSIM and LPIPS of one guess, with the best baseline's score; `picture` is its index in the batch."""
    phrases = []
    for name, form, unit in (("psnr", ".1f", " dB"), ("ssim", ".2f", ""), ("lpips", ".2f", "")):
        if not bool(scores[name].isnan().any()):
            which = f", {reference.names[name][picture]}" if name in reference.names else ""
            best = f"{reference.best[name][picture]:{form}}{unit}{which}"
            phrases.append(f"{name.upper()} {scores[name][picture]:{form}}{unit} (best baseline {best})")
    return phrases + ["no SSIM: its window needs 7 pixels"] * bool(scores["ssim"].isnan().all())


def unknown(like: Tensor) -> Tensor:
    """Return the scores (B,) of a metric that was not measured: NaN for every picture of `like` (B,)."""
    return torch.full_like(like, torch.nan)
