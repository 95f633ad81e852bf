"""From what the methods found to the figures that thresholds and reports speak of. Pure."""

from __future__ import annotations

from podperf.methods.mrr import MrrResult
from podperf.methods.ndrpdr import GoalResult
from podperf.verdicts.thresholds import Measured


def of_mrr(result: MrrResult) -> Measured:
    """The median receive rate, between the slowest and the fastest trial."""
    return Measured(result.rate, min(result.rates), max(result.rates), lower_bound=result.tester_limited)


def of_goal(result: GoalResult) -> Measured | None:
    """A search goal's rate between the relevant bounds, as far as those have all the trials that the goal asks for.

    Where no load was low enough, an upper bound; None when the search told nothing about this goal.
    """
    lower, upper, unfinished = result.lower, result.upper, not result.complete
    high = upper.load if upper is not None and not upper.coarse else None
    if lower is not None and result.rate is not None:
        low = min(result.rate, lower.load) if not lower.coarse else None
        return Measured(result.rate, low, high, lower_bound=result.tester_limited, unfinished=unfinished)
    return None if upper is None else Measured(upper.load, high=high, upper_bound=True, unfinished=unfinished)
