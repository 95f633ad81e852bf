"""The methods beside MRR and the search, on a chain that is set up. Each result goes into the record of the test."""

from __future__ import annotations

from dataclasses import dataclass

from podperf.methods import FurtherSettings, further_settings_by
from podperf.methods.loss_curve import LossCurve, LossCurveResult
from podperf.metrics import METRICS
from podperf.run.measurement import Measurement
from podperf.verdicts.thresholds import ThresholdVerdict

LOWEST_LOAD = 1000.0  # frames/s and direction, as that of the search


@dataclass(frozen=True)
class FurtherMethods:
    """The methods with the settings of the topology's preset. On a counted machine, each raises Unavailable."""

    measurement: Measurement

    @property
    def settings(self) -> FurtherSettings:
        """The settings by the topology's preset."""
        return further_settings_by(self.measurement.settings)

    def loss_curve(self) -> LossCurveResult:
        """The loss ratio at falling loads."""
        return self.measurement.measure(LossCurve(self.settings.loss_curve_trial, LOWEST_LOAD))

    def judge(self) -> ThresholdVerdict:
        """The verdict by those thresholds whose metrics belong to the methods of this test."""
        record = self.measurement.test.record
        record.thresholds = [each for each in record.thresholds if METRICS[each.metric].method in record.methods]
        return self.measurement.judge()
