"""NDR, PDR and any further goals in one search, by MLRsearch (RFC 9971) with the package of its authors.

At its end, a search looks at its lowest and its highest bound again. If its trials contradict a bound
(podperf.methods.consistency), podperf searches again while there is time.

Loads are in frames per second and direction. A trial in both directions has the loss ratio of the direction that lost
more. RFC 9971 takes the counts of all directions together. So no bound is higher than one by the RFC.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from statistics import fmean
from typing import Any

from MLRsearch import Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from podperf.errors import PodperfError, TrialNotDelivered
from podperf.methods.base import judged_by, loss_ratios
from podperf.methods.consistency import LOOKS, Counted, Seen, constant_loss, contradiction, depends_on_trial_length
from podperf.methods.presets import EFFECTIVE_DURATION, Goal, Preset, preset
from podperf.metrics import IN_WORDS, METRICS, Measured, Metrics
from podperf.model import Direction, Latency, TrialResult
from podperf.noise import Noise, total
from podperf.testers.base import PACED_SHARE, TESTER_LIMIT_SHARE, TrialSource
from podperf.topology import MethodSettings

_RANGES = 5  # maximum loads at most; if the tester does not deliver one, the search tries a lower one
_NEXT_RANGE = 0.7  # the next maximum load, as a share of the previous one; less if the tester sent less
_SURELY_CARRIED = 0.95  # of the highest receive rate: the system under test forwards this load, except for lost frames
_NO_LIMIT = 1e9  # seconds; MLRsearch's own clock must not end the search, because podperf's clock does


@dataclass(frozen=True)
class SearchBound:
    """A load that was classified as a lower or upper bound of a goal.

    `good_seconds` and `bad_seconds` are the effective durations of the full-length trials at this load. `achieved_load`
    is the mean load that the tester really sent. `loss_ratios` has the loss ratio of all trials at this load, by
    direction. `coarse`: the search was cut short, and has classified the load only for an earlier phase with fewer or
    shorter trials. A single trial may have decided it.
    """

    load: float
    achieved_load: float
    good_seconds: float
    bad_seconds: float
    trials: int
    loss_ratios: Mapping[Direction, float]
    coarse: bool = False


@dataclass(frozen=True)
class GoalResult:
    """The result of the search for one goal (RFC 9971: goal result). A missing bound is None (irregular goal result).

    `rate` is the conditional throughput at the relevant lower bound, in frames per second and direction.
    `tester_limited`: the lower bound is near the tester's maximum, so the SUT may forward more.
    `complete`: the interval between the bounds is as narrow as the goal wants, or the range of loads ended.
    `noise` is that of the trials at the bounds, which decided the goal. `doubt` is the reason why the rate does not
    describe the system under test: the search has `drifted`, the tester was `hasty`, or frames are lost at every load.
    """

    goal: Goal
    lower: SearchBound | None
    upper: SearchBound | None
    rate: float | None
    latency: Latency | None  # of the last trial at the lower bound
    tester_limited: bool
    complete: bool
    noise: Noise | None = None
    doubt: str = ""
    drifted: bool = False
    hasty: bool = False

    @property
    def bounds(self) -> Sequence[SearchBound]:
        """The bounds that were found, the lower one first."""
        return [each for each in (self.lower, self.upper) if each is not None]

    @property
    def statement(self) -> str:
        """The result in words."""
        unfinished = "" if self.complete else ", search not finished"
        if self.lower is None:
            where = f"{IN_WORDS.below}{self.upper.load:,.0f} frames/s" if self.upper is not None else "not found"
            return f"{self.goal.name} {where}{unfinished}"
        limited = ", as much as the tester can tell" if self.tester_limited else ""
        at_least = IN_WORDS.at_least if self.tester_limited or self.upper is None else ""
        doubt = f" ({self.doubt})" if self.doubt else ""
        return f"{self.goal.name} {at_least}{self.rate:,.0f} frames/s{limited}{unfinished}{doubt}"

    @property
    def measured(self) -> Measured | None:
        """The rate with its relevant bounds. A bound counts only if it has all trials that the goal wants.

        If no load was low enough, the result is an upper bound. None if the search found nothing for this goal.
        """
        found = self._measured
        return found.on_noisy_machine() if found is not None and self.noise is not None and self.noise.noisy else found

    @property
    def _measured(self) -> Measured | None:
        high = self.upper.load if self.upper is not None and not self.upper.coarse else None
        if self.lower is not None and self.rate is not None:
            low = min(self.rate, self.lower.load) if not self.lower.coarse else None
            limited = self.tester_limited
            return Measured(self.rate, low, high, limited, unfinished=not self.complete, doubt=self.doubt)
        if self.upper is None:
            return None
        unfinished = not self.complete
        return Measured(self.upper.load, high=high, upper_bound=True, unfinished=unfinished, doubt=self.doubt)

    def as_record(self) -> Mapping[str, Any]:
        """Goal, bounds, rate and latency in JSON types."""
        return {
            "goal": asdict(self.goal),
            "statement": self.statement,
            "rate": self.rate,
            "tester_limited": self.tester_limited,
            "complete": self.complete,
            "regular": self.complete and self.lower is not None and self.upper is not None,
            "relevant_lower_bound": None if self.lower is None else asdict(self.lower),
            "relevant_upper_bound": None if self.upper is None else asdict(self.upper),
            "latency": self.latency and self.latency.as_record(),
            "noise": None if self.noise is None else self.noise.as_record(),
            "doubt": self.doubt,
        }


@dataclass(frozen=True)
class SearchResult:
    """The result of one search.

    `incomplete` is the reason why the search ended early, or None. The bounds are then the best ones so far.
    `maximum_load` is the highest load that the tester delivered in this search, which may be below its calibrated
    maximum. `withheld` has the goals that were not searched for, each with the reason.

    The bounds are those of the last of several `searches`. `trials`, `seconds` and `noise` are of all of them together.
    `constant_loss` is the ratio of frames that are lost at every load, or None.
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
    searches: int = 1
    constant_loss: float | None = None

    @property
    def drifted(self) -> bool:
        """True if the trials contradict the bounds of a goal."""
        return any(goal.drifted for goal in self.goals)

    @property
    def hasty(self) -> bool:
        """True if the tester may have caused a bound, because it caught up in haste."""
        return any(goal.hasty for goal in self.goals)

    @property
    def noises(self) -> Mapping[str, Noise]:
        """By goal: the noise of the trials that decided the goal."""
        return {goal.goal.name: goal.noise for goal in self.goals if goal.noise is not None}

    @property
    def missing(self) -> Mapping[str, str]:
        """The goals without a figure, with the reason: not searched for, or the search ended without a bound."""
        why = self.incomplete or "the search found no bound"
        unbounded = (goal for goal in self.goals if not goal.bounds)
        return {
            **{name: f"not judged: {reason}" for name, reason in self.withheld.items()},
            **{each.goal.name: f"not found: {why.removesuffix(_BEST_SO_FAR)}" for each in unbounded},
        }

    @property
    def metrics(self) -> Metrics:
        """The rate of each goal that is a metric."""
        names = {metric.label: metric.name for metric in METRICS.values() if metric.method == NdrPdr.name}
        found = {names[goal.goal.name]: goal.measured for goal in self.goals if goal.goal.name in names}
        return {name: measured for name, measured in found.items() if measured is not None}

    @property
    def bounded(self) -> bool:
        """True if any goal has a bound."""
        return any(goal.bounds for goal in self.goals)

    def goal(self, name: str) -> GoalResult | None:
        """The result of the goal `name` (NDR, PDR, goal rate), or None if the preset has no such goal."""
        return next((each for each in self.goals if each.goal.name == name), None)

    def as_record(self) -> Mapping[str, Any]:
        """The result in JSON types. It has no trials, because each trial is recorded when it ends."""
        return {
            "method": "ndrpdr",
            "algorithm": "MLRsearch (RFC 9971)",
            **judged_by(max((len(bound.loss_ratios) for goal in self.goals for bound in goal.bounds), default=1)),
            "effective_duration": EFFECTIVE_DURATION,
            "preset": self.preset.as_record(),
            "goals": {each.goal.name: each.as_record() for each in self.goals},
            "incomplete": self.incomplete,
            "missing": dict(self.missing),
            "trials": self.trials,
            "seconds": self.seconds,
            "minimum_load": self.minimum_load,
            "maximum_load": self.maximum_load,
            "noise": None if self.noise is None else self.noise.as_record(),
            "searches": self.searches,
            "drifted": self.drifted,
            "hasty": self.hasty,
            "constant_loss": self.constant_loss,
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
        self.again: list[tuple[float, TrialResult, float]] = []  # see `look_again`

    def look_again(self, load: float, goal: Goal, *, good: bool, tolerated: float = 0.0) -> None:
        """Repeat a bound of a goal until a trial is `good`, or bad, as before; LOOKS trials without it are enough.

        A trial with at most the loss ratio `tolerated` is good, whatever a goal wants.
        """
        for _ in range(LOOKS):
            if self._out_of_time():
                return
            result = self._source.measure(load, goal.final_trial_duration)
            self.again.append((load, result, tolerated))
            if (result.loss_ratio <= max(goal.loss_ratio, tolerated)) == good:
                return

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
            offered_count=result.worst.sent,
            loss_count=result.worst.lost,
            offered_duration=result.duration,
            duration_with_overheads=result.effective_duration,
        )

    @property
    def all(self) -> list[TrialResult]:
        return [
            *(result for results in self.results.values() for result in results),
            *(each for _, each, _ in self.again),
        ]

    def seen(self, goal: Goal) -> list[Seen]:
        """The trials of the goal's full length."""
        trials = [
            Seen(load, result.loss_ratio <= goal.loss_ratio, noise=result.noise)
            for load, results in self.results.items()
            for result in results
            if result.trial.duration >= goal.final_trial_duration
        ]
        again = [
            Seen(load, each.loss_ratio <= max(goal.loss_ratio, tolerated), again=True, noise=each.noise)
            for load, each, tolerated in self.again
        ]
        return trials + again

    def counted(self, highest: float) -> list[Counted]:
        """The frames of the trials up to this load."""
        return [
            Counted(load, result.worst.sent, result.worst.lost)
            for load, results in self.results.items()
            for result in results
            if load <= highest
        ]


@dataclass(frozen=True)
class NdrPdr:
    """The search with one preset. `clock` gives seconds; a simulation has its own clock."""

    preset: Preset
    clock: Callable[[], float] = time.monotonic
    withheld: Mapping[str, str] = field(default_factory=dict)  # goals that the search leaves out, each with the reason

    name = "ndrpdr"

    @classmethod
    def by(cls, settings: MethodSettings) -> NdrPdr:
        """With the preset of these settings, and their own goal."""
        return cls(preset(settings.search).with_goal(settings.loss_ratio))

    def run(self, source: TrialSource) -> SearchResult:
        """Search. If the time limit or the tester ends the search early, the result has the bounds so far, marked so.

        A search that has drifted is repeated while there is as much time left as it took. If the tester cannot deliver
        the maximum load, the search tries a lower one, up to four times. Raises TrialNotDelivered if the tester
        delivers none of them, or fails before there is any bound.
        """
        started, maximum_load = self.clock(), source.maximum_load
        if all(goal.name in self.withheld for goal in self.preset.goals):
            return SearchResult(self.preset, (), None, 0, 0.0, 0.0, maximum_load, None, self.withheld)
        found = self._in_ranges(source, maximum_load, started)
        began = started
        while found.drifted and found.incomplete is None and self._time_left(started) > self.clock() - began:
            began = self.clock()
            try:
                again = self._in_ranges(source, found.maximum_load, started)
            except TrialNotDelivered:
                break
            kept = found if again.incomplete else again  # bounds of a search that was cut short are worth less
            found = replace(
                kept,
                trials=found.trials + again.trials,
                seconds=self.clock() - started,
                noise=total([found.noise, again.noise]),
                searches=found.searches + 1,
            )
            if again.incomplete:
                break
        return found

    def _time_left(self, started: float) -> float:
        return self.preset.search_duration_max - (self.clock() - started)

    def _in_ranges(self, source: TrialSource, maximum_load: float, started: float) -> SearchResult:
        """One search, in the highest range of loads that the tester delivers."""
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
        measurer = _Measurer(source, maximum_load, lambda: self._time_left(started) < 0)
        goals = {goal: _search_goal(goal) for goal in self.preset.goals if goal.name not in self.withheld}
        # With a slow tester, the preset's minimum load could be above the maximum load.
        minimum_load = min(self.preset.minimum_load, maximum_load / 10)
        wanted = tuple(dict.fromkeys(goals.values()))  # goals of two names may be alike
        search = MultipleLossRatioSearch(_config(self.preset, wanted, minimum_load, maximum_load))
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
        if failure is None:
            _look_again_at_bounds(measurer, results)
        constant = _constant_loss(measurer, results)
        trials = measurer.all
        result = SearchResult(
            self.preset,
            tuple(_with_doubt(measurer, each, constant) for each in results),
            None if all(each.complete for each in results) else incomplete,
            len(trials),
            self.clock() - started,
            minimum_load,
            maximum_load,
            total(trial.noise for trial in trials),
            self.withheld,
            constant_loss=constant,
        )
        return result, failure


def _search_goal(goal: Goal) -> Any:
    given = asdict(goal)
    del given["name"]
    try:
        # A system that carries less than the minimum load is a result, not an error.
        return SearchGoal(**given, fail_fast=False)
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
            fmean(result.achieved_load for result in results),
            counts.good_long,
            counts.bad_long,
            len(results),
            loss_ratios(results),
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
        total(each.noise for bound in (lower, upper) if bound is not None for each in measurer.results[bound.load]),
    )


def _look_again_at_bounds(measurer: _Measurer, results: Sequence[GoalResult]) -> None:
    """Repeat the lowest lower bound and the highest upper bound, if the tester and the time permit it.

    A trial there also tells about the bounds between them. No trial is needed if the search already contradicts itself.

    At the lower bound, a trial is bad if it loses more than the goal's width, which means that the system has become
    slower. A few lost frames in a long trial only mean that the machine is noisy.
    """
    if any(_drift(measurer, result) for result in results):
        return
    lower = [(result.lower.load, result.goal) for result in results if result.lower is not None]
    upper = [(result.upper.load, result.goal) for result in results if result.upper is not None]
    with suppress(TrialNotDelivered):
        if lower:
            load, goal = min(lower, key=itemgetter(0))
            measurer.look_again(load, goal, good=True, tolerated=goal.relative_width)
        if upper:
            load, goal = max(upper, key=itemgetter(0))
            measurer.look_again(load, goal, good=False)


def _drift(measurer: _Measurer, result: GoalResult) -> str | None:
    """The contradiction between the bounds of a goal and the trials, in words."""
    lower, upper = (each.load if each else None for each in (result.lower, result.upper))
    seen = measurer.seen(result.goal)
    found = contradiction(seen, lower, upper)
    return None if found is None else found.in_words(seen)


def _constant_loss(measurer: _Measurer, results: Sequence[GoalResult]) -> float | None:
    """The loss ratio at all loads that the system under test carries, if it is the same at each of them."""
    received = _SURELY_CARRIED * max((each.receive_rate for each in measurer.all), default=0.0)
    return constant_loss(measurer.counted(max(received, *(result.rate or 0.0 for result in results))))


def _with_doubt(measurer: _Measurer, result: GoalResult, constant: float | None) -> GoalResult:
    if constant is not None and constant > result.goal.loss_ratio:
        return replace(result, doubt=depends_on_trial_length(constant, result.goal.name))
    if drift := _drift(measurer, result):
        return replace(result, doubt=f"drifted: {drift}", drifted=True)
    if bursts := _own_bursts(measurer, result):
        return replace(result, doubt=bursts, hasty=True)
    return result


def _own_bursts(measurer: _Measurer, result: GoalResult) -> str | None:
    """The reason why the tester itself may have caused the upper bound of a goal, or None.

    A sender that falls behind near the end of a trial sends faster than its load. The frames that it sends beyond its
    load are the most that the system under test can lose by that.
    """
    if result.upper is None:
        return None
    ratio = result.goal.loss_ratio
    bad = [way for each in measurer.results[result.upper.load] if (way := each.worst).loss_ratio > ratio]
    own = [way for way in bad if way.lost - way.hurried <= ratio * way.sent]
    if not own or 2 * len(own) < len(bad):
        return None
    return (
        f"the tester fell behind and caught up in haste: it sent up to {max(way.hurried for way in own)} frames of a "
        f"trial beyond its load, and these may be the loss in {len(own)} of {len(bad)} trials at the upper bound"
    )


def _conditional_throughput(stat: Any) -> float | None:
    if not stat:
        return None
    (counts,) = stat.target_to_stat.values()
    return float(stat) * (1.0 - float(counts.pessimistic_loss_ratio))
