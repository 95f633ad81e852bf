"""Chooses the CPUs of the tester and of the system under test (SUT).

The automatic rule gives the first CPU to the tester. The SUT gets one CPU for each direction of frames, because one
kernel thread receives each direction. With more CPUs, a result would depend on the size of the machine.

The SUT's CPUs are chosen from the highest number downwards, because interrupts and daemons mostly use low numbers. A
CPU of another physical core than the tester's comes first. Then a CPU on the tester's NUMA node comes first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import ip_json
from podperf.kernel.cpus import Cpus
from podperf.model import PageSize, Placement
from podperf.topology import Topology, WorkerPortSettings, WorkerSettings


def place(
    topology: Topology, cpus: Cpus, worker: Cpus | None = None, nic_node: int | None = None, number: int = 0
) -> Placement:
    """The CPUs of the tester and of the system under test on one worker.

    CPUs that the topology names are taken. The automatic rule chooses the others. `cpus` are those of the tester's
    machine. `worker` has the CPUs of a worker on another machine; there, CPUs on `nic_node` come first. `number` is the
    worker's place in the topology. Raises PodperfError if the topology names a CPU that is offline or not allowed.
    """
    settings = topology.workers[number]
    theirs = worker or cpus
    for key, named, there in (
        ("tester.cpus", topology.tester.cpus, cpus),
        (f"{settings.key}.cpus", settings.cpus, theirs),
    ):
        _require_usable(f"{topology.path}: {key}", named or (), there)
    if not cpus.usable or not theirs.usable:
        raise PodperfError("no CPU is both online and allowed for this process; look at taskset -p and the cpuset")
    ways = len(topology.traffic.directions)
    apart = worker is not None
    beside = [each.cpus or () for each in topology.workers if each.ssh == topology.tester.ssh]
    tester = topology.tester.cpus or _first_free(cpus, [cpu for each in beside for cpu in each])
    home = {cpus.node(cpu) for cpu in tester} if not apart else set() if nic_node is None else {nic_node}
    taken = () if apart else tester
    sut = settings.cpus or _beside(taken, theirs, ways, home)
    return Placement(
        tester,
        sut,
        settings.switch_cpus or (),
        PageSize.TWO_MIB if settings.hugepages else PageSize.NONE,
        apart,
        neighbour=tuple(cpu for cpu in theirs.usable if cpu not in {*sut, *taken}),
    )


def _require_usable(where: str, named: Collection[int], cpus: Cpus) -> None:
    offline, forbidden = set(named) - set(cpus.online), set(named) - set(cpus.usable)
    if offline:
        raise PodperfError(
            f"{where}: CPU {format_cpu_list(offline)} is not online; allowed: {format_cpu_list(cpus.usable)}"
        )
    if forbidden:
        raise PodperfError(
            f"{where}: CPU {format_cpu_list(forbidden)} is not allowed for this process (taskset or a cpuset); "
            f"allowed: {format_cpu_list(cpus.usable)}"
        )


def _first_free(cpus: Cpus, taken: Collection[int]) -> tuple[int, ...]:
    return (min(cpus.usable, key=lambda cpu: (cpu in taken, cpus.same_core(cpu, taken), cpu)),)


def _beside(tester: tuple[int, ...], cpus: Cpus, count: int, home: Collection[int]) -> tuple[int, ...]:
    free = set(cpus.usable) - set(tester)
    if not free:
        return tester
    apart = {cpu for cpu in free if not cpus.same_core(cpu, tester)} or free
    chosen: list[int] = []
    for _ in range(min(count, len(apart))):
        chosen.append(
            min(apart - set(chosen), key=lambda cpu: (cpus.same_core(cpu, chosen), cpus.node(cpu) not in home, -cpu))
        )
    return tuple(sorted(chosen))


def remarks(placement: Placement, cpus: Cpus, directions: int) -> list[str]:
    """Remarks on a placement that changes the meaning of a result. Empty if it is sound. `cpus` are the worker's."""
    said = []
    if placement.apart:
        pass
    elif placement.shared:
        said.append(
            f"tester and system under test share CPU {format_cpu_list(placement.shared)}: "
            "each takes time from the other, and results say little"
        )
    elif any(cpus.same_core(cpu, placement.tester) for cpu in placement.sut):
        said.append("tester and system under test share a physical core (SMT siblings): each slows the other")
    if not placement.apart and {cpus.node(cpu) for cpu in placement.sut} != {
        cpus.node(cpu) for cpu in placement.tester
    }:
        said.append("tester and system under test are on different NUMA nodes: frames cross the interconnect")
    if len(placement.sut) < directions:
        said.append(f"{directions} directions share CPU {format_cpu_list(placement.sut)} of the system under test")
    return said


def device_of(host: Host, port: WorkerPortSettings) -> str:
    """The folder of a port's device in sysfs. sysfs does not know alternative names of interfaces."""
    links = [] if port.pci else ip_json(host, "link", "show", "dev", port.interface, check=False, assumed=[])
    return replace(port, interface=links[0].get("ifname", port.interface)).device if links else port.device


def nic_node(host: Host, worker: WorkerSettings) -> int | None:
    """The NUMA node of the card behind the worker's ports. None without a card, or if the kernel knows no node."""
    for port in (worker.left, worker.right):
        if port is None:
            return None
        try:
            node = int(host.get(f"{device_of(host, port)}/numa_node", b"-1"))
        except (OSError, ValueError):
            continue
        if node >= 0:  # -1: the firmware does not say
            return node
    return None
