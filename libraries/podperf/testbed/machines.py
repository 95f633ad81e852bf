"""The machines of a testbed, and what every system under test on them needs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

from podperf.dataplanes.base import Worker, WorkerPort
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost, NetworkNamespace
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import go_back
from podperf.kernel.cpus import Cpus, read_cpus
from podperf.kernel.receive_threads import refuse_unpinnable
from podperf.model import Placement
from podperf.pods import POD_RUNTIMES
from podperf.testbed.access import session_to
from podperf.testbed.isolation import refuse_shared_ports, refuse_shared_worker_ports
from podperf.testbed.placement import nic_node, place
from podperf.testbed.worker_ports import received_by_threads
from podperf.testers import TESTERS
from podperf.testers.base import Site, Tester, TesterKind, TesterPort
from podperf.topology import Engine, PortSettings, Topology, WorkerSettings


@dataclass(frozen=True)
class FurtherWorker:
    """A worker behind the first one, for chains on several."""

    settings: WorkerSettings
    host: Host
    placement: Placement


class Machines:
    """The tester's machine and the worker, and which of their CPUs are whose."""

    imaginary = False  # True: no frame crosses them

    def __init__(
        self,
        topology: Topology,
        placement: Placement,
        host: Host | None = None,
        worker: Host | None = None,
        further: Sequence[FurtherWorker] = (),
    ) -> None:
        """`host` is the machine of the tester, this one by default, and `worker` that of the worker, by default the
        same."""
        self.topology, self.placement = topology, placement
        self.host: Host = host or LocalHost()
        self.worker_host: Host = worker or self.host
        self.further = further
        self.number = 0  # of the worker, counted from the left
        self._lasting: list[Tester] = []  # the tester with ports of its own, shared with `placed` testbeds

    def along(self, workers: int) -> list[Self]:
        """These machines with each of so many workers as the worker, from left to right."""
        found = [self]
        for number, further in enumerate(self.further[: workers - 1], start=1):
            other = copy(self)
            other.topology = replace(self.topology, worker=further.settings)
            other.worker_host, other.placement, other.number = further.host, further.placement, number
            found.append(other)
        return found

    def refuse_shared_ports(self, workers: int | None = None) -> None:
        """PodperfError, one line a reason, unless the existing ports of the tester and of so many workers, or of all,
        are the testbed's own."""
        refuse_shared_ports(self.topology, self.host, ssh=session_to(self.host))
        for each in self.along(1 + len(self.further) if workers is None else workers):
            refuse_shared_worker_ports(each.topology, each.worker_host, session_to(each.worker_host))

    def refuse_unpinnable(self) -> None:
        """PodperfError, with the remedy, where threads of the kernel receive on a worker's ports and cannot be held to
        a CPU."""
        for each in self.along(1 + len(self.further)):
            if received_by_threads(each.topology, each.worker_host):
                refuse_unpinnable(each.worker_host, each.placement.sut[0])

    def tester(
        self, left: PortSettings, right: PortSettings, engine: Engine, engine_remark: str | None = None
    ) -> AbstractContextManager[Tester]:
        """A tester on these ports, or the one that brings its own along."""
        if self.topology.tester.has_ports_of_its_own:
            return nullcontext(self.tester_with_ports())
        ends = _tester_port(left), _tester_port(right)
        site = Site(self.host, self.topology.tester, engine, self.placement.tester, *ends, engine_remark)
        return closing(self._kind.at(site))

    @property
    def _kind(self) -> TesterKind:
        return TESTERS[self.topology.tester.type]

    def tester_with_ports(self) -> Tester:
        """The tester that brings its ports along. It stands until it breaks, or this testbed is closed."""
        if self._lasting and self._lasting[0].broken:
            self.close()
        if not self._lasting:
            settings = self.topology.tester
            self._lasting.append(self._kind.at(Site(self.host, settings, settings.engine, self.placement.tester)))
        return self._lasting[0]

    def close(self) -> None:
        """Give back what outlasts single chains. Safe to repeat."""
        while self._lasting:
            self._lasting.pop().close()

    def go_back(self, workers: int) -> None:
        """Take back the changes that an earlier set-up could not take back, on the tester's machine and on so many
        workers. PodperfError if that fails again: a set-up begins on machines that are as they were before all."""
        for host in dict.fromkeys((self.host, *(each.worker_host for each in self.along(workers)))):
            go_back(host)

    def make_run_directory(self, undo: ExitStack) -> None:
        """The run directory on the worker, until `undo`. Nobody but root has a look at its sockets."""
        self.worker_host.do("mkdir", "-p", "-m", "700", str(RUN_DIRECTORY))
        undo.callback(self.worker_host.do, "rm", "-rf", str(RUN_DIRECTORY))

    def worker(self, namespace: NetworkNamespace, left: WorkerPort, right: WorkerPort, mtu: int) -> Worker:
        """The worker as data planes see it, with these ports in this namespace."""
        pods = POD_RUNTIMES[self.topology.pods.runtime](self.worker_host, namespace)
        return Worker(
            namespace,
            namespace.namespace,
            left,
            right,
            pods,
            mtu,
            self.placement,
            str(RUN_DIRECTORY),
            self.topology.worker.sriov,
            self.number,
        )


def further_workers(topology: Topology, tester: Cpus, hosts: Sequence[Host]) -> list[FurtherWorker]:
    """The further workers of a topology on these machines, each with its own CPUs placed; `tester` are the tester's."""
    found = []
    for settings, host in zip(topology.further_workers, hosts, strict=True):
        alone = replace(topology, worker=settings)
        found.append(FurtherWorker(settings, host, place(alone, tester, read_cpus(host), nic_node(host, settings))))
    return found


def _tester_port(port: PortSettings) -> TesterPort | None:
    return None if port.interface is None else TesterPort(port.interface, port.namespace)
