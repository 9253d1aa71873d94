"""One client of a training: its gradients and what it sends, behind its protections."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from leakage.engine.client import Gradient, weights_of
from leakage.engine.core import ClientState, Params, Update
from leakage.engine.federation import Protection, defended
from leakage.engine.recipe import TrainingRecipe


class FedClient:
    """One client of a training with its protections; `state` is what it carries from step to step and from round to round.

    Each protection draws the random numbers that it draws for this client in an experiment of the same seed. Raises ValueError when one
    does not go with the model.
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
        self._defenses = protections
        plain = Gradient(model, bfloat16=training.precision == "bfloat16", loss_log=self._losses)
        self._step = defended(plain, "gradient", self._defenses, model, seed=training.seed, who=number)

    def gradient(self, weights: Params, x: Tensor, y: Tensor) -> tuple[Params, Tensor]:
        """What the optimiser of a local step is given, and the loss."""
        self._losses.clear()
        update, self.state = self._step(weights, x, y, self.state)
        return update, torch.stack(self._losses).sum() / len(x)

    def sent(self, weights: Params, trained: Params) -> Params:
        """What the model holds (`trained`) after local training from `weights`, as the server takes it for this client's.

        What acts on what is sent changes how far the parameters moved, and sees no pictures. BatchNorm's statistics arrive as they are.
        """
        if all(own.defense.stage == "gradient" for own in self._defenses):
            return trained
        before = {name: weights[name] for name in weights_of(self.model)}

        def moved(_weights: Params, _x: Tensor, _y: Tensor, state: ClientState) -> Update:
            return {name: trained[name] - value for name, value in before.items()}, state

        client = defended(moved, "update", self._defenses, self.model, seed=self.training.seed, who=self.number)
        nothing = next(iter(before.values())).new_zeros(0)
        update, self.state = client(before, nothing, nothing, self.state)
        return {**trained, **{name: value + update[name] for name, value in before.items()}}
