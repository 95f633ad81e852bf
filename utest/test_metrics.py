"""Figures out of results: what a bound is, and which side it is on."""

from __future__ import annotations

from dataclasses import replace

from made_up import trial
from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import Bound, GoalResult
from podperf.methods.presets import preset
from podperf.metrics import Measured
from podperf.model import Direction, FrameSize, Traffic

GOAL = preset("quick").goals[0]
LOWER, UPPER = Bound(200e3, 199e3, 1, 0, 1), Bound(210e3, 210e3, 0, 1, 1)


def goal(
    lower: Bound | None, upper: Bound | None, rate: float | None, limited: bool = False, complete: bool = True
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


def test_mrr_is_the_median_between_its_trials() -> None:
    traffic = Traffic(FrameSize.parse(64), (Direction.LEFT_TO_RIGHT,))
    trials = tuple(trial(traffic, 1e6, capacity) for capacity in (250e3, 281e3, 290e3))
    assert MrrResult(trials, 1e6).metrics == {"mrr": Measured(281e3, 250e3, 290e3)}
    assert MrrResult(trials, 290e3).metrics["mrr"].lower_bound
