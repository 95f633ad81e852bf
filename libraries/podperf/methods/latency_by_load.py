"""Latency by load: one trial each at 10, 50 and 90 % of the PDR and at the NDR, as FD.io CSIT reports it.

At 10 % a frame meets empty queues and sleeping threads, at 90 % busy ones. The trial at 50 % is that of the method
`latency`, which many tests have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from podperf.figures import kpps, microseconds, percent
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.presets import FurtherSettings
from podperf.metrics import METRICS, Metrics
from podperf.testers.base import TrialSource

NAME = "latency_by_load"
SHARES = {"10": 0.1, "90": 0.9}  # of the rate of the method `latency`
AT_NDR = "ndr"
SHOWN = ("minimum", "p50", "p90", "p99", "p99_9", "maximum")


@dataclass(frozen=True)
class LatencyByLoadResult:
    """One result for each step, by the step's name: 10, 90, ndr. `at_half` is that of the method `latency`."""

    steps: Mapping[str, LatencyResult]
    at_half: LatencyResult

    @property
    def metrics(self) -> Metrics:
        """The metrics of each step. Unfinished if the rate of the step is."""
        steps = self.steps.items()
        return {name: figure for step, result in steps for name, figure in result.figures(f"_at_{step}").items()}

    @property
    def by_load(self) -> Sequence[LatencyResult]:
        """All four, the lowest load first."""
        return sorted((*self.steps.values(), self.at_half), key=lambda each: each.trial.trial.load)

    @property
    def said(self) -> Sequence[str]:
        found = ((each.statement, each.latency) for each in self.by_load)
        return [
            f"{statement}: p50 {microseconds(latency.percentile(50))} us, p99 {microseconds(latency.percentile(99))} us"
            for statement, latency in found
            if latency is not None
        ]

    def as_record(self) -> Mapping[str, Any]:
        """Load, loss, percentiles and delay variation of each step."""
        missing = {name: reason for step in self.steps.values() for name, reason in step.missing.items()}
        return {"method": NAME, "steps": [each.as_record() for each in self.by_load], "missing": missing}


@dataclass(frozen=True)
class LatencyByLoad:
    """The trials beside `at_half`, which is there already."""

    trials: Mapping[str, LatencyAtShare]
    at_half: LatencyResult
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = True

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> LatencyByLoadResult | None:
        """See FurtherMethod. `amount`: seconds of a trial."""
        chain.searched("ndr")
        metrics = chain.metrics
        if (at_half := chain.latency()) is None:
            return None
        method = cls.beside(at_half, metrics, amount or chain.further_settings.latency_trial)
        return None if method is None else method.run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return (len(SHARES) + 1) * (settings.latency_trial + between)

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [
            (
                f"{percent(step['share'])} of the {step['of']}",
                kpps(step["load"]),
                percent(step["loss_ratio"]),
                *(microseconds(step["latency"][f"{name}_ns"]) if step["latency"] else "-" for name in SHOWN),
                "-" if (variation := step.get("delay_variation_ns")) is None else microseconds(variation),
            )
            for step in found["steps"]
        ]
        heads = ("Load", "kpps", "loss", *(f"{name.replace('_', '.')}, µs" for name in SHOWN), "PDV, µs")
        return MethodTable("Latency by load", rows, heads)

    @classmethod
    def beside(cls, at_half: LatencyResult, metrics: Metrics, duration: float) -> LatencyByLoad | None:
        """At shares of the rate of which `at_half` has the half, and at the NDR. None without such a rate."""
        half = LatencyAtShare.below(metrics)
        if half is None:
            return None
        trials = {name: replace(half, share=share, duration=duration) for name, share in SHARES.items()}
        if (ndr := metrics.get("ndr")) is not None and not ndr.upper_bound:
            trials[AT_NDR] = replace(LatencyAtShare.of_rate(ndr, METRICS["ndr"].label), share=1.0, duration=duration)
        return cls(trials, at_half)

    def run(self, source: TrialSource) -> LatencyByLoadResult:
        """Measure."""
        return LatencyByLoadResult({name: each.run(source) for name, each in self.trials.items()}, self.at_half)
