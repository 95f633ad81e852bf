"""The testbed of a run: builds the system under test of one test, and takes it down again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

from podperf.allocation import USUAL_ALLOCATION, PodAllocation
from podperf.cpu_plan import CpuPlan, plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling, DataPlane, PodQueues
from podperf.dataplanes.polling_pods import memories
from podperf.documents.settings import usual_settings
from podperf.errors import PodperfError, Unavailable
from podperf.frames import PLAIN, Headers
from podperf.hosts.base import Host
from podperf.kernel import hugepages
from podperf.kernel.cpus import read_cpus
from podperf.kubernetes.settings import pods_of_tester
from podperf.model import BOTH_DIRECTIONS, CABLE, PORTS, Chain, Direction, End, Ends, FrameSize, PageSize
from podperf.pods.base import PodProgram
from podperf.pods.forwarders import application_named
from podperf.pods.forwarders.base import ORDINARY_MTU, Forwarder
from podperf.testbed import existing_ports, new_ports
from podperf.testbed.joins import JOINS
from podperf.testbed.machines import ChainNeeds, Machines, WorkerMachine, engine_for
from podperf.testbed.neighbour import refuse_neighbour, start_neighbour
from podperf.testbed.placement import nic_node
from podperf.testbed.scenarios import Placed, Scenario, place_scenario
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.worker_ports import received_by_threads
from podperf.topology import Engine, Topology, WrongSetting


class Testbed(Machines):
    """Builds systems under test on the machines of a topology, one after the other. Each one is removed completely."""

    def __init__(self, topology: Topology, workers: Sequence[WorkerMachine], tester_host: Host | None = None) -> None:
        super().__init__(topology, workers, tester_host)
        self._there = set[Chain]()
        self._with_pods: dict[str, Self] = {}  # the testbeds with other pods, by their settings

    def demand(self, chain: Chain) -> type[DataPlane]:
        """The driver of this chain's data plane. Raises Unavailable with the reason if this testbed lacks something."""
        kind = DATA_PLANES.get(chain.data_plane)
        if kind is None:
            raise PodperfError(f"there is no data plane {chain.data_plane!r}; known: {', '.join(DATA_PLANES)}")
        if self.topology.external != (kind.cabling is Cabling.EXISTING):
            raise Unavailable(
                "the topology names existing ports: only the data plane `external` is measured"
                if self.topology.external
                else "the topology names no existing ports for the tester, so there is no black box to measure"
            )
        if kind.cabling is Cabling.BACK_TO_BACK and self.topology.tester.kind.has_ports_of_its_own:
            raise Unavailable("the ports of this testbed's tester cannot be plugged into each other by software")
        self._demand_ends(chain, kind)
        if chain.pods < self._least_pods(chain, kind):
            raise PodperfError(f"{chain.data_plane} needs {kind.least_pods} or more pods, not {chain.pods}")
        if chain.chains > 1 and not kind.several_chains:
            raise PodperfError(f"{chain.data_plane} has no several chains beside each other")
        if chain.common_pod and not kind.common_pod:
            raise PodperfError(f"{chain.data_plane} has no pod that belongs to several chains")
        forwarder = chain.forwarder or kind.forwarders[0]
        if forwarder not in kind.forwarders:
            known = ", ".join(kind.forwarders)
            raise PodperfError(f"pods of {chain.data_plane} cannot forward by {forwarder!r}; known: {known}")
        application = application_named(forwarder)
        if self.topology.counts_instructions and (kind.switch_has_cpus or application is not None):
            raise Unavailable(
                f"{chain.data_plane} is not judged on a counted machine: its processes poll, and share the only CPU "
                "with the tester, so that frames wait for them and are lost"
            )
        self._demand_workers(chain, kind)
        if chain not in self._there:
            self._demand_drivers(chain, kind)
            # Nobody else changes a counted machine, so a chain that it can have once, it can have again.
            self._there |= {chain} if self.topology.counts_instructions else set()
        return kind

    @staticmethod
    def _least_pods(chain: Chain, kind: type[DataPlane]) -> int:
        """The least number of pods between the ends of this chain, on each worker. A pod at an end is one more."""
        return 0 if chain.ends.in_pods else kind.least_pods

    def _demand_ends(self, chain: Chain, kind: type[DataPlane]) -> None:
        """Raises Unavailable with the reason if this testbed has no such ends."""
        if not chain.ends.in_pods:
            return
        if self.topology.existing_ports:
            raise Unavailable(
                "the tester's program stands in a pod only where podperf makes its ports, as with topologies/local.yaml"
            )
        if kind.no_end_in_pod:
            raise Unavailable(f"no end of {chain.data_plane} is in a pod: {kind.no_end_in_pod}")
        if chain.ends.in_one_pod:
            self._demand_containers(chain, kind)
        if reason := self.runtime.unavailable(self.workers[0].host):
            raise Unavailable(reason)

    @staticmethod
    def _demand_containers(chain: Chain, kind: type[DataPlane]) -> None:
        """Raises an error with the reason if no two containers of one pod can be the ends of this chain."""
        if set(chain.ends.by_side.values()) != {End.CONTAINER} or chain.pods or chain.workers > 1:
            raise PodperfError(
                f"{chain}: both ends must be containers of one pod, with no other pod and no second worker between them"
            )
        if kind.no_end_in_container:
            raise Unavailable(f"{chain.data_plane} joins no containers of one pod: {kind.no_end_in_container}")

    def _demand_drivers(self, chain: Chain, kind: type[DataPlane]) -> None:
        """Raises Unavailable with the reason if a worker of this chain lacks something."""
        application = application_named(chain.forwarder or kind.forwarders[0])
        for worker in self.workers[: chain.workers]:
            reason = kind.unavailable(worker.host)
            if reason is None and chain.pods:
                reason = self.runtime.unavailable(worker.host)
            if reason is None and application is not None:
                reason = self.runtime.lacks_program(
                    application.missing, worker.host, drives_cards=kind.uses_virtual_functions
                )
            if reason is not None:
                raise Unavailable(reason)

    def _demand_workers(self, chain: Chain, kind: type[DataPlane]) -> None:
        """Raises Unavailable if the testbed has too few workers for this chain."""
        if chain.workers == 1 and chain.join != CABLE:
            raise PodperfError(f"{chain.join} joins two or more workers, and this chain is on one")
        if chain.workers == 1:
            return
        offered = len(self.workers)
        if chain.workers > offered:
            raise Unavailable(f"{chain} needs {chain.workers} workers, and the topology names {offered}")
        if kind.cabling is not Cabling.WORKER:
            raise PodperfError(f"{chain.data_plane} is on no worker of the testbed, and so not on {chain.workers}")
        if chain.chains > 1:
            raise PodperfError(f"several chains stand beside each other on one worker, not on {chain.workers}")
        if chain.parts[-1].pods < self._least_pods(chain, kind):
            raise PodperfError(f"{chain.data_plane} needs {kind.least_pods} or more pods on each worker, not {chain}")
        if chain.join not in JOINS:
            raise PodperfError(f"nothing joins workers by {chain.join!r}; known: {', '.join(JOINS)}")
        if JOINS[chain.join].between_routers and not kind.routes:
            raise Unavailable(f"{JOINS[chain.join].words} joins workers that route, and {chain.data_plane} does not")
        if chain.join != CABLE and kind.takes_tags:
            raise Unavailable(
                f"{chain.data_plane} takes the ports of a worker, and {chain.join} gives an interface in their place"
            )

    def cpu_plans(self, chain: Chain) -> list[CpuPlan]:
        """The usual roles of the CPUs of each worker, from left to right."""
        with_switch = DATA_PLANES[chain.data_plane].switch_has_cpus
        workers = zip(self.workers, chain.parts, strict=False)
        return [plan_cpus(each.placement, pods_with_cpus(part), with_switch=with_switch) for each, part in workers]

    def place_scenario(self, scenario: Scenario, chain: Chain) -> Placed:
        """CPUs of the worker for a published placement. Raises Unavailable if the worker has too few CPUs or nodes."""
        if chain.workers > 1:
            raise Unavailable(f"a published placement is that of one worker, and there are {chain.workers}")
        worker, *_ = self.workers
        cpus, usual = read_cpus(worker.host), worker.placement
        node = nic_node(worker.host, worker.settings)
        kind = DATA_PLANES[chain.data_plane]
        placed = place_scenario(
            scenario,
            pods_with_cpus(chain),
            usual,
            cpus,
            nic_node=cpus.node(min(usual.sut)) if node is None else node,
            taken=() if usual.apart else usual.tester,
            with_switch=kind.switch_has_cpus,
        )
        if placed.shared and _application(chain) is None:
            raise Unavailable("the pods run no process whose CPUs could be shared: the kernel forwards for them")
        self._demand_allocation(scenario.allocation, chain, worker.host)
        if placed.neighbour is not None:
            refuse_neighbour(worker.host, placed.neighbour)
        return placed

    def _demand_allocation(self, allocation: PodAllocation, chain: Chain, host: Host) -> None:
        """Raises Unavailable if the pods of this chain cannot have this allocation on the worker."""
        if allocation == USUAL_ALLOCATION:
            return
        application = _application(chain)
        if application is None:
            raise Unavailable("the pods run no process whose CPU time, memory or queues could be allocated")
        reason = application.refused(allocation) or self._too_few_queues(allocation.cpus, chain, host)
        if reason is None and allocation.limits and chain.ends.in_pods:
            reason = "pods at the ends of a chain have no limits of CPU time and memory"
        if reason is None and allocation.limits:
            reason = self.runtime.cannot_limit(host, allocation.limits)
        if reason is not None:
            raise Unavailable(reason)

    def _too_few_queues(self, cpus: int, chain: Chain, host: Host) -> str | None:
        """The reason why pods of this chain cannot poll on this number of CPUs, or None."""
        kind = DATA_PLANES[chain.data_plane].pod_queues
        if cpus == 1 or kind is PodQueues.BY_SWITCH:
            return None
        wanted = f"pods of {chain.data_plane} cannot poll on {cpus} CPUs: "
        if kind is PodQueues.ONE or chain.pods > 1:
            return f"{wanted}{kind.value}"
        if received_by_threads(self.workers[0].settings, host):
            return f"{wanted}the worker's ports are veths, and only a NIC divides flows among queues (RSS)"
        return None

    def in_pages(self, size: PageSize) -> Self:
        """This testbed. All memory of its chains that can be in hugepages is in pages of this size."""
        found = copy(self)
        found.workers = [
            replace(worker, placement=replace(worker.placement, hugepages=size)) for worker in self.workers
        ]
        return found

    def with_pods(self, changes: Mapping[str, Any], *, alone: bool = False) -> Self:
        """This testbed, with other two pods as the tester's ports, which differ in these settings. Without any, itself.

        The pods run until they break or until this testbed is closed, as they may be wanted again. With `alone`, all
        other pods of the tester are deleted: they could have the CPUs that the next pods ask for. Raises Unavailable if
        the tester's ports are no pods, and PodperfError for settings that contradict each other.
        """
        wanted = self._with_other_pods(changes) if changes else self
        for other in (self, *self._with_pods.values()) if alone else ():
            if other is not wanted:
                other._close_tester()
        return wanted

    def _with_other_pods(self, changes: Mapping[str, Any]) -> Self:
        pods = pods_of_tester(self.topology)
        if pods is None:
            raise Unavailable(f"settings of the tester's pods need a cluster, and {self.topology.path} names none")
        try:
            settings = replace(self.topology.tester, kind=pods.varied(changes))
        except WrongSetting as error:
            raise PodperfError(f"tester.{'.'.join(map(str, error.key))}: allowed: {error.allowed}") from error
        wanted = json.dumps(changes, sort_keys=True)
        if wanted not in self._with_pods:
            topology = replace(self.topology, tester=settings)
            self._with_pods[wanted] = type(self)(topology, self.workers, self.tester_host)
        return self._with_pods[wanted]

    def close(self) -> None:
        """See Machines. Also closes the testbeds with other pods."""
        for other in self._with_pods.values():
            other.close()
        super().close()

    def demand_pages(self, chain: Chain, size: PageSize) -> None:
        """Raises Unavailable with the remedy if the worker cannot give this chain pages of this size now."""
        if chain.workers > 1:
            raise Unavailable(f"pages of a chosen size are those of one worker, and there are {chain.workers}")
        worker, *_ = self.workers
        if size and not worker.settings.hugepages:
            raise Unavailable(f"{self.topology.path}: {worker.settings.key}.hugepages allows no hugepages: auto does")
        if size and self.runtime.pages(size) != size:
            raise Unavailable(
                f"{self.topology.path}: pods.settings.hugepages does not ask the cluster for {size.words}"
            )
        if size:
            hugepages.try_to_reserve(worker.host, size, memories(DATA_PLANES[chain.data_plane].switch_memory, chain))

    @contextmanager
    def build(
        self,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        cpus: Sequence[CpuPlan] = (),
        first: Callable[[ExitStack], None] = lambda _: None,
        headers: Headers | None = None,
    ) -> Iterator[SystemUnderTest]:
        """Set the chain up between the tester's ports, for frames up to this size. It is removed when the context ends.

        `directions` are the directions of the frames, by default those of the topology. `cpus` are the roles of the
        CPUs on each worker, from left to right; by default the usual ones. `first` changes the machines before the
        chain is set up, and registers the undo of its changes. `headers` are those of the frames, by default those of
        the topology.
        """
        headers = headers or self.topology.traffic.headers
        data_plane = self.demand(chain)()
        plans = cpus or self.cpu_plans(chain)
        program = None if _application(chain) is None else PodProgram(data_plane.program_capabilities)
        needs = ChainNeeds(
            _mtu(frame, headers),
            program,
            self.topology.data_planes.get(chain.data_plane) or usual_settings(data_plane.settings),
            headers,
            data_plane.takes_tags or not (chain.pods or data_plane.routes),
            chain.join,
        )
        ways = directions or self.topology.traffic.directions
        if self.topology.counts_instructions and engine_for("auto", needs.mtu) != "auto":
            raise Unavailable("a counted machine measures one frame in flight, and the tester's packet rings cannot")
        if self.topology.counts_instructions:  # bridges of several workers learn by frames in both directions
            ways = tuple(dict.fromkeys((*ways, *BOTH_DIRECTIONS)))
        self.go_back(chain.workers)
        with ExitStack() as undo:
            first(undo)
            if data_plane.cabling is Cabling.BACK_TO_BACK:
                yield undo.enter_context(self.bare_path(frame, name="tester", ends=chain.ends))
            elif data_plane.cabling is Cabling.EXISTING:
                yield existing_ports.black_box(self, chain, headers, undo)
            elif self.topology.existing_ports:
                yield existing_ports.set_up(self, data_plane, chain, plans, needs, ways, undo)
            else:
                yield new_ports.set_up(self, data_plane, chain, plans, needs, ways, undo)

    @contextmanager
    def build_placed(
        self,
        placed: Placed,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        first: Callable[[ExitStack], None] = lambda _: None,
        headers: Headers | None = None,
    ) -> Iterator[SystemUnderTest]:
        """Set the chain up, with switch and pods on the CPUs of a scenario, and its neighbour beside them.

        If the kernel forwards in the pods, the pages of the scenario are taken from it, and nothing uses them.
        """
        testbed = self if placed.pages is None else self.in_pages(placed.pages)
        with testbed.build(chain, frame, directions, placed.cpus, first, headers) as sut, ExitStack() as undo:
            if placed.shared:
                for application in sut.applications:
                    application.allow(placed.shared)
            if placed.pages and not sut.applications:
                wanted = memories(DATA_PLANES[chain.data_plane].switch_memory, chain)
                hugepages.reserve(self.workers[0].host, placed.pages, wanted, undo)
            if placed.neighbour is None:
                yield sut
            else:
                yield replace(sut, neighbour=start_neighbour(self.workers[0].host, placed.neighbour, undo))

    @contextmanager
    def bare_path(
        self, frame: FrameSize, engine: Engine | None = None, name: str = "bare", ends: Ends = PORTS
    ) -> Iterator[SystemUnderTest]:
        """Two such ends of the tester plugged into each other. This is possible while a chain is set up.

        A trial on the bare path shows the tester's own limits.
        """
        with ExitStack() as undo:
            yield new_ports.bare_path(self, _mtu(frame), engine or self.topology.tester.engine, name, ends, undo)


def _application(chain: Chain) -> Forwarder | None:
    """The application of the chain's pods. None if the kernel forwards in them."""
    return application_named(chain.forwarder or DATA_PLANES[chain.data_plane].forwarders[0])


def pods_with_cpus(chain: Chain) -> int:
    """The number of pods with CPUs of their own on one worker: those of the chain, and pods at an end with a program of
    their own."""
    return chain.all_pods + (chain.ends.number_in_pods if DATA_PLANES[chain.data_plane].program_at_ends else 0)


def _mtu(frame: FrameSize, headers: Headers = PLAIN) -> int:
    return max(ORDINARY_MTU, headers.mtu(frame.largest))
