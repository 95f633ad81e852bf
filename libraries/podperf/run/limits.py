"""The tester's limits with each kind of traffic. The first test that needs them measures them for the whole run."""

from __future__ import annotations

import time

from podperf.methods.trials import Patience, await_quietness
from podperf.model import Direction, FrameSize, TrafficProfile, line_rate
from podperf.run.session import Session
from podperf.testers.base import Tester, TesterLimits
from podperf.testers.calibration import calibrate, calibrate_sending, check_clock
from podperf.testers.faults import Fault
from podperf.topology import Engine

NOT_BELIEVED = "NDR is not judged, findings are inconclusive, and each row says what its other figures are worth"

TrafficKind = tuple[FrameSize, tuple[Direction, ...], int]  # the tester's limits depend on these


def kind_of(traffic: TrafficProfile) -> TrafficKind:
    """The kind of this traffic: frame size, directions and number of flows."""
    return traffic.frame, traffic.directions, traffic.flows


class KnownLimits:
    """The limits that are known so far. A calibration waits for a quiet machine while `patience` lasts."""

    def __init__(self, session: Session, patience: Patience) -> None:
        self.clock = time.monotonic  # the reference for the tester's clock
        self._session, self._patience = session, patience
        self._found: dict[tuple[TrafficKind, Engine], TesterLimits] = {}
        self._clocks: dict[Engine, Fault | None] = {}  # the fault of each tester's clock, which is checked once

    def on_link(self, link: float | None, traffic: TrafficProfile, engine: Engine) -> TesterLimits:
        """The limits with this traffic on a link of `link` bit/s. None: the link sets no limit.

        Frames above the link's rate are no loss of the system under test, so the link limits the load.
        """
        limits = self._with(traffic, engine)
        if link and (rate := line_rate(link, traffic.frame)) < limits.maximum_load:
            return limits.held_to(rate, "the line rate of the link")
        return limits

    def _with(self, traffic: TrafficProfile, engine: Engine) -> TesterLimits:
        """The limits with this traffic. A tester with a fault is tried again in each test.

        While the fault is the same, its first figures stay, so that all rows show the same figures.
        """
        kind = kind_of(traffic)
        known = self._found.get((kind, engine))
        if known is None or known.faults:
            await_quietness(self._session.equipment.quietness, self._patience, self._session.progress.waiting)
            limits = self._calibrated(traffic, engine).held_to(self._session.topology.tester.maximum_load)
            if known is None or limits.kinds_of_faults != known.kinds_of_faults:
                self._found[kind, engine] = limits
                if limits.faults:
                    self._session.progress.note(f"{limits.doubt}. {NOT_BELIEVED}")
        return self._found[kind, engine]

    def _calibrated(self, traffic: TrafficProfile, engine: Engine) -> TesterLimits:
        testbed, settings = self._session.equipment.testbed, self._session.topology.tester
        if settings.kind.has_ports_of_its_own:
            tester = testbed.tester_with_ports()
            known = self._known_faults(tester, traffic, engine)
            return calibrate_sending(tester, traffic, most=settings.maximum_load, known=known)
        with testbed.bare_path(traffic.frame, engine) as bare:
            return calibrate(bare.tester, traffic, known=self._known_faults(bare.tester, traffic, engine))

    def _known_faults(self, tester: Tester, traffic: TrafficProfile, engine: Engine) -> tuple[Fault, ...]:
        if engine not in self._clocks:
            self._clocks[engine] = check_clock(tester, traffic, self.clock)
        fault = self._clocks[engine]
        return () if fault is None else (fault,)
