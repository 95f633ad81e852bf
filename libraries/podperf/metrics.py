"""From what the methods found to the figures that records, thresholds and reports speak of. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from podperf.figures import kpps
from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import GoalResult, SearchResult
from podperf.model import Latency
from podperf.topology import Metric
from podperf.verdicts import Measured, Metrics


@dataclass(frozen=True)
class Figures:
    """A test's figures: its metrics, and the latency of the trial that speaks for it (`latency_of` says which)."""

    metrics: Metrics
    latency: Latency | None
    latency_of: str


def figures(mrr: MrrResult | None, search: SearchResult | None) -> Figures:
    """The figures of one test. Latency is that at the NDR where there is one, else at the PDR, else under overload."""
    metrics: dict[Metric, Measured] = {}
    candidates: list[tuple[Latency | None, str]] = []
    goals: tuple[tuple[Metric, str], ...] = (("ndr", "NDR"), ("pdr", "PDR"))
    for metric, name in goals:
        goal = search.goal(name) if search is not None else None
        measured = _measured(goal) if goal is not None else None
        if goal is not None and measured is not None:
            metrics[metric] = measured
            candidates.append((goal.latency, f"the last trial at the {name}, {kpps(measured.value)} kpps"))
    if mrr is not None:
        metrics["mrr"] = Measured(mrr.rate, min(mrr.rates), max(mrr.rates), mrr.tester_limited)
        candidates.append((mrr.latency, "the MRR trials, under overload"))
    latency, of = next((each for each in candidates if each[0] is not None), (None, ""))
    if latency is not None:
        metrics["latency_p50"] = Measured(float(latency.percentile(50)))
        metrics["latency_p99"] = Measured(float(latency.percentile(99)))
    return Figures(metrics, latency, of)


def _measured(goal: GoalResult) -> Measured | None:
    """A goal's rate with the bounds around it; None when the search told nothing about it."""
    upper = goal.upper.load if goal.upper is not None else None
    if goal.lower is not None and goal.rate is not None:
        return Measured(goal.rate, min(goal.rate, goal.lower.load), upper, goal.tester_limited)
    return None if upper is None else Measured(upper, None, upper, upper_bound=True)
