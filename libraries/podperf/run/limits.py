"""The limits of the tester with each kind of traffic: found when a test first needs them, and kept for the run."""

from __future__ import annotations

import time

from podperf.methods.trials import Patience, await_quietness
from podperf.model import Direction, FrameSize, Traffic, line_rate
from podperf.run.session import Session
from podperf.testers.base import TesterLimits
from podperf.testers.calibration import calibrate, calibrate_sending, check_clock
from podperf.testers.faults import Fault
from podperf.topology import Engine

NOT_BELIEVED = "NDR is not judged, findings are inconclusive, and each row says what its other figures are worth"

TrafficKind = tuple[FrameSize, tuple[Direction, ...], int]  # what the tester's limits depend on: all but the addresses


def kind_of(traffic: Traffic) -> TrafficKind:
    """The kind of this traffic: frame size, directions and number of flows."""
    return traffic.frame, traffic.directions, traffic.flows


class KnownLimits:
    """The limits that are known by now. A calibration waits for a quiet machine as long as there is `patience`."""

    def __init__(self, session: Session, patience: Patience) -> None:
        self.clock = time.monotonic  # what the tester's clock is held against
        self._session, self._patience = session, patience
        self._found: dict[tuple[TrafficKind, Engine], TesterLimits] = {}
        self._clocks: dict[Engine, Fault | None] = {}  # what is wrong with a tester's clock; it is looked at once

    def on_link(self, link: float | None, traffic: Traffic, engine: Engine) -> TesterLimits:
        """The limits with such traffic on a link of so many bit/s; None: the link has no limit of its own.

        Frames that do not fit on a link are no loss of the system under test.
        """
        limits = self._with(traffic, engine)
        if link and (rate := line_rate(link, traffic.frame)) < limits.maximum_load:
            return limits.held_to(rate, "the line rate of the link")
        return limits

    def _with(self, traffic: Traffic, engine: Engine) -> TesterLimits:
        """The limits with such traffic. A tester that lost or spoilt frames is tried again in each test.

        As long as it is the same fault, the first figures stay, so that all rows say the same.
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

    def _calibrated(self, traffic: Traffic, engine: Engine) -> TesterLimits:
        testbed, settings = self._session.equipment.testbed, self._session.topology.tester
        if settings.has_ports_of_its_own:
            return calibrate_sending(testbed.tester_with_ports(), traffic, most=settings.maximum_load)
        with testbed.bare_path(traffic.frame, engine) as bare:
            if engine not in self._clocks:
                self._clocks[engine] = check_clock(bare.tester, traffic, self.clock)
            fault = self._clocks[engine]
            return calibrate(bare.tester, traffic, known=() if fault is None else (fault,))
