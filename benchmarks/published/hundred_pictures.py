"""Inverting Gradients on 100 pictures in one batch (Geiping et al. 2020, figure 6: five of 100 CIFAR-100 pictures are recognizable).

Published: ResNet32-10 (width 160, 46 million parameters), trained for 10 epochs, one averaged gradient of 100 CIFAR-100 pictures, 24,000
steps from 4 starts. The figure shows the five most recognizable pictures, without numbers. A notebook of the authors' code ("ResNet32-10 -
Recovering 100 CIFAR-100 images") prints the error of all 100, MSE 1.3304 in the units of a normalized input, and names seven classes.

Here: the first test picture of each CIFAR-100 class, labels granted, TV 0.01, one start, BatchNorm in eval mode, one seed. `words` are the
program's verdicts (recognizable, singled out, partly, not shown), which compare each guess with 100 candidates.
Differs from the paper: untrained; width 16 and 300 steps, or width 160 and 97 steps (there a step takes half a second on a GPU, and
`words` rest on two distances, without LPIPS). Widths 16 and 32 are compared after 40 steps (`--steps 40`, and `--width 32 --steps 40`);
width 32 also has a run of 100. `--alone 10` attacks the first ten of these pictures one at a time, on the same network.
`--torch-weights` draws the weights by PyTorch's default instead of Kaiming's fan-out; this network has no biases in its last layer.

Found: none of the 100 is recognizable or singled out. At width 16 the guesses have 9.3 dB after 40 steps and 10.5 after 300, at width 32
11.4 after 40 and 11.9 after 100 (best 15.8), at width 160 11.0 after 97 (best 15.2). A grey picture has 12.0. In the notebook's units the
error is 1.47 at width 16 after 300 steps, 1.12 at width 32 after 100 and 1.39 at width 160: as a mean the guesses are as close as the
authors'. By eye, too, none of the best 20 at width 32 shows its picture.
One at a time with these weights they are not recognized either. Width 16, 300 steps: of ten none is recognizable, one is singled out,
10.7 dB (in the batch 10.1, grey 11.4). 4,800 steps: of the first five none is recognizable, one is singled out, 13.8 dB (11.0 after 300,
grey 12.9). Width 160, 97 steps: none of three, 11.0 dB (in the batch 11.4, grey 12.3); after 700 steps the first has 12.5 dB (grey 13.3).
With PyTorch's weights four of ten are recognizable one at a time at width 16 after 600 steps (14.8 dB; the first five 15.8, two of them
recognizable). The batch after 400 steps has 11.8 dB (best 17.9), and none is; by eye the main colour of several of the best 20 is right.
A network trained like the paper's was not run.
Started again, it goes on where it was stopped.

    python benchmarks/published/hundred_pictures.py [--width 16] [--steps 300]          about 10 minutes on one core
    python benchmarks/published/hundred_pictures.py --alone 10                          3 minutes
    python benchmarks/published/hundred_pictures.py --alone 5 --steps 4800              24 minutes
    python benchmarks/published/hundred_pictures.py --alone 3 --steps 97 --width 160    18 minutes, 4 GB
    python benchmarks/published/hundred_pictures.py --alone 1 --steps 700 --width 160   40 minutes, 4 GB
    python benchmarks/published/hundred_pictures.py --alone 10 --steps 600 --torch-weights      7 minutes
    python benchmarks/published/hundred_pictures.py --steps 400 --torch-weights         15 minutes
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _resnets import resnet
from _table import Book, result, say, table

from leakage.data.images import datasets
from leakage.spec.experiment import Assumptions, Experiment, Part, Picture
from leakage.spec.words import RECOGNIZABLE
from leakage.workers import plugin_catalog
from leakage.workers.adapter import play, prepare

COUNT, SEED, SHOWN = 100, 1, 5

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument(
    "--alone",
    type=int,
    default=0,
    choices=range(COUNT + 1),
    metavar="N",
    help="attack so many of the pictures, each alone, instead of all in one batch",
)
parser.add_argument("--torch-weights", action="store_true", help="draw the weights by PyTorch's default instead of Kaiming's fan-out")
given = parser.parse_args()
torch.set_num_threads(1)


def attacked(labels: Sequence[int]) -> Experiment:
    """Return the attack on a batch: the first test picture of each of these classes."""
    held = datasets()["cifar100"]
    first = {item.label: item.id for item in reversed(held.items(0, held.count()))}
    return Experiment(
        pictures=tuple(Picture(source="cifar100", id=first[label]) for label in labels),
        model=resnet("resnet32-10", given.width, drawn_by_torch=given.torch_weights),
        attack=Part(id="inverting_gradients", fields={"steps": given.steps, "tv_weight": 0.01}),
        assume=Assumptions(labels=True),
        seed=SEED,
        max_seconds=3600,
    ).resolve(plugin_catalog.describe())


def finished(experiment: Experiment) -> dict[str, Any]:
    """Return the result of the attack, and `words`, the number of pictures with each verdict."""
    prepared = prepare(experiment)
    *_, frame = play(experiment, prepared=prepared, per_second=1)
    each = list((frame.verdict or {}).get("each", ()))
    return {**asdict(result(prepared, frame)), "words": {word: each.count(word) for word in dict.fromkeys([RECOGNIZABLE, *each])}}


def main() -> None:
    """Run what is not stored, and print the table."""
    results_file, rows = Book("hundred_pictures", __doc__), []
    weights = "PyTorch's default" if given.torch_weights else "Kaiming's fan-out"
    batches: list[list[int]] = [[label] for label in range(given.alone)] or [list(range(COUNT))]
    for labels in batches:
        asked = {"pictures": len(labels), "width": given.width, "steps": given.steps, "seed": SEED, "weights": weights}
        if given.alone:
            asked["label"] = labels[0]
        found = results_file.known(asked) or results_file.note(asked, finished(attacked(labels)))
        best = sorted(found["scores"]["psnr_each"], reverse=True)[:SHOWN]
        rows.append(
            {
                "picture": labels[0] if given.alone else "all",
                "steps": given.steps,
                "mean PSNR": found["psnr"],
                f"best {SHOWN} PSNR": ", ".join(f"{value:.1f}" for value in best),
                "grey PSNR": found["grey_psnr"],
                "SSIM": found["ssim"],
                "grey SSIM": found["baselines"]["grey"]["ssim"],
                "cosine distance": found["loss"],
                "identified": f"{found['scores']['identified']:.0%}",
                "words": ", ".join(f"{count} {word}" for word, count in found["words"].items()),
            }
        )
    say()
    table(list(rows[0]), [list(row.values()) for row in rows])
    results_file.save()


if __name__ == "__main__":
    main()
