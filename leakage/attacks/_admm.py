"""What DLG-ADMM and iDLG-ADMM share: the naive and the adaptive attacker, each imitating a FedADMM client."""

from dataclasses import replace

from torch import Tensor

from leakage.engine.core import Observation, Params

REPAIR_STATE = "Naive attacker only: start every imitation of the phone from the same state."
REPAIR_SCALE = "Naive attacker only: compare gradients with gradients, not with what was sent."
MISTAKES = {  # the field that repairs a mistake -> the mistake, for the page
    "repair_state": "its imitation goes on where the last one ended instead of starting afresh",
    "repair_scale": "it compares what was sent with a gradient",
}


def with_imitation(seen: Observation, *, stateless: bool, same_scale: bool) -> tuple[Observation, str]:
    """Return the observation with the attacker's imitation of a FedADMM client as its replay, and the attacker's name for the page.

    A FedADMM client keeps a state from round to round: its model w and its dual variable pi. An adaptive attacker starts every imitation
    from this state, which the server can compute, and compares the weighted sum of the local steps' gradients of the imitation with that
    of the client. A naive attacker makes two mistakes, and each can be repaired alone:
    1. not `stateless`: the imitation keeps its state from call to call, so that it drifts away while L-BFGS searches;
    2. not `same_scale`: the attacker takes the sent increment, divided by minus the step size, for the gradient. In the first round, with
       a single local step, this is twice the gradient; later it also contains pi and the distance between the two models.

    Unlike the reproduction report that `DLGADMM` follows: its algorithm 2 also moves the server's model z whenever the client is imitated
    (line 20). Here z stays as the server sent it, and only w and pi drift. A stateless imitation does not drift in either case.
    """
    simulator = seen.replay.simulator
    stateless, same_scale = stateless or seen.knowledge.adaptive, same_scale or seen.knowledge.adaptive
    carried = simulator.state

    def imitate(x: Tensor, y: Tensor) -> Params:
        nonlocal carried
        before = simulator.state if stateless else carried
        sent, after = simulator.send(x, y, before)
        carried = {name: value.detach() for name, value in after.items()}
        return simulator.to_gradient(sent, simulator.state if same_scale else before)

    target = simulator.to_gradient(simulator.update, simulator.state) if same_scale else seen.received.update
    attacker = "adaptive" if seen.knowledge.adaptive else "naive"
    if not seen.knowledge.adaptive and (stateless or same_scale):
        repaired = [part for part, done in (("state", stateless), ("scale", same_scale)) if done]
        attacker = f"naive, repaired: {' and '.join(repaired)}"
    received, replay = replace(seen.received, update=target), replace(seen.replay, single=imitate, to_gradient=unchanged)
    return replace(seen, received=received, replay=replay), attacker


def unchanged(update: Params) -> Params:
    """Return the update unchanged, as the `to_gradient` of an update that is in the units of an average gradient already."""
    return update
