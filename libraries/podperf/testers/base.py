"""The tester seam: whatever sends test frames on two ports and counts what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from podperf.hosts.base import Host
from podperf.model import Trial, TrialResult
from podperf.testers.faults import Fault, FaultKind
from podperf.topology import Engine, TesterSettings

ACHIEVED_LOAD_FLOOR = 0.99  # a trial that sent less than this share of the intended load is invalid
TESTER_LIMIT_SHARE = 0.95  # a rate above this share of the tester's maximum is the tester's, not the SUT's
PACED_SHARE = 0.95  # of what a tester sends as fast as it can, it can send at a steady pace
UNPACED = 0.0  # a Trial.load: as fast as the tester can send


@dataclass(frozen=True)
class TesterLimits:
    """What the tester itself can do with one kind of traffic, found on a bare path or known from the link.

    `maximum_load` is the highest load (frames/s, per direction) that it delivers and receives by itself;
    `own_loss_ratio` is the least that it lost in any trial at half of that and below, None where nobody knows, and with
    95 % confidence its own loss is at most `own_loss_bound`. `source` is "calibration on the bare path", or what took
    its place. `faults` are what it does wrong by itself: figures that rest on it are no figures of the system under
    test.
    With `held` no more than this load is allowed, so that no trial is sent as fast as the tester can.
    """

    maximum_load: float
    own_loss_ratio: float | None
    source: str
    held: bool = False
    own_loss_bound: float | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def kinds_of_faults(self) -> tuple[FaultKind, ...]:
        """Which faults it has, without their figures."""
        return tuple(each.kind for each in self.faults)

    @property
    def doubts(self) -> Mapping[str, str]:
        """Why no threshold can be held against these figures."""
        return {metric: self.doubt for each in self.faults for metric in each.spoils}

    @property
    def doubt(self) -> str:
        """All faults in words; empty for a sound tester."""
        return "; ".join(each.sentence for each in self.faults)

    def cannot_tell(self, loss_ratio: float) -> bool:
        """True when a load with no more loss than this cannot be found: of no loss for any fault, else for a loss of
        the tester's own that is as large.
        """
        own = sum(each.looks_like_loss for each in self.faults)
        return bool(self.faults) and (loss_ratio == 0 or loss_ratio <= own)

    def held_to(self, load: float | None, source: str = "tester.maximum_load of the topology") -> TesterLimits:
        """These limits where no more than this load is allowed, by this `source`; None allows all."""
        if load is None:
            return self
        if load > self.maximum_load:  # which the calibration found, and a trial may go beyond
            return replace(self, held=True)
        return replace(self, maximum_load=load, source=source, held=True)


def limited_by_tester(rate: float, loss_ratio: float, maximum_load: float) -> bool:
    """True when the SUT may do more than this rate: it is near the tester's maximum, or all that was sent came back."""
    return rate >= TESTER_LIMIT_SHARE * maximum_load or loss_ratio <= 1 - ACHIEVED_LOAD_FLOOR


@dataclass(frozen=True)
class PortFacts:
    """One port of a tester that is ready."""

    mac: str
    link_up: bool | None = None  # None: the tester does not say, because the port is an interface of the kernel


@dataclass(frozen=True)
class TesterFacts:
    """The facts about a tester that is ready, on which other parts of podperf act.

    `copies`: the tester receives copies of the frames that arrive at an interface, and the kernel goes on with the
    frames themselves. `fallback`: another engine, whose frames may arrive where those of `engine` do not.
    """

    name: str
    version: str
    engine: Engine  # the one that sends, never `auto`
    left: PortFacts
    right: PortFacts
    copies: bool
    server: str | None = None  # address and port of the server that it is, if it is one
    engine_remark: str | None = None  # why it is not the engine that was asked for
    fallback: Engine | None = None

    @property
    def ports(self) -> Mapping[str, PortFacts]:
        """Both ports by their sides."""
        return {"left": self.left, "right": self.right}


class Tester(Protocol):
    """One tester with its two ports. `shortest_trial` is what it needs, in seconds, to know a rate to a percent."""

    shortest_trial: ClassVar[float]

    @property
    def facts(self) -> TesterFacts:
        """Name, engine and ports, as read from the tester."""

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial, count, and have the result `judged`: a trial that the tester could not deliver is `invalid`.

        Raises PodperfError when the tester itself is broken (gone, port down, refused).
        """

    @property
    def broken(self) -> bool:
        """True when it will not measure any more, and another one has to be made."""

    def describe(self) -> Mapping[str, Any]:
        """Everything that the record says of it, as read from the tester; JSON-serialisable. Nobody acts on it."""

    def close(self) -> None:
        """Stop the tester and give back its ports. Safe to call twice."""


@dataclass(frozen=True)
class TesterPort:
    """An interface of the tester's machine, in one of its network namespaces where given."""

    interface: str
    namespace: str | None = None


@dataclass(frozen=True)
class Site:
    """Where a tester is to stand: its machine, its CPUs, and its ports unless it has ports of its own."""

    host: Host
    settings: TesterSettings
    engine: Engine  # the settings' own, or another one to try
    cpus: tuple[int, ...]
    left: TesterPort | None = None
    right: TesterPort | None = None
    engine_remark: str | None = None  # why the engine is not the settings' own


class TesterKind(Protocol):
    """A kind of tester, as the class that implements it."""

    def at(self, site: Site) -> Tester:
        """The tester at this site, ready to measure. PodperfError, with what to do, when it cannot start."""
