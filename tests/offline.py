"""A pytest plugin that cuts the network: `python -m pytest -p tests.offline`.

An audit hook refuses every connection, datagram and name lookup beyond this machine, before
anything is sent. It sees this process only; `.ci/run` gives the tests a network namespace of their
own as well where the system allows it.
"""

import ipaddress
import socket
import sys
from typing import Any

CONNECTING = ("socket.connect", "socket.sendto", "socket.sendmsg")
LOOKING_UP = ("socket.getaddrinfo", "socket.gethostbyname")


class OfflineError(OSError):
    """A test tried to leave this machine."""


def refuse(event: str, args: tuple[Any, ...]) -> None:
    """Raise an OfflineError for an audit event that would leave this machine."""
    if event in CONNECTING and isinstance(args[1], tuple):  # other families have other addresses
        host = args[1][0]
    elif event in LOOKING_UP:
        host = args[0]
    else:
        return
    if not is_local(host):
        raise OfflineError(f"the tests run offline, but something wants to reach {host!r}")


def is_local(host: str | bytes | None) -> bool:
    """Whether a host is this machine, by a name or address that needs no lookup elsewhere."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def pytest_configure(config: Any) -> None:
    sys.addaudithook(refuse)
