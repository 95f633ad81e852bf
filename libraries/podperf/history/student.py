"""Student's t distribution for whole degrees of freedom. Pure."""

from __future__ import annotations

import math
from functools import cache


def within(t: float, freedom: int) -> float:
    """The probability that a Student variable lies between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for step in range(1, freedom // 2 + 1):
        total += term
        term *= cosine**2 * (2 * step / (2 * step + 1) if odd else (2 * step - 1) / (2 * step))
    series = math.sin(angle) * total
    return 2 / math.pi * (angle + series) if odd else series


@cache
def quantile(confidence: float, freedom: int) -> float:
    """The t that a Student variable exceeds in neither direction with this probability (0 < confidence < 1)."""
    low, high = 0.0, 1.0
    while within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return high
