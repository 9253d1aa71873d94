"""Train the generator of digits that ships: `make generator`, three minutes on one core; it needs MNIST.

The generator is the decoder of a variational autoencoder (Kingma and Welling 2014) on MNIST's 60,000 training pictures, with the loss
-log p(x | z) as binary cross-entropy of every pixel + KL(q(z | x) || N(0, I)). Half of the pictures are unchanged. The others are
enlarged up to 1.5 times and shifted by up to 3 pixels, and half of these are coarsened to 8 to 20 pixels a side, since not every attacked
digit is centered and sharp. Test pictures are used only to measure the result.
"""

import json
import subprocess
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leakage.data.cards import digest
from leakage.data.checkpoints import write
from leakage.data.datasets import datasets, training_pictures
from leakage.data.generators import FOLDER
from leakage.data.readers import Pixels
from leakage.engine.core import generator
from leakage.engine.decoders import DIGITS, DIGITS_LATENT, digit_decoder
from leakage.engine.weights import pack
from leakage.settings import ROOT

EPOCHS, BATCH, RATE, SEED = 8, 128, 2e-3, 1


def pictures(pixels: Pixels) -> Tensor:
    """Bytes (N, 28, 28, 1) as (N, 1, 28, 28) in [0, 1]."""
    return torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).contiguous().float() / 255


def encoder() -> nn.Sequential:
    """x (B, 1, 28, 28) -> mean and log variance (B, 2 DIGITS_LATENT)."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.SiLU()),
        nn.Sequential(nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.SiLU()),
        nn.Sequential(nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.SiLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(2048, 2 * DIGITS_LATENT)),
    )


def varied(x: Tensor, rng: torch.Generator) -> Tensor:
    """Pictures (B, 1, 28, 28): every other one enlarged and shifted, and every fourth coarsened too."""
    some = x[::2]
    size = 1 + 0.5 * torch.rand(len(some), generator=rng)
    move = (2 * torch.rand((len(some), 2), generator=rng) - 1) * 3 / 14  # of half a side
    places = torch.cat([torch.diag_embed((1 / size)[:, None].expand(-1, 2)), move[:, :, None]], 2)  # (B / 2, 2, 3)
    some = F.grid_sample(some, F.affine_grid(places, list(some.shape), align_corners=False), align_corners=False)
    side = int(torch.randint(8, 21, (), generator=rng))
    coarse = F.interpolate(F.interpolate(some[::2], side, mode="area"), 28, mode="bicubic").clamp(0, 1)
    return torch.cat([x[1::2], some[1::2], coarse])


def main() -> None:
    """Train, say how it goes, and write weights and card."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    began, x, held_out = time.perf_counter(), pictures(training_pictures("mnist").pixels), pictures(datasets()["mnist"].rows().pixels)
    encode, decode = encoder(), digit_decoder(DIGITS_LATENT)
    steps = EPOCHS * (len(x) // BATCH)
    optimiser = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    rng = generator(SEED, "pictures of a step")
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(x), generator=rng)[: len(x) // BATCH * BATCH].view(-1, BATCH):
            shown = varied(x[chosen], rng)
            mean, log_variance = encode(shown).chunk(2, 1)
            z = mean + (0.5 * log_variance).exp() * torch.randn(mean.shape, generator=rng)
            kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum() / BATCH
            loss = F.binary_cross_entropy(decode(z), shown, reduction="sum") / BATCH + kl
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * BATCH / len(x)
        print(f"epoch {epoch + 1} of {EPOCHS}: {total:.2f} nats a picture, {time.perf_counter() - began:.0f} s", flush=True)
    encode.eval(), decode.eval()
    with torch.no_grad():
        found = torch.cat([decode(encode(part).chunk(2, 1)[0]) for part in held_out.split(500)])
    error = float((found - held_out).square().mean())
    weights = pack(decode.state_dict(), dtype=torch.float16)
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    card = {
        "title": "handwritten digits",
        "trained_on": f"the {len(x):,} training pictures of MNIST, also enlarged, shifted and coarsened, never a test picture",
        "decoder": "digits",
        "latent": DIGITS_LATENT,
        "image_shape": DIGITS,
        "held_out_mse": round(error, 5),
        "recipe": f"VAE, {EPOCHS} epochs, Adam {RATE}, one cycle, batch {BATCH}, seed {SEED}, `make generator`",
        "commit": head.stdout.strip(),
        "torch": torch.__version__.partition("+")[0],
        "file": "digits.safetensors",
        "sha256": digest(weights),
    }
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / "digits.safetensors", weights)
    write(FOLDER / "digits.json", card)
    print(json.dumps(card, indent=1))


if __name__ == "__main__":
    main()
