"""Descriptions of attackers that do not imitate the client: they use a trained network, or a model in between. No torch."""

from collections.abc import Sequence

from leakage.spec.catalog import AttackEntry, DefenseEntry


def describe_network(protections: Sequence[DefenseEntry], *, knows: bool) -> str:
    """Describe which network that was trained to invert updates an attack uses: trained behind the protections, or without any.

    Args:
        protections: the protections of the client.
        knows: whether the attacker knows the protections, and so uses the network that was trained behind them.
    """
    if not protections:
        return f"it asks the network that was trained on what such phones send, as {'a naive' if knows else 'an adaptive'} attacker would."
    names = " and ".join(entry.short for entry in protections)
    return f"it asks the network that was trained {f'behind {names}' if knows else f'without protection. It does not know of {names}'}."


def describe_answer(attack: AttackEntry, protection: DefenseEntry, answer: str) -> str:
    """Describe what an attack does about a protection: `answer`, the description of the strategy, unless the attack does something else."""
    if attack.learned:
        return "known: the network was trained behind it"
    only_imitated = any(strategy.description == answer and strategy.imitating for strategy in protection.strategies.values())
    return "known, and not imitated: this attack imitates no phone" if attack.in_place_of_steps and only_imitated else answer


def describe_without_steps(attack: AttackEntry, clients: int, protections: Sequence[DefenseEntry], answers: Sequence[str] | None) -> str:
    """Describe what an attack uses in place of the client's local steps, and what it does about each protection.

    Args:
        attack: the attack.
        clients: how many clients are added up.
        protections: the defenses.
        answers: what the attacker does about each defense; None for a naive attacker.
    """
    of_all = f" of {clients} phones together" if clients > 1 else ""
    what = f"{attack.in_place_of_steps}{of_all}. The number of local steps, their size and their order it does not use."
    if answers is None:
        return what + "".join(f" It does not know of {entry.short}." for entry in protections)
    return what + "".join(f" {entry.short} is {answer}." for entry, answer in zip(protections, answers, strict=True))
