"""The measurement of one chain that is set up. The figures of each method go into the record of the test."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods import method
from podperf.methods.base import Method, MethodResult
from podperf.methods.cost import CostResult
from podperf.methods.cpu_time import TRAIN, CpuTimeAtShare, missing
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.model import TrafficProfile
from podperf.run.baselines import Baselines
from podperf.run.cost import ONLY_COST
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import TesterLimits
from podperf.topology import MethodSettings
from podperf.verdicts.thresholds import Verdict


@dataclass
class Measurement:
    """A chain between the tester's ports, in a running test.

    A counted machine measures `cost` in place of all else, and its tester has no limits. `delivered_load` is that of
    `MrrResult`. Before MRR is measured, it is infinite.
    """

    test: TestInProgress
    sut: SystemUnderTest
    traffic: TrafficProfile
    limits: TesterLimits | None
    settings: MethodSettings
    baselines: Baselines
    cost: Callable[[], CostResult]
    delivered_load: float = math.inf

    def mrr(self) -> MrrResult:
        """Maximum receive rate, with the trials of the topology."""
        result = self.measure(method("mrr", self.settings))
        assert isinstance(result, MrrResult)
        self.delivered_load = result.delivered_load
        return result

    def ndr_and_pdr(self) -> SearchResult:
        """NDR and PDR in one search, by the topology's preset."""
        search, limits = method("ndrpdr", self.settings), self._known_limits()
        assert isinstance(search, NdrPdr)
        preset = search.preset.for_tester(self.sut.tester.shortest_trial)
        withheld = {each.name: limits.doubt for each in preset.goals if limits.cannot_tell(each.loss_ratio)}
        search = replace(search, preset=preset, clock=self.test.patience.clock, withheld=withheld)
        # If the tester has not delivered a load in this test, it will not deliver it in the search. The calibration may
        # have been better.
        result = self.measure(search, replace(limits, maximum_load=min(limits.maximum_load, self.delivered_load)))
        assert isinstance(result, SearchResult)
        return result

    def latency(self) -> bool:
        """Latency at half the PDR, or at half the NDR if the preset seeks no PDR. False without such a rate."""
        record = self.test.record
        latency = LatencyAtShare.below(record.metrics)
        if latency is None:
            return False
        result = self.measure(latency)
        assert isinstance(result, LatencyResult)
        record.latency, record.latency_of = result.latency, result.statement
        return True

    def cpu_time(self) -> bool:
        """CPU time a frame, at the load of latency. False without such a load, if nothing is under test, or if the
        tester cannot deliver the trial; the record then says so."""
        cpu_time, clock = CpuTimeAtShare.below(self.test.record.metrics), self.sut.cpu_clock()
        if cpu_time is None or clock is None:
            return False
        source = self.test.trials(self.sut, cpu_time.name, self.traffic, self._known_limits(), clock, TRAIN)
        try:
            self._keep(cpu_time.name, cpu_time.run(source))
        except TrialNotDelivered as error:  # the rates of the test are worth no less
            record, said = self.test.record, {"method": cpu_time.name, "missing": missing(str(error))}
            record.methods = {**record.methods, cpu_time.name: said}
            return False
        return True

    def judge(self) -> Verdict:
        """The verdict on this test's figures by the testbed's thresholds."""
        return self.baselines.judge(self.test.record)

    def measure(self, method: Method, limits: TesterLimits | None = None) -> MethodResult:
        """The result of this method, with these limits or by default the tester's. Its figures go into the record."""
        limits = limits or self._known_limits()
        result = method.run(self.test.trials(self.sut, method.name, self.traffic, limits))
        self._keep(method.name, result)
        return result

    def _keep(self, method: str, result: MethodResult) -> None:
        record = self.test.record
        record.methods = {**record.methods, method: result.as_record()}
        self.test.keep(result.metrics)

    def _known_limits(self) -> TesterLimits:
        if self.limits is None:
            raise Unavailable(ONLY_COST)
        return self.limits
