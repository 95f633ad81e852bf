"""Finds change points in a series of figures, and compares the newest figures with the figures before. Pure arithmetic.

The figures have equal fingerprints, are more than 0, and are in the order of their runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from jumpavg import classify

from podperf.metrics import Resolution

LEAST = 5  # the fewest runs that a change is compared with
TOGETHER = (3, 8, 2, 1)  # newest runs that are looked at together where there is no change point; the first tells X
NEW = 20  # runs for which a change is told; after as many it is what later runs are measured against
WINDOW = 80  # newest figures of a series among which change points are looked for
CONFIDENCE = 0.9999  # of an interval. A run has a hundred figures or more, and each is judged
RESOLUTION = 1 / 8192  # of the largest figure: jumpavg (12 significant bits) sees no smaller change
LEAST_COUNTED = 1  # the same as LEAST, for counted figures
MOST_STEPS = 3  # among NEW figures. A counted figure with more of them must repeat in every other run


@dataclass(frozen=True)
class Group:
    """Figures from `start` up to, not including, `end`, which jumpavg takes for one population."""

    start: int
    end: int
    mean: float

    def __len__(self) -> int:
        """The number of figures."""
        return self.end - self.start


@dataclass(frozen=True)
class Change:
    """The newest figures compared with those before: a share (less than 0 for a drop), and its interval.

    `found`: there is a change. `confirmed`: more than one run shows it. `accepted` is the place of the reference's last
    figure, if figures are counted: -1 is the newest figure of all, -2 the one before it.
    """

    share: float
    low: float
    high: float
    recent: int  # runs
    reference: int
    found: bool
    confirmed: bool
    accepted: int | None = None

    @property
    def most(self) -> float:
        """The largest possible change in either direction, as a share."""
        return max(abs(self.low), abs(self.high))


def groups(figures: Sequence[float]) -> tuple[Group, ...]:
    """The groups of figures between change points, in order. The time grows with the square of their number: see
    WINDOW."""
    return _groups(tuple(figures))


@lru_cache(maxsize=1024)  # for the verdict, the plot and the table of change points
def _groups(figures: tuple[float, ...]) -> tuple[Group, ...]:
    found, start = [], 0
    for each in classify(figures) if figures else ():
        end = start + len(each)
        found.append(Group(start, end, statistics.fmean(figures[start:end])))
        start = end
    return tuple(found)


def newest_change(figures: Sequence[float]) -> Change | None:
    """The change that the newest figures show. None if too few figures are before them.

    A group of fewer than LEAST figures before the newest group, such as one disturbed run, is nothing to measure a
    change against. It is left out, and the figures around it are grouped again.
    """
    found, before = groups(figures), list[float]()
    while short := next((each for each in found[:-1] if len(each) < LEAST), None):
        before = list(figures[short.start : short.end]) if short is found[-2] else before
        figures = [*figures[: short.start], *figures[short.end :]]
        found = groups(figures)
    if not found:
        return None
    newest = found[-1]
    if len(found) > 1 and len(newest) <= NEW:
        reference = found[-2]
        # A group that was left out, and that changed in the same direction, is a part of this change.
        alike = (
            before if before and (statistics.fmean(before) < reference.mean) == (newest.mean < reference.mean) else ()
        )
        newer = [*alike, *figures[newest.start :]]
        return _change(figures[reference.start : reference.end], newer, confirmed=len(newer) > 1)
    last = figures[newest.start :]
    together = [runs for runs in TOGETHER if runs <= len(last) - LEAST]
    changes = [_change(last[:-runs], last[-runs:], confirmed=runs > 1) for runs in together]
    return next((change for change in changes if change.found), changes[0] if changes else None)


def newest_counted_change(
    figures: Sequence[float], resolution: Resolution, accepts: Callable[[float], bool] = lambda _: False
) -> Change | None:
    """The change that the newest figures show, if figures without a change differ by no more than the resolution.

    The newest figures are compared with the level that was accepted last. That is the first level; later it is a level
    with less of the figure, one that has lasted for more than NEW runs, or one whose step (a share) `accepts` knows.
    One run shows a change. A row that steps up and down all the time does not repeat: there, a change is found only if
    the newest figure is outside of the range of those before. None if no figure is before the newest.
    """
    if len(figures) <= LEAST_COUNTED:
        return None
    figures = figures[-WINDOW:]
    found, near = _levels(figures, resolution), figures[-NEW:]
    steps = sum(each.start > len(figures) - len(near) for each in found[1:])
    if steps > max(MOST_STEPS, (len(near) - 1) / 2):
        return _beyond_range(near[:-1], near[-1], resolution)
    accepted = found[0]
    for each in found[1:]:
        share = each.mean / accepted.mean - 1
        if len(each) > NEW or (each is not found[-1] and (share < 0 or accepts(share))):
            accepted = each
    newest = figures[found[-1].start :]
    if accepted is found[-1]:
        return _counted(newest[:-1], newest[-1:], resolution, -2)
    return _counted(figures[accepted.start : accepted.end], newest, resolution, accepted.end - 1 - len(figures))


def _levels(figures: Sequence[float], resolution: Resolution) -> list[Group]:
    """The figures in their order. A new group begins where a figure is not that of the group before it."""
    found: list[Group] = []
    for index, each in enumerate(figures):
        start = index
        if found:
            level = statistics.median(figures[found[-1].start : index])
            if abs(each - level) <= resolution.of(level):
                start = found.pop().start
        found.append(Group(start, index + 1, statistics.fmean(figures[start : index + 1])))
    return found


def _counted(reference: Sequence[float], recent: Sequence[float], resolution: Resolution, accepted: int) -> Change:
    base, newest = statistics.median(reference), statistics.median(recent)
    share, half = newest / base - 1, resolution.of(base) / base
    found = abs(share) > half
    low, high = (share - half, share + half) if found else (-half, half)
    return Change(share, low, high, len(recent), len(reference), found, found, accepted)


def _beyond_range(before: Sequence[float], newest: float, resolution: Resolution) -> Change:
    """The newest figure beside the nearer end of the range of those before. Within the range, the range is told."""
    low, high = min(before), max(before)
    if not low <= newest <= high:
        end = low if newest < low else high
        last = max(place for place, each in enumerate(before) if each == end) - len(before) - 1
        return replace(_counted([end], [newest], resolution, last), reference=len(before))
    share, change = (high - low) / low, newest / statistics.median(before) - 1
    return Change(change, -share, share, 1, len(before), found=False, confirmed=False, accepted=-2)


def _change(reference: Sequence[float], recent: Sequence[float], *, confirmed: bool) -> Change:
    """Both have the deviation of one population: that of the figures around the mean of their part."""
    base, mean = statistics.fmean(reference), statistics.fmean(recent)
    squares = sum((each - base) ** 2 for each in reference) + sum((each - mean) ** 2 for each in recent)
    freedom = len(reference) + len(recent) - 2
    error = math.sqrt(squares / freedom * (1 / len(reference) + 1 / len(recent))) / base
    half, share = max(quantile(CONFIDENCE, freedom) * error, RESOLUTION), mean / base - 1
    low, high = share - half, share + half
    return Change(share, low, high, len(recent), len(reference), not low <= 0 <= high, confirmed)


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
