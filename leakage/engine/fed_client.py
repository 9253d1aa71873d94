"""One client of a training, with its protections: the gradients of its local steps, and the update that it sends."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leakage.engine.client import Gradient, weights_of
from leakage.engine.client_protections import Protection, defend_client
from leakage.engine.core import ClientState, Params, Update
from leakage.engine.recipe import TrainingRecipe


class FedClient:
    """One client of a training, with its protections.

    `state` is what the client keeps from step to step and from round to round. For each protection, the random numbers are those that this
    client draws in an experiment of the same seed. Raises ValueError where a protection does not fit the model.

    Args:
        model: the model that is trained.
        training: how it is trained.
        protections: in the order in which they act.
        number: index of the client.
        state: the state to continue from; empty at the start.
    """

    def __init__(
        self,
        model: nn.Module,
        training: TrainingRecipe,
        protections: Sequence[Protection] = (),
        number: int = 0,
        state: ClientState | None = None,
    ) -> None:
        self.model, self.training, self.number, self.state = model, training, number, state or {}
        self._losses = list[Tensor]()
        self._protections = protections
        plain = Gradient(model, bfloat16=training.precision == "bfloat16", loss_log=self._losses)
        self._step = defend_client(plain, "gradient", self._protections, model, seed=training.seed, number=number)

    def gradient(self, weights: Params, x: Tensor, y: Tensor) -> tuple[Params, Tensor]:
        """Return the protected gradient for the optimizer of a local step, and the mean loss of the batch."""
        self._losses.clear()
        update, self.state = self._step(weights, x, y, self.state)
        return update, torch.stack(self._losses).sum() / len(x)

    def sent(self, weights: Params, trained: Params) -> Params:
        """Return the state dict that the server receives from this client.

        Protections of stage "update" change the difference between `trained` and `weights` and see no pictures. The statistics of BatchNorm
        arrive unchanged.

        Args:
            weights: the state dict before local training.
            trained: the state dict after local training.
        """
        if all(protection.defense.stage == "gradient" for protection in self._protections):
            return trained
        before = {name: weights[name] for name in weights_of(self.model)}

        def change(_weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> Update:
            return {name: trained[name] - value for name, value in before.items()}, state

        client = defend_client(change, "update", self._protections, self.model, seed=self.training.seed, number=self.number)
        nothing = next(iter(before.values())).new_zeros(0)
        update, self.state = client(before, nothing, nothing, self.state)
        return {**trained, **{name: value + update[name] for name, value in before.items()}}
