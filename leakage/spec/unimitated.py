"""Of attackers who imitate no client, in words: a network that was trained beforehand, or a model in between. No torch."""

from collections.abc import Sequence

from leakage.spec.catalog import AttackEntry, DefenseEntry


def asks(protections: Sequence[DefenseEntry], *, knows: bool) -> str:
    """Of an attack that asks a network, which was trained beforehand: which one, by somebody who `knows` the protections or does not."""
    if not protections:
        return f"it asks the network that was trained on what such phones send, as {'a naive' if knows else 'an adaptive'} attacker would."
    names = " and ".join(entry.short for entry in protections)
    return f"it asks the network that was trained {f'behind {names}' if knows else f'without protection. It does not know of {names}'}."


def used(attack: AttackEntry, protection: DefenseEntry, answer: str) -> str:
    """What this attack makes of an answer to a protection."""
    if attack.learned:
        return "known: the network was trained behind it"
    only_imitated = any(own.description == answer and own.imitating for own in protection.strategies.values())
    return "known, and not imitated: this attack imitates no phone" if attack.in_place_of_steps and only_imitated else answer


def steps_left_out(attack: AttackEntry, clients: int, protections: Sequence[DefenseEntry], answers: Sequence[str] | None) -> str:
    """Of an attack that imitates no local steps; `answers` to the protections, None where it does not know of them."""
    of_all = f" of {clients} phones together" if clients > 1 else ""
    what = f"{attack.in_place_of_steps}{of_all}. The number of local steps, their size and their order it does not use."
    if answers is None:
        return what + "".join(f" It does not know of {entry.short}." for entry in protections)
    return what + "".join(f" {entry.short} is {answer}." for entry, answer in zip(protections, answers, strict=True))
