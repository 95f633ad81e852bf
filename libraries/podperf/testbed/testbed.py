"""A testbed in use: builds what one test measures, and takes it down again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace

from podperf.cleanup import RUN_DIRECTORY
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling, DataPlane, Perishable, Worker, WorkerPort
from podperf.dataplanes.wire import Wire
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, dedicate_receive_processing, ip, ip_json, mac_address
from podperf.hosts.local import LocalHost, NetworkNamespace
from podperf.hosts.namespaces import add_namespace
from podperf.model import Chain, Direction, Entry, FrameSize, NetworkingModel, Placement, Traffic, Trial
from podperf.pods.forwarders import FORWARDERS
from podperf.pods.netns import NamespacePods
from podperf.testbed.isolation import refuse_shared_ports, refuse_shared_worker_ports
from podperf.testbed.placement import nic_node, read_cpus
from podperf.testbed.scenarios import Placed, Scenario, place_scenario
from podperf.testbed.worker_machine import session_to
from podperf.testbed.worker_ports import WorkerPorts
from podperf.testers import TESTERS
from podperf.testers.base import Site, Tester, TesterKind, TesterPort
from podperf.topology import Engine, PortSettings, Topology

ORDINARY_MTU = 1500
ETHERNET_BYTES = 18  # header and FCS, which an MTU does not count
SMALLEST = FrameSize.parse(64)
WITH_SWITCH = {NetworkingModel.USER_SPACE, NetworkingModel.COMBINATION}  # that polls on CPUs of its own
PROBE_LOAD, PROBE_DURATION, PROBE_PATIENCE = 1000.0, 0.02, 5.0


@dataclass(frozen=True)
class SystemUnderTest:
    """A chain that stands, with the tester plugged into it."""

    chain: Chain
    tester: Tester
    data_plane: DataPlane
    entries: Mapping[Direction, Entry]
    port_hosts: Mapping[str, Host]  # the host on which each port's interface is seen, by the interface's name
    received_by: Mapping[str, str] = field(default_factory=dict)  # who does what arriving frames cause, in words

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

    def __init__(
        self, topology: Topology, placement: Placement, host: Host | None = None, worker: Host | None = None
    ) -> None:
        """`host` is the machine of the tester, this one by default, and `worker` that of the worker, by default the
        same."""
        self.topology, self.placement = topology, placement
        self.host: Host = host or LocalHost()
        self.worker_host: Host = worker or self.host
        self._lasting: list[Tester] = []  # the tester with ports of its own, shared with `placed` testbeds

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
        if kind.cabling is Cabling.BACK_TO_BACK and self.topology.tester.has_ports_of_its_own:
            raise Unavailable("the ports of this testbed's TRex cannot be plugged into each other by software")
        if chain.pods < kind.least_pods:
            raise PodperfError(f"{chain.data_plane} needs {kind.least_pods} or more pods, not {chain.pods}")
        forwarder = chain.forwarder or kind.forwarders[0]
        if forwarder not in kind.forwarders:
            known = ", ".join(kind.forwarders)
            raise PodperfError(f"pods of {chain.data_plane} cannot forward by {forwarder!r}; known: {known}")
        reason = kind.unavailable(self.worker_host)
        if reason is None and forwarder in FORWARDERS:
            reason = FORWARDERS[forwarder].missing(self.worker_host)
        if reason is not None:
            raise Unavailable(reason)
        return kind

    def placed(self, placement: Placement) -> Testbed:
        """The same testbed with switch and pods on these CPUs."""
        other = copy(self)
        other.placement = placement
        return other

    def place_scenario(self, scenario: Scenario, chain: Chain) -> Placed:
        """CPUs of this worker for a published placement. Unavailable, with what is missing, where it lacks them."""
        cpus = read_cpus(self.worker_host)
        node = nic_node(self.worker_host, self.topology.worker)
        return place_scenario(
            scenario,
            chain.pods,
            self.placement,
            cpus,
            nic_node=cpus.node(self.placement.sut[0]) if node is None else node,
            taken=() if self.placement.apart else self.placement.tester,
            with_switch=DATA_PLANES[chain.data_plane].model in WITH_SWITCH,
        )

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
        if self.topology.existing_ports:
            return self._cabled_chain(data_plane, chain, _mtu(frame), undo)
        tester_host = add_namespace(self.host, "tester", undo)
        worker = self._worker(tester_host, _mtu(frame), undo)
        tester = undo.enter_context(self._made_ports(tester_host, self.topology.tester.engine))
        entries = data_plane.set_up(worker, chain, undo)
        return SystemUnderTest(chain, tester, data_plane, entries, worker.ports)

    def _cabled_chain(self, data_plane: DataPlane, chain: Chain, mtu: int, undo: ExitStack) -> SystemUnderTest:
        """A chain between ports that exist already, on both sides."""
        refuse_shared_ports(self.topology, self.host)
        refuse_shared_worker_ports(self.topology, self.worker_host, session_to(self.worker_host))
        left, right = self.topology.tester.left, self.topology.tester.right
        for port in (left, right):
            self._bring_up(port, mtu, undo)
        engine = self.topology.tester.engine
        tester = undo.enter_context(self._tester(left, right, engine))
        worker, received_by = self._cabled_worker(tester, mtu, undo)
        entries = data_plane.set_up(worker, chain, undo)
        sut = SystemUnderTest(chain, tester, data_plane, entries, worker.ports, received_by)
        return self._by_an_engine_that_sends(sut, PROBE_PATIENCE, undo)

    def _bring_up(self, port: PortSettings, mtu: int, undo: ExitStack) -> None:
        """A tester port that is up and takes frames of this size, until `undo`."""
        if port.interface is None:
            return
        host: Host = NetworkNamespace(port.namespace, self.host) if port.namespace else self.host
        link = ip_json(host, "link", "show", "dev", port.interface)[0]
        up, larger = "UP" in link["flags"], max(mtu, link["mtu"])
        if not up or larger != link["mtu"]:
            before = ("link", "set", "dev", port.interface, "mtu", str(link["mtu"]), "up" if up else "down")
            undo.callback(ip, host, *before)
            ip(host, "link", "set", "dev", port.interface, "mtu", str(larger), "up")

    def _cabled_worker(self, tester: Tester, mtu: int, undo: ExitStack) -> tuple[Worker, Mapping[str, str]]:
        """The worker with its existing ports in its namespace, and who receives on them."""
        settings = self.topology.worker
        assert settings.left is not None and settings.right is not None
        host = add_namespace(self.worker_host, "worker", undo)
        self._make_run_directory(undo)
        ports = WorkerPorts(self.worker_host, host, str(RUN_DIRECTORY), undo)
        cpus = self.placement.sut
        taken = ports.take(settings.left, mtu, cpus[0]), ports.take(settings.right, mtu, cpus[-1])
        ports.await_carrier()
        macs = tester.describe()["ports"]
        left, right = (
            WorkerPort(port.interface, port.mac, macs[side]["mac"], port.pci)
            for side, port in zip(("left", "right"), taken, strict=True)
        )
        received_by = {port.interface: port.received_by for port in taken}
        return self._worker_with(host, left, right, mtu), received_by

    def _make_run_directory(self, undo: ExitStack) -> None:
        self.worker_host.run("mkdir", "-p", str(RUN_DIRECTORY))
        undo.callback(self.worker_host.run, "rm", "-rf", str(RUN_DIRECTORY))

    def _worker_with(self, host: NetworkNamespace, left: WorkerPort, right: WorkerPort, mtu: int) -> Worker:
        pods = NamespacePods(self.worker_host, host)
        ports: dict[str, Host] = {left.interface: host, right.interface: host}
        return Worker(host, host.namespace, left, right, pods, mtu, self.placement, str(RUN_DIRECTORY), ports)

    def _by_an_engine_that_sends(self, sut: SystemUnderTest, patience: float, undo: ExitStack) -> SystemUnderTest:
        """The same with the slower engine of the software tester, where frames cross only by that.

        Some drivers, and a veth whose other end has no receive ring, take no frames from XDP and do not say so.
        """
        settings = self.topology.tester
        if settings.type != "software" or settings.engine != "auto":
            return sut
        traffic = Traffic(SMALLEST, self.topology.traffic.directions, 1, sut.entries)
        deadline = time.monotonic() + patience
        while not sut.forwards(traffic):
            if time.monotonic() > deadline:
                sut.tester.close()
                tester = undo.enter_context(self._tester(settings.left, settings.right, "packet-ring"))
                return replace(sut, tester=tester)
        return sut

    def _black_box(self, data_plane: DataPlane, chain: Chain, undo: ExitStack) -> SystemUnderTest:
        refuse_shared_ports(self.topology, self.host)
        left, right = self.topology.tester.left, self.topology.tester.right
        hosts: dict[str, Host] = {
            port.interface: NetworkNamespace(port.namespace, self.host) if port.namespace else self.host
            for port in (left, right)
            if port.interface is not None
        }
        entries = {Direction.LEFT_TO_RIGHT: _entry(left), Direction.RIGHT_TO_LEFT: _entry(right)}
        tester = undo.enter_context(self._tester(left, right, self.topology.tester.engine))
        return self._by_an_engine_that_sends(SystemUnderTest(chain, tester, data_plane, entries, hosts), 0, undo)

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
        self._make_run_directory(undo)
        left, right = (
            WorkerPort(f"w-{port}", mac_address(host, f"w-{port}"), mac_address(tester_host, port))
            for port in ("left", "right")
        )
        return self._worker_with(host, left, right, mtu)

    def _dedicate(self, host: Host, left: str, right: str) -> None:
        """Let the SUT's CPUs, not the tester's, do what arriving frames cause: one each where there are two."""
        cpus = self.placement.sut
        for interface, cpu in ((left, cpus[0]), (right, cpus[-1])):
            dedicate_receive_processing(host, interface, cpu)

    def _made_ports(self, host: NetworkNamespace, engine: Engine) -> AbstractContextManager[Tester]:
        return self._tester(PortSettings("left", host.namespace), PortSettings("right", host.namespace), engine)

    def _tester(self, left: PortSettings, right: PortSettings, engine: Engine) -> AbstractContextManager[Tester]:
        if self.topology.tester.has_ports_of_its_own:
            return nullcontext(self.tester_with_ports())
        ports = (TesterPort(port.interface, port.namespace) for port in (left, right) if port.interface is not None)
        return closing(self._kind.at(Site(self.host, self.topology.tester, engine, self.placement.tester, *ports)))

    @property
    def _kind(self) -> TesterKind:
        return TESTERS[self.topology.tester.type]

    def tester_with_ports(self) -> Tester:
        """The tester that brings its ports along. It stands from its first use until this testbed is closed."""
        if not self._lasting:
            settings = self.topology.tester
            self._lasting.append(self._kind.at(Site(self.host, settings, settings.engine, self.placement.tester)))
        return self._lasting[0]

    def close(self) -> None:
        """Give back what outlasts single chains. Safe to repeat."""
        while self._lasting:
            self._lasting.pop().close()


def _mtu(frame: FrameSize) -> int:
    return max(ORDINARY_MTU, frame.largest - ETHERNET_BYTES)


def _entry(port: PortSettings) -> Entry:
    return Entry(mac=port.destination_mac, address=port.destination_address)


def addressed(traffic: Traffic, sut: SystemUnderTest) -> Traffic:
    """The same traffic, addressed into this system under test."""
    return replace(traffic, entries=sut.entries)
