"""Where this device is on its network, and finding another one there while both are being paired (extra ``lan``)."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from memorize.sync.peers import ADDRESSES_MAX, Address

SERVICE: Final = "_memorize-pair._tcp.local."
# Nothing is sent to these: connecting a datagram socket only asks the system which way it would go.
_FAR: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def is_available() -> bool:
    """Tell whether devices can be found: the extra ``lan`` is installed."""
    return find_spec("zeroconf") is not None


def own_addresses() -> list[str]:
    """Return the addresses at which others may reach this machine, the likeliest first; loopback when it is alone."""
    found: dict[str, None] = {}
    for family, far in _FAR:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))
            found[str(probe.getsockname()[0])] = None
    with contextlib.suppress(OSError):
        for *_, place in socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM):
            found[str(place[0])] = None
    usable = [one for one in found if _is_usable(one)]
    return usable[:ADDRESSES_MAX] or ["127.0.0.1"]


def _is_usable(text: str) -> bool:
    try:
        one = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return not (one.is_loopback or one.is_link_local or one.is_unspecified or one.is_multicast)


def listening(port: int, host: str = "") -> socket.socket:
    """Return a socket that listens at a port (0: any) on all addresses, or on one. Raises OSError."""
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


@contextmanager
def announced(plate: int, port: int, addresses: Iterable[str], interfaces: Any = None) -> Iterator[None]:
    """Let a device that looks for this plate find this one, for as long as the block runs. Needs the extra."""
    from zeroconf import InterfaceChoice, ServiceInfo, Zeroconf

    numbers = [ipaddress.ip_address(one.partition("%")[0]).packed for one in addresses]
    name = f"memorize-{time.monotonic_ns():x}.{SERVICE}"
    info = ServiceInfo(SERVICE, name, port=port, addresses=numbers, properties={"plate": str(plate)})
    net = Zeroconf(interfaces=interfaces or InterfaceChoice.Default)
    try:
        net.register_service(info)
        yield
    finally:
        net.close()


def find(plate: int, wait_s: float, interfaces: Any = None) -> list[list[Address]]:
    """Return the addresses of each device that shows this plate, looking for so long. Needs the extra."""
    from zeroconf import InterfaceChoice, ServiceBrowser, Zeroconf

    seen: dict[str, None] = {}
    net = Zeroconf(interfaces=interfaces or InterfaceChoice.Default)

    class Listener:
        def add_service(self, _zeroconf: Any, _kind: str, name: str) -> None:
            seen[name] = None

        update_service = add_service

        def remove_service(self, _zeroconf: Any, _kind: str, name: str) -> None:
            seen.pop(name, None)

    try:
        ServiceBrowser(net, SERVICE, listener=Listener())  # type: ignore[arg-type]
        end = time.monotonic() + wait_s
        found: dict[str, list[Address]] = {}
        while time.monotonic() < end and not found:
            time.sleep(0.2)
            for name in list(seen):
                info = net.get_service_info(SERVICE, name, timeout=1000)
                if info is None or not info.port or (info.properties or {}).get(b"plate") != str(plate).encode():
                    continue
                found[name] = [Address(one, info.port) for one in info.parsed_addresses()][:ADDRESSES_MAX]
        return list(found.values())
    finally:
        net.close()
