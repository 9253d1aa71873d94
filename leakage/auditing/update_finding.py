"""What an attack found in a recorded update, of which the pictures are unknown, and the outcome of all attacks."""

from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, TypeAlias

from torch import Tensor

from leakage.spec.words import counted

State: TypeAlias = Literal["answered", "does not apply", "not tried", "failed"]
NO_TRUTH = (
    "Nobody here knows the true pictures. Unless an attack checks its answer by an equation, an answer is no proof. Three numbers help to "
    "judge it: how much of the update it leaves unexplained, whether searches from other starts agree, and what the same attack makes of "
    "public pictures that were sent likewise."
)


@dataclass(frozen=True, eq=False)
class UpdateFinding:
    """What an attack found in a recorded update."""

    title: str
    """The attack."""
    attacker: str
    """"naive", or "adaptive": an attacker that imitates what the card says of the client; "" where both do the same."""
    state: State
    why: str = ""
    """Why there is no answer."""
    attack: str = ""
    """The id of the attack."""
    pictures: Tensor | None = None
    """The answer (B, C, H, W) in [0, 1]; None: there is none."""
    labels: tuple[int, ...] = ()
    distance: float | None = None
    """The share of the received update's length that no multiple of the answer's update explains, from 0 to 1."""
    random_distance: float | None = None
    """The same for random pictures."""
    agreement: float | None = None
    """Mean PSNR in dB between answers from different starts; None: there was one start."""
    planted: tuple[float, ...] = ()
    """PSNR in dB of public pictures that were sent and attacked likewise."""
    planted_grey: float | None = None
    """The mean PSNR in dB of a grey picture for these."""
    psnr: float | None = None
    """Mean PSNR in dB for the owner's pictures, if these are known."""
    grey: float | None = None
    """The PSNR in dB of a grey picture for them."""
    proved: bool = False
    """Whether the attack has proved each picture of its answer, without the truth."""
    steps: int = 0
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    """What speaks against the card."""

    @property
    def explains(self) -> float:
        """The share of the distance that the answer takes away from that of random pictures, from 0 to 1; 0 where there is no answer."""
        if self.distance is None or not self.random_distance:
            return 0.0
        return max(0.0, 1 - self.distance / self.random_distance)

    def __str__(self) -> str:
        by = f"{self.title}, {self.attacker}" if self.attacker else self.title
        if self.state != "answered":
            return f"{by}: {self.state}. {self.why}"
        said = [f"{by}: leaves {self.distance:.2g} of the update unexplained (random pictures: {self.random_distance:.2g})"]
        said += ["the attack has checked each picture by an equation"] if self.proved else []
        said += [f"answers from other starts agree to {self.agreement:.1f} dB"] if self.agreement is not None else []
        if self.planted and self.planted_grey is not None:
            public = f"{counted(len(self.planted), 'public picture')}: median {median(self.planted):.1f} dB"
            said.append(f"{public}, where grey has {self.planted_grey:.1f} dB")
        said += [f"your pictures: {self.psnr:.1f} dB, where grey has {self.grey:.1f} dB"] if self.psnr is not None else []
        return ". ".join(["; ".join(said), *(warning.rstrip(".") for warning in self.warnings)]) + "."


@dataclass(frozen=True, eq=False)
class UpdateAudit:
    """The outcome of an audit of a recorded update, as `leakage.audit_update` returns it. `print` shows it.

    Args:
        statements: what the update says before any attack, as sentences
        assumptions: what was assumed of the client where its card is silent, and what the card guesses, as sentences
        findings: what each attack found; the answers that explain most of the update come first

    Example:
        >>> import tempfile, numpy, torch, leakage
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> gradient = leakage.observe(model, torch.rand(1, 3, 8, 8), torch.tensor([2])).received.update
        >>> folder = tempfile.mkdtemp()
        >>> numpy.savez(f"{folder}/gradient.npz", **{name: value.numpy() for name, value in gradient.items()})
        >>> card = leakage.UpdateCard(input=(3, 8, 8), pictures=1)
        >>> audit = leakage.audit_update(model, folder, card=card, minutes=0.1, attacks=["linear_layer"])
        >>> audit.statements[0], audit.findings[0].state
        ('The update is a gradient.', 'answered')
    """

    statements: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    findings: tuple[UpdateFinding, ...] = ()

    def __str__(self) -> str:
        lines = [*self.statements, *self.assumptions, "", NO_TRUTH, ""]
        return "\n".join([*lines, *map(str, self.answered), *self.unanswered])

    @property
    def answered(self) -> tuple[UpdateFinding, ...]:
        """The findings with an answer."""
        return tuple(finding for finding in self.findings if finding.state == "answered")

    @property
    def unanswered(self) -> tuple[str, ...]:
        """A sentence for each attack without an answer, with the reason; it names the attacker where another one got further."""
        answered = {finding.attack for finding in self.answered}
        missing = [finding for finding in self.findings if finding.state != "answered"]
        return tuple(dict.fromkeys(str(one if one.attack in answered else replace(one, attacker="")) for one in missing))
