"""A finding of an audit: what one attack showed of one group of pictures."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from leakage.spec.words import CUT_SHORT, INAPPLICABLE, LEAKS, REFUSED, VERDICTS, counted

UNTRIED = "not tried"  # the time of the audit was over, or too short for this attack
FAILED = "failed"  # the attack ended with an error, which `why` describes


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What an attack showed of a group of pictures that one update is about."""

    attack: str
    """The id of the attack."""
    title: str
    """Its name in the literature."""
    attacker: str
    """What the attacker knows of protocol and protections: "adaptive" with the strategy, "naive", or "" where both do the same."""
    pictures: tuple[int, ...]
    """The positions of the pictures in the sample."""
    word: str
    """The word of a verdict, INAPPLICABLE, CUT_SHORT, UNTRIED, FAILED or REFUSED."""
    fields: Mapping[str, float | bool | str]
    """The fields of the attack, such as the steps of a search."""
    why: str = ""
    """Why the word stands here, as a sentence."""
    each: tuple[str, ...] = ()
    """The word of each picture; empty where there is no verdict."""
    psnr: tuple[float, ...] = ()
    """The PSNR of each guess in dB; empty where there is no guess."""
    grey: float | None = None
    """The PSNR in dB, the mean over the pictures, of a plain grey picture: what a guess without knowledge would have."""
    labels: tuple[int, ...] = ()
    """The class that the attacker assigned to each picture."""
    labels_right: float | None = None
    """The fraction of these labels that are right, without regard to their order; None where there are none."""
    proved: tuple[bool, ...] = ()
    """For each picture whether the attack has proved, without the truth, that its guess is right."""
    ending: str = ""
    """How the attack ended: answer, stopped (the time was over) or diverged; "" where it did not begin."""
    steps: int = 0
    """Steps of the attack's search; 0 for a closed form."""
    seconds: float = 0.0
    """The computing time of the attack, without scoring."""
    curve: tuple[tuple[int, float], ...] = ()
    """The objective of a search at some of its steps: (step, objective)."""
    reconstruction: Tensor | None = None
    """The reconstructed pictures (B, C, H, W) in [0, 1], in the order of `pictures`; None where there are none."""

    @property
    def tried(self) -> bool:
        """Whether the attack was tried: it came to an answer, or showed something before it was stopped."""
        return self.word in VERDICTS

    @property
    def leaks(self) -> bool:
        """Whether a picture is recognizable or singled out."""
        return self.word in LEAKS

    @property
    def severity(self) -> tuple[int, float]:
        """A key that sorts findings, the worst for privacy first: by the verdict, then by the highest PSNR."""
        order = (*VERDICTS, CUT_SHORT, FAILED, UNTRIED, INAPPLICABLE, REFUSED)
        return order.index(self.word), -max(self.psnr, default=0.0)

    @property
    def title_with_attacker(self) -> str:
        """The attack and what the attacker knows, in words."""
        return f"{self.title} ({self.attacker})" if self.attacker else self.title

    def __str__(self) -> str:
        about = f"{self.title_with_attacker}, {counted(len(self.pictures), 'picture')} in the update: {self.word}"
        if not self.psnr:
            return f"{about}. {self.why}" if self.why else about
        mean = sum(self.psnr) / len(self.psnr)
        return f"{about}, {mean:.1f} dB (grey: {self.grey:.1f} dB), {self.seconds:.1f} s"
