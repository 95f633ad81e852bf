"""Watches the interfaces of a machine for test frames, which must not leave the testbed (draft section 5).

A test frame has an address of the test network, or the signature in the payload (tester/payload.h) of podperf's own
tester, whatever its addresses are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address

from podperf.addressing import TEST_NETWORK, TEST_NETWORK_6
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json

SIGNATURE = 0x7064AA5E  # bytes 4 to 7 of the payload, in little endian; the lowest bit is the direction
_IP_HEADERS = {"ip": 20, "ip6": 40}  # bytes, without options
_UDP_HEADER, _ETHERNET_HEADER, _PLACE = 8, 14, 4  # bytes
_VERSIONS = {"ip": 4, "ip6": 6}
_ETHERTYPES = {"ip": 0x0800, "ip6": 0x86DD}
_IN_IP = {"ip": 4, "ip6": 41}  # the protocol numbers of IP packets in IP packets
_IN_UDP = _UDP_HEADER + 8 + _ETHERNET_HEADER  # bytes between both IP headers
# A condition for each encapsulation with an Ethertype, and the bytes between its two IP headers: GRE with packets or
# with Ethernet frames (RFC 2784), VXLAN (RFC 7348), Geneve (RFC 8926). Geneve has options, of LENGTH bytes.
_TUNNELS = (
    ("proto 47", "4"),
    ("proto 47", f"{4 + _ETHERNET_HEADER}"),
    ("proto 17", f"{_IN_UDP}"),
    ("proto 17 and udp dst port 6081", f"{_IN_UDP} + LENGTH"),
)
_COOKED_HEADER = 20  # bytes of tcpdump's own header, in front of each frame without its Ethernet header
ENOUGH = 100  # the most frames that are kept; more would only cost CPU time
START_TIMEOUT = 5.0


def addresses_in_test_network(host: Host) -> list[str]:
    """The host's own addresses in the test network. Some VPNs use this network."""
    found = (each for link in ip_json(host, "-4", "address", "show") for each in link["addr_info"])
    return [each["local"] for each in found if IPv4Address(each["local"]) in TEST_NETWORK]


class FrameWatch:
    """tcpdump on every interface of a host, for test frames. Ends with `undo` at the latest.

    It ignores frames on `ports`, which belong to the testbed. Other traffic uses the addresses `but_for`, so frames
    from or to these count only if they have the signature or are encapsulated. Frames of the further `networks` count,
    too: of nodes and pods of a cluster, for example.
    """

    def __init__(
        self,
        host: Host,
        undo: ExitStack,
        but_for: Sequence[str] = (),
        ports: Sequence[str] = (),
        networks: Sequence[str] = (),
    ) -> None:
        if host.ask("which", "tcpdump", check=False).exit_code:
            raise Unavailable(f"tcpdump is not installed on {host.name} (Debian package tcpdump)")
        self._host = host
        # With `-Z root`, tcpdump does not change its user. After a change, it would no longer end with this program.
        options = ("--interface=any", "-n", "--immediate-mode", "-l", "-Z", "root", "-c", str(ENOUGH))
        numbers = (ip_json(host, "link", "show", "dev", port)[0]["ifindex"] for port in ports)
        addressed = " and ".join(
            (f"(net {TEST_NETWORK} or net {TEST_NETWORK_6})", *(f"not host {each}" for each in but_for))
        )
        counted = " or ".join((f"({addressed})", *(f"net {each}" for each in networks), _hidden()))
        elsewhere = (f"not ifindex {number}" for number in numbers)
        self._process = host.spawn("tcpdump", *options, " and ".join((f"({counted})", *elsewhere)))
        undo.callback(self._process.stop)
        deadline = time.monotonic() + START_TIMEOUT
        while "listening on" not in self._process.errors():
            if not self._process.alive() or time.monotonic() > deadline:
                raise PodperfError(f"tcpdump does not watch {host.name}: {self._process.errors().strip()}")
            time.sleep(0.01)

    def stop(self) -> list[str]:
        """End the watch. Returns the frames that tcpdump saw: one line each, at most 100.

        Raises PodperfError if tcpdump ended before 100 frames."""
        alive = self._process.alive()
        self._process.stop()
        seen: list[str] = []
        with suppress(PodperfError):  # the end of tcpdump's output
            while True:
                if line := self._process.receive(1.0).strip():  # an interrupted tcpdump writes an empty line
                    seen.append(line)
        if not alive and len(seen) < ENOUGH:
            raise PodperfError(f"tcpdump did not watch {self._host.name} to the end: {self._process.errors().strip()}")
        return seen


def _signed(layer: str, payload: str) -> str:
    """The filter (pcap-filter(7)) for the signature in a UDP payload. tcpdump reads the four bytes in the other
    order."""
    word, mask = (int.from_bytes(each.to_bytes(4, "little")) for each in (SIGNATURE, ~1 & 0xFFFFFFFF))
    return f"{layer}[{payload} + {_PLACE}:4] & {mask:#010x} = {word:#010x}"


def _inner(layer: str, start: str, family: str) -> str:
    """The filter for a test frame whose IP header begins at this place."""
    if family == "ip":
        mask, network = int(TEST_NETWORK.netmask), int(TEST_NETWORK.network_address)
        tests = [f"{layer}[{start} + {place}:4] & {mask:#x} = {network:#x}" for place in (12, 16)]
    else:
        words = (int(TEST_NETWORK_6.network_address) >> 96, int(TEST_NETWORK_6.network_address) >> 80 & 0xFFFF)
        tests = [
            f"({layer}[{start} + {place}:4] = {words[0]:#x} and {layer}[{start} + {place + 4}:2] = {words[1]})"
            for place in (8, 24)
        ]
    tests.append(_signed(layer, f"{start} + {_IP_HEADERS[family] + _UDP_HEADER}"))
    return f"{layer}[{start}] >> 4 = {_VERSIONS[family]} and ({' or '.join(tests)})"


def _hidden() -> str:
    """The filter for test frames that have the signature only, or that are below an encapsulation or VLAN tags.

    At a place beyond its end, the filter refuses a frame whatever follows. So the nearest places come first.
    """
    tests = []
    for layer, header in _IP_HEADERS.items():
        tests += [f"{layer} proto 17 and {_signed(layer, f'{header + _UDP_HEADER}')}"]
        tests += [f"{layer} proto {_IN_IP[each]} and {_inner(layer, f'{header}', each)}" for each in _IP_HEADERS]
    places = [
        (layer, f"{layer} {condition} and ", f"{header} + {between.replace('LENGTH', _options(layer, header))}")
        for condition, between in _TUNNELS
        for layer, header in _IP_HEADERS.items()
    ]
    # Behind one or two VLAN tags. The kernel takes the outermost tag off when a frame arrives.
    places += [("link", "", f"{_COOKED_HEADER + 4 * tags}") for tags in (1, 2)]
    tests += [
        f"{condition}{layer}[{start} - 2:2] = {_ETHERTYPES[family]:#x} and {_inner(layer, start, family)}"
        for layer, condition, start in places
        for family in _IP_HEADERS
    ]
    return " or ".join(f"({each})" for each in tests)


def _options(layer: str, header: int) -> str:
    """The length of Geneve's options: the six lowest bits of its first byte, in words of four bytes."""
    return f"(({layer}[{header + _UDP_HEADER}] & 0x3f) << 2)"
