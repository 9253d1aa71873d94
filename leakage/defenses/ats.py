"""ATS: the client trains on pictures that were shifted and changed in contrast, not on its private pictures."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import count_step
from leakage.engine.core import Client, ClientState, Defense, Params, Received, StepRng, Update, choice, param

TENTHS = 9  # magnitudes are counted from 0 to 9
FAR, STRONG = 150 / 331, 0.5  # what magnitude 9 means: a shift as a fraction of the side; a change of contrast
POLICIES = {  # operations and their magnitudes; the names are the numbers of the operations in the code's list of fifty
    "3-1-7": (("translateX", 9), ("contrast", 6), ("translateY", 2)),
    "43-18-18": (("translateY", 3), ("contrast", 7), ("contrast", 7)),
}
BOTH = "3-1-7+43-18-18"
GREY = (19595, 38470, 7471)  # weights of red, green and blue in Pillow's grey, in units of 1/65536


@dataclass(frozen=True, kw_only=True)
class ATS(Defense):
    """The client sends the gradient of changed pictures: three operations in a row, with random signs for every picture and step.

    Policy 3-1-7: shift sideways by 150/331 of the width, contrast 1 +- 0.333, shift up or down by 0.101 of the height.
    Policy 43-18-18: shift up or down by 0.151 of the height, contrast 1 +- 0.389, twice. The paper found these two best for ResNet20-4 on
    CIFAR-100. A shift fills with black. `strength` multiplies every magnitude.
    The label stays. An attacker that knows the policy does not know the random signs and does not need them: the gradient is that of the
    changed picture, and a search finds the changed picture.
    Unlike the paper: no crop and flip before it; shades are not rounded to 256 levels. Put it after Soteria, which reads the pictures.
    Source: Gao et al. 2021, section 4, and their code (policy.py, autoaugment.py: operations of Pillow).
    """

    title = "Changed pictures (ATS)"
    short = "ATS"
    plain = "The phone shifts every picture and changes its contrast before training on it, in a way that was searched to leak little."
    hint = "The attacker finds the changed picture, not the private one. Judge the result by eye, because the scores compare pixels."
    imitation = "known, but each picture is changed at random: the attacker finds the changed picture and cannot undo the shift"
    elementwise = True
    source = "https://arxiv.org/abs/2011.12505"

    policy: str = choice(
        BOTH,
        (BOTH, *POLICIES),
        "Which operations are applied: always those of one policy, or for each picture those of one of both at random.",
    )
    strength: float = param(1.0, 0, 2, "Strength of each operation, as a multiple of the paper's. 0 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            step, state = count_step(state, "ats")
            return client(weights, self.transform(x, step_rng(step)), y, state)

        return send

    def errors(self, incoming: Params, received: Received) -> Params:
        """Return the incoming error variances unchanged: the gradient is exactly that of the changed pictures, which a search finds."""
        return incoming

    def transform(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return the changed pictures (B, C, H, W), on which the client trains."""
        names, pictures = self.policy.split("+"), list[Tensor]()
        for picture in x:
            chosen = names[int(torch.randint(len(names), (), generator=rng))]
            for operation, magnitude in POLICIES[chosen]:
                sign = 2 * int(torch.randint(2, (), generator=rng)) - 1
                picture = OPERATIONS[operation](picture, sign * self.strength * magnitude / TENTHS)
            pictures.append(picture)
        return torch.stack(pictures)


def translate(x: Tensor, by: float, dim: int) -> Tensor:
    """Shift a picture (C, H, W) along `dim` by the fraction `by` of its side, to the nearest pixel; black comes in at the edge.

    As in Pillow's Image.transform(AFFINE, fillcolor=0), pixel i takes the value of pixel floor(i + 1/2 + by * side).
    """
    side = x.shape[dim]
    source = torch.tensor([math.floor(index + 0.5 + by * side) for index in range(side)], device=x.device)
    inside = ((source >= 0) & (source < side)).to(x)
    return x.index_select(dim, source.clamp(0, side - 1)) * inside.view([-1 if axis == dim else 1 for axis in range(3)])


def contrast(x: Tensor, by: float) -> Tensor:
    """Change the contrast of a picture (C, H, W): return (1 + by) x - by m, clamped to [0, 1]; m is the mean of the picture in grey.

    As in Pillow's ImageEnhance.Contrast, the grey picture and its mean are rounded to 256 shades.
    """
    shades = (x * 255 * torch.tensor(GREY).to(x).view(-1, 1, 1) / 65536).sum(0) if len(x) == len(GREY) else x.mean(0) * 255
    mean = ((shades + 0.5).floor().mean() + 0.5).floor() / 255
    return ((1 + by) * x - by * mean).clamp(0, 1)


OPERATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "translateX": lambda x, fraction: translate(x, fraction * FAR, 2),
    "translateY": lambda x, fraction: translate(x, fraction * FAR, 1),
    "contrast": lambda x, fraction: contrast(x, fraction * STRONG),
}
