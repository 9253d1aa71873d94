"""The kinds of plug-in, and all names that a plug-in imports. Protocol, Model, Server and Check are defined in files of their own.

Pictures are float32 in [0, 1], shape (B, C, H, W): B pictures with C channels. Labels are int64 (B,), or probabilities (B, K) of K
classes. Gradients and weights are `Params`: parameter name -> tensor.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from leakage.engine.check import Check as Check
from leakage.engine.check import Handed as Handed
from leakage.engine.inapplicable import DoesNotApplyError as DoesNotApplyError
from leakage.engine.inapplicable import UnreadableLabelsError as UnreadableLabelsError
from leakage.engine.malicious_server import Server as Server
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
    """Base class of attacks: an attack reconstructs pictures from an Observation alone.

    The page estimates the duration from the field `steps`, and from `starts` where several restarts run at once. An attack without a field
    `steps` counts as immediate.

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
        """Run the attack and yield its reconstructions, without saving, printing, or stopping because of the truth.

        Args:
            seen: all that the server knows.
            rng: the random numbers of the attack, on the CPU.

        Yields:
            Snapshots with `x` of shape (B, C, H, W) and `y` of shape (B,) or (B, K); the last Snapshot is the answer.

        Raises:
            DoesNotApplyError: where the attack cannot work in this setting, whatever the pictures are; the message says what would help. It
                is raised before the first Snapshot where that is possible. An attack that tried and failed yields its answer instead.
        """
        raise NotImplementedError

    @property
    def batchable(self) -> bool:
        """Whether the attack can run on several observations at once (`run_batched`)."""
        return False

    def run_batched(self, seen: Sequence[Observation], rngs: Sequence[torch.Generator]) -> Iterator[tuple[int, Snapshot]]:
        """Run the attack on S observations of one model in one vectorized loop; the answers are those of S calls of `run`.

        Args:
            seen: S observations of the same weights, each with a `replay.from_gradients`.
            rngs: the random numbers of each run.

        Yields:
            The index of an observation in `seen`, and a Snapshot of its run.

        Raises:
            NotImplementedError: unless the attack is `batchable`.
        """
        raise NotImplementedError


class Defense(Plugin, DefenseDeclarations):
    """Base class of defenses: a defense changes what the client sends, or the model itself.

    A defense with stage "gradient" acts in each local step, a defense with stage "update" on the update that is sent.

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
        >>> plain, halved = (leakage.observe(model, x, y, defenses=stack).received.update for stack in ([], [Scaling()]))
        >>> bool(torch.allclose(halved["1.weight"], plain["1.weight"] / 2))
        True
    """

    def change(self, model: nn.Module) -> nn.Module:
        """Return the model that is trained with this defense.

        Args:
            model: may be altered in place. New weights come from torch's global generator, which `observe` forks and seeds. Tensors that a
                client keeps to itself are buffers of the model; `defend` replaces them, and the server never sees their values.

        Returns:
            `model` itself as a rule.

        Raises:
            ValueError: where the defense does not fit the model.
        """
        return model

    def defend(self, client: Client, model: nn.Module, step_rng: StepRng) -> Client:
        """Return the client with this defense.

        Args:
            client: (weights, x (B, C, H, W), y (B,), state) -> the update that it sends, and the state for its next step.
            model: the architecture.
            step_rng: the random numbers of each local step.

        Returns:
            A client of the same signature. It is pure: two calls with the same state send the same update.
        """
        raise NotImplementedError

    def rehearse(self, client: Client, model: nn.Module, step_rng: StepRng, received: Params) -> Client:
        """Return the client with this defense, as an attacker simulates it to learn which other updates might have arrived.

        Args:
            client: returns a gradient that the attacker made up, for any pictures.
            model: the architecture.
            step_rng: random numbers other than the client's.
            received: the update that arrived.

        Returns:
            `defend` as a rule. A defense that chooses by the pictures repeats the choice that `received` shows.
        """
        return self.defend(client, model, step_rng)

    def surrogate(self, client: Client, received: Params) -> Client:
        """Return the client with the best differentiable imitation of this defense that an adaptive attacker can compute.

        Args:
            client: the attacker's imitation of the client without this defense.
            received: the update that arrived.

        Returns:
            The imitated client with the defense; `client` itself where nothing can be imitated.
        """
        return client

    def errors(self, incoming: Params, received: Received) -> Params | None:
        """Return the expected squared difference between the update that `surrogate` gives for the true pictures and the received update.

        An adaptive attacker knows this difference. Searches stop fitting at a distance of that size (`engine.discrepancy`).

        Args:
            incoming: variances of the errors of earlier defenses, by parameter, of its shape or (); empty where there are none.
            received: the other things that the attacker knows.

        Returns:
            The expected squared error of each entry, in the same form; {} where the imitation is exact, None where the error is not known.
        """
        return None

    def effective_noise_multiplier(self, tensors: int) -> float | None:
        """Return the noise multiplier of one picture's contribution to one gradient, where the defense promises differential privacy.

        Args:
            tensors: number of tensors in the gradient.

        Returns:
            Standard deviation of the noise, divided by the largest norm of one picture's contribution; None without a promise.
        """
        return None

    def pure_epsilon(self, entries: int) -> float | None:
        """Return the epsilon of one sent update, where the defense promises differential privacy with delta 0.

        Args:
            entries: how many numbers are sent.

        Returns:
            Epsilon; infinite where the promise is not kept, None without a promise.
        """
        return None

    def privacy_unit(self) -> str:
        """Return what the guarantee of `effective_noise_multiplier` or `pure_epsilon` covers, in words that follow "for"."""
        return "one picture, present or absent"

    def strategies(self) -> dict[str, AdaptiveStrategy]:
        """Return the strategies of an adaptive attacker against this defense; their names do not depend on its fields.

        Returns:
            Name -> strategy; the first strategy is the default.
        """
        return {"imitate": AdaptiveStrategy(self.imitation, self.surrogate, errors=self.errors)}
