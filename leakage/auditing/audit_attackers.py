"""The attackers and attacks of an audit: who attacks, by what, in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leakage.api.arguments import USUAL, ClientArguments
from leakage.api.plugins import chosen
from leakage.engine.core import Attack
from leakage.engine.federation import Federation, ThreatModel
from leakage.engine.loading import ids, load
from leakage.spec.words import counted


@dataclass(frozen=True)
class AuditAttacker:
    """What an attacker knows of the client."""

    title: str
    """"naive", "adaptive", "adaptive: " with the strategy; "" where the naive and the adaptive attacker do the same."""
    threat: ThreatModel
    """Everything that it is granted."""

    @property
    def with_labels(self) -> "AuditAttacker":
        """The same attacker, which knows the labels too."""
        return AuditAttacker(", ".join(filter(None, [self.title, "labels known"])), replace(self.threat, labels=True))


def attackers_of(arguments: ClientArguments) -> list[AuditAttacker]:
    """Return the attackers of a client: one for each strategy against its protections, and the naive one where it differs.

    A strategy that averages several rounds is left out, because an audit simulates one round, and so is a strategy that cannot be used
    here. With a naive threat model there is the naive attacker alone.
    """
    federation = arguments.federation
    naive = AuditAttacker("naive", replace(federation.threat, adaptive=False, strategy=""))
    if not federation.adaptive:
        return [naive]
    if federation.sends_gradient and not federation.protections:
        return [AuditAttacker("", federation.threat)]
    first = AuditAttacker("adaptive", federation.threat)
    if federation.threat.strategy:
        return [first, naive]
    others = [
        AuditAttacker(f"adaptive: {name}", replace(federation.threat, strategy=name))
        for index, protection in enumerate(federation.protections)
        for name, strategy in list(protection.defense.strategies().items())[1:]
        if not strategy.averaging and _used(arguments, name, index) == strategy.description
    ]
    return [first, *others, naive]


def _used(arguments: ClientArguments, name: str, index: int) -> str:
    """Return the description of the strategy that an attacker uses against a protection if the strategy `name` is asked for."""
    threat = replace(arguments.threat, strategy=name)
    return replace(arguments, threat_model=threat).federation.protections[index].strategy.description


def attacks(federation: Federation, named: Sequence[str | Attack] | None = None) -> list[Attack]:
    """Return the attacks of an audit: what reads the server, closed forms, then searches.

    Args:
        federation: of the audit.
        named: attacks, or their ids; None: the strongest attacks that there are here, each with its strongest fields.
    """
    if named is not None:
        return sorted((chosen("attack", attack) for attack in named), key=searches)
    reading = federation.server.reading if federation.server else ()
    tried = [cls(**cls.strongest) for cls in (load("attack", name) for name in ids("attack")) if cls.strongest is not None]
    tried = [load("attack", name)() for name in reading] + [attack for attack in tried if attack.id not in reading]
    return sorted(tried, key=lambda attack: (attack.id not in reading, searches(attack), attack.id != USUAL))


def searches(attack: Attack) -> bool:
    """Return whether an attack searches for the pictures, step by step."""
    return hasattr(attack, "steps")


def unfit_size(attack: Attack, pictures: int) -> str:
    """Return why an attack does not fit the number of pictures in an update; "" where it fits."""
    allowed: Sequence[int] = attack.fits.get("pictures", ())
    if not allowed or pictures in allowed:
        return ""
    low, high = min(allowed), max(allowed)
    return f"It is for {counted(low, 'picture') if low == high else f'{low} to {high} pictures'} in one update; here there are {pictures}."


def unfit_precision(attack: Attack, precision: str) -> str:
    """Return why an attack does not fit the precision of an update; "" where it fits."""
    allowed: Sequence[str] = attack.fits.get("precision", ())
    if not allowed or precision in allowed:
        return ""
    return f"It needs an update in {' or '.join(allowed)}, because rounding errors grow from layer to layer; this one is in {precision}."
