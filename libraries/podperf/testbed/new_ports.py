"""Systems under test between ends that the run makes: ports of the tester, or pods with the tester's program in them.

A cable is a veth pair. It leads from a port of the tester to a worker, and from a worker to the next one. A pod at an
end has no cable: the data plane attaches the pod to the worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import DataPlane, EndInPod, Worker, WorkerPort
from podperf.dataplanes.wire import Wire
from podperf.frames import PLAIN, Headers
from podperf.hosts.linux import add_veth, mac_address
from podperf.hosts.namespaces import NetworkNamespace, add_namespace
from podperf.kernel.threads import dedicate_receive_processing, receive_at_once
from podperf.model import Chain, Direction, End, Ends, Entry
from podperf.pods.base import Pod, PodProgram
from podperf.testbed.along_workers import set_up_along
from podperf.testbed.counted_inputs import change_chain
from podperf.testbed.ends import NewEnd, NewEnds
from podperf.testbed.joins import join_workers
from podperf.testbed.machines import ChainNeeds, Machines, PodsOfChain, WorkerMachine, engine_for
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest
from podperf.testers.base import Tester
from podperf.topology import Engine


def bare_path(machines: Machines, mtu: int, engine: Engine, name: str, ends: Ends, undo: ExitStack) -> SystemUnderTest:
    """Both ends plugged into each other. The namespace of the tester's ports has this name, and pods begin with it.

    The sender's CPU also receives here. Foreign work could disturb a second CPU, and its loss would count as the
    tester's.
    """
    worker, outside = machines.workers[0], _outside(machines, ends, name, undo)

    def placed(side: str, end: End, other: NewEnd | None = None) -> NewEnd:
        if end is End.PORT:
            return NewEnd(side, outside[0])
        if end is End.CONTAINER and other is not None:
            return replace(other, side=side)
        where = add_namespace(worker.host, f"{name}-worker-{side}", undo)
        pod = _pods(machines, worker, where, None).start(f"{name}-{side}", [], undo)
        return NewEnd(side, pod.host, pod)

    left = placed("left", ends.left)
    right = placed("right", ends.right, left)
    namespaces = {"near_namespace": left.host.namespace, "far_namespace": right.host.namespace}
    add_veth(machines.tester_host, near=left.side, far=right.side, mtu=mtu, **namespaces)
    tester = undo.enter_context(_tester(machines, (left, right), engine_for(engine, mtu)))
    path = Wire().between({each.side: each.host for each in (left, right)})
    return _between((left, right), Chain(Wire.name, 0, ends=ends), tester, [PartOfChain(path)], path.entries, machines)


def set_up(
    machines: Machines,
    data_plane: DataPlane,
    chain: Chain,
    cpus: Sequence[CpuPlan],
    needs: ChainNeeds,
    directions: Sequence[Direction],
    undo: ExitStack,
) -> SystemUnderTest:
    """A chain on workers of one machine, between new ends. `cpus` has the roles on each worker of the chain."""
    used = machines.workers[: chain.workers]
    workers, ends = _workers(machines, data_plane, chain, used, cpus, needs, undo)
    engine, why = engine_for(machines.topology.tester.engine, needs.mtu), None
    if not all(end.takes_xdp for end in ends):
        engine, why = "packet-ring", "a sub-interface takes no frames from XDP programs"
    tester = undo.enter_context(_tester(machines, ends, engine, why))
    macs, began = (workers[0].left.peer_mac, workers[-1].right.peer_mac), time.monotonic()
    workers = join_workers(chain.join, workers, [each.host for each in used], undo)
    running, entries = set_up_along(workers, data_plane, chain, directions, macs, undo)
    seconds = time.monotonic() - began
    parts = [PartOfChain.on(*each) for each in zip(used, workers, running, strict=True)]
    if used[0].settings.counts_instructions:  # and has all workers
        change_chain([part.site for part in parts if part.site is not None], used[0].settings.counted)
    return _between(ends, chain, tester, parts, entries, machines, needs.headers, seconds)


def _between(
    ends: tuple[NewEnd, NewEnd],
    chain: Chain,
    tester: Tester,
    parts: Sequence[PartOfChain],
    entries: Mapping[Direction, Entry],
    machines: Machines,
    headers: Headers = PLAIN,
    seconds: float = 0.0,
) -> SystemUnderTest:
    """The system under test between both ends. Programs that talk through it have all CPUs that it does not have."""
    placement = machines.workers[0].placement
    talking = NewEnds(machines.tester_host, *ends, tester, entries, headers, (*placement.tester, *placement.neighbour))
    pods = {end.side: end.pod for end in ends if end.pod is not None}
    return SystemUnderTest(chain, tester, parts, entries, set_up_seconds=seconds, end_pods=pods, ends=talking.hosts)


def _tester(
    machines: Machines, ends: Iterable[NewEnd], engine: Engine, why: str | None = None
) -> AbstractContextManager[Tester]:
    """The tester at these ends. `why` is the reason for this engine."""
    left, right = (end.tester_port for end in ends)
    return machines.tester(left, right, engine, why)


def _outside(machines: Machines, ends: Ends, name: str, undo: ExitStack) -> Sequence[NetworkNamespace]:
    """The one namespace of the tester's ports, which is a host outside of the workers. None without such an end."""
    return [add_namespace(machines.tester_host, name, undo)] if End.PORT in (ends.left, ends.right) else []


def _pods(machines: Machines, worker: WorkerMachine, host: NetworkNamespace, program: PodProgram | None) -> PodsOfChain:
    """The pods at the ends of a chain, beside those of the chain. They can have such a program of their own."""
    return PodsOfChain(machines.runtime.on(worker.host, host, program), list[Pod](), prefix=worker.prefix)


def _workers(
    machines: Machines,
    data_plane: DataPlane,
    chain: Chain,
    used: Sequence[WorkerMachine],
    cpus: Sequence[CpuPlan],
    needs: ChainNeeds,
    undo: ExitStack,
) -> tuple[list[Worker], tuple[NewEnd, NewEnd]]:
    """The workers and the ends, from left to right. The outermost workers have the ports that lead to the ends."""
    outside = _outside(machines, chain.ends, "tester", undo)
    for machine in used:
        machine.make_run_directory(undo)  # before the pods at the ends, whose containers are in it
    hosts = [add_namespace(machine.host, machine.label or "worker", undo) for machine in used]
    # Names of receive threads have the interface and not its namespace. So no two interfaces have the same name.
    names = [("w-left", "w-right"), *((f"w{number}-left", f"w{number}-right") for number in range(2, len(used) + 1))]
    lefts, rights = dict[int, WorkerPort](), dict[int, WorkerPort]()
    for place in range(len(used) - 1):
        near, far = (hosts[place], names[place][1]), (hosts[place + 1], names[place + 1][0])
        rights[place], lefts[place + 1] = _cable(machines, near, far, needs.port_mtu)
    ends: dict[str, NewEnd] = {}
    outermost = (("left", chain.ends.left, 0, lefts), ("right", chain.ends.right, len(used) - 1, rights))
    for side, end, place, ports in sorted(outermost, key=lambda each: each[1] is not End.PORT):
        host, name = hosts[place], names[place][side == "right"]
        if end is End.PORT:
            ends[side] = NewEnd(side, outside[0])
            _, ports[place] = _cable(machines, (ends[side].host, side), (host, name), needs.port_mtu)
        else:
            opposite = (rights if side == "left" else lefts).get(place) if not chain.parts[place].pods else None
            starter = _pods(machines, used[place], host, needs.program)
            beside = ends["left"].pod if end is End.CONTAINER and side == "right" else None
            wanted = EndInPod(side, name, host, starter, needs.port_mtu, opposite, chain.join, beside)
            attached = data_plane.start_end(wanted, undo)
            ends[side] = NewEnd(side, attached.pod.host, attached.pod, attached.takes_xdp)
            ports[place] = replace(attached.port, end_pod=attached.pod)
    found = []
    for place, (machine, host, roles) in enumerate(zip(used, hosts, cpus, strict=True)):
        left, right = lefts[place], rights[place]
        if machine.settings.counts_instructions:
            receive_at_once(host, left.interface, right.interface)  # a closed loop needs this
        else:
            # The SUT's CPUs do the work for frames that arrive at the worker, not the tester's CPUs.
            for port, cpu in ((left, roles.receives_left), (right, roles.receives_right)):
                dedicate_receive_processing(host, port.interface, cpu)
        found.append(machines.worker(machine, host, left, right, roles, needs, undo))
    return found, (ends["left"], ends["right"])


Interface = tuple[NetworkNamespace, str]


def _cable(machines: Machines, near: Interface, far: Interface, mtu: int) -> tuple[WorkerPort, WorkerPort]:
    """A cable between two interfaces, as the ports at its two ends."""
    namespaces = {"near_namespace": near[0].namespace, "far_namespace": far[0].namespace}
    add_veth(machines.tester_host, near=near[1], far=far[1], mtu=mtu, **namespaces)
    near_mac, far_mac = mac_address(*near), mac_address(*far)
    return WorkerPort(near[1], near_mac, far_mac), WorkerPort(far[1], far_mac, near_mac)
