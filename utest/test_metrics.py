"""Figures from results: lower and upper bounds."""

from __future__ import annotations

import runpy
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from made_up import trial
from podperf.cpu_time import CpuTime
from podperf.methods.back_to_back import BackToBack
from podperf.methods.cost import BURSTS, Builds, CostResult
from podperf.methods.cpu_time import CpuTimeResult
from podperf.methods.latency import LatencyAtShare
from podperf.methods.latency_by_load import LatencyByLoad
from podperf.methods.loss_curve import LossCurve
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import GoalResult, NdrPdr, SearchBound
from podperf.methods.presets import preset
from podperf.methods.repeated_instantiation import RepeatedInstantiation, StandingInstance
from podperf.methods.soak import MemoryReading, Soak
from podperf.methods.system_recovery import SystemRecovery
from podperf.metrics import IN_COLUMN, METRICS, ON_PAGE, Measured
from podperf.model import Direction, FrameSize, TrafficProfile
from simulated_dut import SimulatedDut

GOAL = preset("quick").goals[0]
LOWER, UPPER = SearchBound(200e3, 199e3, 1, 0, 1), SearchBound(210e3, 210e3, 0, 1, 1)


def goal(
    lower: SearchBound | None,
    upper: SearchBound | None,
    rate: float | None,
    limited: bool = False,
    complete: bool = True,
) -> GoalResult:
    return GoalResult(GOAL, lower, upper, rate, None, limited, complete)


def test_a_goal_lies_between_its_bounds() -> None:
    assert goal(LOWER, UPPER, 199.9e3).measured == Measured(199.9e3, 199.9e3, 210e3)


def test_a_goal_that_the_tester_limited_is_a_lower_bound() -> None:
    assert goal(LOWER, None, 200e3, limited=True).measured == Measured(200e3, 200e3, None, lower_bound=True)


def test_a_goal_below_the_lowest_load_is_an_upper_bound() -> None:
    assert goal(None, UPPER, None).measured == Measured(210e3, high=210e3, upper_bound=True)


def test_a_goal_whose_search_was_cut_short_says_so() -> None:
    found = goal(LOWER, UPPER, 199.9e3, complete=False).measured
    assert found == Measured(199.9e3, 199.9e3, 210e3, unfinished=True)
    assert goal(None, UPPER, None, complete=False).measured == Measured(
        210e3, high=210e3, upper_bound=True, unfinished=True
    )


def test_a_bound_that_has_not_all_its_trials_is_not_between_what_the_figure_lies() -> None:
    lower, upper = replace(LOWER, coarse=True), replace(UPPER, coarse=True)
    assert goal(lower, UPPER, 2e5, complete=False).measured == Measured(2e5, None, 210e3, unfinished=True)
    assert goal(LOWER, upper, 2e5, complete=False).measured == Measured(2e5, 2e5, None, unfinished=True)
    assert goal(None, upper, None, complete=False).measured == Measured(210e3, upper_bound=True, unfinished=True)


def test_a_goal_that_was_not_searched_for_has_no_figure() -> None:
    assert goal(None, None, None).measured is None


def test_a_bound_is_written_in_one_way_for_each_reader() -> None:
    lower, upper = Measured(1, lower_bound=True), Measured(1, upper_bound=True, unfinished=True)
    assert [Measured(1).written("1"), lower.written("1"), upper.written("1")] == ["1", ">= 1", "< 1*"]
    assert [lower.written("1", IN_COLUMN), upper.written("1", IN_COLUMN)] == [">=1", "<1*"]
    assert [lower.written("1", ON_PAGE), upper.bounded("1", ON_PAGE)] == ["≥ 1", "< 1"]


def test_mrr_is_the_median_between_its_trials() -> None:
    traffic = TrafficProfile(FrameSize.parse(64), (Direction.LEFT_TO_RIGHT,))
    trials = tuple(trial(traffic, 1e6, capacity) for capacity in (250e3, 281e3, 290e3))
    assert MrrResult(trials, 1e6).metrics == {"mrr": Measured(281e3, 250e3, 290e3)}
    assert MrrResult(trials, 290e3).metrics["mrr"].lower_bound


def test_what_schemas_pages_and_the_template_say_of_metrics_is_what_the_table_says() -> None:
    script = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "make_metrics.py"))
    for path, made in script["MADE"].items():
        text = path.read_text(encoding="utf-8")
        assert made(text) == text, f"{path} is out of date; make it again with: .venv/bin/python docs/make_metrics.py"


def test_each_metric_is_found_by_the_method_that_the_table_names() -> None:
    source = SimulatedDut(1e6, 4e6)
    mrr, search = Mrr(trials=1, duration=0.1).run(source), NdrPdr(preset("quick"), clock=source.clock).run(source)
    latency = LatencyAtShare.below(search.metrics)
    assert latency is not None
    at_half = latency.run(source)
    by_load = LatencyByLoad.beside(at_half, search.metrics, 0.1)
    assert by_load is not None
    timed = replace(at_half.trial, cpu_time=CpuTime({"receive thread of w-left": 1e9}))
    cost = CostResult({burst: Builds((5000.0,)) for burst in BURSTS}, {}, {})
    found = {
        "mrr": mrr.metrics,
        "ndrpdr": search.metrics,
        "latency": at_half.metrics,
        "cpu_time": CpuTimeResult(replace(at_half, trial=timed)).metrics,
        "cost": cost.metrics,
        "loss_curve": LossCurve(0.1, 1000.0).run(source).metrics,
        "latency_by_load": by_load.run(source).metrics,
        "system_recovery": SystemRecovery(1e6, 2, 0.1, 0.1).run(source).metrics,
        "repeated_instantiation": RepeatedInstantiation(2, 0.1)
        .run(lambda: nullcontext(StandingInstance(source, 0.5)))
        .metrics,
        "soak": Soak(1e6, 0.2, 0.1, lambda: MemoryReading({"testpmd (1)": 2**20}), source.clock).run(source).metrics,
        "back_to_back": BackToBack(2, 0.1, 1e6).run(source).metrics,
    }
    assert {name: list(metrics) for name, metrics in found.items()} == {
        method: [each.name for each in METRICS.values() if each.method == method] for method in found
    }
    assert {each.method for each in METRICS.values()} == found.keys()
