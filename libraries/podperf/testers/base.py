"""The tester seam: a tester sends test frames on two ports and counts the frames that come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from podperf.addressing import mac_of
from podperf.errors import Unavailable
from podperf.frames import Headers
from podperf.hosts.base import Host
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.full_tables import Place
from podperf.model import Changes, Trial, TrialResult
from podperf.testers.ends import EndHosts, no_ends
from podperf.testers.faults import Fault, FaultKind
from podperf.topology import Engine, TesterSettings, TesterType

ACHIEVED_LOAD_FLOOR = 0.99  # a trial that sent less than this share of the intended load is invalid
TESTER_LIMIT_SHARE = 0.95  # above this share of the tester's maximum, the tester limits the rate and not the SUT
PACED_SHARE = 0.95  # a tester can send this share of its fastest rate at a steady pace
DESTINATION = "the destination of test frames"  # in messages
UNPACED = 0.0  # a Trial.load: as fast as the tester can send


@dataclass(frozen=True)
class OwnLatency:
    """The median latency of the bare path at one load: the tester's own part of any latency at about this load."""

    load: float  # frames/s and direction
    p50_ns: float


@dataclass(frozen=True)
class TesterLimits:
    """The tester's own limits with one kind of traffic, measured on a bare path or known from the link.

    `maximum_load` is the highest load (frames/s per direction) that the tester itself delivers and receives.
    `own_loss_ratio` is the lowest loss ratio of the trials at half of this load and below; None if unknown. With 95 %
    confidence, the tester's own loss is at most `own_loss_bound`. `source` is "calibration on the bare path", or names
    its replacement. `faults` are the tester's own errors. Figures that depend on them do not describe the system under
    test. `own_latencies` are those of the bare path, where there is one.
    With `held`, no trial may have more than this load. So no trial is unpaced.
    """

    maximum_load: float
    own_loss_ratio: float | None
    source: str
    held: bool = False
    own_loss_bound: float | None = None
    faults: tuple[Fault, ...] = ()
    own_latencies: tuple[OwnLatency, ...] = ()

    @property
    def kinds_of_faults(self) -> tuple[FaultKind, ...]:
        """The kinds of the tester's faults, without their figures."""
        return tuple(fault.kind for fault in self.faults)

    @property
    def delivers_badly(self) -> bool:
        """True if the tester itself corrupts or copies frames, so that the system under test is not to blame for it."""
        return bool({FaultKind.CORRUPTS, FaultKind.SENDS_TWICE} & set(self.kinds_of_faults))

    @property
    def doubts(self) -> Mapping[str, str]:
        """By metric: the reason why no threshold can judge its figure."""
        return {metric: self.doubt for fault in self.faults for metric in fault.spoils}

    @property
    def doubt(self) -> str:
        """All faults in words. Empty for a tester without a fault."""
        return _words(self.faults)

    @property
    def doubt_of_rates(self) -> str:
        """The faults that a rate depends on, in words. Wrong stamps of frames change no rate."""
        return _words(self._faults_of_rates)

    @property
    def doubt_of_latencies(self) -> str:
        """The reason why latencies of this tester are not believed. Empty if they are."""
        return _words(fault for fault in self.faults if fault.kind is FaultKind.STAMPS)

    @property
    def _faults_of_rates(self) -> list[Fault]:
        return [fault for fault in self.faults if fault.kind is not FaultKind.STAMPS]

    def cannot_tell(self, loss_ratio: float) -> bool:
        """True if the tester cannot find the highest load with at most this loss ratio.

        With a ratio of 0, any fault that a rate depends on is enough. With a larger ratio, the tester's own loss must
        be at least this ratio.
        """
        faults = self._faults_of_rates
        own = sum(fault.looks_like_loss for fault in faults)
        return bool(faults) and (loss_ratio == 0 or loss_ratio <= own)

    def held_to(self, load: float | None, source: str = "tester.maximum_load of the topology") -> TesterLimits:
        """These limits with at most this load, which comes from `source`. None: no further limit."""
        if load is None:
            return self
        if load > self.maximum_load:  # the calibration found a lower limit, but a trial may exceed that
            return replace(self, held=True)
        return replace(self, maximum_load=load, source=source, held=True)


def _words(faults: Iterable[Fault]) -> str:
    return "; ".join(fault.sentence for fault in faults)


def limited_by_tester(rate: float, loss_ratio: float, maximum_load: float) -> bool:
    """True if the SUT may forward more: the rate is near the tester's maximum, or nearly all frames came back."""
    return rate >= TESTER_LIMIT_SHARE * maximum_load or loss_ratio <= 1 - ACHIEVED_LOAD_FLOOR


@dataclass(frozen=True)
class PortFacts:
    """One port of a tester that is ready."""

    mac: str
    link_up: bool | None = None  # None: the tester does not say, because the port is an interface of the kernel

    def __post_init__(self) -> None:
        mac_of(self.mac, "a port of the tester")


class Ability(StrEnum):
    """What some methods need, and not every tester can do."""

    BURSTS = "sends a given number of frames back to back"
    GROUPS = "sends to several chains beside each other, and counts the frames of each"
    OVERLOAD = "lowers its load within a trial, and tells which frame was lost last"


class Pairs(Protocol):
    """Pairs of ports that send at the same time, each from its left port to its right one."""

    def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
        """Measure a trial by `pairs` pairs at the same time. Returns the result of each. Starts missing pairs first."""


PairsOfTester = Callable[[Callable[[str], None]], AbstractContextManager[Pairs]]
"""Makes pairs for the time of the context. They tell a function in words how far they have come."""


def no_pairs(tell: Callable[[str], None]) -> AbstractContextManager[Pairs]:
    """Raises Unavailable."""
    raise Unavailable("many pairs are pods of a cluster (topologies/kubernetes.yaml)")


@dataclass(frozen=True)
class TesterFacts:
    """Facts about a ready tester. Other parts of podperf act on these facts.

    `copies`: the tester receives copies of the frames that arrive at an interface, and the kernel handles the frames
    themselves. `fallback`: another engine; its frames may arrive on interfaces that drop the frames of `engine`.
    `reads_cpu_time`: the network under test works in the time of the tester's own processes, and a result of trains has
    this time. `returns_frames`: the two ends have different clocks, and the far one can send frames back. `changes` are
    those that the network between its ports offers under load, if the tester itself is part of a cluster. `ends` are
    for application traffic between its ports, if these have addresses of their own. `pairs` are further ports beside
    its own two. `tables` are those that the frames fill in networks that are no worker's.
    """

    name: str
    version: str
    engine: Engine  # the engine that sends; never `auto`
    left: PortFacts
    right: PortFacts
    copies: bool
    server: str | None = None  # address and port, if the tester is a server
    engine_remark: str | None = None  # the reason for another engine than the requested one
    fallback: Engine | None = None
    abilities: frozenset[Ability] = frozenset()
    reads_cpu_time: bool = False
    returns_frames: bool = False
    changes: Changes = field(default_factory=dict)
    ends: EndHosts = no_ends
    pairs: PairsOfTester = no_pairs
    tables: Sequence[Place] = ()

    def demand(self, ability: Ability) -> None:
        """Raises Unavailable if the tester lacks this ability."""
        if ability not in self.abilities:
            raise Unavailable(f"this method needs a tester that {ability}, and {self.name} is none")

    @property
    def ports(self) -> Mapping[str, PortFacts]:
        """Both ports by their sides."""
        return {"left": self.left, "right": self.right}


class Tester(Protocol):
    """One tester with its two ports. In trials of `shortest_trial` seconds or more, its rates are exact to 1 %."""

    shortest_trial: ClassVar[float]

    @property
    def facts(self) -> TesterFacts:
        """Name, engine and ports, as read from the tester."""

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial, count, and return the `judged` result, which is `invalid` if the tester could not deliver it.

        The `trial` of the result is what the tester sent. A tester without trains sends each frame by itself.
        Raises PodperfError if the tester itself is broken (gone, port down, refused).
        """

    def neighbour(self, side: str, address: str, headers: Headers) -> str:
        """The MAC of the neighbour with this address at the `left` or `right` port, which the tester asks for.

        The question has the VLAN tags of these headers. Raises PodperfError if nobody answers, and Unavailable if this
        tester does not ask.
        """

    @property
    def broken(self) -> bool:
        """True if this tester cannot measure any more. Its user must make a new one."""

    def describe(self) -> Mapping[str, Any]:
        """The tester's own description for the record, in JSON types. No code may decide by it."""

    def close(self) -> None:
        """Stop the tester and give back its ports. Safe to call twice."""


@dataclass(frozen=True)
class TesterPort:
    """An interface of the tester's machine, in the network namespace `namespace` if that is given."""

    interface: str
    namespace: str | None = None
    address: str | None = None  # for which it answers routers, beside those of its flows

    def __str__(self) -> str:
        """`eth1`, or `eth1@lab` in a namespace."""
        return f"{self.interface}@{self.namespace}" if self.namespace else self.interface

    def seen_from(self, machine: Host) -> Host:
        """The host that has the interface: its namespace on this machine, or the machine."""
        return NetworkNamespace(self.namespace, machine) if self.namespace else machine


@dataclass(frozen=True)
class Site:
    """The place of a tester: its machine, its CPUs, and its ports. (Some testers have ports of their own.)"""

    host: Host
    settings: TesterSettings
    engine: Engine  # the engine of the settings, or another engine to try
    cpus: tuple[int, ...]
    left: TesterPort | None = None
    right: TesterPort | None = None
    engine_remark: str | None = None  # the reason for another engine than that of the settings


class TesterKind(TesterType, Protocol):
    """A class of testers."""

    def at(self, site: Site) -> Tester:
        """The tester at this site, ready to measure. Raises PodperfError with a remedy if the tester cannot start."""


class TrialSource(Protocol):
    """The source of a method's trials: a tester with fixed traffic, or a simulation.

    Every result is valid. The source repeats invalid trials, or raises TrialNotDelivered.
    """

    maximum_load: float  # frames/s and direction; a method must not ask for more

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial at this load (frames/s and direction; UNPACED: all the tester can) for this many seconds."""
