"""The client of an audit: for each group of pictures and each attacker, what the server receives. Each is computed once."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import torch
from torch import Tensor, nn

from leakage.api import input_check
from leakage.api.loss_check import custom_loss
from leakage.api.model_check import outputs
from leakage.api.model_copy import again
from leakage.api.model_errors import explained
from leakage.api.preparation import module_of, prepare_batch
from leakage.auditing.audit_arguments import AuditArguments
from leakage.auditing.audit_attackers import AuditAttacker
from leakage.auditing.sample import Sample, draw_sample
from leakage.engine.core import Attack
from leakage.engine.losses import classes_of
from leakage.evaluation.baselines import Baselines, make_baselines
from leakage.evaluation.lineup import OWN
from leakage.evaluation.play import PreparedAttack, Private, prepare_attack
from leakage.evaluation.recent import Recent
from leakage.spec.words import counted

PREDICTED = " They have no labels; the model's own predictions stand in for them."
SINGLES = 3  # pictures that are attacked alone
KEPT = 4  # clients, and updates, that are kept at a time: each holds a copy of the model
Group = tuple[int, ...]  # positions of pictures in the sample


@dataclass(frozen=True, eq=False)
class PreparedClient:
    """The model and the batch of a client, before anything is sent; both are copied for each attacker."""

    model: nn.Module
    x: Tensor
    y: Tensor
    num_classes: int


class Scenes:
    """The model and pictures of an audit, and what the server receives from a client with a group of them.

    Args:
        arguments: of the audit

    Raises:
        TypeError, ValueError: the model or the data cannot be attacked; the message says what to do.
    """

    def __init__(self, arguments: AuditArguments) -> None:
        self.arguments = arguments
        module_of(arguments.model)
        device = next((value.device for value in arguments.model.parameters()), torch.device("cpu"))
        drawn = draw_sample(
            arguments.data,
            arguments.pictures,
            seed=arguments.seed,
            normalized=arguments.normalization if arguments.normalized else None,
            image_shape=arguments.image_shape,
        )
        drawn = replace(drawn, x=drawn.x.to(device))
        self._members = arguments.federation.aggregation.members
        x = drawn.x[: self._members]
        labels = torch.zeros(len(x), dtype=torch.long) if drawn.y is None else drawn.y[: len(x)]
        self._first = PreparedClient(*prepare_batch(arguments, arguments.model, x, labels.to(device)))
        self.sample = self._labelled(drawn)
        if not self.groups():
            sizes, given = ", ".join(map(str, arguments.batch_sizes)), counted(len(drawn.x), "picture")
            shared = f" and shared evenly by {self._members} clients" if self._members > 1 else ""
            raise ValueError(f"None of the batch sizes {sizes} can be made of {given}{shared}. Give more pictures, or other batch_sizes.")
        self.client = lru_cache(maxsize=KEPT)(self._client)
        self.baselines = cache(self._baselines)
        self._scenes: Recent[PreparedAttack] = Recent(KEPT, lambda _: 1)

    def groups(self) -> list[Group]:
        """Return the groups of pictures in the order in which they are attacked: one of each size, then others of one picture."""
        count, sizes = len(self.sample.x), sorted(set(self.arguments.batch_sizes))
        first = [tuple(range(size)) for size in sizes if size <= count and size % self._members == 0]
        others = [(index,) for index in range(1, min(SINGLES, count))] if (0,) in first else []
        return first + others

    def scene(self, group: Group, attacker: AuditAttacker, attack: Attack) -> PreparedAttack:
        """Return an attack on what the server receives from a client with these pictures.

        Raises:
            ValueError: the client sends a gradient of zero, or a defense or protocol does not fit the model.
            RefusedError: the client refuses the model that it received.
        """
        made = self._scenes.recall((group, attacker.title), lambda: self._scene(group, attacker, attack))
        return replace(made, attack=attack)

    def _scene(self, group: Group, attacker: AuditAttacker, attack: Attack) -> PreparedAttack:
        client = self.client(group)
        federation = replace(self.arguments, threat_model=attacker.threat).federation
        private = Private(client.x, client.y, client.num_classes, self.arguments.simulated_batch_norm)
        with explained(client.model):
            return prepare_attack(again(client.model), private, federation, attack, lambda: self.baselines(group))

    def _client(self, group: Group) -> PreparedClient:
        x, y = self.sample.part(group)
        if group == tuple(range(len(self._first.x))):
            return replace(self._first, y=y.to(self._first.y.dtype))
        return PreparedClient(*prepare_batch(self.arguments, self.arguments.model, x, y))

    def _baselines(self, group: Group) -> Baselines:
        client = self.client(group)
        return make_baselines([OWN], client.x.float().cpu(), classes_of(client.y).cpu(), seed=self.arguments.seed)

    def _labelled(self, sample: Sample) -> Sample:
        """Check the labels of a sample; where there are none, the model predicts them."""
        first = self._first
        if sample.y is None:
            with torch.no_grad():
                y = torch.cat([outputs(first.model, picture[None].to(first.x.dtype)).argmax(1) for picture in sample.x])
            return replace(sample, y=y, origin=sample.origin + PREDICTED)
        custom = custom_loss(self.arguments.loss, first.num_classes) is not None
        y = input_check.labels(sample.y.to(sample.x.device), sample.x, first.num_classes, custom=custom)
        return replace(sample, y=y)
