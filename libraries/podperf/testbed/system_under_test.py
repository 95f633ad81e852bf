"""The system under test: a chain that is set up. A probe tells whether test frames cross the chain."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.kernel.thread_time import CpuUser, ThreadClock
from podperf.model import Chain, Direction, Entry, NetworkingModel, TrafficProfile, Trial, TrialResult
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import Application
from podperf.testbed.by_worker import as_record, keys_as_record
from podperf.testbed.neighbour import Neighbour
from podperf.testers.base import Ability, Tester

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
        return [pod for pod in self.worker.started if re.fullmatch(r"pod\d+", pod.name)]


@dataclass(frozen=True)
class PartOfChain:
    """The part of a chain that stands on one worker."""

    data_plane: RunningDataPlane
    received_by: Mapping[str, str] = field(default_factory=dict)  # by port: its receiver, in words
    worker: str = ""  # the name of its machine
    cpus: CpuPlan | None = None  # the roles on the worker; None for a path that podperf does not place
    site: WorkerSite | None = None  # None for a path that is on no worker


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
        return [each for part in self.data_planes for each in part.applications]

    @property
    def cpu_plans(self) -> list[CpuPlan]:
        """The roles of the CPUs of each worker, from left to right. Empty for a path that podperf does not place."""
        return [part.cpus for part in self.parts if part.cpus is not None]

    @property
    def counts(self) -> bool:
        """Whether processes of the chain have counters. A description at the end of the test then shows more."""
        return any(each.parts for each in self.data_planes)

    @property
    def further_entries(self) -> Sequence[Mapping[Direction, Entry]]:
        """The `entries` of each further chain, if several chains stand beside each other."""
        return [each for data_plane in self.data_planes for each in data_plane.further_entries]

    @property
    def second_model(self) -> NetworkingModel | None:
        """The second networking model of the draft to which the set-up belongs."""
        return next((each.second_model for each in self.data_planes if each.second_model is not None), None)

    def describe(self) -> Mapping[str, Any]:
        """The data plane's description on each worker. From the second worker on, it stands under the worker's name."""
        beside = {} if self.neighbour is None else {"neighbour": self.neighbour.describe()}
        if limits := self.read_limits():
            beside = {**beside, "limits": limits}
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

    def cpu_clock(self) -> ThreadClock | None:
        """Reads the CPU time of the chain on all workers. None on the bare path, where nothing is under test."""
        users: list[CpuUser] = []
        for place, part in enumerate(self.parts):
            found = part.data_plane.cpu_users
            if found is None:
                return ThreadClock((), f"{self.chain.data_plane} does not tell which threads handle frames")
            users += [replace(each, name=f"{part.worker}: {each.name}") if place else each for each in found]
        return ThreadClock(users) if users else None

    def forwards(self, traffic: TrafficProfile) -> bool:
        """Whether frames cross in each direction. Runs one short trial."""
        result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
        return all(each.received for each in result.directions)

    def check(self) -> None:
        """Raises PodperfError with the cause if a process of the chain or of its neighbour has ended."""
        for data_plane in self.data_planes:
            data_plane.check()
        if self.neighbour is not None:
            self.neighbour.check()

    def probe(self, traffic: TrafficProfile) -> None:
        """Wait until frames cross in each direction, and each frame arrives once.

        Raises PodperfError if that takes longer than 5 s and `link_patience`. Raises Unavailable if frames cross, but
        not in the way of this data plane.
        """
        patience = PROBE_PATIENCE + self.link_patience
        deadline = time.monotonic() + patience
        while True:
            result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
            dead = _dead(result)
            # A switch that floods sends one copy past the chain. The chain's loss would then be invisible.
            flooded = any(each.duplicated > each.received / 2 for each in result.directions)
            if not dead and not flooded:
                break
            self.check()
            if time.monotonic() > deadline and not dead:
                raise PodperfError(
                    f"test frames arrive twice, so not all of them crossed {self.chain}: a switch between tester and "
                    "worker floods frames to a MAC that it has not learnt; cable the ports directly, or configure the "
                    "MACs on the switch"
                )
            if time.monotonic() > deadline:
                corrupted = sum(each.corrupted for each in result.directions)
                detail = f" ({corrupted} arrived corrupted)" if corrupted else ""
                raise PodperfError(
                    f"no test frame crossed {self.chain}, {' and '.join(dead)}, in {patience:.0f} s{detail}: the data "
                    "plane is set up but does not forward"
                )
        for data_plane in self.data_planes:
            if reason := data_plane.not_in_force():
                raise Unavailable(reason)


def addressed(traffic: TrafficProfile, sut: SystemUnderTest) -> TrafficProfile:
    """The same traffic, addressed into this system under test. Of several chains, each gets so many flows.

    Raises Unavailable if the tester cannot send to several chains.
    """
    further = sut.further_entries
    if further:
        sut.tester.facts.demand(Ability.GROUPS)
    return replace(traffic, entries=sut.entries, further_entries=further, flows=traffic.flows * (1 + len(further)))


def _dead(result: TrialResult) -> list[str]:
    """The directions, and of several chains the chain, in which no frame arrived."""
    return [
        f"{each.direction.value}{f' by chain {number}' if each.received_by_group else ''}"
        for each in result.directions
        for number, received in enumerate(each.received_by_group or (each.received,), start=1)
        if not received
    ]
