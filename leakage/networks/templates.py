"""Networks of the papers as texts that `grammar.parse` reads; the editor of networks offers them as a start. No torch."""

from leakage.networks.grammar import JOINT, NetworkError, canonical


def _residual(kind: str, blocks: tuple[int, ...], width: int, *, cut: int = 0) -> str:
    """Return the text of a residual network: conv 3, stages of residual blocks, mean; the block with the number `cut` has no skip.

    Each stage is twice as wide and half as large as the stage before.
    """
    steps = [f"conv 3@{width} p1"]
    for stage, count in enumerate(blocks):
        for index in range(count):
            shrinks = " /2" if stage and not index else ""
            steps.append(f"{kind} {width * 2**stage}{shrinks}" + (" cut" if len(steps) == cut else ""))
    return JOINT.join([*steps, "mean"])


def _cnn6(second: int) -> str:
    return f"conv 4@12 /2 p2 - conv 3@{second} /2 p1 - conv 3@36 p1 - conv 3@36 p1 - conv 3@64 /2 p1 - conv 3@128 p1"


RESNET18, RESNET101 = (2, 2, 2, 2), (3, 4, 23, 3)  # blocks per stage, He et al. 2016

TEMPLATES = {  # name -> text; Zhu and Blaschko 2021: figure 2 (A to E), table 1 (CNN6, CNN6-d), figure 4 (cut skips)
    "R-GAP's net A": "conv 4@4",
    "R-GAP's net B": "conv 4@3",
    "R-GAP's net C": "conv 4@3 - linear 500",
    "R-GAP's net D": "conv 3@4 - conv 3@4",
    "R-GAP's net E": "conv 5@4 - conv 4@4",
    "LeNet (Zhu)": "conv 5@12 /2 p2 - conv 5@12 /2 p2 - conv 5@12 p2",
    "CNN6": _cnn6(36),
    "CNN6-d": _cnn6(20),
    "FCN3": "linear 1000 - linear 100",
    "ResNet18, width 16": _residual("block", RESNET18, 16),
    "ResNet18, width 16, skip 3 cut": _residual("block", RESNET18, 16, cut=3),
    "ResNet18, width 16, skip 8 cut": _residual("block", RESNET18, 16, cut=8),
    "ResNet101, width 16": _residual("deep", RESNET101, 16),
    "ResNet101, width 16, skip 3 cut": _residual("deep", RESNET101, 16, cut=3),
    "ResNet101, width 16, skip 1 cut": _residual("deep", RESNET101, 16, cut=1),
}


def template_of(text: str) -> str | None:
    """Return the name of the template with the same steps as a text, however the steps are written; None if there is none."""
    try:
        same = canonical(text)
    except NetworkError:
        return None
    return next((name for name, steps in TEMPLATES.items() if canonical(steps) == same), None)
