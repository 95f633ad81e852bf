"""The system under test: a chain that is set up. A probe tells whether test frames cross the chain."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from podperf.addressing import IPV4_ADDRESSES
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import network_of
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.kernel.full_tables import CONNECTIONS, NEIGHBOURS, NEIGHBOURS_6, FullTable, Place, read_tables
from podperf.kernel.memory import MappedPages, pages_of
from podperf.kernel.thread_time import CpuUser, ThreadClock
from podperf.model import (
    CABLE,
    MIN_FRAME_BYTES,
    AddressedTraffic,
    Chain,
    Changes,
    ChangeUnderLoad,
    Direction,
    Entry,
    FrameSize,
    NetworkingModel,
    PageSize,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import Application
from podperf.testbed.joins import describe_join
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.neighbour import Neighbour
from podperf.testers.base import Ability, Tester
from podperf.testers.ends import EndHosts, no_ends

FURTHER = "further_workers"
PROGRAM_AT_END = "carries frames between the tester's interface and the pod's port in user space"

Fact = TypeVar("Fact")


def keys_as_record(by_worker: Mapping[str, Mapping[str, Fact]]) -> dict[str, Fact]:
    """The facts of all workers. The key of a fact of the next workers begins with the worker's name."""
    (_, first), *others = by_worker.items()
    return {**first, **{f"{name}: {key}": fact for name, facts in others for key, fact in facts.items()}}


def as_record(by_worker: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of the first worker, and under `further_workers` those of the next workers by their names."""
    (_, first), *others = by_worker.items()
    return {**first, **({FURTHER: dict(others)} if others else {})}


PROBE_LOAD = 1000.0  # frames/s and direction: the lowest tester.maximum_load that a topology may name
PROBE_DURATION, PROBE_PATIENCE = 0.02, 5.0  # seconds


@dataclass(frozen=True)
class WorkerSite:
    """The place of a part of a chain: the machine of its worker, and the network of the worker's ports there."""

    machine: Host
    worker: Worker

    @property
    def ports(self) -> Sequence[str]:
        """The interfaces of the worker's left and right port."""
        return self.worker.left.interface, self.worker.right.interface

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods of the chain, from left to right. A data plane may have started other pods for its own purposes."""
        return [pod for pod in self.worker.started if re.fullmatch(r"(worker\d+-)?pod\d+", pod.name)]


@dataclass(frozen=True)
class PartOfChain:
    """The part of a chain that stands on one worker."""

    data_plane: RunningDataPlane
    received_by: Mapping[str, str] = field(default_factory=dict)  # by port: its receiver, in words
    worker: str = ""  # the name of its machine
    cpus: CpuPlan | None = None  # the roles on the worker; None for a path that podperf does not place
    site: WorkerSite | None = None  # None for a path that is on no worker

    @classmethod
    def on(
        cls,
        machine: WorkerMachine,
        worker: Worker,
        running: RunningDataPlane,
        received_by: Mapping[str, str] | None = None,
    ) -> PartOfChain:
        """The part that a data plane has set up on a worker of this machine."""
        cpus = worker.cpus.with_own([pod.own_cpus for pod in worker.started])
        return cls(running, received_by or {}, machine.name, cpus, WorkerSite(machine.host, worker))


@dataclass(frozen=True)
class PathPort:
    """An interface on the path of the frames."""

    interface: str
    host: Host  # the host that shows the interface
    received_by: str | None


@dataclass(frozen=True)
class SystemUnderTest:
    """A chain that is set up between the tester's ports."""

    chain: Chain
    tester: Tester
    parts: Sequence[PartOfChain]  # one on each worker, from left to right
    entries: Mapping[Direction, Entry]
    # By the name of a tester port: the host that shows this interface. Only for ports that existed before the run.
    tester_ports: Mapping[str, Host] = field(default_factory=dict)
    link_patience: float = 0.0  # seconds that links may still take to come up, if podperf cannot see these links
    # Seconds that the data planes took to set the chain up between the ports; 0: nothing was set up.
    set_up_seconds: float = 0.0
    neighbour: Neighbour | None = None  # competes with the chain on purpose
    end_pods: Mapping[str, Pod] = field(default_factory=dict)  # by side: the pods in which the tester's program is
    ends: EndHosts = no_ends  # for application traffic; it raises Unavailable if the ports can have no addresses

    @property
    def ports(self) -> Mapping[str, PathPort]:
        """The ports of the workers by their names. From the second worker on, the worker's name stands before it."""
        ports = {
            part.worker: {
                name: PathPort(name, host, part.received_by.get(name)) for name, host in part.data_plane.ports.items()
            }
            for part in self.parts
        }
        return keys_as_record(ports)

    @property
    def data_planes(self) -> list[RunningDataPlane]:
        """The data planes of all workers, from left to right."""
        return [part.data_plane for part in self.parts]

    @property
    def applications(self) -> list[Application]:
        """The programs that forward in the pods. Empty if the kernel forwards there."""
        return [application for part in self.data_planes for application in part.applications]

    @property
    def programs_at_ends(self) -> list[str]:
        """The sides at which a program of the pod carries frames (see DataPlane.program_at_ends)."""
        programs = {application.name for application in self.applications}
        return [side for side, pod in self.end_pods.items() if pod.name in programs]

    @property
    def cpu_plans(self) -> list[CpuPlan]:
        """The roles of the CPUs of each worker, from left to right. Empty for a path that podperf does not place."""
        return [part.cpus for part in self.parts if part.cpus is not None]

    @property
    def counts(self) -> bool:
        """Whether processes of the chain have counters. A description at the end of the test then shows more."""
        return any(data_plane.parts for data_plane in self.data_planes)

    @property
    def changes(self) -> Changes:
        """The changes that can be made while frames cross: those of the cluster that has the tester's pods, and those
        of data plane and join on the first worker that offers them."""
        found: dict[str, ChangeUnderLoad] = dict(self.tester.facts.changes)
        for part in reversed(self.parts):
            ports = (part.site.worker.left, part.site.worker.right) if part.site else ()
            for offered in (*(port.changes for port in ports), part.data_plane.changes):
                found |= offered
        return found

    @property
    def further_entries(self) -> Sequence[Mapping[Direction, Entry]]:
        """The `entries` of each further chain, if several chains stand beside each other."""
        return [further_entry for data_plane in self.data_planes for further_entry in data_plane.further_entries]

    @property
    def second_model(self) -> NetworkingModel | None:
        """The second networking model of the draft to which the set-up belongs."""
        return next(
            (data_plane.second_model for data_plane in self.data_planes if data_plane.second_model is not None), None
        )

    def describe(self) -> Mapping[str, Any]:
        """The data plane's description on each worker. From the second worker on, it stands under the worker's name."""
        beside = {} if self.neighbour is None else {"neighbour": self.neighbour.describe()}
        if limits := self.read_limits():
            beside = {**beside, "limits": limits}
        if self.chain.join != CABLE:
            sites = {part.worker: part.site.worker for part in self.parts if part.site is not None}
            beside = {**beside, "join": describe_join(self.chain.join, sites)}
        if self.end_pods:
            programs = self.programs_at_ends
            ends = {side: _end_as_record(pod, side in programs) for side, pod in self.end_pods.items()}
            beside = {**beside, "ends": ends}
        return {**as_record({part.worker: part.data_plane.describe() for part in self.parts}), **beside}

    def read_limits(self) -> Mapping[str, Mapping[str, Any]]:
        """By pod: its limits, and what its applications took so far. Empty if the pods have no limits.

        Raises PodperfError if the limits of a pod hold for none of its applications.
        """
        sites = [part.site for part in self.parts if part.site is not None and part.site.worker.cpus.allocation.limits]
        found = {pod.name: pod.read_limits() for site in sites for pod in site.pods}
        for name, each in found.items():
            if not each.get("processes"):
                raise PodperfError(f"the limits of {name} hold for none of its processes")
        return found

    def read_tables(self) -> list[FullTable]:
        """The counters of tables of limited size, on the workers and on the tester's nodes, so far."""
        places, tracks = [*self.tester.facts.tables], DATA_PLANES[self.chain.data_plane].tracks_connections
        for part in self.parts:
            if part.site is None:
                continue
            pods = part.site.pods if tracks else ()
            places.append(Place(part.worker, part.site.machine, (NEIGHBOURS, NEIGHBOURS_6)))
            places.append(Place(part.worker, part.site.worker.host, (CONNECTIONS,)))
            places += [Place(f"{pod.name} of {part.worker}", pod.host, (CONNECTIONS,)) for pod in pods]
        return read_tables(places)

    def cpu_clock(self) -> ThreadClock | None:
        """Reads the CPU time of the chain on all workers. None on the bare path, where nothing is under test."""
        users: list[CpuUser] = []
        for place, part in enumerate(self.parts):
            found = part.data_plane.cpu_users
            if found is None:
                return ThreadClock((), f"{self.chain.data_plane} does not tell which threads handle frames")
            users += [replace(each, name=f"{part.worker}: {each.name}") if place else each for each in found]
        return ThreadClock(users) if users else None

    def forwards(self, traffic: AddressedTraffic) -> bool:
        """Whether frames cross in each direction. Runs one short trial."""
        result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
        return all(direction.received for direction in result.directions)

    def check(self) -> None:
        """Raises PodperfError with the cause if a process of the chain or of its neighbour has ended."""
        for data_plane in self.data_planes:
            data_plane.check()
        if self.neighbour is not None:
            self.neighbour.check()

    def probe(self, traffic: AddressedTraffic) -> None:
        """Wait until frames cross in each direction, and each frame arrives once.

        Raises PodperfError if that takes longer than 5 s and `link_patience`. Raises Unavailable if frames cross, but
        not in the way of this data plane.
        """
        patience = PROBE_PATIENCE + self.link_patience
        self._await_frames(traffic, patience)
        if len(set(traffic.frame.sequence)) > 1:  # the small frames of a mix may have hidden that no large one crosses
            self._await_frames(_of_size(traffic, traffic.frame.largest), patience, corrupted_cross=True)
        for data_plane in self.data_planes:
            if reason := data_plane.not_in_force():
                raise Unavailable(reason)

    def _await_frames(self, traffic: AddressedTraffic, patience: float, *, corrupted_cross: bool = False) -> None:
        """Wait until frames cross in each direction, once each. `corrupted_cross`: corrupted ones are enough."""
        deadline, asked = time.monotonic() + patience, set[str]()
        while True:
            result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
            dead = _dead(result, corrupted_cross)
            asked.update(result.unanswered)
            # A switch that floods sends one copy past the chain. The chain's loss would then be invisible.
            flooded = any(direction.duplicated > direction.received / 2 for direction in result.directions)
            if not dead and not flooded:
                return
            self.check()
            if time.monotonic() > deadline and not dead:
                raise PodperfError(
                    f"test frames arrive twice, so not all of them crossed {self.chain}: a switch between tester and "
                    "worker floods frames to a MAC that it has not learnt; cable the ports directly, or configure the "
                    "MACs on the switch"
                )
            if time.monotonic() > deadline:
                corrupted = sum(direction.corrupted for direction in result.directions)
                detail = f" ({corrupted} arrived corrupted)" if corrupted else ""
                raise PodperfError(
                    f"no test frame crossed {self.chain}, {' and '.join(dead)}, in {patience:.0f} s{detail}: "
                    f"{_unanswered(asked) or self._why_dead(traffic)}"
                )

    def _why_dead(self, traffic: AddressedTraffic) -> str:
        """The likely cause if no frame of this traffic crosses. Tries the smallest frame."""
        smallest, needed = traffic.profile.headers.smallest_frame, traffic.profile.headers.mtu(traffic.frame.largest)
        small = _of_size(traffic, max(smallest, MIN_FRAME_BYTES))
        if small.frame.largest < traffic.frame.largest and self.forwards(small):
            return (
                f"frames of {small.frame.name} cross, and those of {traffic.frame.name} do not; an MTU on the way is "
                f"probably below the {needed} bytes that these need, and test frames must not be fragmented; raise "
                "this MTU, or choose smaller frames"
            )
        return "the data plane is set up but does not forward"


def _end_as_record(pod: Pod, has_program: bool) -> Mapping[str, Any]:
    network = network_of(pod.host, IPV4_ADDRESSES)
    program = {"program": PROGRAM_AT_END} if has_program else {}
    return {"pod": pod.name, **program, **{key: network[key] for key in ("links", "neighbours")}}


def addressed(profile: TrafficProfile, sut: SystemUnderTest) -> AddressedTraffic:
    """Traffic of this profile, addressed into this system under test.

    Raises Unavailable if the tester cannot send to several chains.
    """
    further = sut.further_entries
    if further:
        sut.tester.facts.demand(Ability.GROUPS)
    return AddressedTraffic(profile, sut.entries, further)


def _unanswered(asked: Collection[str]) -> str:
    """The cause, if neighbours asked for these addresses and the tester has none of them. Empty without questions."""
    if not asked:
        return ""
    return (
        f"{', '.join(sorted(asked))}, which is no address of the tester; name it in `own_address` of this port in the "
        "topology, or give the system under test a static neighbour"
    )


def _of_size(traffic: AddressedTraffic, size: int) -> AddressedTraffic:
    return replace(traffic, profile=replace(traffic.profile, frame=FrameSize.parse(size)))


def _dead(result: TrialResult, corrupted_cross: bool = False) -> list[str]:
    """The directions, and of several chains the chain, in which no frame arrived. `corrupted_cross`: not even one that
    is corrupted."""
    return [
        f"{direction.direction.value}{f' by chain {number}' if direction.received_by_group else ''}"
        for direction in result.directions
        for number, received in enumerate(direction.received_by_group or (direction.received,), start=1)
        if not received and not (corrupted_cross and direction.corrupted)
    ]


def memory_of(sut: SystemUnderTest) -> Mapping[str, MappedPages]:
    """The memory of each process that handles frames, by the names of its part: `pod1`, `Open vSwitch`.

    Empty if the kernel handles them, which has no pages of its own in user space.
    """
    found: dict[str, MappedPages] = {}
    for part in sut.data_planes:
        for user in part.cpu_users or ():
            for thread in user.threads()[:1]:  # all threads of a process share its memory
                if (pages := pages_of(user.host, thread)) != MappedPages():
                    found[user.name] = pages
    return found


def refuse_other_pages(found: Mapping[str, MappedPages], applications: Collection[str], size: PageSize) -> None:
    """Raises Unavailable if an application has no hugepages of this size, or if a process has some of another size."""
    for name, memory in found.items():
        others = sorted(each // 1024 for each in memory.hugepages_kib if each != size * 1024)
        if others:
            has = ", ".join(
                f"{memory.hugepages_kib[other * 1024] // 1024} MiB in pages of {other} MiB" for other in others
            )
            raise Unavailable(f"{name} should have its memory in {size.words}, and has {has}")
        if size and name in applications and not memory.hugepages_kib:
            raise Unavailable(f"{name} should have its memory in {size.words}, and has no hugepages")
