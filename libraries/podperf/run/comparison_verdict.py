"""The verdict on the result of a comparison, by the kind of its claim."""

from __future__ import annotations

from podperf.methods.comparison import ComparisonResult
from podperf.verdicts.density_claim import DensityClaim, judge_density
from podperf.verdicts.findings import Finding, Order, judge


def judged(order: Order, result: ComparisonResult, doubt: str) -> Finding:
    """The finding. With a `doubt` about the tester (in words), it neither confirms nor refutes the claim."""
    rates = [result.rates(str(each)) for each in order.contenders]
    if isinstance(order, DensityClaim):
        of_chains = [result.rates_by_group(str(each)) for each in order.contenders]
        limited = [any(rate.lower_bound for rate in found) for found in rates]
        return judge_density(order, of_chains, limited, doubt=doubt)
    return judge(order, rates, result.noisy_trials, doubt=doubt)
