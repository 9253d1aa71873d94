"""What a recorded update says before any attack: its kind, its numbers, the buffers of BatchNorm, and the rank of its first matrix."""

from collections.abc import Iterator

import torch
from torch import Tensor

from leakage.api.reading import UpdateReading
from leakage.auditing.recorded_client import RecordedClient
from leakage.spec.words import counted

HALF = ("float16", "bfloat16")
MANY_ZEROS = 0.02  # the share of entries from which zeros are worth a sentence
MANY_ROUNDED = 0.01  # the share of entries below the last digit of the weights, from which rounding is worth a sentence
ALIKE = 0.05  # relative spread of the sizes of entries below which they count as equal
CUT = 0.001  # the share of entries that have the largest size, from which they count as cut off
LEVELS = 257  # different values of a large tensor, at most, if it was rounded to 8 bits
LARGE = 2000  # entries of a large tensor

WEIGHTS = "The client sent weights, which its training moved by {:.2g} % of their length."
KINDS = {True: "The update is a gradient.", False: "The update is a difference of weights."}
ROUNDED = (
    "A difference of {} weights is rounded to the last digit of the weights: {:.0%} of its entries are smaller than that, and say little. "
    "Attacks that solve equations lose exactness."
)
NARROW = "The numbers sent have 16 bits ({}): small differences were rounded away."
ZEROS = (
    "{:.0%} of the entries are 0. Either the client sends only some entries (pruning), or parts of the network did nothing for these "
    "pictures."
)
SIGNS = (
    "The entries have nearly the same size, so only their signs say something. A first step of Adam looks like this, and so does an update "
    "of signs alone."
)
CLIPPED = "{:.1%} of the entries have the largest size, {:.2g}: entries beyond it seem to have been cut off."
LEVELED = "The largest tensor has only {} different values: the numbers seem to have been rounded to 8 bits or fewer."
STEPS = "The counter of BatchNorm grew by {}: {} passed through the network in training."
STATISTICS = "After one step the buffers of BatchNorm give the mean and the variance of the batch in {}: attacks may use them."
RANK = "The gradient of the matrix {} has rank {}. In a layer that a picture enters once, each picture adds at most 1 in each local step."
UNREAD = "Labels: not read from the update. {}"
LABELS = "Labels read from the update{}: {}."


def update_statements(client: RecordedClient) -> Iterator[str]:
    """Yield what the numbers of an update say, as sentences.

    Args:
        client: the recorded client.
    """
    sent = {name: value.double() for name, value in client.sent.items()}
    entries = torch.cat([value.flatten() for value in sent.values()])
    if client.is_gradient or not client.has_weights:
        yield KINDS[client.is_gradient]
    else:
        weights = torch.cat([client.model.get_parameter(name).detach().double().flatten() for name in sent])
        yield WEIGHTS.format(100 * float(entries.norm() / weights.norm().clamp(min=1e-300)))
        if client.width not in HALF:
            last_digit = torch.finfo(getattr(torch, client.width or "float32")).eps * weights.abs()
            small = float((entries.abs() < last_digit).double().mean())
            if small > MANY_ROUNDED:
                yield ROUNDED.format(client.width, small)
    if client.width in HALF:
        yield NARROW.format(client.width)
    yield from _shape_statements(entries, sent)
    if client.counted is not None:
        yield STEPS.format(client.counted, "one mini-batch" if client.counted == 1 else f"{client.counted} mini-batches")
    if client.disagreement:
        yield client.disagreement
    if client.statistics:
        yield STATISTICS.format(counted(len(client.statistics), "layer"))


def reading_statements(read: UpdateReading) -> Iterator[str]:
    """Yield what the received gradient says of the batch: ranks and labels, as sentences.

    Args:
        read: what an update says by itself.
    """
    known = [(name, rank) for name, rank in read.ranks.items() if rank is not None]
    if known:
        yield RANK.format(*known[0])
    if read.labels is None:
        yield UNREAD.format(read.rule)
    else:
        sure = "" if read.certainty is None else f" (expected to be right: {read.certainty:.0%})"
        yield LABELS.format(sure, ", ".join(map(str, read.labels)))


def _shape_statements(entries: Tensor, sent: dict[str, Tensor]) -> Iterator[str]:
    """Yield what the sizes of the entries say: zeros, equal sizes, a largest size, few values."""
    sizes = entries.abs()
    zeros, kept = float((sizes == 0).double().mean()), sizes[sizes > 0]
    if zeros > MANY_ZEROS:
        yield ZEROS.format(zeros)
    if not len(kept):
        return
    if float(kept.std(unbiased=False) / kept.mean()) < ALIKE:
        yield SIGNS
        return
    largest = float(kept.max())
    cut = float((kept >= largest * (1 - 1e-6)).double().mean())
    if cut > CUT and int((kept >= largest * (1 - 1e-6)).sum()) > 2:
        yield CLIPPED.format(cut, largest)
    tensor = max(sent.values(), key=Tensor.numel)
    values = tensor.unique().numel()
    if tensor.numel() >= LARGE and values <= LEVELS:
        yield LEVELED.format(values)
