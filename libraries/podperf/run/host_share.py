"""Measures pods of a cluster by turns with pods in the networks of its nodes: rate, CPU time, and round trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from podperf.errors import TrialNotDelivered
from podperf.experiments.comparison import ComparisonOutcome
from podperf.experiments.contender import Contender
from podperf.experiments.host_share import (
    FURTHER_TRIAL,
    NAME,
    OF_CPU_TIME,
    PODS,
    ROUND_TRIP,
    ROUND_TRIP_LOAD,
    HostShare,
    cpu_times,
    further_shares,
    load_of_both,
    round_trips,
)
from podperf.methods.cpu_time import TRAIN
from podperf.metrics import METRICS
from podperf.model import TrialResult
from podperf.records import Figures
from podperf.run.experiment import VariantRounds
from podperf.run.measurement import Measurement

_NO_CPU_TIME = "receive threads do the network's work for frames, and they are no part of a pod"
_NO_ROUND_TRIPS = "frames come back between pods on two nodes only, and not through a Service"
_TOO_FEW = "too few rounds have it"


@dataclass
class HostShareRounds(VariantRounds):
    """The rounds of pods beside the networks of their nodes.

    With `further`, each round but the first one also has CPU time and round trips. Their load is the same in both
    places and in all rounds, and comes from the rates of the first round.
    """

    further: bool = False
    _rounds: dict[int, dict[str, Mapping[str, float]]] = field(default_factory=dict)
    _without: dict[str, str] = field(default_factory=dict)  # by the name of a share: why a trial had no figure for it

    def measure_share(self) -> ComparisonOutcome:
        """Measure. The record describes the pods, and has their shares as figures."""
        outcome, record = self.measure(), self.test.record
        self._contenders.describe_only(PODS)
        document = {**outcome.to_json(), **self._further_as_record()}
        record.methods = {NAME: document}
        for share in HostShare.all_of(document):
            self.test.keep({name: replace(figure, doubt=outcome.doubt) for name, figure in share.metrics.items()})
        return outcome

    @property
    def _load(self) -> float:
        return load_of_both(self.found.rounds[0]) if self.found else 0.0

    def _further_as_record(self) -> Mapping[str, object]:
        if not self.further:
            return {}
        found = further_shares(list(self._rounds.values()))
        missing = {
            METRICS[name].label: f"not measured: {self._without.get(name, _TOO_FEW)}"
            for name in (*OF_CPU_TIME, ROUND_TRIP)
            if name not in found
        }
        how = {"load": self._load, "trial_seconds": FURTHER_TRIAL, "train": TRAIN}
        return {"further": {**how, "shares": found}, "missing": missing}

    def _measure(self, variant: Contender, measurement: Measurement) -> None:
        super()._measure(variant, measurement)
        if not self.further or self.found is None:
            return
        facts, figures = measurement.sut.tester.facts, dict[str, float]()
        if facts.reads_cpu_time:
            figures |= self._trial(measurement, "CPU time", self._load, cpu_times, OF_CPU_TIME, train=TRAIN)
        else:
            self._without |= dict.fromkeys(OF_CPU_TIME, _NO_CPU_TIME)
        if facts.returns_frames:
            load = ROUND_TRIP_LOAD * self._load
            figures |= self._trial(measurement, "round trips", load, round_trips, (ROUND_TRIP,), round_trip=True)
        else:
            self._without[ROUND_TRIP] = _NO_ROUND_TRIPS
        self._rounds.setdefault(len(self.found.rounds), {})[variant.name] = figures

    def _trial(
        self,
        measurement: Measurement,
        what: str,
        load: float,
        figures_of: Callable[[TrialResult], Mapping[str, float]],
        names: tuple[str, ...],
        train: int = 1,
        *,
        round_trip: bool = False,
    ) -> Mapping[str, float]:
        """The figures of one trial. The rate is worth no less without them."""
        test = replace(measurement.test, apart=Figures(), phase=f"{measurement.test.phase}, {what}")
        sut, traffic, limits = measurement.sut, measurement.traffic, measurement.known_limits()
        source = test.trials(sut, "", traffic, limits, train=train, round_trip=round_trip)
        try:
            trial = source.measure(load, FURTHER_TRIAL)
        except TrialNotDelivered as error:
            self._without |= dict.fromkeys(names, str(error))
            return {}
        if trial.cpu_time and trial.cpu_time.unread:
            self._without |= dict.fromkeys(names, trial.cpu_time.unread)
        return figures_of(trial)
