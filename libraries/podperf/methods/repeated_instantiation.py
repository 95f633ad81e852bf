"""Repeated instantiation: one chain is set up again and again. How much do its rate and the set-up time vary?

Version 05 of the draft wants it, because each instance has other addresses, other hash seeds and other memory. Each
instance has several trials: so the variation from one instance to the next is told apart from that between two trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.errors import PodperfError
from podperf.figures import kpps, milliseconds, number, percent
from podperf.methods.base import MeasuredChain, MethodTable, StandingInstance
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.testers.base import UNPACED

NAME = "repeated_instantiation"
TRIALS = 2  # of each instance
WARM_UP = 0.1  # seconds of a trial that does not count


@dataclass(frozen=True)
class Instance:
    """The seconds of a set-up, and the receive rates of its unpaced trials in frames/s and direction."""

    seconds: float
    rates: tuple[float, ...]

    @property
    def rate(self) -> float:
        """The mean of its trials."""
        return statistics.fmean(self.rates)


@dataclass(frozen=True)
class RepeatedInstantiationResult:
    """All instances in their order."""

    instances: tuple[Instance, ...]
    trial_duration: float

    @property
    def rates(self) -> list[float]:
        """The rate of each instance."""
        return [instance.rate for instance in self.instances]

    @property
    def seconds(self) -> list[float]:
        """The set-up time of each instance."""
        return [instance.seconds for instance in self.instances]

    @property
    def within(self) -> float:
        """The standard deviation from one trial of an instance to the next one, in frames/s."""
        return math.sqrt(statistics.fmean(statistics.variance(instance.rates) for instance in self.instances))

    @property
    def between(self) -> float:
        """The standard deviation that the instances themselves add, in frames/s: one-way analysis of variance."""
        by_chance = self.within**2 / len(self.instances[0].rates)
        return math.sqrt(max(0.0, statistics.variance(self.rates) - by_chance))

    @property
    def metrics(self) -> Metrics:
        """The mean set-up time, and the variation of the rate. No variation if nothing came back."""
        found = {"set_up_time": Measured(statistics.fmean(self.seconds), min(self.seconds), max(self.seconds))}
        if mean := statistics.fmean(self.rates):
            found["rate_variation"] = Measured(statistics.stdev(self.rates) / mean)
        return found

    @property
    def said(self) -> Sequence[str]:
        return [f"set up in {number(instance.seconds)} s, {kpps(instance.rate)} kpps" for instance in self.instances]

    def as_record(self) -> Mapping[str, Any]:
        """Rates and set-up times of each instance, and their spread."""
        mean = statistics.fmean(self.rates)
        return {
            "method": NAME,
            "source": "version 05 of the draft",
            "instances": [
                {"set_up_seconds": instance.seconds, "rates": list(instance.rates)} for instance in self.instances
            ],
            "rate": _spread(self.rates),
            "set_up_seconds": _spread(self.seconds),
            "variation_within": self.within / mean if mean else None,
            "variation_between": self.between / mean if mean else None,
            "trial_duration": self.trial_duration,
        }


def _spread(figures: Sequence[float]) -> Mapping[str, float]:
    return {
        "mean": statistics.fmean(figures),
        "deviation": statistics.stdev(figures),
        "minimum": min(figures),
        "maximum": max(figures),
    }


@dataclass(frozen=True)
class RepeatedInstantiation:
    """`set_ups` instances (2 or more), each with TRIALS unpaced trials of `duration` seconds."""

    set_ups: int
    duration: float
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = False

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> RepeatedInstantiationResult:
        """See FurtherMethod. `amount`: set-ups. No chain is left."""
        set_ups = chain.further_settings.set_ups if amount is None else round(amount)
        if set_ups < 2:
            raise PodperfError(f"a variation needs 2 or more set-ups, not {set_ups}")
        chain.known_limits()
        return cls(set_ups, chain.further_settings.set_up_trial).run(chain.instances(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return settings.set_ups * (set_up + TRIALS * (settings.set_up_trial + between))

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [
            (str(place), milliseconds(each["set_up_seconds"]), ", ".join(map(kpps, each["rates"])))
            for place, each in enumerate(found["instances"], 1)
        ]
        within, between = found["variation_within"], found["variation_between"]
        known = within is not None and between is not None
        parts = f"{percent(within)} from trial to trial, {percent(between)} added by the set-ups" if known else ""
        words = f"Standard deviation of the rate, of its mean: {parts}." if known else ""
        title = f"Repeated instantiation ({found['source']}): {len(found['instances'])} set-ups"
        return MethodTable(title, rows, ("Set-up", "took", "MRR, kpps"), words)

    def run(self, build: Callable[[], AbstractContextManager[StandingInstance]]) -> RepeatedInstantiationResult:
        """Measure. `build` sets an instance up, and takes it down at the end of the context."""
        found, duration = [], self.duration
        for _ in range(self.set_ups):
            with build() as instance:
                instance.source.measure(UNPACED, WARM_UP)
                trials = [instance.source.measure(UNPACED, self.duration) for _ in range(TRIALS)]
            found.append(Instance(instance.seconds, tuple(trial.receive_rate for trial in trials)))
            duration = trials[0].trial.duration
        return RepeatedInstantiationResult(tuple(found), duration)
