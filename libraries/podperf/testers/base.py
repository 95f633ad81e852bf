"""The tester seam: a tester sends test frames on two ports and counts the frames that come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.model import Trial, TrialResult
from podperf.testers.faults import Fault, FaultKind
from podperf.topology import Engine, TesterSettings, TesterType

ACHIEVED_LOAD_FLOOR = 0.99  # a trial that sent less than this share of the intended load is invalid
TESTER_LIMIT_SHARE = 0.95  # above this share of the tester's maximum, the tester limits the rate and not the SUT
PACED_SHARE = 0.95  # a tester can send this share of its fastest rate at a steady pace
UNPACED = 0.0  # a Trial.load: as fast as the tester can send


@dataclass(frozen=True)
class TesterLimits:
    """The tester's own limits with one kind of traffic, measured on a bare path or known from the link.

    `maximum_load` is the highest load (frames/s per direction) that the tester itself delivers and receives.
    `own_loss_ratio` is the lowest loss ratio of the trials at half of this load and below; None if unknown. With 95 %
    confidence, the tester's own loss is at most `own_loss_bound`. `source` is "calibration on the bare path", or names
    its replacement. `faults` are the tester's own errors. Figures that depend on them do not describe the system under
    test.
    With `held`, no trial may have more than this load. So no trial is unpaced.
    """

    maximum_load: float
    own_loss_ratio: float | None
    source: str
    held: bool = False
    own_loss_bound: float | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def kinds_of_faults(self) -> tuple[FaultKind, ...]:
        """The kinds of the tester's faults, without their figures."""
        return tuple(each.kind for each in self.faults)

    @property
    def doubts(self) -> Mapping[str, str]:
        """By metric: the reason why no threshold can judge its figure."""
        return {metric: self.doubt for each in self.faults for metric in each.spoils}

    @property
    def doubt(self) -> str:
        """All faults in words. Empty for a tester without a fault."""
        return "; ".join(each.sentence for each in self.faults)

    def cannot_tell(self, loss_ratio: float) -> bool:
        """True if the tester cannot find the highest load with at most this loss ratio.

        With a ratio of 0, any fault is enough. With a larger ratio, the tester's own loss must be at least this ratio.
        """
        own = sum(each.looks_like_loss for each in self.faults)
        return bool(self.faults) and (loss_ratio == 0 or loss_ratio <= own)

    def held_to(self, load: float | None, source: str = "tester.maximum_load of the topology") -> TesterLimits:
        """These limits with at most this load, which comes from `source`. None: no further limit."""
        if load is None:
            return self
        if load > self.maximum_load:  # the calibration found a lower limit, but a trial may exceed that
            return replace(self, held=True)
        return replace(self, maximum_load=load, source=source, held=True)


def limited_by_tester(rate: float, loss_ratio: float, maximum_load: float) -> bool:
    """True if the SUT may forward more: the rate is near the tester's maximum, or nearly all frames came back."""
    return rate >= TESTER_LIMIT_SHARE * maximum_load or loss_ratio <= 1 - ACHIEVED_LOAD_FLOOR


@dataclass(frozen=True)
class PortFacts:
    """One port of a tester that is ready."""

    mac: str
    link_up: bool | None = None  # None: the tester does not say, because the port is an interface of the kernel


class Ability(StrEnum):
    """What some methods need, and not every tester can do."""

    BURSTS = "sends a given number of frames back to back"
    GROUPS = "sends to several chains beside each other, and counts the frames of each"
    OVERLOAD = "lowers its load within a trial, and tells which frame was lost last"


@dataclass(frozen=True)
class TesterFacts:
    """Facts about a ready tester. Other parts of podperf act on these facts.

    `copies`: the tester receives copies of the frames that arrive at an interface, and the kernel handles the frames
    themselves. `fallback`: another engine; its frames may arrive on interfaces that drop the frames of `engine`.
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
