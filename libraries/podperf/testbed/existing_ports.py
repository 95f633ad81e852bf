"""Systems under test between ports that exist already: chains along the workers' ports, and black boxes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import DataPlane, Worker
from podperf.dataplanes.wire import External
from podperf.frames import Headers
from podperf.hosts.base import Host
from podperf.hosts.host_facts import parse_ethtool
from podperf.hosts.linux import CARRIER_PATIENCE, await_carrier, ip, is_veth, link_named
from podperf.hosts.namespaces import NetworkNamespace, add_namespace
from podperf.hosts.way_back import WayBack, existing_interface, existing_namespace
from podperf.model import AddressedTraffic, Chain, Direction, Entry, FrameSize, TrafficProfile
from podperf.testbed.along_workers import set_up_along
from podperf.testbed.joins import join_workers
from podperf.testbed.machines import ChainNeeds, Machines, WorkerMachine, engine_for
from podperf.testbed.system_under_test import PROBE_PATIENCE, PartOfChain, SystemUnderTest
from podperf.testbed.worker_ports import WorkerPorts
from podperf.testers.base import Tester
from podperf.topology import Engine, PortSettings

SMALLEST = FrameSize.parse(64)


def set_up(
    machines: Machines,
    data_plane: DataPlane,
    chain: Chain,
    cpus: Sequence[CpuPlan],
    needs: ChainNeeds,
    directions: tuple[Direction, ...],
    undo: ExitStack,
) -> SystemUnderTest:
    """A chain between existing ports of tester and workers. `cpus` has the roles on each worker of the chain."""
    topology, workers = machines.topology, machines.workers[: chain.workers]
    machines.refuse_shared_ports(chain.workers)
    left, right = topology.tester.left, topology.tester.right
    way_back = _way_back(machines, undo)
    for port in (left, right):
        _bring_up(machines.tester_host, port, needs.mtu, way_back)
    tester = _tester(machines, engine_for(topology.tester.engine, needs.mtu), way_back, undo)
    taken = [_take_ports(machines, each, roles, needs, undo) for each, roles in zip(workers, cpus, strict=True)]
    for _, ports in taken:
        ports.await_carrier()
    ends, began = (tester.facts.left.mac, tester.facts.right.mac), time.monotonic()
    joined = join_workers(chain.join, [each for each, _ in taken], [each.host for each in workers], undo)
    running, entries = set_up_along(joined, data_plane, chain, directions, ends, undo)
    seconds = time.monotonic() - began
    parts = [
        PartOfChain.on(machine, worker, each, ports.received_by)
        for each, worker, (_, ports), machine in zip(running, joined, taken, workers, strict=True)
    ]
    tester_ports, patience = _tester_ports(machines), _await_links(machines)
    if data_plane.uses_virtual_functions:  # their links may be lost again, and the kernel does not show DPDK's links
        patience = CARRIER_PATIENCE
    sut = SystemUnderTest(chain, tester, parts, entries, tester_ports, patience, seconds)
    return _by_an_engine_that_sends(machines, sut, directions, needs.headers, way_back, undo)


def black_box(machines: Machines, chain: Chain, headers: Headers, undo: ExitStack) -> SystemUnderTest:
    """A black box between two existing ports of the tester."""
    machines.refuse_shared_ports()
    left, right = machines.topology.tester.left, machines.topology.tester.right
    way_back = _way_back(machines, undo)
    tester = _tester(machines, machines.topology.tester.engine, way_back, undo)
    ports, patience = _tester_ports(machines), _await_links(machines)
    entries = {
        direction: _entry(port, side, tester, headers)
        for direction, side, port in zip(Direction, ("left", "right"), (left, right), strict=True)
    }
    box = PartOfChain(External().between(ports, entries))
    sut = SystemUnderTest(chain, tester, [box], entries, link_patience=patience, ends=tester.facts.ends)
    return _by_an_engine_that_sends(machines, sut, machines.topology.traffic.directions, headers, way_back, undo)


def _await_links(machines: Machines) -> float:
    """Wait until the tester's ports have a link. A card loses its link for seconds when its program or driver changes.

    Returns the seconds that the links may still take. This is 0 unless the ports are TRex's own: nobody else sees
    their links.
    """
    ports = (machines.topology.tester.left, machines.topology.tester.right)
    for port in ports:
        if port.interface is None:
            return CARRIER_PATIENCE
        await_carrier(_seen_from(machines.tester_host, port), port.interface)
    return 0.0


def _entry(port: PortSettings, side: str, tester: Tester, headers: Headers) -> Entry:
    """The destination of the frames that this port sends."""
    mac = port.destination_mac if port.gateway is None else tester.neighbour(side, port.gateway, headers)
    return Entry(mac=mac, address=port.destination_address)


def _tester_ports(machines: Machines) -> dict[str, Host]:
    """The tester's interfaces in the topology, each with its host. Empty for a TRex with ports of its own."""
    ports = (machines.topology.tester.left, machines.topology.tester.right)
    return {port.interface: _seen_from(machines.tester_host, port) for port in ports if port.interface is not None}


def _seen_from(host: Host, port: PortSettings) -> Host:
    """The host that has a tester port: the port's namespace if the topology names one, and otherwise the machine."""
    return NetworkNamespace(port.namespace, host) if port.namespace else host


def _way_back(machines: Machines, undo: ExitStack) -> WayBack:
    """The journal for changes of the tester's ports. It has an entry for the change that the tester itself can make."""
    way_back = WayBack(machines.tester_host, undo)
    for port in (machines.topology.tester.left, machines.topology.tester.right):
        _note_offload(machines, port, way_back)
    return way_back


def _tester(machines: Machines, engine: Engine, way_back: WayBack, undo: ExitStack, why: str | None = None) -> Tester:
    """The tester on its two ports. `why` is the reason for this engine.

    A tester that receives copies leaves the frames to the kernel. A kernel that forwards would send them to its default
    route. So podperf lets the kernel drop them.
    """
    ports = {"left": machines.topology.tester.left, "right": machines.topology.tester.right}
    tester = undo.enter_context(machines.tester(ports["left"], ports["right"], engine, why))
    if tester.facts.copies:
        for side, port in ports.items():
            if port.interface is not None:
                _drop_arriving(machines.tester_host, port, f"podperf_{side}", way_back)
    return tester


def _drop_arriving(machine: Host, port: PortSettings, table: str, way_back: WayBack) -> None:
    """Let the kernel drop frames that arrive at a port. Packet sockets get the frames before that."""
    host = _seen_from(machine, port)
    gone = f"add table netdev {table}; delete table netdev {table}"  # no error if there was no such table
    there = existing_namespace(port.namespace) if port.namespace else ()
    way_back.note(f"the packet filter of {port.interface}", *_in_namespace(port), "nft", gone, of=there)
    chain = f'chain arriving {{ type filter hook ingress device "{port.interface}" priority -500; policy drop; }};'
    host.do("nft", "-f", "-", stdin=f"table netdev {table} {{ {chain} }}\n")


def _bring_up(machine: Host, port: PortSettings, mtu: int, way_back: WayBack) -> None:
    """Bring a tester port up, with at least this MTU."""
    if port.interface is None:
        return
    host = _seen_from(machine, port)
    link = link_named(host, port.interface)
    up, larger = "UP" in link["flags"], max(mtu, link["mtu"])
    if not up or larger != link["mtu"]:
        before = ("ip", "link", "set", "dev", port.interface, "mtu", str(link["mtu"]), "up" if up else "down")
        of = existing_interface(port.interface, port.namespace)
        way_back.note(f"MTU and state of {port.interface}", *_in_namespace(port), *before, of=of)
        ip(host, "link", "set", "dev", port.interface, "mtu", str(larger), "up")


def _note_offload(machines: Machines, port: PortSettings, way_back: WayBack) -> None:
    """Note in the journal that a veth's segmentation offload is on.

    The software tester switches the offload off when it sends by packet rings. A killed run cannot switch it on again.
    """
    if port.interface is None or machines.topology.tester.engine not in {"auto", "packet-ring"}:
        return
    host = _seen_from(machines.tester_host, port)
    link = link_named(host, port.interface, "-details")
    offloads = parse_ethtool(host.ask("ethtool", "-k", port.interface, check=False, assumed="").stdout)
    if is_veth(link) and offloads.get("tcp-segmentation-offload") == "on":
        on = ("ethtool", "-K", port.interface, "tso", "on")
        of = existing_interface(port.interface, port.namespace)
        way_back.note(f"segmentation offload of {port.interface}", *_in_namespace(port), *on, of=of)


def _in_namespace(port: PortSettings) -> tuple[str, ...]:
    return ("ip", "netns", "exec", port.namespace) if port.namespace else ()


def _take_ports(
    machines: Machines, worker: WorkerMachine, cpus: CpuPlan, needs: ChainNeeds, undo: ExitStack
) -> tuple[Worker, WorkerPorts]:
    """The worker with its existing ports in its namespace, in state up. Nobody has looked yet at their links."""
    settings = worker.settings
    assert settings.left is not None and settings.right is not None
    host = add_namespace(worker.host, "worker", undo)
    worker.make_run_directory(undo)
    ports = WorkerPorts(worker.host, host, undo)
    left = ports.take(settings.left, needs.port_mtu, cpus.receives_left)
    right = ports.take(settings.right, needs.port_mtu, cpus.receives_right)
    return machines.worker(worker, host, left, right, cpus, needs, undo), ports


def _by_an_engine_that_sends(
    machines: Machines,
    sut: SystemUnderTest,
    directions: tuple[Direction, ...],
    headers: Headers,
    way_back: WayBack,
    undo: ExitStack,
) -> SystemUnderTest:
    """The system under test with the tester's fallback engine if no frame crosses with the present one."""
    fallback = sut.tester.facts.fallback
    if fallback is None:
        return sut
    frame = SMALLEST.at_least(headers.smallest_frame)
    traffic = AddressedTraffic(TrafficProfile(frame, directions, headers=headers), sut.entries)
    deadline = time.monotonic() + PROBE_PATIENCE
    while not sut.forwards(traffic):
        if time.monotonic() > deadline:
            why = f"no frame that {sut.tester.facts.engine.upper()} sent crossed in {PROBE_PATIENCE:g} s"
            sut.tester.close()
            tester = _tester(machines, fallback, way_back, undo, why)
            _await_links(machines)
            return replace(sut, tester=tester)
    return sut
