"""A chain that stands, and whether test frames cross it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podperf.dataplanes.base import DataPlane, Perishable
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.model import Chain, Direction, Entry, Traffic, Trial
from podperf.testers.base import Tester

PROBE_LOAD, PROBE_DURATION, PROBE_PATIENCE = 1000.0, 0.02, 5.0  # the load is the least tester.maximum_load


@dataclass(frozen=True)
class SystemUnderTest:
    """A chain that stands, with the tester plugged into it."""

    chain: Chain
    tester: Tester
    data_plane: DataPlane
    entries: Mapping[Direction, Entry]
    port_hosts: Mapping[str, Host]  # the host on which each port's interface is seen, by the interface's name
    tester_ports: Mapping[str, Host] = field(default_factory=dict)  # the same at the other ends of these ports' cables
    received_by: Mapping[str, str] = field(default_factory=dict)  # who does what arriving frames cause, in words
    link_patience: float = 0.0  # seconds that links may take to come up which cannot be seen from here

    def forwards(self, traffic: Traffic) -> bool:
        """Whether frames cross in each direction, by one short trial."""
        result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
        return all(each.received for each in result.directions)

    def check(self) -> None:
        """PodperfError, with the cause, when a process that the chain consists of has ended."""
        if isinstance(self.data_plane, Perishable):
            self.data_plane.check()

    def probe(self, traffic: Traffic) -> None:
        """Wait until frames cross in each direction. PodperfError when none does within 5 s and what links may take."""
        patience = PROBE_PATIENCE + self.link_patience
        deadline = time.monotonic() + patience
        while True:
            result = self.tester.measure(Trial(traffic, PROBE_LOAD, PROBE_DURATION))
            dead = [each.direction.value for each in result.directions if not each.received]
            if not dead:
                return
            self.check()
            if time.monotonic() > deadline:
                corrupted = sum(each.corrupted for each in result.directions)
                detail = f" ({corrupted} arrived corrupted)" if corrupted else ""
                raise PodperfError(
                    f"no test frame crossed {self.chain}, {' and '.join(dead)}, in {patience:.0f} s{detail}: the data "
                    "plane is set up but does not forward"
                )


def addressed(traffic: Traffic, sut: SystemUnderTest) -> Traffic:
    """The same traffic, addressed into this system under test."""
    return replace(traffic, entries=sut.entries)
