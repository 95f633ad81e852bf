"""The measurement of one chain that is set up. The figures of each method go into the record of the test."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods import (
    ONLY_COST,
    TRAIN,
    CostResult,
    CpuTimeAtShare,
    LatencyAtShare,
    LatencyResult,
    MrrResult,
    SearchResult,
    mrr_by,
    not_delivered,
    search_by,
)
from podperf.methods.base import Method, MethodResult
from podperf.methods.trials import ValidTrials
from podperf.model import TrafficProfile
from podperf.run.baselines import Baselines
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testers.base import TesterLimits
from podperf.topology import MethodSettings
from podperf.verdicts.thresholds import ThresholdVerdict

Result = TypeVar("Result", bound=MethodResult)


@dataclass
class Measurement:
    """A chain between the tester's ports, in a running test.

    A counted machine measures only `cost`, and its tester has no limits. `delivered_load` comes from `MrrResult`. It is
    infinite before MRR is measured. `build` sets the chain up again, and takes it down at the end of the context; None
    if others than podperf's test do that.
    """

    test: TestInProgress
    sut: SystemUnderTest
    traffic: TrafficProfile
    limits: TesterLimits | None
    settings: MethodSettings
    baselines: Baselines
    cost: Callable[[], CostResult]
    delivered_load: float = math.inf
    build: Callable[[], AbstractContextManager[SystemUnderTest]] | None = None

    def mrr(self) -> MrrResult:
        """Maximum receive rate, with the trials of the topology."""
        result = self.measure(mrr_by(self.settings))
        self.delivered_load = result.delivered_load
        return result

    def ndr_and_pdr(self) -> SearchResult:
        """NDR and PDR in one search, by the topology's preset."""
        search, limits = search_by(self.settings), self.known_limits()
        preset = search.preset.for_tester(self.sut.tester.shortest_trial)
        withheld = {each.name: limits.doubt for each in preset.goals if limits.cannot_tell(each.loss_ratio)}
        search = replace(search, preset=preset, clock=self.test.patience.clock, withheld=withheld)
        # If the tester has not delivered a load in this test, it will not deliver it in the search. The calibration may
        # have been better.
        return self.measure(search, replace(limits, maximum_load=min(limits.maximum_load, self.delivered_load)))

    def latency(self) -> LatencyResult | None:
        """Latency at half the PDR, or at half the NDR if the preset seeks no PDR. None without such a rate."""
        record = self.test.record
        latency = LatencyAtShare.below(record.metrics)
        if latency is None:
            return None
        result = self.measure(latency)
        record.latency, record.latency_of = result.latency, result.statement
        return result

    def cpu_time(self) -> bool:
        """CPU time a frame, at the load of latency. False without such a load, if nothing is under test, or if the
        tester cannot deliver the trial; the record then says so."""
        cpu_time, clock = CpuTimeAtShare.below(self.test.record.metrics), self.sut.cpu_clock()
        if cpu_time is None or clock is None:
            return False
        source = self.test.trials(self.sut, cpu_time.name, self.traffic, self.known_limits(), clock, TRAIN)
        try:
            self.keep(cpu_time.name, cpu_time.run(source))
        except TrialNotDelivered as error:  # the rates of the test are worth no less
            record = self.test.record
            record.methods = {**record.methods, cpu_time.name: not_delivered(error)}
            return False
        return True

    def judge(self) -> ThresholdVerdict:
        """The verdict on this test's figures by the testbed's thresholds."""
        return self.baselines.judge(self.test.record)

    def measure(self, method: Method[Result], limits: TesterLimits | None = None) -> Result:
        """The result of this method, with these limits or by default the tester's. Its figures go into the record."""
        result = method.run(self.trials(method.name, limits))
        self.keep(method.name, result)
        return result

    def trials(self, phase: str, limits: TesterLimits | None = None) -> ValidTrials:
        """Trials of this phase across the chain, with these limits or by default the tester's."""
        return self.test.trials(self.sut, phase, self.traffic, limits or self.known_limits())

    def keep(self, method: str, result: MethodResult) -> None:
        """Keep a result of this method, and its figures, in the record."""
        record = self.test.record
        record.methods = {**record.methods, method: result.as_record()}
        self.test.keep(result.metrics)

    def known_limits(self) -> TesterLimits:
        """The tester's limits. Raises Unavailable on a counted machine, where no rate is measured."""
        if self.limits is None:
            raise Unavailable(ONLY_COST)
        return self.limits
