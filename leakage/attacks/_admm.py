"""What DLG-ADMM and iDLG-ADMM share: the naive and the adaptive attacker, each imitating a FedADMM client."""

from dataclasses import replace

from torch import Tensor

from leakage.engine.core import Observation, Params

REPAIR_STATE = "Naive attacker only: start every imitation of the phone from the same state."
REPAIR_SCALE = "Naive attacker only: compare gradients with gradients, not with what was sent."
MISTAKES = {  # the switch that repairs one -> the mistake, for the page
    "repair_state": "its imitation goes on where the last one ended instead of starting afresh",
    "repair_scale": "it compares what was sent with a gradient",
}


def imitated(seen: Observation, *, stateless: bool, like_with_like: bool) -> tuple[Observation, str]:
    """Return the observation with this attacker's imitation of the client in it, and the attacker's name for the page.

    An adaptive attacker starts every imitation from the client's state (w, pi), which the server can compute, and compares the weighted
    sums of gradients S on both sides. A naive attacker makes two mistakes, and each can be repaired alone:
    1. not `stateless`: the imitation keeps its state from call to call, so that it drifts away while L-BFGS searches;
    2. not `like_with_like`: the attacker takes what was sent, divided by minus the step size, for the gradient. In the first round, with a
       single local step, that is twice the gradient; later it also contains the correction and the distance between both models.

    Unlike the report: its algorithm 2 also moves the server's model z whenever the client is imitated (line 20); here z stays as it was
    sent, and only w and pi drift. A stateless imitation does not drift in either case.
    """
    simulator = seen.replay.simulator
    stateless, like_with_like = stateless or seen.knowledge.adaptive, like_with_like or seen.knowledge.adaptive
    carried = simulator.state

    def imitate(x: Tensor, y: Tensor) -> Params:
        nonlocal carried
        before = simulator.state if stateless else carried
        sent, after = simulator.send(x, y, before)
        carried = {name: value.detach() for name, value in after.items()}
        return simulator.to_gradient(sent, simulator.state if like_with_like else before)

    target = simulator.to_gradient(simulator.update, simulator.state) if like_with_like else seen.received.update
    words = "adaptive" if seen.knowledge.adaptive else "naive"
    if not seen.knowledge.adaptive and (stateless or like_with_like):
        repaired = [word for word, done in (("state", stateless), ("scale", like_with_like)) if done]
        words = f"naive, repaired: {' and '.join(repaired)}"
    received, replay = replace(seen.received, update=target), replace(seen.replay, single=imitate, to_gradient=same)
    return replace(seen, received=received, replay=replay), words


def same(update: Params) -> Params:
    """Return an update unchanged; it is in the units of an average gradient already."""
    return update
