"""The figure of one set-up of a variant, by any metric that a run measures."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from podperf.errors import PodperfError, Unavailable
from podperf.methods import CostResult
from podperf.metrics import Measured, Metric
from podperf.model import TrafficProfile
from podperf.noise import Noise, total
from podperf.records import TestRecord
from podperf.run.by_method import measure_by_method
from podperf.run.kept import Kept
from podperf.run.measurement import Measurement
from podperf.run.test_in_progress import TestInProgress
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testers.base import UNPACED, TesterLimits
from podperf.topology import MethodSettings

WARM_UP = 0.1  # seconds of a trial of MRR that do not count
NO_COST = "cost is compared on a counted machine only (topologies/counted.yaml)"


def figure_of(
    name: str,
    metric: Metric,
    test: TestInProgress,
    sut: SystemUnderTest,
    traffic: TrafficProfile,
    limits: TesterLimits,
    settings: MethodSettings,
    kept: Kept,
) -> tuple[Measured, Noise | None]:
    """The figure of the variant `name`, which is set up, and the noise around it.

    All its trials are in the record of the test, with the variant's name as their phase. Its figures are not, because
    they are those of one round. Raises PodperfError if the trials find no figure.
    """
    scratch = replace(test, record=TestRecord(name, name, ""), undo=ExitStack(), phase=name)
    there = addressed(traffic, sut)
    if metric.method == "mrr":
        scratch.trials(sut, name, there, limits).measure(UNPACED, WARM_UP)
    measurement = Measurement(scratch, sut, there, limits, settings, kept.baselines, _no_cost)
    measure_by_method(measurement, metric.method)
    found = scratch.record.metrics.get(metric.name)
    if found is None:
        raise PodperfError(f"variant {name!r} has no {metric.label}: the trials found none in this round")
    return found, total(scratch.record.noises.values())


def _no_cost() -> CostResult:
    raise Unavailable(NO_COST)
