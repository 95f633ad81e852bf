"""The data plane seam. A data plane switches frames between the worker's two ports, through the pods between them.

A driver is one file with its requirements, its set-up and its description. The set-up gets an ExitStack. For each
change outside the run's namespaces it registers the undo there, on the line after the change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Protocol

from podperf.addressing import ADDRESSES, ChainAddresses
from podperf.cpu_plan import CpuPlan
from podperf.errors import PodperfError, Unavailable
from podperf.frames import PLAIN, Headers
from podperf.hosts.base import Host
from podperf.hosts.linux import mac_address
from podperf.kernel import hugepages
from podperf.kernel.thread_time import CpuUser, kernel_users
from podperf.model import CABLE, Chain, Changes, Direction, Entry, NetworkingModel, PageSize, VirtualFunctionSettings
from podperf.pods.base import Pod, PodStarter
from podperf.pods.forwarders.base import ORDINARY_MTU, Application


class Cabling(Enum):
    """The other ends of the cables from the tester's two ports."""

    WORKER = "the worker's two ports"
    BACK_TO_BACK = "each other"
    EXISTING = "whatever the topology says stands there"


class PodQueues(Enum):
    """How frames get into the queues of a pod's port, if its application polls on several CPUs."""

    ONE = "a port of a pod has one queue"
    BY_SWITCH = "the switch chooses the queue by the flow"
    BY_CARD = "the card chooses the queue by the flow (RSS), in a chain of one pod"


ADDED_POD = "added"  # the name of a pod that a change adds beside those of the chain


@dataclass(frozen=True)
class WorkerPort:
    """A port of the worker. `peer_mac` is at the other end of its cable: the MAC of the tester or the next worker."""

    interface: str
    mac: str
    peer_mac: str
    pci: str | None = None  # address of the device, `0000:81:00.0`; None if there is no PCI device behind the interface
    driver: str = "veth"  # of the device
    trunk: str | None = None  # the port itself, if `interface` is another one above it, such as that for a VLAN
    carries_packets: bool = False  # the interface has IP packets without Ethernet headers, and so no neighbours
    table: int | None = None  # the routing table that leads out of this port, if something else fills it
    changes: Changes = field(default_factory=dict)  # that whatever fills it offers while frames cross
    end_pod: Pod | None = None  # has the other end of the cable, if an end of the chain is in a pod


@dataclass(frozen=True)
class Worker:
    """The place of the system under test: a host with two cabled ports, and a runtime that makes pods on it."""

    host: Host
    namespace: str
    left: WorkerPort
    right: WorkerPort
    pods: PodStarter
    mtu: int
    cpus: CpuPlan
    directory: str  # for sockets, databases and logs of this set-up; removed at its end
    sriov: VirtualFunctionSettings
    number: int = 0  # of a chain's workers, counted from the left
    hugepages: PageSize = PageSize.TWO_MIB  # of the memory of applications and switch, if the host has such pages
    settings: Any = None  # an object of the data plane's class `settings`, or None if the topology has none
    started: list[Pod] = field(default_factory=list)  # the pods that have been started for this set-up
    headers: Headers = PLAIN  # of the test frames

    @property
    def addresses(self) -> ChainAddresses:
        """The addresses of the chain, of the family of the test frames."""
        return ADDRESSES[self.headers.family]

    @property
    def receiving(self) -> Sequence[tuple[WorkerPort, int]]:
        """Both ports, and the CPU on which the kernel receives at each."""
        return (self.left, self.cpus.receives_left), (self.right, self.cpus.receives_right)

    @property
    def ports_to_ends(self) -> Mapping[str, tuple[WorkerPort, Pod]]:
        """By side: each port that leads to a pod at an end of the chain, and this pod."""
        ports = {"left": self.left, "right": self.right}
        return {side: (port, port.end_pod) for side, port in ports.items() if port.end_pod is not None}

    @property
    def ports(self) -> Mapping[str, Host]:
        """The host of each port, by the port's name, before a data plane gives the ports to a pod or to DPDK."""
        return {port.trunk or port.interface: self.host for port in (self.left, self.right)}

    @property
    def entries(self) -> Mapping[Direction, Entry]:
        """How frames enter a router: addressed to the MAC of the port where they arrive."""
        return {
            Direction.LEFT_TO_RIGHT: Entry(mac=self.left.mac),
            Direction.RIGHT_TO_LEFT: Entry(mac=self.right.mac),
        }

    @property
    def kernel_users(self) -> list[CpuUser]:
        """The threads of the kernel that receive at both ports and do all that an arriving frame causes."""
        return kernel_users(self.ports, (cpu for _, cpu in self.receiving))

    def reserve_hugepages(self, memories: Sequence[int], undo: ExitStack) -> PageSize:
        """Reserve hugepages on each NUMA node until `undo`, for processes with these MiB of memory. Returns their size.

        NONE if the host or the topology has no hugepages.
        """
        if not (self.hugepages and hugepages.offered(self.host, self.hugepages)):
            return PageSize.NONE
        hugepages.reserve(self.host, self.hugepages, memories, undo)
        return self.hugepages


@dataclass(frozen=True)
class AttachedPod:
    """A pod at an end of a chain, and the worker's port that leads to it."""

    pod: Pod
    port: WorkerPort
    takes_xdp: bool = True  # the pod's interface sends and receives frames of XDP programs, as a veth does


@dataclass(frozen=True)
class EndInPod:
    """A pod that an end of a chain needs. The tester opens the pod's interface, which has the name of the `side`."""

    side: str  # of the chain: left or right
    port: str  # a free name for the worker's port
    worker: Host  # runs commands in the network of the worker's ports
    pods: PodStarter
    mtu: int
    opposite: WorkerPort | None = None  # the other port of the worker if there is one, and no pod between both
    join: str = CABLE  # what the worker's other port leads to, if there is a further worker
    other_container: Pod | None = None  # that at the other end, if both ends are containers of one pod

    def over_veth(self, undo: ExitStack) -> AttachedPod:
        """The pod on one end of a veth pair. The other end is a port of the worker like any other."""
        name = f"end-{self.side}"
        if self.other_container is None:
            pod = self.pods.start(name, [], undo)
        else:
            pod = self.pods.start_beside(self.other_container, name, undo)
        pod.add_veth(self.side, self.worker, self.port, self.mtu)
        port = WorkerPort(self.port, mac_address(self.worker, self.port), pod.interfaces[self.side].mac)
        return AttachedPod(pod, port)


class Perishable(Protocol):
    """A part of a data plane that has processes. A process can end in mid-trial."""

    def check(self) -> None:
        """Raises PodperfError with the name of a process that has ended. Called after every trial, so be quick."""


@dataclass(frozen=True)
class RunningDataPlane:
    """A data plane that is set up, with all facts that its caller needs."""

    entries: Mapping[Direction, Entry]
    """The destination of frames that enter the data plane, for each direction."""

    ports: Mapping[str, Host]
    """The host on which each port of the worker is seen now, by the name that the port has there."""

    describe: Callable[[], Mapping[str, Any]]
    """Reads the present versions and the effective configuration back from the component."""

    parts: Sequence[Perishable] = ()
    """The parts that can end in mid-trial. Their counters change, so their description is read again at the end."""

    applications: Sequence[Application] = ()
    """The programs that forward in the pods, from left to right. Empty if the kernel forwards in the pods."""

    not_in_force: Callable[[], str | None] = lambda: None
    """The reason why the data plane does not use the mechanism in its name, or None. Ask after frames have crossed,
    because some mechanisms begin with the first frame."""

    second_model: NetworkingModel | None = None
    """The second networking model of the draft to which this set-up belongs, beside the `model` of its driver."""

    cpu_users: Sequence[CpuUser] | None = None
    """The parts that take CPU time for frames: receive threads of the kernel, pods' applications, the switch. Empty if
    nothing on the worker handles frames. None: the data plane does not tell, and has no CPU time a frame."""

    further_entries: Sequence[Mapping[Direction, Entry]] = ()
    """The `entries` of each further chain, if several chains stand beside each other."""

    changes: Changes = field(default_factory=dict)
    """The changes that this data plane offers while frames cross."""

    def check(self) -> None:
        """Raises PodperfError with the names of all processes that have ended, as one can take another along. Quick."""
        ended: dict[str, PodperfError] = {}
        for part in self.parts:
            try:
                part.check()
            except PodperfError as error:
                ended[str(error)] = error
        if len(ended) > 1:
            raise PodperfError("; ".join(ended))
        for only in ended.values():
            raise only


class DataPlane(Protocol):
    """One concrete switching component. Its callers use the class attributes for their decisions."""

    name: ClassVar[str]

    model: ClassVar[NetworkingModel]
    """The draft's category under which the report shows the data plane. Nothing else may depend on it."""

    cabling: ClassVar[Cabling] = Cabling.WORKER

    least_pods: ClassVar[int] = 1

    takes_tags: ClassVar[bool] = False
    """Whether it handles frames with VLAN tags itself: it passes them on, or takes the tags off and puts them on again.
    Otherwise it gets interfaces for the VLANs in place of the worker's ports."""

    tracks_connections: ClassVar[bool] = False
    """Whether the worker and the pods track each flow as a connection, of which the kernel has a limited number."""

    routes: ClassVar[bool] = False
    """Whether the worker routes frames to its ports, so that a port may carry packets or have routes of its own
    (`WorkerPort.carries_packets`, `table`)."""

    several_chains: ClassVar[bool] = False
    """Whether several chains can stand beside each other on the worker's ports (`Chain.chains`)."""

    common_pod: ClassVar[bool] = False
    """Whether several chains can have their last pod in common (`Chain.common_pod`)."""

    no_end_in_pod: ClassVar[str] = (
        "its pods have ports in user space, and no program carries frames from there to the interface of the kernel "
        "through which the tester's program sends and receives"
    )
    """The reason why no pod can be an end of a chain, or empty. A chain of pods needs no end in a pod."""

    program_at_ends: ClassVar[bool] = False
    """Whether a pod at an end has a port in user space. A program of the pod then carries frames between this port and
    the interface through which the tester's program sends and receives. Rates include the work of this program."""

    no_end_in_container: ClassVar[str] = "their frames do not leave the network of their pod"
    """The reason why two containers of one pod cannot be the ends of a chain, or empty."""

    forwarders: ClassVar[Sequence[str]]
    """The programs that can forward in a pod (podperf.pods.forwarders). The first one is the default."""

    switch_has_cpus: ClassVar[bool] = False
    """Whether the data plane has a switch in user space, which runs on its own CPUs (`CpuPlan.switch`)."""

    pod_queues: ClassVar[PodQueues] = PodQueues.ONE
    """Whether pods can poll on several CPUs, each with a queue of its own."""

    program_capabilities: ClassVar[tuple[str, ...]] = ()
    """The capabilities that the program of a pod needs in a container (podperf.pods.base.PodProgram)."""

    switch_memory: ClassVar[int] = 0
    """MiB of the memory of such a switch that can be in hugepages."""

    uses_virtual_functions: ClassVar[bool] = False
    """Whether the data plane uses virtual functions of the NIC. Their links may take seconds to come up."""

    settings: ClassVar[type | None] = None
    """The dataclass of the data plane's settings in `data_planes` of a topology (podperf.documents.settings)."""

    @staticmethod
    def unavailable(host: Host) -> str | None:
        """The reason why this host cannot run the data plane, with a remedy if there is one. None if the host can."""

    @staticmethod
    def refused(host: Host, ports: Mapping[str, str]) -> str | None:
        """The reason why these existing ports of the worker cannot run the data plane, or None. Found by a try.

        `ports` has the driver of each interface. Empty: the run makes veth ports.
        """
        return None

    def start_end(self, end: EndInPod, undo: ExitStack) -> AttachedPod:
        """Start a pod at an end of the chain, before `set_up`. It is attached as pods of this data plane are."""
        return end.over_veth(undo)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        """Build the data plane with its pods on this worker. A driver keeps no state, because it may build several."""


def refuse_large_frames(mtu: int, holder: str) -> None:
    """Raises Unavailable if frames of this MTU do not fit into one buffer of `holder`."""
    if mtu > ORDINARY_MTU:
        raise Unavailable(
            f"a frame for an MTU of {mtu} does not fit one buffer of {holder}: those take frames of up to 1518 bytes"
        )
