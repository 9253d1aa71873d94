"""The addresses at which other computers of the local network can reach this server."""

import socket
from contextlib import suppress
from ipaddress import ip_address

# Nothing is sent to these: an unsent UDP socket shows which address of this computer the system would use for the way there.
ELSEWHERE = ("198.51.100.1", "192.168.255.254", "10.255.255.254", "172.31.255.254")
WITHIN = 0.5  # seconds in which this server must accept a connection


def lan_addresses() -> list[str]:
    """Return the IPv4 addresses of this computer in its networks, first the one with the way to the internet; without the loopback."""
    found = dict[str, None]()
    for target in ELSEWHERE:
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            found[probe.getsockname()[0]] = None
    with suppress(OSError):
        found |= dict.fromkeys(str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET))
    return [address for address in found if not ip_address(address).is_loopback and not ip_address(address).is_unspecified]


def accepts(address: str, port: int) -> bool:
    """Return whether a server accepts connections at an address of this computer."""
    with suppress(OSError), socket.create_connection((address, port), WITHIN):
        return True
    return False
