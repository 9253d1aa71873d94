"""What a call of the API asks for, from words to objects, and all that is refused there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.loss_check import check_loss, check_searched, custom_loss
from leakage.api.model_check import outputs, prepared
from leakage.api.normalization import Constants
from leakage.api.plugins import chosen
from leakage.api.second_derivative import check_second_derivative
from leakage.engine.core import Attack, Defense, Observation, Protocol
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.logit_layer import last_layer
from leakage.engine.losses import set_loss

Shape = tuple[int, int, int]
BatchNorm = Literal["auto", "eval", "batch"]
Loss = Callable[[Tensor, Tensor], Tensor]  # (logits (B, K), y) -> a scalar


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is the same for pictures and for an update alone."""

    defenses: tuple[Defense, ...]
    protocol: Protocol
    aggregation: Protocol | None
    threat: ThreatModel
    normalization: Constants | None
    batch_norm: BatchNorm
    loss: Loss | None
    seed: int

    @property
    def simulated(self) -> Literal["eval", "batch"]:
        """What a client does that is simulated here: "auto" is eval."""
        return "batch" if self.batch_norm == "batch" else "eval"

    @property
    def federation(self) -> Federation:
        return Federation.of(self.protocol, self.defenses, self.threat, seed=self.seed, over=self.aggregation)


def terms_of(  # noqa: PLR0913  (the words of a call)
    defenses: Sequence[str | Defense],
    protocol: str | Protocol,
    aggregation: str | Protocol | None,
    threat: ThreatModel,
    normalization: Constants | None,
    batch_norm: BatchNorm,
    loss: Loss | None,
    seed: int,
) -> Terms:
    """The words of a call as objects. Raises TypeError, ValueError."""
    if isinstance(defenses, str):
        raise TypeError(f"defenses must be a list; got the word {defenses!r}. Write [{defenses!r}].")
    if batch_norm not in get_args(BatchNorm):
        raise ValueError(f"batch_norm must be auto, eval or batch; got {batch_norm!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on; got {seed!r}.")
    own, over = chosen("protocol", protocol), None if aggregation is None else chosen("protocol", aggregation)
    if own.is_aggregation or (over and not over.is_aggregation):
        wrong, remedy = (own.id, "Name it as aggregation") if own.is_aggregation else (over.id if over else "", "Name it as protocol")
        raise ValueError(f"{wrong} is {'laid over another protocol' if own.is_aggregation else 'no aggregation'}. {remedy}.")
    protections: list[Defense] = [chosen("defense", one) for one in defenses]
    known = [name for one in protections for name in one.strategies()]
    if threat.strategy and threat.strategy not in known:
        raise ValueError(f"strategy: {threat.strategy!r} is none of these defenses; expected is one of {', '.join(known) or 'none'}.")
    if threat.statistics not in ("none", "running", "exact"):
        raise ValueError(f"statistics must be none, running or exact; got {threat.statistics!r}.")
    return Terms(
        defenses=tuple(protections),
        protocol=own,
        aggregation=over,
        threat=threat,
        normalization=normalization,
        batch_norm=batch_norm,
        loss=loss,
        seed=seed,
    )


def pictured(model: nn.Module, x: Tensor, y: Tensor, terms: Terms) -> tuple[nn.Module, Tensor, Tensor, int]:
    """A copy of the model that is ready, pictures in its precision, labels, and how many classes there are."""
    x = input_check.pictures(x)
    x = x.to(next((value.dtype for value in module_of(model).parameters()), x.dtype))
    own = prepared(model, x, terms.normalization)
    logits = outputs(own, x)
    num_classes, loss = logits.shape[1], custom_loss(terms.loss, logits.shape[1])
    members = terms.aggregation.members if terms.aggregation else 1
    if len(x) % members:
        raise ValueError(f"{len(x)} pictures cannot be shared evenly by {members} clients. Give a multiple of {members}.")
    y = input_check.labels(y, x, num_classes, custom=loss is not None)
    if loss:
        check_loss(loss, logits, y)
        set_loss(own, loss)
    return own, x, y, num_classes


def check_fit(model: nn.Module, attacker: Attack, seen: Observation, x: Tensor) -> None:
    """Raise ValueError where this attack cannot work on what arrived."""
    input_check.check_length(seen.update)
    if hasattr(attacker, "steps"):  # it searches
        check_second_derivative(model, x, torch.zeros(len(x), dtype=torch.long, device=x.device))
        check_searched(attacker, seen)
    if seen.labels is None and attacker.reads_labels:
        last_layer(seen)


def probe_of(model: nn.Module, image_shape: Shape | None, batch_size: int | None) -> Tensor:
    """Random pictures of that shape, as the model takes them."""
    assert image_shape
    some = next(model.parameters(), torch.zeros(()))
    dtype = some.dtype if some.is_floating_point() else torch.float32
    return torch.rand((batch_size or 1, *image_shape), generator=torch.Generator().manual_seed(0), dtype=dtype).to(some.device)


def module_of(model: object) -> nn.Module:
    """The model, if it is one. Raises TypeError."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got a {type(model).__name__}.")
    return model
