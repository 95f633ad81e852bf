"""The data plane seam: what switches frames between the worker's two ports and through the pods between them.

A driver stands in one file: what it needs, how it is set up, and what it reports of itself. Whatever its set-up changes
outside the namespaces of the run it undoes through the ExitStack that it is given, on the line after the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from podperf.hosts.base import Host
from podperf.kernel import hugepages
from podperf.model import Chain, Direction, Entry, NetworkingModel, Placement, VirtualFunctionSettings
from podperf.pods.base import PodRuntime


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
    # Who sees each port, by the name that it has there. A data plane that gives a port to a pod says so here.
    ports: dict[str, Host]
    sriov: VirtualFunctionSettings
    number: int = 0  # of a chain's workers, counted from the left

    @property
    def cpus(self) -> tuple[int, ...]:
        """All that the data plane and its pods may use."""
        return self.placement.sut

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
        hugepages.reserve(self.host, mib, self.directory, undo)
        return True


class DataPlane(Protocol):
    """One concrete switching component. The class attributes are facts that callers decide by."""

    name: ClassVar[str]

    model: ClassVar[NetworkingModel]
    """The category of the draft under which it is reported. Nothing else follows from it."""

    cabling: ClassVar[Cabling] = Cabling.WORKER

    least_pods: ClassVar[int] = 1

    forwarders: ClassVar[Sequence[str]]
    """What can move frames within a pod (podperf.pods.forwarders); the first, unless a test asks for another."""

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

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        """Build it with all its pods. Returns how frames must be addressed to enter it from each side."""

    def describe(self) -> Mapping[str, Any]:
        """Versions and effective configuration, read back from the component."""


@runtime_checkable
class Perishable(Protocol):
    """A data plane with processes of its own, which can end in mid-trial."""

    def check(self) -> None:
        """PodperfError, naming the one that is gone. Asked after every trial, so it must be quick."""
