"""The tester's limits, and the bare path's figures by which each test is judged. A run measures both once."""

from __future__ import annotations

import time

from podperf.dataplanes.wire import Wire
from podperf.methods.trials import Patience, await_quietness
from podperf.metrics import RATIO, Measured, Metrics, Need, rates
from podperf.model import PORTS, AddressedTraffic, Ends, TrafficProfile, line_rate
from podperf.records import TestRecord
from podperf.run.session import Session
from podperf.testbed.testbed import Testbed
from podperf.testers.base import Tester, TesterLimits
from podperf.testers.calibration import calibrate, calibrate_sending, check_clock
from podperf.testers.faults import Fault
from podperf.thresholds import ThresholdVerdict, judge
from podperf.topology import Engine

NOT_BELIEVED = "NDR is not judged, findings are inconclusive, and each row says what its other figures are worth"
NO_LATENCIES = "no row shows a latency"


class KnownLimits:
    """The limits that are known so far. A calibration waits for a quiet machine while `patience` lasts."""

    def __init__(self, session: Session, patience: Patience) -> None:
        self.clock = time.monotonic  # the reference for the tester's clock
        self._session, self._patience = session, patience
        self._found: dict[tuple[Testbed, TrafficProfile, Engine, Ends], TesterLimits] = {}
        self._clocks: dict[Engine, Fault | None] = {}  # the fault of each tester's clock, which is checked once

    def on_link(
        self, link: float | None, traffic: AddressedTraffic, engine: Engine, testbed: Testbed, ends: Ends = PORTS
    ) -> TesterLimits:
        """The limits with this traffic on a link of `link` bit/s, which loses what is above its rate. None: the link
        sets no limit. A testbed may have a tester of its own."""
        limits = self._with(traffic, engine, testbed, ends)
        if link and (rate := line_rate(link, traffic.frame)) < limits.maximum_load:
            return limits.held_to(rate, "the line rate of the link")
        return limits

    def _with(self, traffic: AddressedTraffic, engine: Engine, testbed: Testbed, ends: Ends) -> TesterLimits:
        """The limits with this traffic. A tester with a fault is tried again in each test; while the fault is the same,
        its first figures stay."""
        key = testbed, traffic.profile, engine, ends
        known = self._found.get(key)
        if known is None or known.faults:
            await_quietness(self._session.equipment.quietness, self._patience, self._session.progress.waiting)
            limits = self._calibrated(traffic, engine, testbed, ends).held_to(
                self._session.topology.tester.maximum_load
            )
            if known is None or limits.kinds_of_faults != known.kinds_of_faults:
                self._found[key] = limits
                if limits.faults:
                    follows = NOT_BELIEVED if limits.doubt_of_rates else NO_LATENCIES
                    self._session.progress.note(f"{limits.doubt}. {follows}")
        return self._found[key]

    def _calibrated(self, traffic: AddressedTraffic, engine: Engine, testbed: Testbed, ends: Ends) -> TesterLimits:
        settings = self._session.topology.tester
        if settings.kind.has_ports_of_its_own:
            tester = testbed.tester_with_ports()
            known = self._known_faults(tester, traffic, engine)
            return calibrate_sending(tester, traffic, most=settings.maximum_load, known=known)
        with testbed.bare_path(traffic.frame, engine, ends=ends) as bare:
            return calibrate(bare.tester, traffic, known=self._known_faults(bare.tester, traffic, engine))

    def _known_faults(self, tester: Tester, traffic: AddressedTraffic, engine: Engine) -> tuple[Fault, ...]:
        if engine not in self._clocks:
            self._clocks[engine] = check_clock(tester, traffic, self.clock)
        fault = self._clocks[engine]
        return () if fault is None else (fault,)


class Baselines:
    """The bare path's figures from tests of this run, by the profile of their traffic and by the ends."""

    def __init__(self) -> None:
        self._measured: dict[tuple[TrafficProfile, Ends], Metrics] = {}
        self._records: dict[tuple[TrafficProfile, Ends], str] = {}  # the id of the record with these figures

    def judge(self, record: TestRecord, badly_delivered: str = "") -> ThresholdVerdict:
        """The verdict on the figures of a test by the testbed's thresholds. The record gets it, too.

        `badly_delivered` is the sentence of `podperf.records.badly_delivered` about the test's trials, or empty.
        """
        assert record.chain is not None and record.traffic is not None
        profile = record.traffic.profile, record.chain.ends
        if any(threshold.unit == RATIO for threshold in record.thresholds):
            record.baseline = self._records.get(profile)
        record.verdict = judge(
            record.thresholds,
            record.traffic.frame,
            record.metrics,
            baseline_of(record.limits, self._measured.get(profile, {})),
            noise=record.why_noisy(),
            doubts=record.limits.doubts if record.limits else {},
            badly_delivered=badly_delivered,
        )
        if record.chain.data_plane == Wire.name:  # a long measurement is a better baseline than the calibration
            self._measured[profile] = record.metrics
            self._records[profile] = record.id
        return record.verdict


def baseline_of(limits: TesterLimits | None, measured: Metrics) -> Metrics | None:
    """The bare path's figures: those that a test has `measured`, or otherwise the limits of the calibration.

    A measured rate below the calibrated limit counts as that limit, because a noisy machine may make a baseline too
    low. A rate above the load that the link or the topology allows counts as that load.
    """
    if limits is None:
        return measured or None
    limit = Measured(limits.maximum_load, lower_bound=True)
    # The calibration lets a little loss pass, so it tells nothing about a rate without loss.
    calibrated = [rate.name for rate in rates() if Need.NO_LOSS not in rate.needs]
    found: dict[str, Measured] = {**dict.fromkeys(calibrated, limit), **measured}
    known = (each for each in calibrated if not (found[each].unfinished or found[each].upper_bound))
    found |= {each: limit for each in known if found[each].value < limit.value}
    if limits.held:
        found |= {rate.name: limit for rate in rates() if rate.name in found and found[rate.name].value > limit.value}
    return found
