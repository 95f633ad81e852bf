"""The two ends of a chain that the run makes: ports of the tester, or pods with the tester's program in them.

Other programs can talk through the chain from there, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import cycle

from podperf.errors import Unavailable
from podperf.frames import Headers
from podperf.hosts.base import Host
from podperf.hosts.linux import add_address, configure, ip, mac_address, static_neighbour
from podperf.hosts.namespaces import NetworkNamespace, add_namespace
from podperf.kernel.threads import dedicate_receive_processing
from podperf.model import Direction, Entry
from podperf.pods.base import Pod
from podperf.testers.base import Tester
from podperf.testers.ends import ChainEnd
from podperf.testers.headers import first_address
from podperf.topology import PortSettings


@dataclass(frozen=True)
class NewEnd:
    """An end of a chain: the interface with the name of its `side`, in the namespace of `host`."""

    side: str
    host: NetworkNamespace
    pod: Pod | None = None
    takes_xdp: bool = True  # see AttachedPod

    @property
    def tester_port(self) -> PortSettings:
        """The end as a port of the tester."""
        return PortSettings(self.side, self.host.namespace)


@dataclass(frozen=True)
class NewEnds:
    """Both ends, which have their interfaces, and the chain between them."""

    machine: Host
    left: NewEnd
    right: NewEnd
    tester: Tester
    entries: Mapping[Direction, Entry]
    headers: Headers
    cpus: Sequence[int]  # those of the machine that the system under test does not have

    @contextmanager
    def hosts(self) -> Iterator[tuple[ChainEnd, ChainEnd]]:
        """See EndHosts. The ends get addresses of test frames, static neighbours and routes to each other.

        Within one namespace the kernel would deliver at once what goes to an own address. So if both ends are in one,
        the right one gets a namespace of its own.
        """
        if self.headers.left or self.headers.right:
            raise Unavailable("application traffic has no VLAN tags")
        if any(entry.address is not None for entry in self.entries.values()):
            raise Unavailable("the chain translates addresses of test frames only, and TCP has others")
        self.tester.close()  # its programs take the frames that arrive
        with ExitStack() as undo:
            yield self._hosts(undo)

    def _hosts(self, undo: ExitStack) -> tuple[ChainEnd, ChainEnd]:
        hosts = {end.side: end.host for end in (self.left, self.right)}
        macs = {side: mac_address(host, side) for side, host in hosts.items()}
        if hosts["left"] is hosts["right"]:
            hosts["right"] = far = add_namespace(self.machine, "tester-right", undo)
            ip(self.right.host, "link", "set", "dev", "right", "netns", far.namespace)
            # The chain is taken down with the port at its end.
            undo.callback(ip, far, "link", "set", "dev", "right", "netns", self.right.host.namespace)
        addresses = {side: str(first_address(side, self.headers.family)) for side in hosts}
        alone = {side: str(ip_network(address)) for side, address in addresses.items()}
        ways = zip(hosts, reversed(hosts), Direction, cycle(self.cpus))
        for near, other, direction, cpu in ways:
            entry, host = self.entries.get(direction, Entry()), hosts[near]
            add_address(host, near, alone[near])
            configure(
                host,
                ("link", "set", "dev", near, "up"),
                static_neighbour(near, addresses[other], entry.mac or macs[other]),
                ("route", "add", alone[other], "dev", near, "src", addresses[near]),
                # TCP_CRR ends thousands of connections a second. Their ports must not stay in use for a minute.
                net__ipv4__tcp_tw_reuse=1,
            )
            # With TSO, a veth gives segments of 64 KiB to the worker, on the sender's CPU. Without, it gives frames to
            # the worker's receive thread, as a cable does (veth_skb_is_eligible_for_gro of the kernel).
            host.do("ethtool", "-K", near, "tso", "off")
            # Otherwise a CPU of the system under test would do the receiver's work in the kernel.
            dedicate_receive_processing(host, near, cpu)
        left, right = (ChainEnd(host, addresses[side], self.cpus) for side, host in hosts.items())
        return left, right
