"""The data plane seam: what switches frames between the worker's two ports and through the pods between them.

A driver stands in one file: what it needs, how it is set up, and what it reports of itself. Its set-up undoes each
change outside the namespaces of the run through the ExitStack that it is given, on the line after the change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

from podperf.hosts.base import Host
from podperf.kernel import hugepages
from podperf.model import Chain, Direction, Entry, NetworkingModel, Placement, VirtualFunctionSettings
from podperf.pods.base import PodRuntime
from podperf.pods.forwarders.base import Application

# A description has this key where the set-up turned out to be of a second category of the draft, too.
ALSO_MODEL = "also_model"


class Cabling(Enum):
    """What the tester's two ports are plugged into."""

    WORKER = "the worker's two ports"
    BACK_TO_BACK = "each other"
    EXISTING = "whatever the topology says stands there"


@dataclass(frozen=True)
class WorkerPort:
    """A port of the worker, and the MAC at the other end of the cable: the tester's, or of what comes next there."""

    interface: str
    mac: str
    peer_mac: str
    pci: str | None = None  # address of the device, `0000:81:00.0`; None where there is none behind the interface


@dataclass(frozen=True)
class Worker:
    """Where the system under test is built: a host with two cabled ports, and a runtime that makes pods on it."""

    host: Host
    namespace: str
    left: WorkerPort
    right: WorkerPort
    pods: PodRuntime
    mtu: int
    placement: Placement
    directory: str  # for sockets, databases and logs of this set-up; removed with it
    sriov: VirtualFunctionSettings
    number: int = 0  # of a chain's workers, counted from the left

    @property
    def cpus(self) -> tuple[int, ...]:
        """All that the data plane and its pods may use."""
        return self.placement.sut

    @property
    def ports(self) -> Mapping[str, Host]:
        """The host of both ports, by their names, as long as no data plane gives them to a pod or to DPDK."""
        return {self.left.interface: self.host, self.right.interface: self.host}

    @property
    def entries(self) -> Mapping[Direction, Entry]:
        """Of frames that enter as those for a router do: by the MAC of the port that they arrive at."""
        return {
            Direction.LEFT_TO_RIGHT: Entry(mac=self.left.mac),
            Direction.RIGHT_TO_LEFT: Entry(mac=self.right.mac),
        }

    def reserve_hugepages(self, mib: int, undo: ExitStack) -> bool:
        """Have this many MiB on each NUMA node until `undo`. False where the host has, or the topology wants, none."""
        if not (self.placement.hugepages and hugepages.offered(self.host)):
            return False
        hugepages.reserve(self.host, mib, undo)
        return True


class Perishable(Protocol):
    """A part of a data plane with processes of its own, which can end in mid-trial."""

    def check(self) -> None:
        """PodperfError, naming the process that has ended. Asked after every trial, so it must be quick."""


@dataclass(frozen=True)
class RunningDataPlane:
    """A data plane that is set up, and everything that its caller must know of it."""

    entries: Mapping[Direction, Entry]
    """How frames must be addressed to enter it from each side."""

    ports: Mapping[str, Host]
    """The host on which each port of the worker is seen now, by the name that the port has there."""

    describe: Callable[[], Mapping[str, Any]]
    """Reads versions and the effective configuration back from the component, as they are at this moment."""

    parts: Sequence[Perishable] = ()
    """The parts that can end in mid-trial. Their counters change, so their description is read again at the end."""

    applications: Sequence[Application] = ()
    """The programs that forward in its pods, from left to right; none where the pods' kernels forward."""

    not_in_force: Callable[[], str | None] = lambda: None
    """The reason why the data plane does not work in the way that it is named after, or None. Ask only when frames
    have crossed: some mechanisms begin with the first frame."""

    def check(self) -> None:
        """PodperfError, naming the process that has ended. Quick."""
        for part in self.parts:
            part.check()


class DataPlane(Protocol):
    """One concrete switching component. The class attributes are facts that callers decide by."""

    name: ClassVar[str]

    model: ClassVar[NetworkingModel]
    """The category of the draft under which it is reported. Nothing else follows from it."""

    cabling: ClassVar[Cabling] = Cabling.WORKER

    least_pods: ClassVar[int] = 1

    forwarders: ClassVar[Sequence[str]]
    """The programs that can forward in a pod (podperf.pods.forwarders). A test that names none gets the first."""

    switch_has_cpus: ClassVar[bool] = False
    """Whether it has a switch in user space, which runs on CPUs of its own (`Placement.switch`)."""

    uses_virtual_functions: ClassVar[bool] = False
    """Whether it has virtual functions of the NIC. Their links may take seconds to come up."""

    @staticmethod
    def unavailable(host: Host) -> str | None:
        """The reason why this host cannot run it, with the remedy where there is one, or None."""

    @staticmethod
    def refused(host: Host, ports: Sequence[str]) -> str | None:
        """The reason why these existing ports of the worker cannot have it, or None. Found out by trying.

        Without ports, the run makes some, as veths.
        """
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        """Build it on this worker, with all its pods. A driver keeps no state: it may set up several workers."""
