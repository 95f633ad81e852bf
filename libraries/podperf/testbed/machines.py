"""The machines of a testbed: their CPUs, their testers, and the checks before a system under test is built on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from podperf.allocation import UNLIMITED, PodLimits
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import Worker, WorkerPort
from podperf.frames import PLAIN, Headers
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.hosts.run_directory import RUN_DIRECTORY, SOCKETS
from podperf.hosts.way_back import go_back
from podperf.kernel.cpus import read_cpus
from podperf.kernel.sriov import PhysicalFunction
from podperf.kernel.threads import refuse_unpinnable
from podperf.model import CABLE, Placement
from podperf.pods import runtime_of
from podperf.pods.base import Attachment, Pod, PodProgram, PodRuntime, PodStarter, RuntimeOfTestbed
from podperf.testbed.access import session_to
from podperf.testbed.isolation import refuse_shared_ports, refuse_shared_worker_ports
from podperf.testbed.joins import JOINS
from podperf.testbed.placement import nic_node, place
from podperf.testbed.vlans import interface_for, refuse_tags
from podperf.testbed.worker_ports import received_by_threads
from podperf.testers import TESTERS
from podperf.testers.base import Site, Tester, TesterKind, TesterPort
from podperf.topology import Engine, PortSettings, Topology, WorkerSettings


@dataclass(frozen=True)
class WorkerMachine:
    """A worker of a testbed: its settings in the topology, its machine, and the CPUs of the system under test there."""

    settings: WorkerSettings
    host: Host
    placement: Placement
    number: int = 0  # counted from the left
    shared: bool = False  # whether a worker before it is on the same machine

    @property
    def label(self) -> str:
        """A word that tells the worker from those before it on its machine: `worker2`. Empty if it is the first one."""
        return f"worker{self.number + 1}" if self.shared else ""

    @property
    def name(self) -> str:
        """The name of the worker for people."""
        return f"{self.label} of {self.host.name}" if self.shared else self.host.name

    @property
    def prefix(self) -> str:
        """It stands before the names of the worker's pods: `worker2-`. Empty if the worker is the first one."""
        return f"{self.label}-" if self.label else ""

    @property
    def directory(self) -> Path:
        """Its folder for sockets, databases and logs."""
        return RUN_DIRECTORY / self.label

    def make_run_directory(self, undo: ExitStack) -> None:
        """Make the run directory on the worker, until `undo`. Only root can open its sockets."""
        self.host.do("mkdir", "-p", "-m", "700", str(self.directory), str(self.directory / SOCKETS))
        undo.callback(self.host.do, "rm", "-rf", str(self.directory))


LARGEST_LIVE_MTU = 3394  # of frames that the kernel builds for an XDP program: at most 3412 bytes with FCS


def engine_for(engine: Engine, mtu: int) -> Engine:
    """The engine of the tester for frames of this MTU. XDP cannot send the largest ones, and packet rings can."""
    return "packet-ring" if engine == "auto" and mtu > LARGEST_LIVE_MTU else engine


@dataclass(frozen=True)
class ChainNeeds:
    """The needs of a chain on its workers: the MTU of the ports, what the programs of its pods need, settings,
    and the headers of the test frames."""

    mtu: int
    program: PodProgram | None = None
    settings: Any = None  # of the data plane
    headers: Headers = PLAIN  # of the test frames
    takes_tags: bool = True  # see DataPlane
    join: str = CABLE  # of several workers

    @property
    def port_mtu(self) -> int:
        """The MTU of the workers' ports: what joins the workers may need some bytes of each frame."""
        return self.mtu + JOINS[self.join].overhead


class Machines:
    """The tester's machine and the workers, from left to right, with the roles of their CPUs."""

    def __init__(self, topology: Topology, workers: Sequence[WorkerMachine], tester_host: Host | None = None) -> None:
        """`tester_host` is the machine of the tester, by default this machine."""
        self.topology, self.workers = topology, workers
        self.tester_host: Host = tester_host or LocalHost()
        self._lasting: list[Tester] = []  # the tester with ports of its own
        self._runtimes: list[RuntimeOfTestbed] = []  # that of the pods, once it is asked for

    @classmethod
    def on(cls, topology: Topology, tester: Host, workers: Sequence[Host]) -> Self:
        """The testbed of a topology on these machines. Chooses the CPUs. Tester and worker can be one machine.

        Raises PodperfError if a CPU that the topology names cannot be used.
        """
        cpus = read_cpus(tester)
        found = []
        for number, (settings, host) in enumerate(zip(topology.workers, workers, strict=True)):
            theirs, node = (None, None) if host is tester else (read_cpus(host), nic_node(host, settings))
            placement, shared = place(topology, cpus, theirs, node, number), host in workers[:number]
            found.append(WorkerMachine(settings, host, placement, number, shared))
        return cls(topology, found, tester)

    @property
    def tester_cpus(self) -> tuple[int, ...]:
        """The CPUs of the tester. The placement of each worker has the same ones."""
        (cpus,) = {worker.placement.tester for worker in self.workers}
        return cpus

    def refuse_shared_ports(self, workers: int | None = None) -> None:
        """Raises PodperfError, one line for each reason, if anything else uses the tester's or workers' existing ports.

        `workers` is the number of workers to look at, from left to right. None: all.
        """
        refuse_shared_ports(self.topology, self.tester_host, ssh=session_to(self.tester_host))
        for worker in self.workers[:workers]:
            refuse_shared_worker_ports(self.topology.path, worker.settings, worker.host, session_to(worker.host))

    def refuse_unpinnable(self) -> None:
        """Raises PodperfError with the remedy if receive threads of a worker's ports cannot be pinned to a CPU."""
        for worker in self.workers:
            if (
                not self.topology.external
                and not worker.settings.counts_instructions
                and received_by_threads(worker.settings, worker.host)
            ):
                refuse_unpinnable(worker.host, min(worker.placement.sut))

    def tester(
        self, left: PortSettings, right: PortSettings, engine: Engine, engine_remark: str | None = None
    ) -> AbstractContextManager[Tester]:
        """A tester on these ports, or the tester with ports of its own if the topology has such a tester."""
        if self.topology.tester.kind.has_ports_of_its_own:
            return nullcontext(self.tester_with_ports())
        ends = _tester_port(left), _tester_port(right)
        site = Site(self.tester_host, self.topology.tester, engine, self.tester_cpus, *ends, engine_remark)
        return closing(self._kind.at(site))

    @property
    def _kind(self) -> TesterKind:
        return TESTERS[self.topology.tester.kind.type]

    def tester_with_ports(self) -> Tester:
        """The tester with ports of its own. It runs until it breaks or until this testbed is closed."""
        if self._lasting and self._lasting[0].broken:
            self._close_tester()
        if not self._lasting:
            settings = self.topology.tester
            self._lasting.append(self._kind.at(Site(self.tester_host, settings, settings.engine, self.tester_cpus)))
        return self._lasting[0]

    @property
    def runtime(self) -> RuntimeOfTestbed:
        """The runtime of the pods."""
        if not self._runtimes:
            self._runtimes.append(runtime_of(self.topology.pods))
        return self._runtimes[0]

    def close(self) -> None:
        """Close the tester with ports of its own, and the runtime of the pods. Safe to repeat."""
        self._close_tester()
        while self._runtimes:
            self._runtimes.pop().close()

    def _close_tester(self) -> None:
        while self._lasting:
            self._lasting.pop().close()

    def go_back(self, workers: int) -> None:
        """Take back changes that an earlier set-up left, on the tester's machine and on the first `workers` workers.

        Raises PodperfError if that fails again: a set-up starts only if no earlier change is left.
        """
        for host in dict.fromkeys((self.tester_host, *(worker.host for worker in self.workers[:workers]))):
            go_back(host)

    def worker(
        self,
        machine: WorkerMachine,
        namespace: NetworkNamespace,
        left: WorkerPort,
        right: WorkerPort,
        cpus: CpuPlan,
        needs: ChainNeeds,
        undo: ExitStack,
    ) -> Worker:
        """The worker for a data plane, with these ports in this namespace and these roles of its CPUs.

        Raises Unavailable if the data plane needs interfaces for VLANs, and the kernel has none.
        """
        if not needs.takes_tags and needs.headers.left:
            refuse_tags(machine.host, undo)
            left = interface_for(namespace, left, "left", needs.headers.left)
            right = interface_for(namespace, right, "right", needs.headers.right)
        started: list[Pod] = []
        runtime = self.runtime.on(machine.host, namespace, needs.program)
        return Worker(
            host=namespace,
            namespace=namespace.namespace,
            left=left,
            right=right,
            pods=PodsOfChain(runtime, started, cpus.allocation.limits, machine.prefix),
            mtu=needs.mtu,
            cpus=cpus,
            directory=str(machine.directory),
            sriov=machine.settings.sriov,
            number=machine.number,
            hugepages=self.runtime.pages(machine.placement.hugepages),
            settings=needs.settings,
            started=started,
            headers=needs.headers,
        )


def _tester_port(port: PortSettings) -> TesterPort | None:
    return None if port.interface is None else TesterPort(port.interface, port.namespace, port.own_address)


class PodsOfChain(PodStarter):
    """Another runtime, whose pods are put into the list `started` in the order of their start.

    Each pod has the same `limits`. `prefix` stands before the names of pods of a further worker, and of a neighbour.
    """

    def __init__(
        self, runtime: PodRuntime, started: list[Pod], limits: PodLimits = UNLIMITED, prefix: str = ""
    ) -> None:
        self._runtime, self._started, self._limits, self._prefix = runtime, started, limits, prefix

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        limits = {"limits": self._limits} if self._limits else {}  # a runtime of others may not know them
        pod = self._runtime.start(self._prefix + name, attachments, undo, **limits)
        self._started.append(pod)
        return pod

    def start_beside(self, pod: Pod, name: str, undo: ExitStack) -> Pod:
        self._started.append(beside := self._runtime.start_beside(pod, self._prefix + name, undo))
        return beside

    def give_functions(
        self, ports: Mapping[str, Sequence[PhysicalFunction]], undo: ExitStack
    ) -> Mapping[str, Sequence[str]] | None:
        return self._runtime.give_functions(ports, undo)

    def describe(self) -> Mapping[str, Any]:
        return self._runtime.describe()
