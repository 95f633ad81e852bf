"""A chain that stands, and whether test frames cross it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podperf.dataplanes.base import RunningDataPlane
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.kernel.thread_time import CpuUser, ThreadClock
from podperf.model import Chain, Direction, Entry, NetworkingModel, TrafficProfile, Trial
from podperf.testers.base import Tester

PROBE_LOAD, PROBE_DURATION, PROBE_PATIENCE = 1000.0, 0.02, 5.0  # the load is the least tester.maximum_load


@dataclass(frozen=True)
class PartOfChain:
    """The part of a chain that stands on one worker."""

    data_plane: RunningDataPlane
    received_by: Mapping[str, str] = field(default_factory=dict)  # by port: who does what arriving frames cause
    worker: str = ""  # the name of its machine


@dataclass(frozen=True)
class PathPort:
    """An interface on the path of the frames."""

    interface: str
    host: Host  # on which it is seen
    received_by: str | None


@dataclass(frozen=True)
class SystemUnderTest:
    """A chain that stands, with the tester plugged into it."""

    chain: Chain
    tester: Tester
    parts: Sequence[PartOfChain]  # one on each worker, from left to right
    entries: Mapping[Direction, Entry]
    # The host on which each interface at the tester's end of a cable is seen, by the interface's name.
    tester_ports: Mapping[str, Host] = field(default_factory=dict)
    link_patience: float = 0.0  # seconds that links may take to come up which cannot be seen from here

    @property
    def ports(self) -> Mapping[str, PathPort]:
        """The ports of the workers by their names. Behind the first worker, the name begins with the worker's."""
        return {
            f"{part.worker}: {name}" if place else name: PathPort(name, host, part.received_by.get(name))
            for place, part in enumerate(self.parts)
            for name, host in part.data_plane.ports.items()
        }

    @property
    def data_planes(self) -> list[RunningDataPlane]:
        """Those of all workers, from left to right."""
        return [part.data_plane for part in self.parts]

    @property
    def counts(self) -> bool:
        """Whether processes of the chain count what they do, so that a description at the end says more."""
        return any(each.parts for each in self.data_planes)

    @property
    def second_model(self) -> NetworkingModel | None:
        """The second networking model of the draft to which the set-up belongs."""
        return next((each.second_model for each in self.data_planes if each.second_model is not None), None)

    def describe(self) -> Mapping[str, Any]:
        """What the data plane says of itself, on each worker. A record has those behind the first by their names."""
        first, *others = self.parts
        behind = {part.worker: part.data_plane.describe() for part in others}
        return {**first.data_plane.describe(), **({"further_workers": behind} if behind else {})}

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
        """Whether frames cross in each direction, by one short trial."""
        result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
        return all(each.received for each in result.directions)

    def check(self) -> None:
        """PodperfError, with the cause, when a process that the chain consists of has ended."""
        for data_plane in self.data_planes:
            data_plane.check()

    def probe(self, traffic: TrafficProfile) -> None:
        """Wait until frames cross in each direction, and that once. PodperfError when they do not within 5 s and what
        links may take. Unavailable when they cross in another way than the data plane is named after."""
        patience = PROBE_PATIENCE + self.link_patience
        deadline = time.monotonic() + patience
        while True:
            result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
            dead = [each.direction.value for each in result.directions if not each.received]
            # Of frames that a switch floods one copy comes around the chain, and no loss of the chain would ever show.
            flooded = any(each.duplicated > each.received / 2 for each in result.directions)
            if not dead and not flooded:
                break
            self.check()
            if time.monotonic() > deadline and not dead:
                raise PodperfError(
                    f"test frames arrive twice, so that not all of them came through {self.chain}: a switch between "
                    "tester and worker floods what is sent to a MAC that it has not learnt; cable the ports directly, "
                    "or give it the MACs"
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
    """The same traffic, addressed into this system under test."""
    return replace(traffic, entries=sut.entries)
