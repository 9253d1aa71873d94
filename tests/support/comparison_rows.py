"""Rows of a comparison with a verdict, as after finished runs."""

from typing import Any

from leakage.results.comparison import Row


def judged(title: str, attacker: str, verdict: str | None, *, protection: str = "", **more: Any) -> Row:
    told = {"run": "", "status": "done", "ended": "", "attack": "", "answer": ""} | more
    scores = dict.fromkeys(("words", "psnr", "ssim", "lpips", "rank", "label_accuracy", "epsilon", "accuracy"))
    return Row(
        **{
            **scores,
            **told,
            "title": title,
            "arm": title,
            "attacker": attacker,
            "verdict": verdict,
            "grey": {},
            "protection": protection or title,
        },
        answered=told["status"] == "done",
    )
