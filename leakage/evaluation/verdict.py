"""The plain verdict on a batch: identification first, then SSIM and LPIPS against the baselines."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

CLEAR, PARTLY = 0.5, 0.15  # shares of the way from the best baseline to an exact copy
ROOM = 1e-4  # SSIM or LPIPS between the best baseline and an exact copy, below which the two are the same
FIRST = 0.05  # of the line-up: where a guess that knows nothing lands once in twenty times
RULE = (
    "Recognisable: the line-up puts the true picture first (median rank 1 by pixels, SSIM and LPIPS), and SSIM or LPIPS goes at least "
    "half of the way from the best baseline to an exact copy. Partly recognisable: among the first 5 % of the line-up, and at least "
    "15 % of that way. Otherwise: not recognisable. Baselines are pictures that know nothing: grey, black, white, the private picture's "
    "own mean colour, noise, the mean picture of the line-up. Where LPIPS is off, SSIM decides alone; where neither can be measured, "
    "partly is the most. A batch is judged by its clearest picture."
)
MEANING = {
    "recognisable": "Whoever is in the picture can be seen by whoever runs the server, although the picture never left the phone.",
    "partly recognisable": "Shapes and colours leak: somebody who knows the picture may guess it, and a better attack may see more.",
    "not recognisable": "This attack did not find the picture. That is no proof of safety: another attack, or more tries, might.",
}


def way(scores: Mapping[str, Tensor], best: Mapping[str, Tensor]) -> Tensor:
    """The larger share of the way from the best baseline (0) to an exact copy (1), by SSIM and by LPIPS: (B,). Not a number without both.

    (SSIM - best) / (1 - best), and 1 - LPIPS / best.
    """
    room = {"ssim": 1 - best["ssim"], "lpips": best["lpips"]}  # of a picture of one colour the baseline is an exact copy: no way to go
    by_ssim = ((scores["ssim"] - best["ssim"]) / room["ssim"]).where(room["ssim"] > ROOM, torch.nan)
    by_lpips = (1 - scores["lpips"] / room["lpips"]).where(room["lpips"] > ROOM, torch.nan)
    return by_ssim.fmax(by_lpips)


def verdict(
    scores: Mapping[str, Tensor], best: Mapping[str, Tensor], *, size: int, names: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Word, why, meaning and rule, by RULE. `scores` has psnr, ssim, lpips and rank, (B,) each; `size` pictures are in the line-up.

    `names` says which baseline is the best, for each picture.
    """
    rank, share = scores["rank"], way(scores, best)
    clear = (rank == 1) & (share >= CLEAR)
    partly = (rank <= max(1.0, FIRST * size)) & ((share >= PARTLY) | (share.isnan() & (rank == 1)))
    word = "recognisable" if bool(clear.any()) else "partly recognisable" if bool(partly.any()) else "not recognisable"
    clearest = int((2.0 * clear + 1.0 * partly + share.nan_to_num(0).clamp(-1, 1) / 4 - rank / (8 * size)).argmax())
    by = "" if "rank_ssim" in scores else " (by pixels alone)"
    numbers = [f"rank {rank[clearest]:g} of {size} in the line-up{by}", f"PSNR {scores['psnr'][clearest]:.1f} dB"]
    for name in ("ssim", "lpips"):
        if not bool(scores[name].isnan().any()):
            which = f", {names[name][clearest]}" if names else ""
            numbers.append(f"{name.upper()} {scores[name][clearest]:.2f} (best baseline {best[name][clearest]:.2f}{which})")
    if bool(scores["ssim"].isnan().all()):
        numbers.append("no SSIM, whose window needs 7 pixels")
    total, told = len(rank), ", ".join(numbers)
    if total == 1:
        why = f"The attacker's picture: {told}."
    else:
        why = f"{int(clear.sum())} of {total} pictures are recognisable, {int((partly & ~clear).sum())} partly. The clearest: {told}."
    return {"word": word, "why": why, "meaning": MEANING[word], "rule": RULE}


def unknown(like: Tensor) -> Tensor:
    """A score that was not measured: not a number for every picture, (B,)."""
    return torch.full_like(like, torch.nan)
