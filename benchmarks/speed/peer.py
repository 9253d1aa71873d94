"""Inverting Gradients as the package `breaching` 0.1.2 computes it: the peer of our speed benchmark.

It runs in a virtual environment of its own (`make bench` makes .venv-bench), knows nothing of our code, and prints one line of JSON.
The attack is the peer's, untouched: its configuration "invertinggradients" (cosine distance + total variation, Adam on the sign of the
gradient, step size 0.1 divided by ten after 3/8, 5/8 and 7/8 of the iterations, values kept inside the box) through its own
`prepare_attack` and `attacker.reconstruct`. Ours are the networks, the weights, the pictures and the weight of the total variation.

What differs from ours and cannot be configured away:

- Total variation. The peer convolves the zero-padded picture with [-1, 1], so the last row and column count as an edge down to 0 (the
  mean colour) and a constant picture has a total variation above zero; it then takes sum |dx| / (C H W) + sum |dy| / (C H W). Ours is
  mean |dx| + mean |dy| over the differences inside the picture, C H (W - 1) of them. `--tv` is the weight in our terms: we multiply it
  by W / (W - 1), which makes the two equal inside the picture; the edge terms remain. (A comment in the peer's configuration says that
  its 0.2 corresponds to 0.1 in the paper's code, for the mean of dx and dy; 0.1.2 adds them, so no factor of 2 is needed.) The peer adds
  1e-8 to every |difference|: without effect on the gradient.
- It reads the loss as a Python number in every iteration, and keeps a copy of the best picture so far, which is its answer.
- It scores that answer once more at the end: one more evaluation among all iterations.
"""

import argparse
import contextlib
import json
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from peer_networks import CLASSES, NETWORKS, SHAPE
from torch import Tensor, nn

PACKAGES = ("breaching", "torch", "torchvision", "hydra-core", "numpy")


def load_weights(model: nn.Sequential, path: Path) -> tuple[list[float], list[float]]:
    """Fill `model` from a saved state dict, by order; return mean and std of its normalising first layer (0 and 1 when it has none)."""
    values = list(torch.load(path, map_location="cpu", weights_only=True).values())
    per_channel = (1, SHAPE[0], 1, 1)  # no parameter of these networks has this shape: it is the layer's mean, then its std
    mean, std = [value.flatten().tolist() for value in values if value.shape == per_channel] or ([0.0] * SHAPE[0], [1.0] * SHAPE[0])
    values = [value for value in values if value.shape != per_channel]
    own = model.state_dict()
    if [value.shape for value in values] != [value.shape for value in own.values()]:
        raise SystemExit(f"{path} does not fit: expected are the tensors {[tuple(v.shape) for v in own.values()]}, in this order.")
    model.load_state_dict(dict(zip(own, values, strict=True)))
    return mean, std


def load_pictures(path: Path, count: int) -> Tensor:
    """Return `count` pictures (B, 3, 32, 32), float32 in [0, 1]."""
    pictures = np.load(path, allow_pickle=False)
    if pictures.shape != (count, *SHAPE) or not 0 <= pictures.min() <= pictures.max() <= 1:
        raise SystemExit(f"{path}: expected are {count} pictures {SHAPE} with values in [0, 1], given was {pictures.shape}.")
    return torch.from_numpy(pictures.astype(np.float32))


def attack(arguments: argparse.Namespace) -> dict[str, object]:
    """Compute the victim's gradient, run the peer's attack on it, and say how fast it was and how close it came."""
    # Here, because importing it prints and warns. The type checker has it not: it is installed in .venv-bench alone.
    import breaching  # type: ignore[import-not-found]

    torch.set_num_threads(arguments.threads)
    torch.set_num_interop_threads(1)
    model, device = NETWORKS[arguments.model]().eval(), torch.device(arguments.device)
    mean, std = load_weights(model, arguments.weights)
    model.to(device)
    pictures, labels = load_pictures(arguments.pictures, len(arguments.label)).to(device), torch.tensor(arguments.label, device=device)
    dm, ds = (torch.tensor(constant, device=device).view(1, -1, 1, 1) for constant in (mean, std))

    # What a user of the peer gets from its server and user objects, written out: the same dictionaries, without their data loaders.
    loss = nn.CrossEntropyLoss()
    gradient = torch.autograd.grad(loss(model((pictures - dm) / ds), labels), list(model.parameters()))
    about = SimpleNamespace(shape=SHAPE, mean=mean, std=std, classes=CLASSES, modality="vision")
    payload = [{"parameters": list(model.parameters()), "buffers": list(model.buffers()), "metadata": about}]
    known = {"num_data_points": len(labels), "labels": labels, "local_hyperparams": None}  # None: one gradient, no local steps
    shared = [{"gradients": list(gradient), "buffers": None, "metadata": known}]  # None: BatchNorm with the server's statistics

    side = SHAPE[-1]
    settings = breaching.get_attack_config(
        "invertinggradients",
        overrides=[
            f"optim.max_iterations={arguments.iterations}",
            f"regularization.total_variation.scale={arguments.tv * side / (side - 1)}",
        ],
    )
    attacker = breaching.attacks.prepare_attack(model, loss, settings, {"dtype": torch.float, "device": device})

    for _ in range(3):  # one iteration each: TorchScript compiles its losses in the first calls
        attacker.reconstruct(payload, shared, server_secrets={}, dryrun=True)
    torch.manual_seed(arguments.seed)  # without a file the start is the peer's own normal noise
    start = torch.from_numpy(np.load(arguments.start, allow_pickle=False)).to(device) if arguments.start else None
    trace: list[tuple[float, Tensor]] = []
    if arguments.trace:  # the total variation is computed once in each iteration, of the guess before its step
        attacker.regularizers[0].register_forward_pre_hook(lambda _, given: trace.append((time.perf_counter(), given[0].detach().clone())))
    began = time.perf_counter()
    answer, log = attacker.reconstruct(payload, shared, server_secrets={}, initial_data=start)
    if arguments.device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    if arguments.trace:
        save_trace(arguments.trace, [(at - began, guess * ds + dm) for at, guess in [*trace, (began + seconds, answer["data"])]])

    done = len(log["Trial_0_Val"])  # fewer than asked when its loss stopped being finite
    guess = (answer["data"] * ds + dm).clamp(0, 1)
    errors = (guess - pictures).double().square().mean((1, 2, 3))
    return {
        "iterations": done,
        "seconds": round(seconds, 4),
        "iterations_per_second": round(done / seconds, 2),
        "psnr": round(float(-10 * errors.log10().mean()), 3),
        "gradient_norm": float(torch.cat([value.double().flatten() for value in gradient]).norm()),
        "cosine_distance": log["opt_value"],
        "model": arguments.model,
        "threads": torch.get_num_threads(),
        "seed": arguments.seed,
        "tv": arguments.tv,
        "mean": mean,
        "std": std,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def save_trace(path: Path, moments: list[tuple[float, Tensor]]) -> None:
    """Save the seconds of each moment (T,) and its guess in pixels (T, B, C, H, W), which float16 rounds by at most 0.0005."""
    seconds, guesses = zip(*moments, strict=True)
    np.savez(path, seconds=np.array(seconds), guesses=torch.stack(guesses).clamp(0, 1).half().cpu().numpy())


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=NETWORKS, required=True)
    parser.add_argument("--weights", type=Path, required=True, help="state dict saved by torch.save, its tensors in the network's order")
    parser.add_argument("--pictures", type=Path, required=True, help=".npy, (B, 3, 32, 32), in [0, 1]")
    parser.add_argument("--label", type=int, choices=range(CLASSES), required=True, nargs="+", metavar="0..9", help="of each picture")
    parser.add_argument("--iterations", type=int, default=4800)
    parser.add_argument("--tv", type=float, default=0.1, help="weight of the total variation, in our terms")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help=".npy, (B, 3, 32, 32), normalised: the guess before the first iteration")
    parser.add_argument("--trace", type=Path, help=".npz to write: seconds and guess before each iteration, and of the answer")
    return parser.parse_args()


if __name__ == "__main__":
    command = read_arguments()
    warnings.simplefilter("ignore")  # the peer was written for older versions of torch and hydra; it works with these
    with contextlib.redirect_stdout(sys.stderr):  # it prints; standard output is for the result alone
        result = attack(command)
    print(json.dumps(result))
