"""The two ends of a chain between ports that the run makes, for programs that talk through the chain."""

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
from podperf.testers.base import Tester
from podperf.testers.ends import ChainEnd
from podperf.testers.headers import first_address


@dataclass(frozen=True)
class NewPorts:
    """The interfaces `left` and `right` in the tester's namespace, which the run has made."""

    machine: Host
    host: NetworkNamespace
    tester: Tester
    entries: Mapping[Direction, Entry]
    headers: Headers
    cpus: Sequence[int]  # those of the machine that the system under test does not have

    @contextmanager
    def ends(self) -> Iterator[tuple[ChainEnd, ChainEnd]]:
        """See Ends. The ports get addresses of test frames, static neighbours and routes to each other.

        Within one namespace the kernel would deliver at once what goes to an own address. So the right port gets a
        namespace of its own.
        """
        if self.headers.left or self.headers.right:
            raise Unavailable("application traffic has no VLAN tags")
        if any(entry.address is not None for entry in self.entries.values()):
            raise Unavailable("the chain translates addresses of test frames only, and TCP has others")
        self.tester.close()  # its programs take the frames that arrive
        with ExitStack() as undo:
            yield self._ends(undo)

    def _ends(self, undo: ExitStack) -> tuple[ChainEnd, ChainEnd]:
        far = add_namespace(self.machine, "tester-right", undo)
        macs = {side: mac_address(self.host, side) for side in ("left", "right")}
        ip(self.host, "link", "set", "dev", "right", "netns", far.namespace)
        # The chain is taken down with the port at its end.
        undo.callback(ip, far, "link", "set", "dev", "right", "netns", self.host.namespace)
        hosts = {"left": self.host, "right": far}
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
        return ChainEnd(self.host, addresses["left"], self.cpus), ChainEnd(far, addresses["right"], self.cpus)
