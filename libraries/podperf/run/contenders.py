"""The chains that one test compares by turns. The record describes each one when it is set up for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from podperf.kernel.pages import MappedPages
from podperf.model import PageSize, TrafficProfile
from podperf.run.interfaces import interfaces_of, link_speed
from podperf.run.limits import KnownLimits
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.memory import memory_of, refuse_other_pages
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import TesterLimits

Build = Callable[[], AbstractContextManager[SystemUnderTest]]
"""Sets a chain up, and takes it down again at the end of the context."""


@dataclass
class Contenders:
    """The contenders of one test by their names, and the tester's limits with each of them.

    Without `known`, the limits stay unknown: on a counted machine, no rate is judged.
    """

    test: TestInProgress
    known: KnownLimits | None
    limits: dict[str, TesterLimits] = field(default_factory=dict)
    cpus_of_neighbours: dict[str, list[float]] = field(default_factory=dict)
    """By contender with a neighbour: the CPUs that the neighbour has kept busy, each time that the chain stood."""

    limits_of_pods: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """By contender whose pods have limits: what each pod took of them, each time that the chain stood."""

    limits_of_neighbours: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """By contender whose neighbour has limits: what the neighbour took of them, each time that the chain stood."""

    memory: dict[str, Mapping[str, MappedPages]] = field(default_factory=dict)
    """By contender: the pages of each process that handles frames, read when the chain stood for the first time."""

    links: dict[str, float | None] = field(default_factory=dict)
    """By contender: the speed of the slowest port in bit/s. None if no port has one."""

    shortest_trial: float = 0.0
    """Seconds of the shortest trial that the tester can do well."""

    _described: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """The reasons not to believe the tester, in the order of their appearance."""
        return "; ".join(dict.fromkeys(each.doubt for each in self.limits.values() if each.doubt))

    @contextmanager
    def standing(
        self, name: str, traffic: TrafficProfile, build: Build, pages: PageSize | None = None
    ) -> Iterator[SystemUnderTest]:
        """This contender, while the context lasts. Frames of `traffic` have crossed it.

        Raises Unavailable if its memory should be in `pages`, and is in others.
        """
        with build() as sut:
            there = addressed(traffic, sut)
            sut.probe(there)
            if name not in self._described:
                self._describe(name, traffic, sut)
                if pages is not None:
                    refuse_other_pages(self.memory[name], [each.name for each in sut.applications], pages)
            yield sut
            if sut.neighbour is not None:
                self.cpus_of_neighbours.setdefault(name, []).append(sut.neighbour.cpus_taken())
                if taken := sut.neighbour.read_limits():
                    self.limits_of_neighbours.setdefault(name, []).append(taken)
            if taken := sut.read_limits():
                self.limits_of_pods.setdefault(name, []).append(taken)

    def _describe(self, name: str, traffic: TrafficProfile, sut: SystemUnderTest) -> None:
        record = self.test.record
        self._described[name] = sut.describe()
        self.memory[name] = memory_of(sut)
        record.data_plane, record.tester = self._described, sut.tester.describe()
        interfaces = interfaces_of(sut)
        self.links[name], self.shortest_trial = link_speed(interfaces), sut.tester.shortest_trial
        named = {f"{name}: {interface}": each for interface, each in interfaces.items()}
        record.interfaces = {**record.interfaces, **named}
        if self.known is not None:
            self.limits[name] = self.known.on_link(self.links[name], traffic, sut.tester.facts.engine)
