"""Compare the results of twelve experiments with those of another commit: `python scripts/same_results.py COMMIT`.

Final frames (every pixel as float32, labels, loss) and scores must be equal bit for bit. If only scores differ, they are named: the scoring
of a guess may change on purpose, the guess may not. One thread; some minutes.
Plug-ins and their fields have their earliest names here, so that earlier commits read the experiments too.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def part(name: str, **fields: Any) -> dict[str, Any]:
    """Return the JSON of a plug-in with its fields."""
    return {"id": name, "fields": fields}


TWO = [{"source": "gallery", "id": "astronaut"}, {"source": "gallery", "id": "chelsea"}]
SEARCH = "inverting_gradients"
GUESS = "guess"
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "DLG": {"attack": part("dlg", steps=60, tries=2)},
    "iDLG": {"attack": part("idlg", steps=60, tries=2)},
    "Inverting Gradients": {"pictures": TWO, "attack": part(SEARCH, steps=150, starts=2)},
    "GradInversion": {
        "pictures": TWO,
        "model": part("convnet", width=8),
        "batch_norm": "batch",
        "assume": {"statistics": "running"},
        "attack": part("gradinversion", steps=40),
    },
    "R-GAP": {"model": part("rgap_net"), "attack": part("r_gap")},
    "SPEAR": {"pictures": TWO, "model": part("mlp", normalise="imagenet"), "attack": part("exact_batches")},
    "GIFD": {
        "size": 28,
        "channels": 1,
        "model": part("lenet"),
        "attack": part("gifd", generator="digits", steps=40, starts=2, stages=2, stage_steps=20),
    },
    "H-GAP": {"model": part("rgap_net"), "attack": part("h_gap", steps=40)},
    "FedAvg": {"pictures": TWO, "protocol": part("fedavg", epochs=3, mini_batch=1), "attack": part(SEARCH, steps=60)},
    "FedADMM": {"protocol": part("fedadmm"), "rounds": 3, "attacked_round": 2, "attack": part("idlg_admm", steps=40)},
    "AdaDefense, read off": {
        "defenses": [part("ada_defense", variant="as in the code")],
        "assume": {"counter": "read it off"},
        "attack": part(SEARCH, steps=80),
    },
    "Soteria": {"model": part("convnet", width=8), "defenses": [part("soteria")], "attack": part(SEARCH, steps=60)},
}


def digests() -> dict[str, dict[str, str]]:
    """Run every experiment with the code in the working directory; return a hash of its final guess, and its scores."""
    sys.path.insert(0, ".")
    import torch

    try:
        from leakage.spec.experiment import parse
        from leakage.workers.adapter import play
    except ImportError:  # before the engine took objects
        from leakage.engine.play import play  # type: ignore[import-not-found, no-redef]

        from leakage.spec import parse  # type: ignore[attr-defined, no-redef]
    torch.set_num_threads(1)
    found = {}
    for name, fields in EXPERIMENTS.items():
        *_, last = play(parse(json.dumps(fields)))
        guess = last.x.contiguous().numpy().tobytes() + repr((last.labels, last.loss)).encode()
        found[name] = {GUESS: hashlib.sha256(guess).hexdigest()} | {score: repr(value) for score, value in last.scores.items()}
    return found


def digests_of(folder: Path) -> dict[str, dict[str, str]]:
    """Return the `digests` of a checkout, computed in a separate process."""
    done = subprocess.run([sys.executable, __file__, "--here"], cwd=folder, check=True, capture_output=True, text=True)
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def main(commit: str) -> int:
    """Print a line for each experiment; return how many experiments differ."""
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", before, commit], cwd=ROOT, check=True)
        try:
            old, new = digests_of(before), digests_of(ROOT)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", before], cwd=ROOT, check=True)
    for name in EXPERIMENTS:
        different = sorted(key for key in old[name].keys() | new[name].keys() if old[name].get(key) != new[name].get(key))
        outcome = (
            "equal" if not different else "DIFFERENT" if GUESS in different else f"the same guess; scores differ: {', '.join(different)}"
        )
        sys.stdout.write(f"{name}: {outcome}\n")
    return sum(old[name] != new[name] for name in EXPERIMENTS)


if __name__ == "__main__":
    if sys.argv[1:] == ["--here"]:
        sys.stdout.write(json.dumps(digests()))
    else:
        sys.exit(main(sys.argv[1]))
