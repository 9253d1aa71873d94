"""Which names this server answers to: a page of another name, pointed at this machine (DNS rebinding), must not read from it."""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::([0-9]{1,5}))?", re.ASCII | re.IGNORECASE)
WRONG = (
    "LEAKAGE_ALLOWED_HOSTS must be names of this server with commas between them, for example class.example.org,lab:8501; got {!r}. "
    "There are no wildcards."
)


@dataclass(frozen=True)
class Address:
    """The name and the port of a Host header, of an origin, or of an entry in the setting."""

    name: str
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> "Address | None":
        """What stands there; None where that is no name or address with at most a port behind it."""
        found = HOST.fullmatch(text)
        return cls(found[1].lower(), int(found[2]) if found[2] else None) if found else None

    @property
    def literal(self) -> bool:
        """Whether it is an IP address, which nobody can point at another machine."""
        try:
            return bool(ip_address(self.name.strip("[]")))
        except ValueError:
            return False


class Hosts:
    """The names of this server: every IP address, localhost, the machine's own name, and those of the setting.

    Raises ValueError for an entry that is no name.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self.entries = {Address("localhost"), *(Address(name) for name in own_names())}
        for text in allowed:
            entry = Address.read(text)
            if entry is None:
                raise ValueError(WRONG.format(text))
            self.entries.add(entry)

    def allow(self, host: Address) -> bool:
        """Whether a request for this name and port is for us; an entry without a port allows all."""
        return host.literal or host in self.entries or Address(host.name) in self.entries


def own_names() -> set[str]:
    """What others on the same network call this machine, without asking anybody: `pc12.school.lan`, `pc12` and `pc12.local`."""
    name = socket.gethostname().lower()
    short = name.split(".")[0]
    return {name, short, f"{short}.local"} - {"", ".local"}
