"""Claims about a chain with several placements (draft section 4.2.1), or allocations of CPUs and memory (4.2.3).

A new claim is an entry in `PLACEMENT_CLAIMS`. Its contenders are in the order of the claim, the fastest first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from podperf.allocation import UNLIMITED, PodAllocation, PodLimits
from podperf.errors import PodperfError
from podperf.model import DRAFT, Chain, FrameSize
from podperf.testbed.neighbour import NeighbourKind
from podperf.testbed.scenarios import CpuIsolation, Node, Scenario
from podperf.verdicts.findings import Contender

_SMALL, _LARGE = FrameSize("64B", (64,)), FrameSize("1518B", (1518,))
_OVS_DPDK = Chain("ovs-dpdk", 1)
_NUMA = (
    "Network performance can be changed depending on the location of the NUMA node whether it is the same NUMA node "
    "where the physical network interface and CNF are attached to"
)
_SOURCE = f"{DRAFT}, section 4.2.3"


@dataclass(frozen=True)
class PlacementClaim:
    """A chain forwards most with the first of these placements or allocations, and less with each next one (see Order).

    `sections` are those of the draft.
    """

    name: str
    text: str
    contenders: tuple[Contender, ...]
    source: str | None = None
    sections: tuple[str, ...] = ("4.2.3",)
    relevant_difference: float = 0.05
    expects_difference: bool = True
    their_figures: str = ""
    caveat: str = ""

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """Each contender and the next one."""
        return list(itertools.pairwise(range(len(self.contenders))))

    @property
    def data_planes(self) -> set[str]:
        """The data planes of the contenders."""
        return {each.chain.data_plane for each in self.contenders}


def _pod(data_plane: str, label: str, allocation: PodAllocation, frame: FrameSize = _SMALL) -> Contender:
    """A chain of one pod, which has this allocation on CPUs of its own."""
    return Contender(Chain(data_plane, 1), frame, Scenario(label, Node.ANY, (Node.ANY,), allocation=allocation), label)


def _with_time(data_plane: str, cpu: float) -> Contender:
    return _pod(data_plane, f"{cpu * 100:g} % of a CPU", PodAllocation(PodLimits(cpu=cpu)))


def _with_memory(data_plane: str, mib: int) -> Contender:
    return _pod(data_plane, f"{mib} MiB", PodAllocation(PodLimits(memory=mib)))


def _with_descriptors(data_plane: str, descriptors: int) -> Contender:
    return _pod(data_plane, f"{descriptors} descriptors", PodAllocation(descriptors=descriptors))


def _with_buffers(data_plane: str, buffers: int) -> Contender:
    return _pod(data_plane, f"{buffers} buffers", PodAllocation(buffers=buffers))


def _with_cpus(data_plane: str, cpus: int, frame: FrameSize, flows: int = 1000) -> Contender:
    """Flows are needed, because a flow stays in one queue."""
    label = f"{cpus} CPU{'s' if cpus > 1 else ''} a pod"
    return replace(_pod(data_plane, label, PodAllocation(cpus=cpus), frame), flows=flows)


def _with_flows(data_plane: str, flows: int) -> Contender:
    label = f"{flows} flow{'s' if flows > 1 else ''} in 2 queues"
    return replace(_pod(data_plane, label, PodAllocation(cpus=2)), flows=flows)


def _with_pollers(pollers: int) -> Contender:
    label = f"{pollers} poller{'s' if pollers > 1 else ''}"
    return Contender(_OVS_DPDK, _SMALL, Scenario(label, Node.ANY, (Node.ANY,), pollers=pollers), label)


def _beside_pod(label: str, *, alone: bool) -> Contender:
    scenario = Scenario(label, Node.ANY, (Node.ANY,), precedence=alone, switch_alone=alone)
    return Contender(_OVS_DPDK, _SMALL, scenario, label)


def _on_nodes(data_plane: str, label: str, switch: Node, pod: Node) -> Contender:
    return Contender(Chain(data_plane, 1), _SMALL, Scenario(label, switch, (pod,)), label)


def _of_nodes(name: str, near: Contender, far: Contender, caveat: str = "") -> PlacementClaim:
    """The draft's claim that the NUMA node of a part counts."""
    return PlacementClaim(name, _NUMA, (near, far), f"{DRAFT}, section 4.2.1", ("4.2.1",), caveat=caveat)


def _beside(kind: NeighbourKind, label: str, limits: PodLimits = UNLIMITED) -> Contender:
    """A pod on any CPU, as an ordinary process, beside a neighbour with these limits."""
    scenario = Scenario(label, Node.ANY, (Node.ANY,), CpuIsolation.NONE, kind, limits, precedence=False)
    return Contender(Chain("af-xdp", 1), _SMALL, scenario, label)


_CLAIMS = (
    _of_nodes(
        "af-xdp-numa",
        _on_nodes("af-xdp", "pod on the NIC's node", Node.NIC, Node.NIC),
        _on_nodes("af-xdp", "pod on another node", Node.NIC, Node.OTHER),
    ),
    _of_nodes(
        "ovs-dpdk-numa",
        _on_nodes("ovs-dpdk", "switch and pod on the NIC's node", Node.NIC, Node.NIC),
        _on_nodes("ovs-dpdk", "pod on another node", Node.NIC, Node.OTHER),
        caveat="S2 and S1 of appendix C.3, with one pod",
    ),
    _of_nodes(
        "ovs-dpdk-numa-of-switch",
        _on_nodes("ovs-dpdk", "switch and pod on the NIC's node", Node.NIC, Node.NIC),
        _on_nodes("ovs-dpdk", "switch on another node", Node.OTHER, Node.NIC),
        caveat="S2 and S4 of appendix C.3, with one pod",
    ),
    PlacementClaim(
        "af-xdp-neighbour-cpu-time",
        "A pod that shares its CPU forwards more if its neighbour has a limit of CPU time",
        (
            _beside(NeighbourKind.BUSY, "neighbour with 25 % of a CPU", PodLimits(cpu=0.25)),
            _beside(NeighbourKind.BUSY, "neighbour without a limit"),
        ),
        sections=("4.2.1",),
        caveat="pod and neighbour are ordinary processes on the same CPUs",
    ),
    PlacementClaim(
        "af-xdp-neighbour-memory",
        "A pod forwards more if its neighbour has a limit of memory, and so takes less of the cache",
        (
            _beside(NeighbourKind.MEMORY_HOG, "memory hog with 16 MiB", PodLimits(memory=16)),
            _beside(NeighbourKind.MEMORY_HOG, "memory hog without a limit"),
        ),
        sections=("4.2.1",),
        caveat="pod and neighbour are ordinary processes on the same CPUs; with the limit, the neighbour fills half of "
        "it again and again",
    ),
    PlacementClaim(
        "af-xdp-cpu-time",
        "A pod with less CPU time forwards less, because it waits for the next period when its time is used up",
        tuple(_with_time("af-xdp", each) for each in (1.0, 0.5, 0.25)),
        caveat="the pod is an ordinary process, because a limit of CPU time does not hold for real-time priority; "
        "the receive threads of its ports have no limit",
    ),
    PlacementClaim(
        "af-xdp-memory",
        "Different RAM allocation to Pods also causes different throughput results",
        tuple(_with_memory("af-xdp", each) for each in (1024, 192)),
        _SOURCE,
        caveat="the draft does not say which amount is faster; memory in hugepages is beside the limit",
    ),
    PlacementClaim(
        "af-xdp-busy-polling",
        "With preferred busy polling an AF_XDP pod forwards more, because its own calls run the driver",
        (
            Contender(Chain("af-xdp-busy-poll", 1), _SMALL, label="busy polling"),
            Contender(Chain("af-xdp", 1), _SMALL, label="no busy polling"),
        ),
    ),
    PlacementClaim(
        "af-xdp-descriptors",
        "With more descriptors more frames can wait while a port's receive thread or the pod has no CPU",
        tuple(_with_descriptors("af-xdp", each) for each in (2048, 512, 64)),
    ),
    PlacementClaim(
        "af-xdp-buffers",
        "Different RAM allocation to Pods also causes different throughput results",
        tuple(_with_buffers("af-xdp", each) for each in (8192, 32768)),
        _SOURCE,
        caveat="the draft does not say which amount is faster: with more buffers, frames go through more memory",
    ),
    PlacementClaim(
        "ovs-dpdk-cpus-of-pod",
        "With large packet frame sizes (over 1024), increasing CPU per pods significantly increases the throughput",
        tuple(_with_cpus("ovs-dpdk", each, _LARGE) for each in (4, 2, 1)),
        _SOURCE,
        caveat="each CPU of a pod polls one queue of each port, and the switch divides 1000 flows among the queues",
    ),
    PlacementClaim(
        "af-xdp-cpus-of-pod",
        "2 CPUs per Pod is insufficient for all packet frame sizes",
        tuple(_with_cpus("af-xdp", each, _SMALL) for each in (4, 2, 1)),
        _SOURCE,
        caveat="each CPU of the pod serves one queue of each port, and the card divides 1000 flows among the queues",
    ),
    PlacementClaim(
        "af-xdp-queues-by-flows",
        "Several queues help only with several flows, because all frames of a flow go to one queue",
        tuple(_with_flows("af-xdp", each) for each in (1000, 1)),
    ),
    PlacementClaim(
        "ovs-dpdk-dedicated-poller",
        "Not assigning dedicated CPU cores to DPDK PMD causes significant performance dropss",
        (_beside_pod("poller on its own CPU", alone=True), _beside_pod("poller on the pod's CPU", alone=False)),
        _SOURCE,
        caveat="on the pod's CPU the poller is an ordinary process, as the pod is: they do not take turns",
    ),
    PlacementClaim(
        "ovs-dpdk-pollers",
        "Increasing CPU core allocation to OVS-DPDK vSwitch does not affect its performance",
        tuple(map(_with_pollers, (1, 2, 4))),
        _SOURCE,
        expects_difference=False,
        caveat="the ports along the chain are divided among the pollers, from left to right (pmd-rxq-affinity)",
    ),
)

PLACEMENT_CLAIMS = MappingProxyType({each.name: each for each in _CLAIMS})

SCENARIOS_OF_CLAIMS = MappingProxyType(
    {each.scenario.name: each.scenario for claim in _CLAIMS for each in claim.contenders if each.scenario is not None}
)
"""The scenarios of all claims by their names. Claims may share one."""


def placement_claim_named(name: str) -> PlacementClaim:
    """The claim of this name. For an unknown name, raises PodperfError with a list of all names."""
    try:
        return PLACEMENT_CLAIMS[name]
    except KeyError:
        known = ", ".join(PLACEMENT_CLAIMS)
        raise PodperfError(f"there is no claim {name!r} about placements; choose one of: {known}") from None
