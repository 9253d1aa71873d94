"""The host names that this server answers to; a page of any other name that points to this machine (DNS rebinding) is refused."""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::([0-9]{1,5}))?", re.ASCII | re.IGNORECASE)
WRONG = (
    "LEAKAGE_ALLOWED_HOSTS must be names of this server, separated by commas, for example class.example.org,lab:8501; got {!r}. "
    "There are no wildcards."
)


@dataclass(frozen=True)
class Address:
    """The name and the port of a Host header, of an origin, or of an entry of LEAKAGE_ALLOWED_HOSTS."""

    name: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Address | None":
        """Return the name and the port in a text such as `lab:8501`; None if the text is no name or IP address with at most a port."""
        match = HOST.fullmatch(text)
        return cls(match[1].lower(), int(match[2]) if match[2] else None) if match else None

    @property
    def literal(self) -> bool:
        """Whether the name is an IP address; nobody can make an IP address point to another machine."""
        try:
            return bool(ip_address(self.name.strip("[]")))
        except ValueError:
            return False


class Hosts:
    """The names of this server: every IP address, localhost, the names of this machine, and `allowed` (LEAKAGE_ALLOWED_HOSTS).

    Raises ValueError if an entry of `allowed` is no name.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self.entries = {Address("localhost"), *(Address(name) for name in machine_names())}
        for text in allowed:
            entry = Address.parse(text)
            if entry is None:
                raise ValueError(WRONG.format(text))
            self.entries.add(entry)

    def allow(self, host: Address) -> bool:
        """Return whether this server answers to a host; an entry without a port allows every port."""
        return host.literal or host in self.entries or Address(host.name) in self.entries


def machine_names() -> set[str]:
    """Return the names of this machine on the local network, without a query: `pc12.school.lan`, `pc12` and `pc12.local`."""
    name = socket.gethostname().lower()
    short = name.split(".")[0]
    return {name, short, f"{short}.local"} - {"", ".local"}
