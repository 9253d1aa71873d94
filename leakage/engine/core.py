"""The four kinds of plug-in, and all that writing one needs: import it from here. Protocol and Model have files of their own.

Pictures are float32 in [0, 1], shape (B, C, H, W): B of them with C channels. Labels are int64 (B,), or probabilities (B, K) of K classes.
Gradients and weights are `Params`: parameter name -> tensor.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from leakage.engine.inapplicable import DoesNotApplyError as DoesNotApplyError
from leakage.engine.inapplicable import UnreadableLabelsError as UnreadableLabelsError
from leakage.engine.model import Model as Model
from leakage.engine.normalise import Normalise as Normalise
from leakage.engine.observation import Batch as Batch
from leakage.engine.observation import Client as Client
from leakage.engine.observation import ClientState as ClientState
from leakage.engine.observation import Granted as Granted
from leakage.engine.observation import Observation as Observation
from leakage.engine.observation import Params as Params
from leakage.engine.observation import ProtectionKnowledge as ProtectionKnowledge
from leakage.engine.observation import Replay as Replay
from leakage.engine.observation import Round as Round
from leakage.engine.observation import Simulator as Simulator
from leakage.engine.observation import Snapshot as Snapshot
from leakage.engine.observation import Statistics as Statistics
from leakage.engine.observation import StepRng as StepRng
from leakage.engine.observation import TrainedGenerator as TrainedGenerator
from leakage.engine.observation import Transcript as Transcript
from leakage.engine.observation import Update as Update
from leakage.engine.observation import generator as generator
from leakage.engine.plugin import Plugin as Plugin
from leakage.engine.plugin import choice as choice
from leakage.engine.plugin import flag as flag
from leakage.engine.plugin import param as param
from leakage.engine.plugin import text as text
from leakage.engine.protocol import Protocol as Protocol
from leakage.engine.strategy import AdaptiveStrategy as AdaptiveStrategy
from leakage.engine.strategy import Received as Received
from leakage.spec.declarations import AttackDeclarations, DefenseDeclarations
from leakage.spec.declarations import Published as Published
from leakage.spec.declarations import Structure as Structure
from leakage.spec.declarations import Travels as Travels


class Attack(Plugin, AttackDeclarations):
    """Reconstructs pictures from an Observation alone.

    A field `steps`, and `starts` where several are played at once, tell the page how long it takes; without `steps` it answers at once.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Grey(Attack):
        ...     brightness: float = param(0.5, 0, 1, "From black (0) to white (1).")
        ...
        ...     def run(self, seen, rng):
        ...         x = torch.full(seen.batch.shape, self.brightness)  # (B, C, H, W)
        ...         yield Snapshot(step=1, x=x, y=torch.zeros(seen.batch.size, dtype=torch.long), loss=torch.zeros(()))
        >>> import leakage
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        >>> result = leakage.attack(model, torch.rand(2, 1, 4, 4), torch.tensor([0, 2]), attack=Grey(brightness=0.25))
        >>> tuple(result.reconstruction.shape), float(result.reconstruction.mean())
        ((2, 1, 4, 4), 0.25)
    """

    def run(self, seen: Observation, rng: torch.Generator) -> Iterator[Snapshot]:
        """The attack, as a generator that never saves, prints or stops itself on the truth.

        Args:
            seen: all that the server holds.
            rng: the attack's own randomness, on the CPU.

        Yields:
            Snapshots with `x` of shape (B, C, H, W) and `y` of shape (B,) or (B, K); the last one is the answer.

        Raises:
            DoesNotApplyError: when the attack cannot work on this setting, whatever the pictures are, with a sentence that says what
                would: before the first Snapshot where it can. An attack that tried and failed yields its answer instead.
        """
        raise NotImplementedError

    @property
    def batchable(self) -> bool:
        """Whether it can play several observations at once (`run_batched`)."""
        return False

    def run_batched(self, seen: Sequence[Observation], rngs: Sequence[torch.Generator]) -> Iterator[tuple[int, Snapshot]]:
        """Play S observations of one model in one vectorised loop: the same answers as S calls of `run`, sooner.

        Args:
            seen: S observations, each with an `imitate`.
            rngs: the randomness of each.

        Yields:
            The place of an observation in `seen`, and a Snapshot of it.

        Raises:
            NotImplementedError: unless the attack is `batchable`.
        """
        raise NotImplementedError


class Defense(Plugin, DefenseDeclarations):
    """Changes what leaves the client, or the model itself. stage "gradient" acts in each local step, "update" on what is sent.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Scaling(Defense):
        ...     factor: float = param(0.5, 0, 1, "Every entry is multiplied by it.")
        ...
        ...     def defend(self, client, model, step_rng):
        ...         def send(weights, x, y, state):
        ...             update, state = client(weights, x, y, state)
        ...             return {name: self.factor * g for name, g in update.items()}, state
        ...         return send
        >>> import leakage
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        >>> x, y = torch.rand(1, 1, 4, 4), torch.tensor([2])
        >>> plain, halved = (leakage.observe(model, x, y, defenses=own).received.update for own in ([], [Scaling()]))
        >>> bool(torch.allclose(halved["1.weight"], plain["1.weight"] / 2))
        True
    """

    def change(self, model: nn.Module) -> nn.Module:
        """The model that is trained with this defense.

        Args:
            model: may be altered in place. New weights come from torch's global generator, which `observe` forks and seeds; what a
                client keeps to itself are buffers there, which `defend` replaces and the server never sees.

        Returns:
            `model` itself as a rule.

        Raises:
            ValueError: when the model has no place for it.
        """
        return model

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        """The client, defended.

        Args:
            client: (weights, x (B, C, H, W), y (B,), state) -> what it sends, and what it carries on.
            model: the architecture.
            step_rng: the randomness of each local step.

        Returns:
            A client of the same signature. Pure: called twice with the same state it sends the same.
        """
        raise NotImplementedError

    def rehearse(self, client: Client, model: nn.Module, step_rng: StepRng, received: Params) -> Client:
        """The client, defended once more, as an attacker plays it who asks what else might have arrived.

        Args:
            client: computes a gradient that the attacker made up, whatever the pictures.
            model: the architecture.
            step_rng: other randomness than the client's.
            received: what arrived.

        Returns:
            `defend` as a rule; where `received` shows what the defense chose, and choosing takes the pictures, that choice.
        """
        return self.defend(client, model, step_rng)

    def surrogate(self, client: Client, received: Params) -> Client:
        """The best differentiable imitation of the defense for an attacker who knows it.

        Args:
            client: the attacker's imitation of the client without this defense.
            received: what arrived.

        Returns:
            The client, imitated with the defense; `client` itself if nothing can be imitated.
        """
        return client

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """The expected squared difference, known to an adaptive attacker, between `surrogate` of the true pictures and what arrives.

        Searches stop fitting where they come as near as that (`engine.discrepancy`).

        Args:
            incoming: the variances of errors that earlier defenses made, by parameter, of its shape or (); none where there are none.
            received: what else the attacker knows.

        Returns:
            The expected squared error of each entry, in the same form; {} where the imitation is exact, None where it is not known.
        """
        return None

    def effective_noise_multiplier(self, tensors: int) -> float | None:
        """The noise multiplier of one picture's part in one gradient, if the defense promises differential privacy.

        Args:
            tensors: how many tensors the gradient has.

        Returns:
            Standard deviation of the noise over the norm that one picture's part may have; None without a promise.
        """
        return None

    def pure_epsilon(self, entries: int) -> float | None:
        """The epsilon of one upload, if it is promised with delta 0.

        Args:
            entries: how many numbers are uploaded.

        Returns:
            The epsilon; infinite where the promise is not kept, None where there is none.
        """
        return None

    def privacy_unit(self) -> str:
        """Return what the guarantee of `effective_noise_multiplier` or `pure_epsilon` covers, in words that follow "for"."""
        return "one picture, present or absent"

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        """What attackers can do who know it, whatever the fields.

        Returns:
            Name -> strategy; the first is taken unless the experiment names another.
        """
        return {"imitate": AdaptiveStrategy(self.imitation, self.surrogate, errors=self.errors)}
