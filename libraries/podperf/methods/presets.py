"""Search presets as data: their goals, their trials, and the source of each attribute. Terms are those of RFC 9971.

To add a preset, add an entry to `PRESETS`. No other code knows their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from podperf.errors import PodperfError
from podperf.metrics import METRICS


@dataclass(frozen=True)
class FurtherSettings:
    """The trials of each method, as its module explains them. `as_wanted`: as long as the documents want them."""

    as_wanted: bool
    loss_curve_trial: float
    repeated_bursts: int
    longest_burst: float
    latency_trial: float
    recovery_trials: int
    overload: float
    after_overload: float
    reconfigurations: int
    reconfiguration_trial: float
    set_ups: int
    set_up_trial: float
    soak: float
    soak_interval: float
    application_runs: int
    application_run: float
    most_pairs: int
    pairs_trials: int
    pairs_trial: float


AS_WANTED = FurtherSettings(
    as_wanted=True,
    loss_curve_trial=60.0,  # RFC 2544 section 24
    repeated_bursts=50,  # RFC 2544 section 26.4
    longest_burst=2.0,  # the same section
    latency_trial=120.0,  # RFC 2544 section 26.2
    recovery_trials=10,  # RFC 2544 section 26.5 wants several
    overload=60.0,  # the same section
    after_overload=60.0,
    reconfigurations=6,  # podperf: the fewest pairs that bound the median with 95 % confidence
    reconfiguration_trial=60.0,  # RFC 2544 section 24
    set_ups=20,  # podperf
    set_up_trial=1.0,  # as MRR of FD.io CSIT
    soak=6 * 3600.0,  # podperf
    soak_interval=60.0,  # ETSI GS NFV-TST 009 clause 12.3.3, as any of its trials
    application_runs=6,  # podperf: the fewest with which slowest and fastest run bound the median with 95 % confidence
    application_run=10.0,  # the default of iperf3 and netperf
    most_pairs=16,  # podperf
    pairs_trials=3,  # podperf: the median of them
    pairs_trial=10.0,  # podperf: as an application's run
)
SHORT = replace(
    AS_WANTED,
    as_wanted=False,
    loss_curve_trial=0.5,
    repeated_bursts=10,
    longest_burst=0.5,
    latency_trial=1.0,
    overload=1.0,
    after_overload=1.0,
    reconfiguration_trial=2.0,
    set_up_trial=0.3,
    soak=60.0,
    soak_interval=3.0,
    application_run=1.0,
    pairs_trial=1.0,
)


@dataclass(frozen=True)
class Goal:
    """A search goal of RFC 9971: the loss that a load may have, and the width of the answer. Durations are in seconds.

    A trial is bad if its loss ratio is above `loss_ratio`. A load is a lower bound if at most `exceed_ratio` of its
    trials (by time) are bad; the trials have `final_trial_duration` each and `duration_sum` together. The goal is
    reached when lower and upper bound are within `relative_width` of each other. Earlier, coarser phases
    (`preceding_targets`) start with trials of `initial_trial_duration`.
    """

    name: str
    loss_ratio: float
    exceed_ratio: float
    relative_width: float
    initial_trial_duration: float
    final_trial_duration: float
    duration_sum: float
    preceding_targets: int = 2
    expansion_coefficient: int = 2

    def with_trials_of(self, shortest: float) -> Goal:
        """This goal with no trial shorter than this."""
        return replace(
            self,
            initial_trial_duration=max(shortest, self.initial_trial_duration),
            final_trial_duration=max(shortest, self.final_trial_duration),
        )


@dataclass(frozen=True)
class Preset:
    """The goals of one search, the strictest first, and the settings for all of them.

    `warmup_duration`: seconds of one trial at maximum load that does not count. `search_duration_max`: seconds after
    which the search stops with the bounds so far. `minimum_load`: the lowest load of a trial, in frames/s and
    direction. `sources` has the source of each attribute. `adapted` describes the differences for the present tester,
    or is empty. `further` are the settings of the methods beside MRR and the search.
    """

    name: str
    summary: str
    goals: tuple[Goal, ...]
    warmup_duration: float
    search_duration_max: float
    minimum_load: float
    sources: Mapping[str, str]
    adapted: str = ""
    further: FurtherSettings = AS_WANTED

    def with_goal(self, loss_ratio: float | None) -> Preset:
        """This preset with a goal of the user's loss ratio, if there is one. The limit of time grows with the goals."""
        if loss_ratio is None:
            return self
        own = replace(self.goals[0], name=OWN_GOAL, loss_ratio=loss_ratio)
        goals = tuple(sorted((*self.goals, own), key=lambda goal: goal.loss_ratio))
        sources = {**self.sources, "loss_ratio": f"{self.sources['loss_ratio']}; {OWN_GOAL}: the topology"}
        limit = self.search_duration_max * len(goals) / len(self.goals)
        return replace(self, goals=goals, sources=MappingProxyType(sources), search_duration_max=limit)

    def for_tester(self, shortest_trial: float) -> Preset:
        """This preset without trials that are shorter than `shortest_trial` seconds, which the tester needs."""
        goals = tuple(goal.with_trials_of(shortest_trial) for goal in self.goals)
        if goals == self.goals:
            return self
        usual = min(goal.initial_trial_duration for goal in self.goals)
        adapted = f"trials of {shortest_trial:g} s, not {usual:g} s: the shortest that this tester can do well"
        warmup = max(self.warmup_duration, shortest_trial) if self.warmup_duration else 0.0
        return replace(self, goals=goals, warmup_duration=warmup, adapted=adapted)

    def as_record(self) -> Mapping[str, Any]:
        """Every attribute in JSON types."""
        return {
            "name": self.name,
            "goals": list(map(asdict, self.goals)),
            "warmup_duration": self.warmup_duration,
            "search_duration_max": self.search_duration_max,
            "minimum_load": self.minimum_load,
            "sources": dict(self.sources),
            "adapted": self.adapted,
        }


EFFECTIVE_DURATION = (
    "Trial Effective Duration: the time of the whole trial, with its start, the wait for the last frames and the "
    "reading of counters, but at least the Trial Duration. Goal Duration Sum and Goal Exceed Ratio are about sums of "
    "effective durations. The record has that of each trial."
)
OWN_GOAL = METRICS["goal_rate"].label
PDR_LOSS_RATIO = 0.005  # FD.io CSIT and NFVbench practice
_MLRSEARCH = "default of the MLRsearch package 1.2.1, by FD.io CSIT"


def _ndr_pdr(ndr: Goal) -> tuple[Goal, Goal]:
    """The zero-loss goal, and the same for a partial drop rate of 0.5 %."""
    return ndr, replace(ndr, name="PDR", loss_ratio=PDR_LOSS_RATIO)


_QUICK = Preset(
    name="quick",
    summary="5 to 15 s a search, for a laptop or a noisy VM; bounds within 4 %; meets neither RFC 2544 nor TST 009",
    goals=_ndr_pdr(
        Goal(
            "NDR",
            loss_ratio=0.0,
            exceed_ratio=0.5,
            relative_width=0.04,
            initial_trial_duration=0.2,
            final_trial_duration=0.2,
            duration_sum=2.6,
            preceding_targets=1,
        )
    ),
    warmup_duration=0.3,
    search_duration_max=25.0,
    minimum_load=1000.0,
    sources=MappingProxyType(
        {
            "loss_ratio": "NDR: RFC 2544 section 26.1; PDR: FD.io CSIT",
            "exceed_ratio": "FD.io CSIT: a load counts as carried when half of its trials are good",
            "everything else": "tuned with benchmarks/search_presets.py on a model of a VM with stalls",
        }
    ),
    further=SHORT,
)

_MLRSEARCH_ATTRIBUTES = dict.fromkeys(
    (*(each.name for each in fields(Goal)[2:]), "warmup_duration", "search_duration_max"), _MLRSEARCH
)


def _careful(name: str, summary: str, goal: Goal, search_duration_max: float, sources: Mapping[str, str]) -> Preset:
    """A preset with MLRsearch's defaults, except the attributes in `sources`. RFC 2544 knows no partial drop rate."""
    return Preset(
        name=name,
        summary=summary,
        goals=_ndr_pdr(goal) if goal.exceed_ratio else (goal,),
        warmup_duration=1.0,
        search_duration_max=search_duration_max,
        minimum_load=1000.0,
        sources=MappingProxyType({**_MLRSEARCH_ATTRIBUTES, **sources}),
    )


def _zero_loss(exceed_ratio: float, final_trial_duration: float, duration_sum: float) -> Goal:
    return Goal(
        "NDR",
        loss_ratio=0.0,
        exceed_ratio=exceed_ratio,
        relative_width=0.005,
        initial_trial_duration=1.0,
        final_trial_duration=final_trial_duration,
        duration_sum=duration_sum,
    )


_CSIT = _careful(
    "csit",
    "as FD.io CSIT measures: trials of 1 s, up to 21 of them at a load; bounds within 0.5 %",
    _zero_loss(exceed_ratio=0.5, final_trial_duration=1.0, duration_sum=21.0),
    search_duration_max=1200.0,
    sources={
        "loss_ratio": "NDR: RFC 2544 section 26.1; PDR: FD.io CSIT",
        "minimum_load": "podperf: 1000 frames/s; CSIT takes 9001, above what a busy VM may carry",
    },
)

_TST009 = _careful(
    "tst009",
    "binary search with loss verification, r = 2: a lossy trial of 60 s is tried once more",
    _zero_loss(exceed_ratio=0.5, final_trial_duration=60.0, duration_sum=120.0),
    search_duration_max=7200.0,
    sources={
        "loss_ratio": "NDR: ETSI GS NFV-TST 009 clause 12.3.3; PDR: FD.io CSIT, under the same verification",
        "exceed_ratio": "RFC 9971, TST009 goal (r = 2, z = infinity)",
        "final_trial_duration": "RFC 9971, TST009 goal",
        "duration_sum": "RFC 9971, TST009 goal",
        "initial_trial_duration": _MLRSEARCH + "; short trials only narrow the search",
        "search_duration_max": "podperf: two hours",
        "minimum_load": "podperf: 1000 frames/s",
    },
)

_RFC2544 = _careful(
    "rfc2544",
    "the throughput of RFC 2544: no frame lost in 60 s, no second chance",
    _zero_loss(exceed_ratio=0.0, final_trial_duration=60.0, duration_sum=60.0),
    search_duration_max=3600.0,
    sources={
        "loss_ratio": "RFC 2544 section 26.1",
        "exceed_ratio": "RFC 9971, RFC2544 goal",
        "final_trial_duration": "RFC 2544 section 24",
        "duration_sum": "RFC 9971, RFC2544 goal",
        "initial_trial_duration": _MLRSEARCH + "; a lossy short trial spares a long one",
        "search_duration_max": "podperf: one hour",
        "minimum_load": "podperf: 1000 frames/s",
    },
)

PRESETS: Mapping[str, Preset] = MappingProxyType({each.name: each for each in (_QUICK, _CSIT, _TST009, _RFC2544)})


def preset(name: str) -> Preset:
    """The preset of this name. For an unknown name, raises PodperfError with all names."""
    try:
        return PRESETS[name]
    except KeyError:
        raise PodperfError(f"there is no search preset {name!r}; choose one of: {', '.join(PRESETS)}") from None
