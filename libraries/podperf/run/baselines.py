"""The bare path's figures of a run. The figures of each test are judged by them."""

from __future__ import annotations

from podperf.dataplanes.wire import Wire
from podperf.metrics import RATIO, Measured, Metrics, Need, rates
from podperf.records import TestRecord
from podperf.run.limits import TrafficKind, kind_of
from podperf.testers.base import TesterLimits
from podperf.verdicts.thresholds import ThresholdVerdict, judge


class Baselines:
    """The bare path's figures from tests of this run, by the kind of traffic."""

    def __init__(self) -> None:
        self._measured: dict[TrafficKind, Metrics] = {}
        self._records: dict[TrafficKind, str] = {}  # the id of the record with these figures

    def judge(self, record: TestRecord) -> ThresholdVerdict:
        """The verdict on the figures of a test by the testbed's thresholds. The record gets it, too."""
        assert record.chain is not None and record.traffic is not None
        kind = kind_of(record.traffic)
        if any(each.unit == RATIO for each in record.thresholds):
            record.baseline = self._records.get(kind)
        record.verdict = judge(
            record.thresholds,
            record.traffic.frame,
            record.metrics,
            baseline_of(record.limits, self._measured.get(kind, {})),
            noise=record.why_noisy(),
            doubts=record.limits.doubts if record.limits else {},
        )
        if record.chain.data_plane == Wire.name:  # a long measurement is a better baseline than the calibration
            self._measured[kind] = record.metrics
            self._records[kind] = record.id
        return record.verdict


def baseline_of(limits: TesterLimits | None, measured: Metrics) -> Metrics | None:
    """The bare path's figures: those that a test has `measured`, or otherwise the limits of the calibration.

    A measured rate below the calibrated limit counts as that limit. A noisy machine may make a baseline too low, and
    all ratios would then be too high. A rate above the load that the link or the topology allows counts as that load,
    because the path under test gets no more.
    """
    if limits is None:
        return measured or None
    limit = Measured(limits.maximum_load, lower_bound=True)
    # The calibration lets a little loss pass, so it tells nothing about a rate without loss.
    calibrated = [each.name for each in rates() if Need.NO_LOSS not in each.needs]
    found: dict[str, Measured] = {**dict.fromkeys(calibrated, limit), **measured}
    known = (each for each in calibrated if not (found[each].unfinished or found[each].upper_bound))
    found |= {each: limit for each in known if found[each].value < limit.value}
    if limits.held:
        found |= {each.name: limit for each in rates() if each.name in found and found[each.name].value > limit.value}
    return found
