"""NDR, PDR and any further goals in one search, by MLRsearch (RFC 9971) and its authors' own package.

Loads are frames per second and direction; counts that decide about loss are those of all directions together.
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
from podperf.metrics import METRICS, Measured, Metrics
from podperf.model import Latency, TrialResult
from podperf.noise import Noise, total
from podperf.testers.base import PACED_SHARE, TESTER_LIMIT_SHARE

_RANGES = 5  # so many maximum loads are tried at most, each lower than the one before, which the tester did not deliver
_NEXT_RANGE = 0.7  # of that, or less where the tester sent less
_NO_LIMIT = 1e9  # seconds: the search's own clock must not end it, ours does


@dataclass(frozen=True)
class Bound:
    """A load that was classified as a lower or upper bound of a goal.

    `good_seconds` and `bad_seconds` are the trials of full length at this load, with the time around the sending.
    `achieved_load` is what the tester really sent there, mean over the trials. `coarse`: the search was cut short, and
    so classified the load only for a preceding target, of fewer or shorter trials: a single one may have decided it.
    """

    load: float
    achieved_load: float
    good_seconds: float
    bad_seconds: float
    trials: int
    coarse: bool = False


@dataclass(frozen=True)
class GoalResult:
    """What the search found for one goal (RFC 9971: goal result). A bound that does not exist is None: irregular.

    `rate` is the conditional throughput at the relevant lower bound, frames per second and direction.
    `tester_limited`: the lower bound is so near the tester's maximum that the SUT may do more.
    `complete`: both bounds are as near as the goal asks for, or the range of loads ended.
    """

    goal: Goal
    lower: Bound | None
    upper: Bound | None
    rate: float | None
    latency: Latency | None  # of the last trial at the lower bound
    tester_limited: bool
    complete: bool

    @property
    def statement(self) -> str:
        """The result in words."""
        unfinished = "" if self.complete else ", search not finished"
        if self.lower is None:
            where = f"below {self.upper.load:,.0f} frames/s" if self.upper is not None else "not found"
            return f"{self.goal.name} {where}{unfinished}"
        limited = ", as much as the tester can tell" if self.tester_limited else ""
        at_least = "at least " if self.tester_limited or self.upper is None else ""
        return f"{self.goal.name} {at_least}{self.rate:,.0f} frames/s{limited}{unfinished}"

    @property
    def measured(self) -> Measured | None:
        """The rate between the relevant bounds, as far as those have all the trials that the goal asks for.

        Where no load was low enough, an upper bound; None when the search told nothing about this goal.
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
        """Goal, bounds, rate and latency as JSON-serialisable data."""
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
    """What one search found.

    `incomplete` is the reason why it ended early, or None; the bounds then are the best so far. `maximum_load` is
    what the tester could deliver during this search; it may lie below its calibrated maximum. `withheld` has, by goal,
    why it was not searched for.
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
        """Why there is no figure of a goal: none was asked for, or the search ended without any bound."""
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
        """True when there is a bound of any goal."""
        return any(each.lower or each.upper for each in self.goals)

    def goal(self, name: str) -> GoalResult | None:
        """The result of the goal of this name (NDR, PDR), or None when the preset does not search for it."""
        return next((each for each in self.goals if each.goal.name == name), None)

    def as_record(self) -> Mapping[str, Any]:
        """Everything as JSON-serialisable data; the trials themselves are recorded as they end."""
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
    """What MLRsearch measures with (its AbstractMeasurer). Keeps the results by load, to tell more about the bounds."""

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
            # Never below the intended duration: a clock that is short by a microsecond would cost one more trial.
            duration_with_overheads=max(intended_duration, result.elapsed),
        )

    @property
    def all(self) -> list[TrialResult]:
        return [result for results in self.results.values() for result in results]


@dataclass(frozen=True)
class NdrPdr:
    """The search with one preset. `clock` gives seconds; a simulation has its own."""

    preset: Preset
    clock: Callable[[], float] = time.monotonic
    withheld: Mapping[str, str] = field(default_factory=dict)  # goals that are not to be searched for, and why

    name = "ndrpdr"

    def run(self, source: TrialSource) -> SearchResult:
        """Search. A search that is cut short, by its time limit or by the tester, returns what it has, marked so.

        A tester that cannot deliver the maximum load just now gets a lower one, a few times; TrialNotDelivered when
        that does not help, or when the tester fails before there is any bound.
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
        """What was found in this range, and what of the tester ended the search early."""
        measurer = _Measurer(source, maximum_load, lambda: self.clock() - started > self.preset.search_duration_max)
        goals = {goal: _search_goal(goal) for goal in self.preset.goals if goal.name not in self.withheld}
        # A slow tester must still leave a range to search in.
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
        except RuntimeError as error:  # how MLRsearch reports that results contradict each other
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
            fail_fast=False,  # a SUT that carries less than the minimum load is a result, not a crash
        )
    except ValueError as error:
        raise PodperfError(f"search goal {goal.name} is impossible: {error}") from error


def _config(preset: Preset, goals: tuple[Any, ...], minimum_load: float, maximum_load: float) -> Any:
    config = Config()
    config.goals = goals
    config.min_load = minimum_load  # first: it must stay below the maximum, whose default is high
    config.max_load = maximum_load
    config.warmup_duration = preset.warmup_duration
    config.search_duration_max = _NO_LIMIT
    return config


class _Phases:
    """The phases of one goal in a search that has ended, finished or not, and the bounds of the best of them."""

    def __init__(self, search: Any, search_goal: Any) -> None:
        self._database = search.database
        self._final = search.scaling.goal_to_final_target[search_goal]
        self._width = search_goal.relative_width

    def reached(self) -> bool:
        """True when both bounds of the final phase are near enough."""
        final = self._database.get_relevant_bounds(target=self._final)
        return bool(final.clo and final.chi and float(final.clo) >= float(final.chi) * (1 - self._width))

    def bounds(self, finished: bool) -> tuple[Any, Any]:
        """Lower and upper bound of the final phase; each that it has not got to, of a phase before it that agrees."""
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

    def bound(self, stat: Any, measurer: _Measurer) -> Bound | None:
        """One of `bounds` with what was measured there."""
        if not stat:
            return None
        load = float(stat)
        ((target, counts),) = stat.target_to_stat.items()
        results = measurer.results[load]
        return Bound(
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
