"""ATS: the phone never trains on the picture itself, but on one that was shifted and recoloured."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leakage.defenses._each import counted
from leakage.engine.core import Client, ClientState, Defense, Params, Received, StepRng, Update, choice, param

TENTHS = 9  # magnitudes are counted from 0 to 9
FAR, STRONG = 150 / 331, 0.5  # what 9 means: a shift as a share of the side; a change of contrast
POLICIES = {  # of the code's fifty operations, by their numbers
    "3-1-7": (("translateX", 9), ("contrast", 6), ("translateY", 2)),
    "43-18-18": (("translateY", 3), ("contrast", 7), ("contrast", 7)),
}
BOTH = "3-1-7+43-18-18"
GREY = (19595, 38470, 7471)  # of 65536: red, green and blue in Pillow's grey


@dataclass(frozen=True, kw_only=True)
class ATS(Defense):
    """The gradient is that of changed pictures: three operations in a row, each one way or the other at random, for every picture and step.

    3-1-7: shift sideways by 150/331 of the width, contrast 1 +- 0.333, shift up or down by 0.101 of the height.
    43-18-18: shift up or down by 0.151, contrast 1 +- 0.389, twice. These two were found best for ResNet20-4 on CIFAR-100. What comes in at
    an edge is black. `strength` multiplies every magnitude.
    The label stays. Whoever knows the policy cannot know which way a picture went, and need not: what the network was shown is what the
    gradient tells, and a search finds that.
    Unlike the paper: no crop and flip before it; shades are not rounded to 256 levels. Put it after Soteria, which looks at the pictures.
    Source: Gao et al. 2021, section 4, and their code (policy.py, autoaugment.py: operations of Pillow).
    """

    title = "Changed pictures (ATS)"
    short = "ATS"
    plain = "The phone shifts every picture and changes its contrast before training on it, in a way that was searched to leak little."
    hint = "The attacker finds the changed picture, not the private one: look at the result with your own eyes, the scores compare pixels."
    imitation = "known, but each picture is changed at random: the attacker finds the changed picture and cannot undo the shift"
    elementwise = True
    source = "https://arxiv.org/abs/2011.12505"

    policy: str = choice(BOTH, (BOTH, *POLICIES), "Which operations: for every picture one of both rows at random, or always the same one.")
    strength: float = param(1.0, 0, 2, "How much each operation does, as a multiple of the paper's. 0 switches it off.")

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        def send(weights: Params, x: Tensor, y: Tensor, state: ClientState) -> Update:
            step, state = counted(state, "ats")
            return client(weights, self.transformed(x, step_rng(step)), y, state)

        return send

    def errors(self, incoming: Params, received: Received) -> Params:
        """None: the gradient is exactly that of the changed pictures, which are what a search finds."""
        return incoming

    def transformed(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """The pictures (B, C, H, W) as the network is shown them."""
        names, pictures = self.policy.split("+"), list[Tensor]()
        for picture in x:
            chosen = names[int(torch.randint(len(names), (), generator=rng))]
            for operation, magnitude in POLICIES[chosen]:
                way = 2 * int(torch.randint(2, (), generator=rng)) - 1
                picture = OPERATIONS[operation](picture, way * self.strength * magnitude / TENTHS)
            pictures.append(picture)
        return torch.stack(pictures)


def translate(x: Tensor, by: float, dim: int) -> Tensor:
    """A picture (C, H, W) whose places take what lies `by` of the side further along `dim`, to the nearest pixel; black beyond the edge.

    As Pillow's Image.transform(AFFINE, fillcolor=0): place i takes floor(i + 1/2 + shift).
    """
    side = x.shape[dim]
    source = torch.tensor([math.floor(place + 0.5 + by * side) for place in range(side)], device=x.device)
    inside = ((source >= 0) & (source < side)).to(x)
    return x.index_select(dim, source.clamp(0, side - 1)) * inside.view([-1 if axis == dim else 1 for axis in range(3)])


def contrast(x: Tensor, by: float) -> Tensor:
    """(1 + by) x - by m, kept in [0, 1], with m the mean of the picture (C, H, W) in grey.

    As Pillow's ImageEnhance.Contrast: the grey is rounded to 256 shades, and so is its mean.
    """
    shades = (x * 255 * torch.tensor(GREY).to(x).view(-1, 1, 1) / 65536).sum(0) if len(x) == len(GREY) else x.mean(0) * 255
    mean = ((shades + 0.5).floor().mean() + 0.5).floor() / 255
    return ((1 + by) * x - by * mean).clamp(0, 1)


OPERATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "translateX": lambda x, share: translate(x, share * FAR, 2),
    "translateY": lambda x, share: translate(x, share * FAR, 1),
    "contrast": lambda x, share: contrast(x, share * STRONG),
}
