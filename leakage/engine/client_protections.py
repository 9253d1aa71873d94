"""The protections of an experiment in the order in which they act, with the attacker's strategy against each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from torch import nn

from leakage.engine.core import AdaptiveStrategy, Client, Defense, generator
from leakage.engine.weights import drawing

STAGES = ("gradient", "update")


@dataclass(frozen=True)
class Protection:
    """A defense of an experiment, and the attacker's strategy against it.

    Args:
        index: the position of the defense in the experiment's list
        defense: the defense
        strategy: what an adaptive attacker does about the defense
    """

    index: int
    defense: Defense
    strategy: AdaptiveStrategy


def order_protections(
    defenses: Sequence[Defense], strategy: str = "", *, stages: Sequence[str] = STAGES, colluding: bool = False
) -> tuple[Protection, ...]:
    """Return the protections in the order in which they act: by stage, and within a stage in the order of the experiment's list.

    The strategy against a defense is the strategy named `strategy` where that is usable, else the first usable strategy. A strategy that
    works with the exact numbers received is usable only where its defense acts last and the stage of the defense is in `stages`. A
    colluding strategy is usable only with an accomplice.

    Args:
        defenses: the experiment's defenses.
        strategy: the name of a strategy, or "".
        stages: the stages after which the server receives the exact numbers.
        colluding: whether another client colludes with the attacker.
    """
    ordered = [(index, defense) for stage in STAGES for index, defense in enumerate(defenses) if defense.stage == stage]

    def chosen_strategy(defense: Defense, *, last: bool) -> AdaptiveStrategy:
        seen = last and defense.stage in stages
        usable = {
            name: strategy
            for name, strategy in defense.strategies().items()
            if (seen or not (strategy.exact or strategy.invert_update)) and (colluding or not strategy.colluding)
        }
        return usable.get(strategy) or next(iter(usable.values()))

    return tuple(
        Protection(index, defense, chosen_strategy(defense, last=number == len(ordered)))
        for number, (index, defense) in enumerate(ordered, 1)
    )


def change_model(model: nn.Module, protections: Sequence[Protection], *, seed: int) -> nn.Module:
    """Return the model as the protections change it, untrained.

    Each protection draws from a random generator of its own, so that all other random numbers are as without protections.
    """
    for protection in protections:
        with drawing(seed, "defense", protection.index, protection.defense.id, "weights"):
            model = protection.defense.change(model)
    return model


def defend_client(client: Client, stage: str, protections: Sequence[Protection], model: nn.Module, *, seed: int, number: int) -> Client:
    """Return a client behind the protections of one stage, in their order.

    Each protection draws from a random generator of its own, which depends on the client's number.

    Args:
        client: the client without the protections of this stage.
        stage: "gradient" or "update".
        protections: the protections of all stages.
        model: the model that the client received.
        seed: the seed of all random numbers.
        number: the number of the client among the clients of an aggregation, from 0.
    """
    others = () if number == 0 else (number,)
    for protection in protections:
        if protection.defense.stage == stage:
            client = protection.defense.defend(
                client, model, partial(generator, seed, "defense", protection.index, protection.defense.id, *others)
            )
    return client
