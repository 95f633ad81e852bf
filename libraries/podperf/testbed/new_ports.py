"""Systems under test between ports that the run makes: veth pairs between tester's and worker's namespaces."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import DataPlane, Worker, WorkerPort
from podperf.dataplanes.wire import Wire
from podperf.frames import PLAIN, Headers
from podperf.hosts.linux import add_veth, mac_address
from podperf.hosts.namespaces import NetworkNamespace, add_namespace
from podperf.kernel.threads import dedicate_receive_processing, receive_at_once
from podperf.model import Chain, Direction, Entry
from podperf.testbed.along_workers import set_up_along
from podperf.testbed.counted_inputs import change_chain
from podperf.testbed.ends import NewPorts
from podperf.testbed.joins import join_workers
from podperf.testbed.machines import ChainNeeds, Machines, WorkerMachine, engine_for
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest
from podperf.testers.base import Tester
from podperf.testers.ends import Ends
from podperf.topology import Engine, PortSettings


def bare_path(machines: Machines, mtu: int, engine: Engine, name: str, undo: ExitStack) -> SystemUnderTest:
    """Two tester ports plugged into each other, in a namespace of this name.

    The sender's CPU also receives here. Foreign work could disturb a second CPU, and its loss would count as the
    tester's.
    """
    host = add_namespace(machines.tester_host, name, undo)
    add_veth(host, near="left", far="right", mtu=mtu)
    tester = undo.enter_context(_tester(machines, host, engine_for(engine, mtu)))
    path = Wire().between({"left": host, "right": host})
    ends = _ends(machines, host, tester, path.entries)
    return SystemUnderTest(Chain(Wire.name, 0), tester, [PartOfChain(path)], path.entries, ends=ends)


def set_up(
    machines: Machines,
    data_plane: DataPlane,
    chain: Chain,
    cpus: Sequence[CpuPlan],
    needs: ChainNeeds,
    directions: Sequence[Direction],
    undo: ExitStack,
) -> SystemUnderTest:
    """A chain on workers of one machine, between new ports. `cpus` has the roles on each worker of the chain."""
    used = machines.workers[: chain.workers]
    tester_host = add_namespace(machines.tester_host, "tester", undo)
    workers = _workers(machines, used, tester_host, cpus, needs, undo)
    engine = engine_for(machines.topology.tester.engine, needs.mtu)
    tester = undo.enter_context(_tester(machines, tester_host, engine))
    ends, began = (workers[0].left.peer_mac, workers[-1].right.peer_mac), time.monotonic()
    workers = join_workers(chain.join, workers, [each.host for each in used], undo)
    running, entries = set_up_along(workers, data_plane, chain, directions, ends, undo)
    seconds = time.monotonic() - began
    parts = [PartOfChain.on(*each) for each in zip(used, workers, running, strict=True)]
    for machine, part in zip(used, parts, strict=True):
        if machine.settings.counts_instructions and part.site is not None:
            change_chain(part.site, machine.settings.counted)
    talking = _ends(machines, tester_host, tester, entries, needs.headers)
    return SystemUnderTest(chain, tester, parts, entries, set_up_seconds=seconds, ends=talking)


def _ends(
    machines: Machines,
    host: NetworkNamespace,
    tester: Tester,
    entries: Mapping[Direction, Entry],
    headers: Headers = PLAIN,
) -> Ends:
    """The ends on all CPUs that the system under test does not have."""
    placement = machines.workers[0].placement
    cpus = (*placement.tester, *placement.neighbour)
    return NewPorts(machines.tester_host, host, tester, entries, headers, cpus).ends


def _tester(machines: Machines, host: NetworkNamespace, engine: Engine) -> AbstractContextManager[Tester]:
    return machines.tester(PortSettings("left", host.namespace), PortSettings("right", host.namespace), engine)


def _workers(
    machines: Machines,
    used: Sequence[WorkerMachine],
    tester_host: NetworkNamespace,
    cpus: Sequence[CpuPlan],
    needs: ChainNeeds,
    undo: ExitStack,
) -> list[Worker]:
    """The workers, from left to right. A cable leads from the tester to the first one, from each to the next one, and
    from the last one to the tester."""
    hosts = [add_namespace(machine.host, machine.label or "worker", undo) for machine in used]
    # Names of receive threads have the interface and not its namespace. So no two interfaces have the same name.
    names = [("w-left", "w-right"), *((f"w{number}-left", f"w{number}-right") for number in range(2, len(used) + 1))]
    ports = [(host, name) for host, both in zip(hosts, names, strict=True) for name in both]
    ends = [(tester_host, "left"), *ports, (tester_host, "right")]
    cables = list(zip(ends[::2], ends[1::2], strict=True))
    for (near_host, near), (far_host, far) in cables:
        add_veth(
            machines.tester_host,
            near=near,
            near_namespace=near_host.namespace,
            far=far,
            far_namespace=far_host.namespace,
            mtu=needs.port_mtu,
        )
    macs = [(mac_address(*near), mac_address(*far)) for near, far in cables]
    found = []
    for number, (machine, host, roles) in enumerate(zip(used, hosts, cpus, strict=True)):
        left, right = names[number]
        if machine.settings.counts_instructions:
            receive_at_once(host, left, right)  # a closed loop needs this
        else:
            # The SUT's CPUs do the work for frames that arrive at the worker, not the tester's CPUs.
            for port, cpu in ((left, roles.receives_left), (right, roles.receives_right)):
                dedicate_receive_processing(host, port, cpu)
        machine.make_run_directory(undo)
        (left_peer, left_mac), (right_mac, right_peer) = macs[number], macs[number + 1]
        ends_of = WorkerPort(left, left_mac, left_peer), WorkerPort(right, right_mac, right_peer)
        found.append(machines.worker(machine, host, *ends_of, roles, needs, undo))
    return found
