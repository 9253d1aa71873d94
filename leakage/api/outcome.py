"""The outcome of an attack: its frames, and its Result."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from leakage.api.declared import UpdateFit
from leakage.api.model_errors import explained
from leakage.api.progress import AttackProgress
from leakage.api.reading import UpdateReading, reading, unconfirmed
from leakage.engine.core import DoesNotApplyError, Observation, UnreadableLabelsError
from leakage.engine.devices import differentiable
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.losses import classes_of, client_loss
from leakage.engine.privacy import PrivacyBudget, privacy_budget
from leakage.evaluation.referee import Frame
from leakage.spec.words import INAPPLICABLE, MEANING


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The outcome of an attack. All tensors are on the CPU.

    Two Results are equal when all of their fields but `seconds` are, tensors entry by entry: the same call with the same seed gives an
    equal Result. `print` shows a Result as one line.

    An attack that cannot work on the setting, whatever the pictures are, is not run. Its Result has the verdict "does not apply", `why`
    says what is missing, and there is no picture: the reconstruction has the shape (0, C, H, W), `scores` is empty, `fit` is None.

    If a client refuses to train the model that it received, `refused` names the check that tripped. Nothing was sent, so there is no
    verdict, `scores` is empty, the reconstruction is grey, and `update.rule` is the refusal.

    Args:
        reconstruction: (B, C, H, W) in [0, 1]; if the private pictures are known, in their order
        labels: the class that the attacker assigned to each picture; if the attack does not apply: labels granted or read
        scores: psnr (dB), mse, ssim, lpips, rank (of the private picture in its line-up), label_accuracy and more, means over
            the batch; of an update alone only gradient distances: there is no truth to score against
        baselines: the same scores of pictures that use no update: grey, mean, noise; empty for an update alone, and
            where the attack does not apply
        verdict: word, why, meaning and rule of the plain verdict; None for an update alone, to which the attack applies, and if refused
        threat_model: what the attacker was granted
        loss: what the client minimises, which the attacker knows: "cross-entropy", or the name of the function that was given
        update: what the update says by itself: labels, numbers against unknowns, ranks
        note: what the attack itself reports
        steps: optimiser steps of the attack
        seconds: run time of the attack
        fit: of an update alone, how well the reconstruction explains it under what was declared; its `warnings` say what fits better
        proved: for each picture whether the attack has proved, without the truth, that it is right
        privacy: epsilon and delta of differential privacy that the protections guarantee, and under which assumption; None for no guarantee
        refused: the id of the check for which a client refused to train the received model, so that it sent nothing; "" for none

    Example:
        >>> import torch, leakage
        >>> _ = torch.manual_seed(0)
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5))
        >>> x, y = torch.rand(1, 3, 8, 8), torch.tensor([2])
        >>> first, second = (leakage.attack(model, x, y, attack="linear_layer") for _ in range(2))
        >>> first == second, first.reconstruction.shape, first.verdict["word"], first.fit
        (True, torch.Size([1, 3, 8, 8]), 'recognizable', None)
    """

    reconstruction: Tensor
    labels: list[int]
    scores: dict[str, Any]
    baselines: dict[str, dict[str, float]]
    verdict: dict[str, str] | None
    threat_model: ThreatModel
    loss: str
    update: UpdateReading
    note: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0
    fit: UpdateFit | None = None
    proved: tuple[bool, ...] = ()
    privacy: PrivacyBudget | None = None
    refused: str = ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return all(_equal(getattr(self, part.name), getattr(other, part.name)) for part in fields(self) if part.name != "seconds")

    __hash__ = None  # type: ignore[assignment]  # it holds tensors and dicts

    def __repr__(self) -> str:
        if self.refused:
            return f"Result(refused: {self.update.rule})"
        if self.verdict and self.verdict["word"] == INAPPLICABLE:
            return f"Result({INAPPLICABLE}: {self.verdict['why']})"
        if self.verdict:
            rank = f", rank {self.scores['rank']:g}" if "rank" in self.scores else ""
            came = f"{self.verdict['word']}, {self.scores['psnr']:.1f} dB{rank}"
        else:
            came = f"an update alone, relative gradient distance {self.scores['relative_l2']:.2g}"
        proved = f", {sum(self.proved)} of {len(self.proved)} pictures proved" if any(self.proved) else ""
        loss = "" if self.loss == "cross-entropy" else f", loss: {self.loss}"
        warned = " Warning: ".join(["", *self.fit.warnings]) if self.fit else ""
        return f"Result({came}{proved}{loss}, {self.seconds:.1f} s){warned}"


def _equal(first: object, second: object) -> bool:
    """Return whether two values are equal in every part: tensors entry by entry; NaN equals NaN."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return (
            first.shape == second.shape
            and first.dtype == second.dtype
            and bool(torch.isclose(first, second, rtol=0, atol=0, equal_nan=True).all())
        )
    if type(first) is not type(second):
        return False
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(_equal(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_equal, first, second))
    if is_dataclass(first) and not isinstance(first, type):
        return all(_equal(getattr(first, part.name), getattr(second, part.name)) for part in fields(first))
    return first == second or (isinstance(first, float) and first != first and second != second)


def loss_words(model: nn.Module) -> str:
    """Return the name of the loss that clients of this model minimise."""
    loss = client_loss(model)
    return loss if isinstance(loss, str) else loss.title


class AttackRun:
    """A running attack, as `leakage.frames` returns it: an iterator over its Frames, of which the last is final, and then `result`.

    An attack that does not apply has no Frames, and a Result that says why.
    """

    def __init__(
        self,
        frames: Iterator[Frame],
        seen: Observation,
        federation: Federation,
        baselines: Callable[[], dict[str, dict[str, float]]],
        progress: AttackProgress | None = None,
        fit: Callable[[Frame], UpdateFit] | None = None,
    ) -> None:
        self._frames, self._seen, self._federation, self._baselines = frames, seen, federation, baselines
        self._progress, self._fit = progress, fit
        self._last: Frame | None = None
        self._inapplicable = ""
        self._began = time.perf_counter()
        self._result: Result | None = None

    @property
    def observation(self) -> Observation:
        """What the attacker works with."""
        return self._seen

    def __iter__(self) -> "AttackRun":
        return self

    def __next__(self) -> Frame:
        try:
            with differentiable(), explained(self._seen.model):
                self._last = next(self._frames)
        except UnreadableLabelsError:  # the caller can grant them
            raise
        except DoesNotApplyError as error:
            self._inapplicable = str(error)
            if self._progress:
                self._progress.close()
            raise StopIteration from None
        if self._progress:
            self._progress.frame(self._last)
        return self._last

    @property
    def result(self) -> Result:
        """The Result of the attack; the first access runs the attack to its end."""
        if self._result is None:
            for _ in self:
                pass
            self._result = self._untried(self._inapplicable) if self._inapplicable else self._summary()
        return self._result

    def _untried(self, why: str) -> Result:
        """Return the Result of an attack that does not apply."""
        seen = self._seen
        with differentiable():
            update = reading(seen)
        return self._result_of(
            update,
            reconstruction=torch.empty(0, *seen.batch.image_shape),
            labels=(update.labels or []) if seen.granted.labels is None else classes_of(seen.granted.labels).tolist(),
            scores={},
            baselines={},
            verdict={"word": INAPPLICABLE, "why": why, "meaning": MEANING[INAPPLICABLE], "rule": ""},
            seconds=time.perf_counter() - self._began,
        )

    def _result_of(self, update: UpdateReading, **results: Any) -> Result:
        """Return a Result with the given fields; fields that are the same for every Result of this run, such as the loss, are added."""
        privacy, loss = privacy_budget(self._federation, self._seen.received.weights), loss_words(self._seen.model)
        common: dict[str, Any] = {"threat_model": self._federation.threat, "loss": loss, "privacy": privacy}
        return Result(update=update, **common, **results)

    def _summary(self) -> Result:
        last = self._last
        assert last is not None
        with differentiable():
            update, fit = reading(self._seen), self._fit(last) if self._fit else None
        if fit:
            update = unconfirmed(update, fit)
        return self._result_of(
            update,
            reconstruction=last.x,
            labels=last.labels,
            scores=last.scores,
            baselines=self._baselines(),
            verdict=last.verdict,
            note=last.note,
            steps=last.step,
            seconds=last.seconds,
            fit=fit,
            proved=last.proved,
        )
