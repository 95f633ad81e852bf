"""Watches the interfaces of a host for frames with test addresses. No such frame may leave the testbed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address

from podperf.addressing import TEST_NETWORK
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json

ENOUGH = 100  # the most frames that are kept; more would only cost CPU time
START_TIMEOUT = 5.0


def addresses_in_test_network(host: Host) -> list[str]:
    """The host's own addresses in the test network. Some VPNs use this network."""
    found = (each for link in ip_json(host, "-4", "address", "show") for each in link["addr_info"])
    return [each["local"] for each in found if IPv4Address(each["local"]) in TEST_NETWORK]


class FrameWatch:
    """tcpdump on every interface of a host, for addresses of the test network. Ends with `undo` at the latest.

    It ignores frames on `ports`, which belong to the testbed, and frames from or to the addresses `but_for`, which
    other traffic uses.
    """

    def __init__(self, host: Host, undo: ExitStack, but_for: Sequence[str] = (), ports: Sequence[str] = ()) -> None:
        if host.ask("which", "tcpdump", check=False).exit_code:
            raise Unavailable(f"tcpdump is not installed on {host.name} (Debian package tcpdump)")
        self._host = host
        # With `-Z root`, tcpdump does not change its user. After a change, it would no longer end with this program.
        options = ("--interface=any", "-n", "--immediate-mode", "-l", "-Z", "root", "-c", str(ENOUGH))
        numbers = (ip_json(host, "link", "show", "dev", port)[0]["ifindex"] for port in ports)
        others = (*(f"not host {each}" for each in but_for), *(f"not ifindex {each}" for each in numbers))
        self._process = host.spawn("tcpdump", *options, " and ".join((f"net {TEST_NETWORK}", *others)))
        undo.callback(self._process.stop)
        deadline = time.monotonic() + START_TIMEOUT
        while "listening on" not in self._process.errors():
            if not self._process.alive() or time.monotonic() > deadline:
                raise PodperfError(f"tcpdump does not watch {host.name}: {self._process.errors().strip()}")
            time.sleep(0.01)

    def stop(self) -> list[str]:
        """End the watch. Returns the frames that tcpdump saw: one line each, at most 100."""
        self._process.stop()
        seen: list[str] = []
        while True:
            try:
                line = self._process.receive(1.0)
            except PodperfError:  # the end of tcpdump's output
                return seen
            if line.strip():  # tcpdump writes an empty line when it is interrupted
                seen.append(line)
