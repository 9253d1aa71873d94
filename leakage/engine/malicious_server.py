"""The base class of servers that change the model which they hand out. Import it from `leakage.engine.core`."""

from collections.abc import Sequence

import torch
from torch import nn

from leakage.engine.arranged import Bins
from leakage.engine.observation import Observation, Params, Round
from leakage.engine.plugin import Plugin
from leakage.spec.declarations import ServerDeclarations


class Server(Plugin, ServerDeclarations):
    """A server that changes the model before the clients train it, so that their updates give pictures away.

    The server sees the rounds that it received, and nothing else. Its base weights stand still from round to round: it does not average
    the updates. Without such a server, an experiment has an honest server, which follows the protocol.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Doubling(Server):
        ...     def hand_out(self, model, weights, history, rng):
        ...         return {name: 2 * weight for name, weight in weights.items()}
        >>> import leakage
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        >>> seen = leakage.observe(model, torch.rand(1, 1, 4, 4), torch.tensor([2]), server=Doubling())
        >>> bool(torch.equal(seen.received.weights["1.weight"], 2 * model[1].weight))
        True
    """

    def rebuild(self, model: nn.Module, image_shape: tuple[int, int, int], members: int) -> nn.Module:
        """Return the network that the server hands out, before protections change it.

        Args:
            model: the agreed network with its weights; may be altered in place. New weights come from torch's global generator, which the
                engine forks and seeds.
            image_shape: (C, H, W) of one picture.
            members: the number of clients whose updates are added up; 1 without aggregation.

        Returns:
            `model` itself by default.

        Raises:
            ValueError: the server cannot use this network, or pictures of this shape; the message says what would help.
        """
        return model

    def hand_out(self, model: nn.Module, weights: Params, history: Sequence[Round], rng: torch.Generator) -> Params:
        """Return the weights that the server hands out in the next round.

        Args:
            model: the network that is handed out; its own weights mean nothing here.
            weights: the base weights, by parameter, of the network that `rebuild` returned; they must not be altered.
            history: the earlier rounds, as the server received them.
            rng: the server's random numbers, the same in every round.

        Returns:
            Weights of the same names and shapes; the base weights by default.
        """
        return weights

    def single_out(self, model: nn.Module, weights: Params, member: int, members: int) -> Params:
        """Return the weights that one client receives in place of those that all clients receive.

        Args:
            model: the network that is handed out; its own weights mean nothing here.
            weights: what `hand_out` returned; they must not be altered.
            member: the number of the client, from 0.
            members: the number of clients whose updates are added up.

        Returns:
            Weights of the same names and shapes; by default the same weights for all clients.
        """
        return weights

    def secret(self, model: nn.Module, members: int) -> Bins | None:
        """Return what the server has built into the model, for its attack: `Observation.secret`.

        Args:
            model: the network that is handed out, with the weights of the attacked round.
            members: the number of clients whose updates are added up.

        Returns:
            None by default: the attack needs no more than the model.
        """
        return None

    def isolate(self, seen: Observation, members: int) -> Observation:
        """Return an observation of fewer pictures that the server's change has separated, on which a search can be run.

        Args:
            seen: the observation of all pictures.
            members: the number of clients whose updates are added up.

        Returns:
            `seen` itself by default. An observation of other pictures says in `isolated` which they are.

        Raises:
            DoesNotApplyError: no picture was separated; the message says what would help.
        """
        return seen
