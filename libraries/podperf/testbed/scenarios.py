"""The placements of published experiments: the NUMA nodes of switch and pods, and their exclusive or shared CPUs.

A scenario names nodes relative to the NIC's node. So any worker with as many nodes can have it. In the draft's
multi-pod test the NIC is on node 1 (appendix C.3). CPU pools are those of CMK (appendices A.2 and B.2).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, cycle, islice
from types import MappingProxyType
from typing import Any

from podperf.allocation import UNLIMITED, USUAL_ALLOCATION, PodAllocation, PodLimits
from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import CpuPlan, give_roles, roles_as_record
from podperf.errors import Unavailable
from podperf.figures import count
from podperf.kernel.cpus import Cpus
from podperf.model import PageSize, Placement
from podperf.testbed.neighbour import NeighbourKind, NeighbourPlan

SHARED_POOL = 2  # "In shared mode, we assigned two CPUs for several PODs"


class Node(StrEnum):
    """A NUMA node, relative to the NIC's."""

    NIC = "the NIC's node"
    OTHER = "another node"
    ANY = "any node"


class CpuIsolation(StrEnum):
    """The kinds of CPUs that the pods' processes may use."""

    EXCLUSIVE = "each pod has a CPU of its own"
    SHARED = "the pods share a pool of two CPUs"
    NONE = "the pods share all CPUs of the worker, also with the switch"


@dataclass(frozen=True)
class Scenario:
    """One placement. If a chain has more pods than `pods`, further pods have the place of the last one.

    With a `neighbour`, work competes with the chain on all CPUs that the isolation leaves to it, within its limits.

    If `precedence` is False, pods that share CPUs do so as ordinary processes: nothing gives their pollers turns. A
    limit of CPU time does not hold for processes with real-time priority, so pods with such a limit are ordinary
    processes, too.

    A user-space switch polls on `pollers` CPUs (None: as many as the topology gives it). If it is not `switch_alone`,
    it polls on the CPUs of the pods.
    """

    name: str
    switch: Node
    pods: tuple[Node, ...]
    isolation: CpuIsolation = CpuIsolation.EXCLUSIVE
    neighbour: NeighbourKind | None = None
    neighbour_limits: PodLimits = UNLIMITED
    precedence: bool = True
    allocation: PodAllocation = USUAL_ALLOCATION
    pollers: int | None = None
    switch_alone: bool = True

    @property
    def ordinary(self) -> bool:
        """Whether the pods are ordinary processes, and so are the receive threads of the ports."""
        return not self.precedence or self.allocation.limits.cpu is not None


_NIC, _OTHER, _ANY = Node.NIC, Node.OTHER, Node.ANY

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        each.name: each
        for each in (
            # Appendix C.3, where the NIC is on node 1.
            Scenario("S1", _NIC, (_OTHER, _OTHER)),
            Scenario("S2", _NIC, (_NIC, _NIC)),
            Scenario("S3", _OTHER, (_OTHER, _OTHER)),
            Scenario("S4", _OTHER, (_NIC, _NIC)),
            Scenario("S5", _NIC, (_NIC, _OTHER)),
            Scenario("S6", _OTHER, (_OTHER, _NIC)),
            # Appendices A.2 and B.2. "Same" and "different" compare the nodes of pod and NIC.
            Scenario("no-isolation", _NIC, (_ANY,), CpuIsolation.NONE),  # "all PODs share a host's CPU"
            Scenario("exclusive-same-node", _NIC, (_NIC,)),
            Scenario("exclusive-different-node", _NIC, (_OTHER,)),
            Scenario("shared-same-node", _NIC, (_NIC,), CpuIsolation.SHARED),
            Scenario("shared-different-node", _NIC, (_OTHER,), CpuIsolation.SHARED),
        )
    }
)


def _beside(kind: NeighbourKind, name: str, limits: PodLimits = UNLIMITED) -> Scenario:
    """A pod on any CPU, as an ordinary process, beside a neighbour with these limits."""
    return Scenario(name, _ANY, (_ANY,), CpuIsolation.NONE, kind, limits, precedence=False)


def _with(name: str, **allocation: Any) -> Scenario:
    """Pods that have this allocation on CPUs of their own."""
    return Scenario(name, _ANY, (_ANY,), allocation=PodAllocation(**allocation))


_FURTHER = (
    # NUMA nodes, and limits of a neighbour (section 4.2.1).
    Scenario("pod on the NIC's node", _NIC, (_NIC,)),
    Scenario("pod on another node", _NIC, (_OTHER,)),
    Scenario("switch and pod on the NIC's node", _NIC, (_NIC,)),
    Scenario("switch on another node", _OTHER, (_NIC,)),
    _beside(NeighbourKind.BUSY, "neighbour with 25 % of a CPU", PodLimits(cpu=0.25)),
    _beside(NeighbourKind.BUSY, "neighbour without a limit"),
    _beside(NeighbourKind.MEMORY_HOG, "memory hog with 16 MiB", PodLimits(memory=16)),
    _beside(NeighbourKind.MEMORY_HOG, "memory hog without a limit"),
    # Allocations of CPUs and memory (section 4.2.3).
    *(_with(f"{share * 100:g} % of a CPU", limits=PodLimits(cpu=share)) for share in (1.0, 0.5, 0.25)),
    *(_with(f"{mib} MiB", limits=PodLimits(memory=mib)) for mib in (1024, 192)),
    *(_with(f"{number} descriptors", descriptors=number) for number in (2048, 512, 64)),
    *(_with(f"{number} buffers", buffers=number) for number in (8192, 32768)),
    *(_with(f"{count(number, 'CPU')} a pod", cpus=number) for number in (4, 2, 1)),
    *(_with(f"{count(number, 'flow')} in 2 queues", cpus=2) for number in (1000, 1)),
    Scenario("poller on its own CPU", _ANY, (_ANY,)),
    Scenario("poller on the pod's CPU", _ANY, (_ANY,), precedence=False, switch_alone=False),
    *(Scenario(count(number, "poller"), _ANY, (_ANY,), pollers=number) for number in (1, 2, 4)),
)

PLACEMENTS: Mapping[str, Scenario] = MappingProxyType({**SCENARIOS, **{each.name: each for each in _FURTHER}})
"""All placements that suites, comparison files and `check --plan` name: SCENARIOS, and those of draft section 4.2."""


@dataclass(frozen=True)
class Placed:
    """The placement of a chain: the chosen CPUs, and `cpus`, their roles on each worker from left to right.

    When the pods' processes run, they are allowed to use the CPUs `shared`. Empty: they keep their CPUs. `isolation` is
    None in the usual placement. `pages` is the size of the pages of all memory that can be in hugepages. None: the
    testbed's usual size.
    """

    placement: Placement
    cpus: Sequence[CpuPlan]
    shared: tuple[int, ...] = ()
    isolation: CpuIsolation | None = None
    neighbour: NeighbourPlan | None = None
    pages: PageSize | None = None

    @property
    def suts(self) -> list[set[int]]:
        """All CPUs on which a part of the system under test may run, for each worker from left to right."""
        return [{*cpu.sut, *self.shared} for cpu in self.cpus]

    def as_record(self) -> dict[str, Any]:
        """The chosen CPUs, as records have them."""
        return {
            "placement": self.placement.as_record(),
            "shared": list(self.shared),
            "isolation": self.isolation and self.isolation.name.lower(),
            "precedence": all(cpu.precedence for cpu in self.cpus),
            "allocation": self.cpus[0].allocation.as_record() if self.cpus else None,
            "neighbour": self.neighbour and self.neighbour.as_record(),
            "hugepages_of_mib": self.pages,
            "roles": roles_as_record(self.cpus),
        }


def place_scenario(
    scenario: Scenario,
    pods: int,
    usual: Placement,
    cpus: Cpus,
    *,
    nic_node: int,
    taken: Collection[int] = (),
    with_switch: bool = True,
) -> Placed:
    """CPUs for the switch, for each pod and for the switch's other threads. CPUs in `taken` are not used.

    CPUs of the usual placement come first. Without a user-space switch only pods get CPUs. Raises Unavailable with the
    missing part if there are too few CPUs.
    """
    choice = _Choice(scenario, cpus, usual, nic_node, set(taken))
    pollers = (scenario.pollers or max(1, len(usual.named_switch))) if with_switch else 0
    switch = tuple(choice.take(scenario.switch) for _ in range(pollers if scenario.switch_alone else 0))
    others = range(pods if scenario.isolation is not CpuIsolation.SHARED else SHARED_POOL)
    homes = [scenario.pods[min(number, len(scenario.pods) - 1)] for number in others]
    pool = tuple(map(choice.take, homes))
    further = tuple(tuple(choice.take(home) for _ in range(scenario.allocation.cpus - 1)) for home in homes)
    control = (choice.take(scenario.switch),) if with_switch else ()
    if not scenario.switch_alone:
        switch = tuple(islice(cycle(pool), pollers))
    sut = tuple(dict.fromkeys((*switch, *pool, *chain.from_iterable(further), *control)))
    neighbour = tuple(cpu for cpu in cpus.usable if cpu not in {*sut, *taken})
    # The scheduler moves nothing to an isolated CPU by itself. So the CPUs that the parts share must not be isolated.
    everywhere = tuple(sorted((*sut, *(cpu for cpu in neighbour if cpu not in cpus.isolated))))
    choices = {CpuIsolation.EXCLUSIVE: (), CpuIsolation.SHARED: tuple(sorted(pool)), CpuIsolation.NONE: everywhere}
    shared = choices[scenario.isolation]
    if isolated := cpus.isolated.intersection(shared):
        raise Unavailable(
            f"scenario {scenario.name} lets pods share CPUs, and the kernel moves no process from one isolated CPU to "
            f"another: leave CPU {format_cpu_list(sorted(isolated))} of the worker out of `isolcpus`"
        )
    beside_chain = _neighbour(scenario, neighbour, shared, usual, cpus)
    placement = replace(usual, sut=sut, named_switch=switch, neighbour=beside_chain.cpus if beside_chain else neighbour)
    beside = (*pool, *control)
    ends = (switch or pool)[0], beside[-1]
    roles = give_roles(placement, pods, receives=ends, switch=switch, beside=beside)
    roles = replace(roles, precedence=not scenario.ordinary, allocation=scenario.allocation)
    roles = replace(roles, further=further if scenario.allocation.cpus > 1 else ())
    return Placed(placement, (roles,), shared, scenario.isolation, beside_chain)


def _neighbour(
    scenario: Scenario, left: Collection[int], shared: tuple[int, ...], usual: Placement, cpus: Cpus
) -> NeighbourPlan | None:
    """The neighbour of a scenario. It shares the CPUs of the pods, if these share any. Otherwise it has the CPUs that
    are `left`, or if none is left those of a tester on the same machine, which has precedence there."""
    if scenario.neighbour is None:
        return None
    beside = shared or tuple(cpu for cpu in left if cpu not in cpus.isolated)
    beside = beside or (() if usual.apart else usual.tester)
    if not beside:
        raise Unavailable(
            f"scenario {scenario.name} wants a CPU for the neighbour, and the chain has all "
            f"{count(len(cpus.usable), 'CPU')} of the worker that are not isolated"
        )
    return NeighbourPlan(scenario.neighbour, tuple(sorted(beside)), scenario.neighbour_limits)


class _Choice:
    """Takes CPUs, one after the other."""

    def __init__(self, scenario: Scenario, cpus: Cpus, usual: Placement, nic_node: int, taken: set[int]) -> None:
        self._scenario, self._cpus, self._usual, self._nic = scenario, cpus, usual, nic_node
        self._taken, self._others = taken, sorted(taken)

    def take(self, where: Node) -> int:
        """The best unused CPU of this node: one of the usual CPUs, alone on its physical core, and not CPU 0."""
        near = where is Node.NIC
        here = [cpu for cpu in self._cpus.usable if where is Node.ANY or (self._cpus.node(cpu) == self._nic) == near]
        free = set(here) - self._taken
        if not free:
            raise Unavailable(self._shortage(where, here))
        best = min(
            free,
            key=lambda cpu: (
                cpu not in self._usual.sut,
                self._cpus.same_core(cpu, self._taken),
                cpu == 0,
                self._cpus.node(cpu),
                cpu,
            ),
        )
        self._taken.add(best)
        return best

    def _shortage(self, where: Node, here: Collection[int]) -> str:
        name = self._scenario.name
        if not here:
            return f"scenario {name} has a part on another NUMA node than the NIC's, and the worker has one node"
        wanted = "a CPU each for switch, pods and control threads"
        polling = (self._scenario.allocation.cpus, self._scenario.pollers or 1)
        if max(polling) > 1:
            pods, switch = (count(each, "CPU") for each in polling)
            wanted = f"{pods} for each pod, {switch} for a switch if there is one, and one for control threads"
        not_theirs = [cpu for cpu in here if cpu in self._others]
        beside = f", of which the tester has CPU {format_cpu_list(not_theirs)}" if not_theirs else ""
        return f"scenario {name} wants {wanted}, and {where} has {count(len(here), 'CPU')} in all{beside}"
