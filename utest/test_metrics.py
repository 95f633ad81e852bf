"""Figures from results: lower and upper bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made_up import trial
from podperf.experiments.host_share import OF_EACH, HostShare
from podperf.methods import METHODS
from podperf.methods.cost import BURSTS, Builds, CostResult
from podperf.methods.cpu_time import CpuTimeResult
from podperf.methods.latency import LatencyAtShare
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import GoalResult, NdrPdr, SearchBound
from podperf.methods.presets import preset
from podperf.metrics import IN_COLUMN, METRICS, ON_PAGE, Measured
from podperf.model import CpuTime
from simulated_chain import SimulatedChain
from simulated_dut import SimulatedDut
from traffic import TRAFFIC

GOAL = preset("quick").goals[0]
LOWER, UPPER = SearchBound(200e3, 199e3, 1, 0, 1, {}), SearchBound(210e3, 210e3, 0, 1, 1, {})
FEW_BELOW, FEW_ABOVE = replace(LOWER, coarse=True), replace(UPPER, coarse=True)  # bounds that have not all their trials


@pytest.mark.parametrize(
    ("lower", "upper", "rate", "limited", "complete", "measured"),
    [
        (LOWER, UPPER, 199.9e3, False, True, Measured(199.9e3, 199.9e3, 210e3)),
        (LOWER, None, 200e3, True, True, Measured(200e3, 200e3, None, lower_bound=True)),
        (None, UPPER, None, False, True, Measured(210e3, high=210e3, upper_bound=True)),
        (LOWER, UPPER, 199.9e3, False, False, Measured(199.9e3, 199.9e3, 210e3, unfinished=True)),
        (None, UPPER, None, False, False, Measured(210e3, high=210e3, upper_bound=True, unfinished=True)),
        (FEW_BELOW, UPPER, 2e5, False, False, Measured(2e5, None, 210e3, unfinished=True)),
        (LOWER, FEW_ABOVE, 2e5, False, False, Measured(2e5, 2e5, None, unfinished=True)),
        (None, FEW_ABOVE, None, False, False, Measured(210e3, upper_bound=True, unfinished=True)),
        (None, None, None, False, True, None),
    ],
)
def test_what_a_search_tells_of_a_goal(
    lower: SearchBound | None,
    upper: SearchBound | None,
    rate: float | None,
    limited: bool,
    complete: bool,
    measured: Measured | None,
) -> None:
    assert GoalResult(GOAL, lower, upper, rate, None, limited, complete).measured == measured


def test_a_bound_is_written_in_one_way_for_each_reader() -> None:
    lower, upper = Measured(1, lower_bound=True), Measured(1, upper_bound=True, unfinished=True)
    assert [Measured(1).written("1"), lower.written("1"), upper.written("1")] == ["1", ">= 1", "< 1*"]
    assert [lower.written("1", IN_COLUMN), upper.written("1", IN_COLUMN)] == [">=1", "<1*"]
    assert [lower.written("1", ON_PAGE), upper.bounded("1", ON_PAGE)] == ["≥ 1", "< 1"]


def test_mrr_is_the_median_between_its_trials() -> None:
    trials = tuple(trial(TRAFFIC, 1e6, capacity) for capacity in (250e3, 281e3, 290e3))
    assert MrrResult(trials, 1e6).metrics == {"mrr": Measured(281e3, 250e3, 290e3, aggregate=281e3)}
    assert MrrResult(trials, 290e3).metrics["mrr"].lower_bound


def test_each_metric_is_found_by_the_method_that_the_table_names() -> None:
    source = SimulatedDut(1e6, 4e6)
    mrr = Mrr(trials=1, duration=0.1).run(source)
    search = NdrPdr(preset("quick").with_goal(0.01), clock=source.clock).run(source)
    latency = LatencyAtShare.below(search.metrics)
    assert latency is not None
    at_half = latency.run(source)
    chain = SimulatedChain(SimulatedDut(1e6, 4e6), search.metrics)
    results = {name: method.on(chain) for name, method in METHODS.items()}
    further = {name: result.metrics for name, result in results.items() if result is not None}
    timed = replace(at_half.trial, cpu_time=CpuTime({"receive thread of w-left": 1e9}))
    there_and_back = replace(at_half.trial, trial=replace(at_half.trial.trial, round_trip=True))
    cost = CostResult({burst: Builds((5000.0,)) for burst in BURSTS}, {}, {})
    found = {
        "mrr": mrr.metrics,
        "ndrpdr": search.metrics,
        "latency": {**at_half.metrics, **replace(at_half, trial=there_and_back).metrics},
        "cpu_time": CpuTimeResult(replace(at_half, trial=timed)).metrics,
        "cost": cost.metrics,
        "host_share": {
            name: figure for each in OF_EACH for name, figure in HostShare(share=0.5, name=each).metrics.items()
        },
        **further,
    }
    assert {name: list(metrics) for name, metrics in found.items()} == {
        method: [metric.name for metric in METRICS.values() if metric.method == method] for method in found
    }
    assert {metric.method for metric in METRICS.values()} == found.keys()
