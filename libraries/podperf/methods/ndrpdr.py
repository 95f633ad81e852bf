"""NDR, PDR and any further goals in one search, by MLRsearch (RFC 9971) with the package of its authors.

Loads are in frames per second and direction. Loss is judged by the counts of all directions together.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from MLRsearch import Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from podperf.errors import PodperfError, TrialNotDelivered
from podperf.methods.base import TrialSource
from podperf.methods.presets import Goal, Preset
from podperf.methods.trials import latency_record
from podperf.metrics import IN_WORDS, METRICS, Measured, Metrics
from podperf.model import Latency, TrialResult
from podperf.noise import Noise, total
from podperf.testers.base import PACED_SHARE, TESTER_LIMIT_SHARE

_RANGES = 5  # maximum loads at most; if the tester does not deliver one, the search tries a lower one
_NEXT_RANGE = 0.7  # the next maximum load, as a share of the previous one; less if the tester sent less
_NO_LIMIT = 1e9  # seconds; MLRsearch's own clock must not end the search, because podperf's clock does


@dataclass(frozen=True)
class SearchBound:
    """A load that was classified as a lower or upper bound of a goal.

    `good_seconds` and `bad_seconds` are the durations of the full-length trials at this load, with the time around the
    sending. `achieved_load` is the mean load that the tester really sent. `coarse`: the search was cut short, and has
    classified the load only for an earlier phase with fewer or shorter trials. A single trial may have decided it.
    """

    load: float
    achieved_load: float
    good_seconds: float
    bad_seconds: float
    trials: int
    coarse: bool = False


@dataclass(frozen=True)
class GoalResult:
    """The result of the search for one goal (RFC 9971: goal result). A missing bound is None (irregular goal result).

    `rate` is the conditional throughput at the relevant lower bound, in frames per second and direction.
    `tester_limited`: the lower bound is near the tester's maximum, so the SUT may forward more.
    `complete`: the interval between the bounds is as narrow as the goal wants, or the range of loads ended.
    """

    goal: Goal
    lower: SearchBound | None
    upper: SearchBound | None
    rate: float | None
    latency: Latency | None  # of the last trial at the lower bound
    tester_limited: bool
    complete: bool

    @property
    def statement(self) -> str:
        """The result in words."""
        unfinished = "" if self.complete else ", search not finished"
        if self.lower is None:
            where = f"{IN_WORDS.below}{self.upper.load:,.0f} frames/s" if self.upper is not None else "not found"
            return f"{self.goal.name} {where}{unfinished}"
        limited = ", as much as the tester can tell" if self.tester_limited else ""
        at_least = IN_WORDS.at_least if self.tester_limited or self.upper is None else ""
        return f"{self.goal.name} {at_least}{self.rate:,.0f} frames/s{limited}{unfinished}"

    @property
    def measured(self) -> Measured | None:
        """The rate with its relevant bounds. A bound counts only if it has all trials that the goal wants.

        If no load was low enough, the result is an upper bound. None if the search found nothing for this goal.
        """
        high = self.upper.load if self.upper is not None and not self.upper.coarse else None
        if self.lower is not None and self.rate is not None:
            low = min(self.rate, self.lower.load) if not self.lower.coarse else None
            limited = self.tester_limited
            return Measured(self.rate, low, high, lower_bound=limited, unfinished=not self.complete)
        if self.upper is None:
            return None
        return Measured(self.upper.load, high=high, upper_bound=True, unfinished=not self.complete)

    def as_record(self) -> Mapping[str, Any]:
        """Goal, bounds, rate and latency in JSON types."""
        return {
            "goal": self.goal.as_record(),
            "statement": self.statement,
            "rate": self.rate,
            "tester_limited": self.tester_limited,
            "complete": self.complete,
            "regular": self.lower is not None and self.upper is not None,
            "relevant_lower_bound": None if self.lower is None else asdict(self.lower),
            "relevant_upper_bound": None if self.upper is None else asdict(self.upper),
            "latency": latency_record(self.latency),
        }


@dataclass(frozen=True)
class SearchResult:
    """The result of one search.

    `incomplete` is the reason why the search ended early, or None. The bounds are then the best ones so far.
    `maximum_load` is the highest load that the tester delivered in this search, which may be below its calibrated
    maximum. `withheld` has the goals that were not searched for, each with the reason.
    """

    preset: Preset
    goals: tuple[GoalResult, ...]
    incomplete: str | None
    trials: int  # valid ones, with the warm-up
    seconds: float
    minimum_load: float
    maximum_load: float
    noise: Noise | None
    withheld: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> Mapping[str, str]:
        """The goals without a figure, with the reason: not searched for, or the search ended without a bound."""
        why = self.incomplete or "the search found no bound"
        unbounded = (each for each in self.goals if each.lower is None and each.upper is None)
        return {
            **{name: f"not judged: {reason}" for name, reason in self.withheld.items()},
            **{each.goal.name: f"not found: {why.removesuffix(_BEST_SO_FAR)}" for each in unbounded},
        }

    @property
    def metrics(self) -> Metrics:
        """The rate of each goal that is a metric."""
        names = {each.label: each.name for each in METRICS.values() if each.method == NdrPdr.name}
        found = {names[each.goal.name]: each.measured for each in self.goals if each.goal.name in names}
        return {name: measured for name, measured in found.items() if measured is not None}

    @property
    def bounded(self) -> bool:
        """True if any goal has a bound."""
        return any(each.lower or each.upper for each in self.goals)

    def goal(self, name: str) -> GoalResult | None:
        """The result of the goal `name` (NDR, PDR), or None if the preset has no such goal."""
        return next((each for each in self.goals if each.goal.name == name), None)

    def as_record(self) -> Mapping[str, Any]:
        """The result in JSON types. It has no trials, because each trial is recorded when it ends."""
        return {
            "method": "ndrpdr",
            "algorithm": "MLRsearch (RFC 9971)",
            "preset": self.preset.as_record(),
            "goals": {each.goal.name: each.as_record() for each in self.goals},
            "incomplete": self.incomplete,
            "missing": dict(self.missing),
            "trials": self.trials,
            "seconds": self.seconds,
            "minimum_load": self.minimum_load,
            "maximum_load": self.maximum_load,
            "noise": None if self.noise is None else self.noise.as_record(),
        }


class _OutOfTimeError(Exception):
    """The search's time is up."""


class _MaximumTooHighError(TrialNotDelivered):
    """The tester cannot deliver the maximum load."""


_BEST_SO_FAR = "; the bounds are the best so far"


class _Measurer:
    """Measures for MLRsearch (its AbstractMeasurer). Keeps the results by load, because bounds need them later."""

    def __init__(self, source: TrialSource, maximum_load: float, out_of_time: Callable[[], bool]) -> None:
        self._source, self._maximum_load, self._out_of_time = source, maximum_load, out_of_time
        self.results: dict[float, list[TrialResult]] = defaultdict(list)

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        if self._out_of_time():
            raise _OutOfTimeError
        try:
            result = self._source.measure(intended_load, intended_duration)
        except TrialNotDelivered as error:
            if intended_load >= self._maximum_load:
                raise _MaximumTooHighError(str(error), error.delivered) from error
            raise
        self.results[intended_load].append(result)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            # Without an intended count, frames that the tester did not send are no loss of the SUT.
            offered_count=result.sent,
            loss_count=result.lost,
            offered_duration=result.duration,
            # At least the intended duration: otherwise an error of the clock of 1 us would cost another trial.
            duration_with_overheads=max(intended_duration, result.elapsed),
        )

    @property
    def all(self) -> list[TrialResult]:
        return [result for results in self.results.values() for result in results]


@dataclass(frozen=True)
class NdrPdr:
    """The search with one preset. `clock` gives seconds; a simulation has its own clock."""

    preset: Preset
    clock: Callable[[], float] = time.monotonic
    withheld: Mapping[str, str] = field(default_factory=dict)  # goals that the search leaves out, each with the reason

    name = "ndrpdr"

    def run(self, source: TrialSource) -> SearchResult:
        """Search. If the time limit or the tester ends the search early, the result has the bounds so far, marked so.

        If the tester cannot deliver the maximum load, the search tries a lower one, up to four times. Raises
        TrialNotDelivered if the tester delivers none of them, or fails before there is any bound.
        """
        started, maximum_load = self.clock(), source.maximum_load
        if all(each.name in self.withheld for each in self.preset.goals):
            return SearchResult(self.preset, (), None, 0, 0.0, 0.0, maximum_load, None, self.withheld)
        found: SearchResult | None = None
        for _ in range(_RANGES):
            result, failure = self._search(source, maximum_load, started)
            if result.bounded or (found is None and failure is None):
                found = result
            if not isinstance(failure, _MaximumTooHighError):
                break
            maximum_load = min(_NEXT_RANGE * maximum_load, PACED_SHARE * failure.delivered or maximum_load)
        if found is not None:
            return found
        assert failure is not None
        raise failure

    def _search(
        self, source: TrialSource, maximum_load: float, started: float
    ) -> tuple[SearchResult, TrialNotDelivered | None]:
        """The result in this range of loads, and the tester's error that ended the search early, if any."""
        measurer = _Measurer(source, maximum_load, lambda: self.clock() - started > self.preset.search_duration_max)
        goals = {goal: _search_goal(goal) for goal in self.preset.goals if goal.name not in self.withheld}
        # With a slow tester, the preset's minimum load could be above the maximum load.
        minimum_load = min(self.preset.minimum_load, maximum_load / 10)
        search = MultipleLossRatioSearch(_config(self.preset, tuple(goals.values()), minimum_load, maximum_load))
        incomplete: str | None = None
        failure: TrialNotDelivered | None = None
        try:
            search.search(measurer, debug=lambda _text: None)
        except _OutOfTimeError:
            limit = f"{self.preset.search_duration_max:g} s, the limit of preset {self.preset.name}"
            incomplete = f"not finished within {limit}{_BEST_SO_FAR}"
        except TrialNotDelivered as error:
            failure, incomplete = error, f"{error}{_BEST_SO_FAR}"
        except RuntimeError as error:  # MLRsearch reports contradictory results by this error
            incomplete = f"the search gave up: {error}{_BEST_SO_FAR}"
        results = tuple(
            _goal_result(goal, _Phases(search, search_goal), measurer, maximum_load, incomplete is None)
            for goal, search_goal in goals.items()
        )
        trials = measurer.all
        result = SearchResult(
            self.preset,
            results,
            None if all(each.complete for each in results) else incomplete,
            len(trials),
            self.clock() - started,
            minimum_load,
            maximum_load,
            total(each.noise for each in trials),
            self.withheld,
        )
        return result, failure


def _search_goal(goal: Goal) -> Any:
    try:
        return SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=goal.exceed_ratio,
            relative_width=goal.relative_width,
            initial_trial_duration=goal.initial_trial_duration,
            final_trial_duration=goal.final_trial_duration,
            duration_sum=goal.duration_sum,
            preceding_targets=goal.preceding_targets,
            expansion_coefficient=goal.expansion_coefficient,
            fail_fast=False,  # a SUT that carries less than the minimum load is a result, not an error
        )
    except ValueError as error:
        raise PodperfError(f"search goal {goal.name} is impossible: {error}") from error


def _config(preset: Preset, goals: tuple[Any, ...], minimum_load: float, maximum_load: float) -> Any:
    config = Config()
    config.goals = goals
    config.min_load = minimum_load  # before the maximum, because the minimum must always be below it
    config.max_load = maximum_load
    config.warmup_duration = preset.warmup_duration
    config.search_duration_max = _NO_LIMIT
    return config


class _Phases:
    """The phases of one goal in a search that has ended, also early, and the bounds of the best phase."""

    def __init__(self, search: Any, search_goal: Any) -> None:
        self._database = search.database
        self._final = search.scaling.goal_to_final_target[search_goal]
        self._width = search_goal.relative_width

    def reached(self) -> bool:
        """True if the bounds of the final phase are near enough to each other."""
        final = self._database.get_relevant_bounds(target=self._final)
        return bool(final.clo and final.chi and float(final.clo) >= float(final.chi) * (1 - self._width))

    def bounds(self, finished: bool) -> tuple[Any, Any]:
        """Lower and upper bound of the final phase. If it lacks a bound, an earlier phase gives one that fits."""
        target = self._final
        found = self._database.get_relevant_bounds(target=target)
        low, high = found.clo, found.chi
        while not finished and target.preceding is not None and not (low and high):
            target = target.preceding
            found = self._database.get_relevant_bounds(target=target)
            if not low and not (high and found.clo and float(found.clo) >= float(high)):
                low = found.clo
            if not high and not (low and found.chi and float(found.chi) <= float(low)):
                high = found.chi
        return low, high

    def bound(self, stat: Any, measurer: _Measurer) -> SearchBound | None:
        """One of `bounds`, with the measurements at its load."""
        if not stat:
            return None
        load = float(stat)
        ((target, counts),) = stat.target_to_stat.items()
        results = measurer.results[load]
        return SearchBound(
            load,
            fmean(each.achieved_load for each in results),
            counts.good_long,
            counts.bad_long,
            len(results),
            target != self._final,
        )


def _goal_result(goal: Goal, phases: _Phases, measurer: _Measurer, maximum_load: float, finished: bool) -> GoalResult:
    complete = finished or phases.reached()
    low, high = phases.bounds(complete)
    lower, upper = phases.bound(low, measurer), phases.bound(high, measurer)
    return GoalResult(
        goal,
        lower,
        upper,
        _conditional_throughput(low),
        measurer.results[lower.load][-1].latency if lower is not None else None,
        lower is not None and lower.load >= TESTER_LIMIT_SHARE * maximum_load,
        complete,
    )


def _conditional_throughput(stat: Any) -> float | None:
    if not stat:
        return None
    (counts,) = stat.target_to_stat.values()
    return float(stat) * (1.0 - float(counts.pessimistic_loss_ratio))
