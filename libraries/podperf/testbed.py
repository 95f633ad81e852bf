"""A testbed in use: builds what one test measures, and takes it down again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.cleanup import RUN_DIRECTORY
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling, DataPlane, Perishable, Worker, WorkerPort
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, dedicate_receive_processing, mac_address
from podperf.hosts.local import LocalHost, NetworkNamespace
from podperf.hosts.namespaces import add_namespace
from podperf.isolation import refuse_shared_ports
from podperf.model import Chain, Direction, Entry, FrameSize, Placement, Traffic, Trial
from podperf.pods.forwarders import FORWARDERS
from podperf.pods.netns import NamespacePods
from podperf.testers.base import Tester
from podperf.testers.software import Engine, SoftwareTester
from podperf.topology import PortSettings, Topology

TESTER_BINARY = Path(__file__).parents[2] / "build" / "tester" / "podperf-tester"
ORDINARY_MTU = 1500
ETHERNET_BYTES = 18  # header and FCS, which an MTU does not count
SMALLEST = FrameSize.parse(64)
PROBE_LOAD, PROBE_DURATION, PROBE_PATIENCE = 1000.0, 0.02, 5.0


@dataclass(frozen=True)
class SystemUnderTest:
    """A chain that stands, with the tester plugged into it."""

    chain: Chain
    tester: Tester
    data_plane: DataPlane
    entries: Mapping[Direction, Entry]
    port_hosts: Mapping[str, Host]  # the host on which each port's interface is seen, by the interface's name

    def forwards(self, traffic: Traffic) -> bool:
        """Whether frames cross in each direction, by one short trial."""
        result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
        return all(each.received for each in result.directions)

    def check(self) -> None:
        """PodperfError, with the cause, when a process that the chain consists of has ended."""
        if isinstance(self.data_plane, Perishable):
            self.data_plane.check()

    def probe(self, traffic: Traffic) -> None:
        """Wait until frames cross in each direction. PodperfError when none does within 5 s."""
        deadline = time.monotonic() + PROBE_PATIENCE
        while True:
            result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
            dead = [each.direction.value for each in result.directions if not each.received]
            if not dead:
                return
            self.check()
            if time.monotonic() > deadline:
                corrupted = sum(each.corrupted for each in result.directions)
                detail = f" ({corrupted} arrived corrupted)" if corrupted else ""
                raise PodperfError(
                    f"no test frame crossed {self.chain.data_plane} with {self.chain.pods} pods {' and '.join(dead)} "
                    f"in {PROBE_PATIENCE:.0f} s{detail}: the data plane is set up but does not forward"
                )


class Testbed:
    """Builds systems under test on what a topology names. Nothing stays between two of them."""

    __test__ = False  # not a pytest class

    def __init__(self, topology: Topology, placement: Placement, host: Host | None = None) -> None:
        self.topology, self.placement = topology, placement
        self.host: Host = host or LocalHost()

    def demand(self, chain: Chain) -> type[DataPlane]:
        """The driver of this chain's data plane. Unavailable, with the reason, when this testbed cannot offer it."""
        kind = DATA_PLANES.get(chain.data_plane)
        if kind is None:
            raise PodperfError(f"there is no data plane {chain.data_plane!r}; known: {', '.join(DATA_PLANES)}")
        if self.topology.external != (kind.cabling is Cabling.EXISTING):
            raise Unavailable(
                "the topology names existing ports: only the data plane `external` is measured"
                if self.topology.external
                else "the topology names no existing ports for the tester, so there is no black box to measure"
            )
        if chain.pods < kind.least_pods:
            raise PodperfError(f"{chain.data_plane} needs {kind.least_pods} or more pods, not {chain.pods}")
        forwarder = chain.forwarder or kind.forwarders[0]
        if forwarder not in kind.forwarders:
            known = ", ".join(kind.forwarders)
            raise PodperfError(f"pods of {chain.data_plane} cannot forward by {forwarder!r}; known: {known}")
        reason = kind.unavailable(self.host)
        if reason is None and forwarder in FORWARDERS:
            reason = FORWARDERS[forwarder].missing(self.host)
        if reason is not None:
            raise Unavailable(reason)
        return kind

    @contextmanager
    def build(self, chain: Chain, frame: FrameSize) -> Iterator[SystemUnderTest]:
        """The chain between the tester's ports, for frames up to this size; gone when the context ends."""
        data_plane = self.demand(chain)()
        if data_plane.cabling is Cabling.BACK_TO_BACK:
            with self.bare_path(frame, name="tester") as bare:
                yield bare
            return
        with ExitStack() as undo:
            if data_plane.cabling is Cabling.EXISTING:
                yield self._black_box(data_plane, chain, undo)
            else:
                yield self._chain(data_plane, chain, frame, undo)

    @contextmanager
    def bare_path(
        self, frame: FrameSize, engine: Engine | None = None, name: str = "bare"
    ) -> Iterator[SystemUnderTest]:
        """Two tester ports plugged into each other: what the tester can do by itself, also beside a chain that stands.

        Receiving is left to the sender's CPU here, as there is no system under test whose work must be kept apart: the
        other CPU's neighbours would show as the tester's own loss.
        """
        with ExitStack() as undo:
            host = add_namespace(self.host, name, undo)
            add_veth(host, near="left", far="right", mtu=_mtu(frame))
            tester = undo.enter_context(self._made_ports(host, engine or self.topology.tester.engine))
            yield SystemUnderTest(Chain(Wire.name, 0), tester, Wire(), {}, {"left": host, "right": host})

    def _chain(self, data_plane: DataPlane, chain: Chain, frame: FrameSize, undo: ExitStack) -> SystemUnderTest:
        tester_host = add_namespace(self.host, "tester", undo)
        worker = self._worker(tester_host, _mtu(frame), undo)
        tester = undo.enter_context(self._made_ports(tester_host, self.topology.tester.engine))
        entries = data_plane.set_up(worker, chain, undo)
        return SystemUnderTest(chain, tester, data_plane, entries, worker.ports)

    def _black_box(self, data_plane: DataPlane, chain: Chain, undo: ExitStack) -> SystemUnderTest:
        refuse_shared_ports(self.topology, self.host)
        left, right = self.topology.tester.left, self.topology.tester.right
        hosts = {
            port.interface or "": NetworkNamespace(port.namespace) if port.namespace else self.host
            for port in (left, right)
        }
        entries = {Direction.LEFT_TO_RIGHT: _entry(left), Direction.RIGHT_TO_LEFT: _entry(right)}
        engine = self.topology.tester.engine
        tester = undo.enter_context(self._tester(left, right, engine))
        sut = SystemUnderTest(chain, tester, data_plane, entries, hosts)
        if engine == "auto" and not sut.forwards(Traffic(SMALLEST, self.topology.traffic.directions, 1, entries)):
            # Some drivers, and a veth whose other end has no receive ring, take no frames from XDP and do not say so.
            tester.close()
            tester = undo.enter_context(self._tester(left, right, "packet-ring"))
            sut = replace(sut, tester=tester)
        return sut

    def _worker(self, tester_host: NetworkNamespace, mtu: int, undo: ExitStack) -> Worker:
        host = add_namespace(self.host, "worker", undo)
        for port in ("left", "right"):
            add_veth(
                self.host,
                near=port,
                near_namespace=tester_host.namespace,
                far=f"w-{port}",
                far_namespace=host.namespace,
                mtu=mtu,
            )
        self._dedicate(host, "w-left", "w-right")
        RUN_DIRECTORY.mkdir(parents=True, exist_ok=True)
        undo.callback(shutil.rmtree, RUN_DIRECTORY, ignore_errors=True)
        left, right = (
            WorkerPort(f"w-{port}", mac_address(host, f"w-{port}"), mac_address(tester_host, port))
            for port in ("left", "right")
        )
        pods = NamespacePods(self.host, host)
        ports: dict[str, Host] = {left.interface: host, right.interface: host}
        return Worker(host, host.namespace, left, right, pods, mtu, self.placement, str(RUN_DIRECTORY), ports)

    def _dedicate(self, host: Host, left: str, right: str) -> None:
        """Let the SUT's CPUs, not the tester's, do what arriving frames cause: one each where there are two."""
        cpus = self.placement.sut
        for interface, cpu in ((left, cpus[0]), (right, cpus[-1])):
            dedicate_receive_processing(host, interface, cpu)

    def _made_ports(self, host: NetworkNamespace, engine: Engine) -> SoftwareTester:
        return self._tester(PortSettings("left", host.namespace), PortSettings("right", host.namespace), engine)

    def _tester(self, left: PortSettings, right: PortSettings, engine: Engine) -> SoftwareTester:
        assert left.interface is not None and right.interface is not None
        return SoftwareTester(
            self.host,
            left.interface,
            right.interface,
            binary=str(TESTER_BINARY),
            engine=engine,
            cpus=self.placement.tester,
            left_namespace=left.namespace,
            right_namespace=right.namespace,
        )


def _mtu(frame: FrameSize) -> int:
    return max(ORDINARY_MTU, frame.largest - ETHERNET_BYTES)


def _entry(port: PortSettings) -> Entry:
    return Entry(mac=port.destination_mac, address=port.destination_address)


def addressed(traffic: Traffic, sut: SystemUnderTest) -> Traffic:
    """The same traffic, addressed into this system under test."""
    return replace(traffic, entries=sut.entries)
