"""Inverting Gradients on a trained network before and after the server swaps two classes (Geiping et al. 2020, appendix A.2, figure 7).

The figure shows single pictures on a trained network: with two rows of the last layer swapped the gradient is large and the picture comes
back. It has no table, so that only the direction can be compared. Here: ConvNet-16 after 24 rounds on CIFAR-10, and to look for the reason
LeNet after 12 rounds on MNIST, without and with noise of a fixed size on the gradient; of each data set the first three test pictures whose
class the network predicts with a probability above 0.95; labels recovered by the iDLG rule. The server swaps the class of the picture with
the next class. `probability` is the one that the network predicts for the picture's class with the weights that the phone received, `norm`
the length of its gradient before noise. Beside each score: a grey picture's.

Found: swapped classes make the gradient 50 to 110,000 times as long. Without noise the pictures come back about as badly as before. On
ConvNet-16 (means of seeds 1, 2, 3) 13.3 dB became 11.1, 11.7 became 13.0 and 10.1 became 15.1, where a grey picture scores 14.1, 9.7 and
14.8: the attack compares directions, so that a short exact gradient tells as much as a long one. Behind noise the short gradient is lost,
its label included, and the long one is not. The untrained network of this width gives the same pictures back with 12 to 17 dB, a wider one
with more (convnet_trained_widths.py); the paper names no width.
Started again, it goes on where it was stopped.

    python benchmarks/published/label_flip.py [--steps 1500] [--seeds 1]       about 12 minutes on one core
"""

import argparse
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch
from _table import Book, finish, say, table
from torch import Tensor
from torch.func import functional_call

from leakage.data.checkpoints import cards
from leakage.data.images import datasets
from leakage.spec.experiment import Experiment, Part
from leakage.workers import plugin_catalog
from leakage.workers.adapter import observe

SCENES = (  # trained network, its data set, the noise of the protection
    ("convnet-16-cifar10@24", "cifar10", 0.0),
    ("lenet-mnist@12", "mnist", 0.0),
    ("lenet-mnist@12", "mnist", 1e-3),
)
LEARNED = 0.95
PICTURES, CLASSES = 3, 10

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--seeds", type=int, nargs="+", default=[1])
given = parser.parse_args()
torch.set_num_threads(1)
known = plugin_catalog.describe()
results_file = Book("label_flip", __doc__)


def picture(data: str, index: int) -> tuple[Tensor, Tensor]:
    """Return a test picture (1, C, H, W) and its label (1,)."""
    held = datasets()[data].rows()
    x = torch.from_numpy(held.pixels[[index]]).permute(0, 3, 1, 2).contiguous().float() / 255
    return x, torch.from_numpy(held.labels[[index]]).long()


@dataclass(frozen=True)
class Case:
    """A private picture, a trained network, and whether the server swaps the picture's class with the next one."""

    network: str
    data: str
    noise: float
    picture: int
    flipped: bool

    def experiment(self, seed: int) -> Experiment:
        """Return the experiment with this random start."""
        label, card = int(picture(self.data, self.picture)[1]), cards()[self.network.split("@")[0]]
        noise = Part(id="gaussian_noise", fields={"scale": self.noise})
        private: dict[str, Any] = {"pictures": ({"source": self.data, "id": str(self.picture)},)}
        channels, _, side = card.image_shape
        shape: dict[str, Any] = {"size": side, "channels": channels}
        return Experiment(
            model=Part(id=card.model, fields=card.fields),
            checkpoint=self.network,
            server=Part(id="label_flip", fields={"guessed": label, "rival": (label + 1) % CLASSES}) if self.flipped else None,
            defenses=(noise,) if self.noise else (),
            attack=Part(id="inverting_gradients", fields={"steps": given.steps}),
            seed=seed,
            **private,
            **shape,
        ).resolve(known)

    def received(self) -> dict[str, float]:
        """Return the probability of the picture's class by the weights that the phone received, and the length of the gradient."""
        x, y = picture(self.data, self.picture)
        seen = observe(replace(self, noise=0.0).experiment(given.seeds[0]), x, y)
        with torch.no_grad():
            probability = functional_call(seen.model, dict(seen.received.weights), (x,)).softmax(1)[0, int(y)]
        norm = torch.cat([part.flatten() for part in seen.as_gradient().values()]).norm()
        return {"probability": float(probability), "norm": float(norm)}

    def play(self, seed: int) -> dict[str, Any]:
        """Return the stored result of this random start, or run it."""
        asked = {**asdict(self), "seed": seed, "steps": given.steps}
        found = asdict(finish(self.experiment(seed))) if not results_file.known(asked) else {}
        return results_file.known(asked) or results_file.note(asked, {**found, **self.received()})


def learned(network: str, data: str) -> list[int]:
    """Return the first test pictures whose class the trained network predicts with a probability above LEARNED."""
    found, index = list[int](), 0
    while len(found) < PICTURES:
        found += [index] * (Case(network, data, 0.0, index, flipped=False).received()["probability"] > LEARNED)
        index += 1
    return found


def main() -> None:
    """Run what is missing, and print the table."""
    rows, means = list[list[Any]](), dict[str, float]()
    for network, data, noise in SCENES:
        for flipped in (False, True):
            scores, named = list[float](), "swapped" if flipped else "honest"
            for index in learned(network, data):
                runs = [Case(network, data, noise, index, flipped).play(seed) for seed in given.seeds]
                scores += [run["psnr"] for run in runs]
                quality = [mean(run[key] for run in runs) for key in ("psnr", "grey_psnr", "ssim", "loss")]
                first = sum(run["scores"]["rank"] == 1 for run in runs)
                found = [f"{runs[0]['probability']:.1e}", f"{runs[0]['norm']:.1e}", *quality, f"{first} of {len(runs)}"]
                rows.append([network, noise, named, index, *found])
            means[f"{network}, noise {noise:g}, {named}"] = mean(scores)
    heads = ["network", "noise", "server", "picture", "probability", "norm", "PSNR", "grey", "SSIM", "cosine distance", "identified"]
    say()
    table(heads, rows)
    results_file.save(mean_psnr=means)
    say()
    table(["mean PSNR", "dB"], [list(pair) for pair in means.items()])


if __name__ == "__main__":
    main()
