"""The methods beside MRR and the search, on a chain that is set up. Each result goes into the record of the test."""

from __future__ import annotations

from dataclasses import dataclass

from podperf.methods import FurtherSettings, further_settings_by
from podperf.methods.back_to_back import BackToBack, BackToBackResult
from podperf.methods.latency_by_load import LatencyByLoad, LatencyByLoadResult
from podperf.methods.loss_curve import LossCurve, LossCurveResult
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.system_recovery import SystemRecovery, SystemRecoveryResult
from podperf.metrics import METRICS, Measured
from podperf.run.measurement import Measurement
from podperf.testers.base import Ability
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

    def back_to_back(self) -> BackToBackResult:
        """The longest burst without loss. The search for the NDR goes first, because buffer times need it."""
        self.measurement.known_limits()
        self.measurement.sut.tester.facts.demand(Ability.BURSTS)
        settings, ndr = self.settings, self.searched("ndr")
        method = BackToBack(settings.repeated_bursts, settings.longest_burst, ndr.value if ndr else None)
        result = method.run(self.measurement.trials(method.name))
        self.measurement.keep(method.name, result)
        return result

    def latency_by_load(self) -> LatencyByLoadResult | None:
        """Latency at shares of the PDR and at the NDR. None if the search finds no load that passes."""
        self.searched("ndr")
        metrics = self.measurement.test.record.metrics
        if (at_half := self.measurement.latency()) is None:
            return None
        method = LatencyByLoad.beside(at_half, metrics, self.settings.latency_trial)
        return None if method is None else self.measurement.measure(method)

    def system_recovery(self) -> SystemRecoveryResult | None:
        """For how long frames are lost after an overload. None if the search finds no load that passes."""
        self.measurement.known_limits()
        self.measurement.sut.tester.facts.demand(Ability.OVERLOAD)
        if (ndr := self.searched("ndr")) is None:
            return None
        each = self.settings
        method = SystemRecovery(ndr.value, each.recovery_trials, each.overload, each.after_overload, ndr.unfinished)
        result = method.run(self.measurement.trials(method.name))
        self.measurement.keep(method.name, result)
        return result

    def searched(self, name: str) -> Measured | None:
        """This rate of the search, which runs unless the test has it. None if the search finds no load that passes."""
        record = self.measurement.test.record
        if NdrPdr.name not in record.methods:
            self.measurement.ndr_and_pdr()
        metrics = record.metrics
        return metrics[name] if name in metrics and not metrics[name].upper_bound else None

    def judge(self) -> ThresholdVerdict:
        """The verdict by those thresholds whose metrics belong to the methods of this test."""
        record = self.measurement.test.record
        record.thresholds = [each for each in record.thresholds if METRICS[each.metric].method in record.methods]
        return self.measurement.judge()
