"""Maximum receive rate (MRR): the rate that comes back when the tester sends all it can (FD.io CSIT methodology)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jumpavg import AvgStdevStats

from podperf.errors import PodperfError
from podperf.methods.base import judged_by, loss_ratios
from podperf.metrics import Measured, Metrics
from podperf.model import Latency, TrialResult, merged_latency
from podperf.noise import Noise, total
from podperf.testers.base import PACED_SHARE, UNPACED, TrialSource, limited_by_tester
from podperf.topology import MethodSettings


@dataclass(frozen=True)
class MrrResult:
    """The trials of one MRR measurement. Rates are frames per second in the slower direction.

    `deviation` is the standard deviation of a population. CSIT's jumpavg, which tells a trend from noise, wants it so.
    """

    trials: tuple[TrialResult, ...]
    maximum_load: float

    @property
    def trial_duration(self) -> float:
        """The planned seconds of a trial. Some testers need longer trials than the topology's."""
        return self.trials[0].trial.duration

    @property
    def delivered_load(self) -> float:
        """The highest load, in frames/s and direction, that the tester surely delivers on this path.

        It is the load of the trials, or PACED_SHARE of the load that the tester sent in unpaced trials.
        """
        return max(trial.trial.load or PACED_SHARE * trial.achieved_load for trial in self.trials)

    @property
    def rates(self) -> tuple[float, ...]:
        """Receive rate of each trial in its slower direction."""
        return tuple(trial.receive_rate for trial in self.trials)

    @property
    def rate(self) -> float:
        """The result: the median of the receive rates, which one disturbed trial does not move."""
        return statistics.median(self.rates)

    @property
    def mean(self) -> float:
        """Mean of the receive rates."""
        return float(self._stats.avg)

    @property
    def deviation(self) -> float:
        """Standard deviation of the receive rates."""
        return float(self._stats.stdev)

    @property
    def relative_spread(self) -> float:
        """Largest minus smallest rate, divided by the median. 0 if nothing came back."""
        return (max(self.rates) - min(self.rates)) / self.rate if self.rate else 0.0

    @property
    def loss_ratio(self) -> float:
        """Lost over sent in all trials, of the direction that lost more."""
        return max(loss_ratios(self.trials).values())

    @property
    def tester_limited(self) -> bool:
        """True if the SUT may forward more, so that the rate is a lower bound."""
        return limited_by_tester(self.rate, self.loss_ratio, self.maximum_load)

    @property
    def metrics(self) -> Metrics:
        """The median receive rate, between the slowest and the fastest trial."""
        both = statistics.median(sum(way.receive_rate for way in trial.directions) for trial in self.trials)
        limited = self.tester_limited
        return {"mrr": Measured(self.rate, min(self.rates), max(self.rates), lower_bound=limited, aggregate=both)}

    @property
    def latency(self) -> Latency | None:
        """Latency under this overload, all trials together."""
        return merged_latency(trial.latency for trial in self.trials)

    @property
    def noise(self) -> Noise | None:
        """The noise on the measuring CPUs, or None if podperf did not watch them."""
        return total(trial.noise for trial in self.trials)

    @property
    def _stats(self) -> Any:
        return AvgStdevStats.for_runs(self.rates)

    def as_record(self) -> Mapping[str, Any]:
        """Rates, spread, loss and latency, with the parameters."""
        return {
            "method": "mrr",
            **judged_by(len(self.trials[0].directions)),
            "rate": self.rate,
            "tester_limited": self.tester_limited,
            "delivered_load": self.delivered_load,
            "rates": list(self.rates),
            "rates_by_direction": {
                first.direction.value: [trial.directions[index].receive_rate for trial in self.trials]
                for index, first in enumerate(self.trials[0].directions)
            },
            "mean": self.mean,
            "deviation": self.deviation,
            "minimum": min(self.rates),
            "maximum": max(self.rates),
            "relative_spread": self.relative_spread,
            "loss_ratio": self.loss_ratio,
            "latency": self.latency and self.latency.as_record(),
            "maximum_load": self.maximum_load,
            "trial_count": len(self.trials),
            "trial_duration": self.trial_duration,
            "noise": None if (noise := self.noise) is None else noise.as_record(),
        }


@dataclass(frozen=True)
class Mrr:
    """`trials` trials of `duration` seconds, as fast as the tester can send."""

    trials: int = 5
    duration: float = 1.0

    name = "mrr"

    @classmethod
    def by(cls, settings: MethodSettings) -> Mrr:
        """With the trials of these settings."""
        return cls(settings.mrr_trials, settings.mrr_trial_duration)

    def __post_init__(self) -> None:
        if self.trials < 1 or self.duration <= 0:
            raise PodperfError(
                f"MRR needs 1 or more trials of more than 0 s, not {self.trials} of {self.duration:g} s; "
                "see method in the topology file"
            )

    def run(self, source: TrialSource) -> MrrResult:
        """Measure."""
        results = tuple(source.measure(UNPACED, self.duration) for _ in range(self.trials))
        return MrrResult(results, source.maximum_load)
