"""Finds change points in a series of figures, and compares the newest figures with the figures before. Pure arithmetic.

The figures have equal fingerprints, are more than 0, and are in the order of their runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jumpavg import classify

from podperf.history.student import quantile
from podperf.metrics import Resolution

LEAST = 5  # the fewest runs that a change is compared with
TOGETHER = (3, 8, 2, 1)  # newest runs that are looked at together where there is no change point; the first tells X
NEW = 20  # runs for which a change is told; after as many it is what later runs are measured against
WINDOW = 80  # newest figures of a series among which change points are looked for
CONFIDENCE = 0.9999  # of an interval. A run has a hundred figures or more, and each is judged
RESOLUTION = 1 / 8192  # of the largest figure: jumpavg (12 significant bits) sees no smaller change
LEAST_COUNTED = 1  # the same as LEAST, for counted figures
MOST_STEPS = 3  # among NEW figures. A row whose counted figure changes more often does not repeat


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

    `found`: there is a change. `confirmed`: more than one run shows it.
    """

    share: float
    low: float
    high: float
    recent: int  # runs
    reference: int
    found: bool
    confirmed: bool

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
    found, before = groups(figures), None
    while short := next((each for each in found[:-1] if len(each) < LEAST), None):
        before = short if short is found[-2] else before
        figures = [*figures[: short.start], *figures[short.end :]]
        found = groups(figures)
    if not found:
        return None
    newest = found[-1]
    if len(found) > 1 and len(newest) <= NEW:
        reference = found[-2]
        repeated = before is not None and (before.mean < reference.mean) == (newest.mean < reference.mean)
        return _change(
            figures[reference.start : reference.end],
            figures[newest.start :],
            change_point=True,
            confirmed=len(newest) > 1 or repeated,
        )
    last = figures[newest.start :]
    together = [runs for runs in TOGETHER if runs <= len(last) - LEAST]
    changes = [_change(last[:-runs], last[-runs:], change_point=False, confirmed=runs > 1) for runs in together]
    return next((each for each in changes if each.found), changes[0] if changes else None)


def newest_counted_change(figures: Sequence[float], resolution: Resolution) -> Change | None:
    """The change that the newest figures show, if figures without a change differ by no more than the resolution.

    One run shows a change. A row whose figures step up and down does not repeat: no change is found there, and the
    interval is the range of its figures. None if no figure is before the newest.
    """
    if len(figures) <= LEAST_COUNTED:
        return None
    figures = figures[-WINDOW:]
    found = _levels(figures, resolution)
    steps = sum(each.start > len(figures) - NEW for each in found[1:])
    if len(found) > 1 and len(found[-1]) <= NEW and steps <= MOST_STEPS:
        return _counted(figures[found[-2].start : found[-2].end], figures[found[-1].start :], resolution, found=True)
    recent = figures[found[-1].start :] if steps <= MOST_STEPS else figures[-NEW:]
    return _counted(recent[:-1], recent[-1:], resolution, found=False)


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


def _counted(reference: Sequence[float], recent: Sequence[float], resolution: Resolution, *, found: bool) -> Change:
    base, newest = statistics.median(reference), statistics.median(recent)
    reach = resolution.of(base)
    if not found:
        reach = max(reach, max(*reference, *recent) - min(*reference, *recent))
    share, half = newest / base - 1, reach / base
    low, high = (share - half, share + half) if found else (-half, half)
    return Change(share, low, high, len(recent), len(reference), found, confirmed=found)


def _change(reference: Sequence[float], recent: Sequence[float], *, change_point: bool, confirmed: bool) -> Change:
    """Both have the deviation of one population: that of the figures around the mean of their part."""
    base, mean = statistics.fmean(reference), statistics.fmean(recent)
    squares = sum((each - base) ** 2 for each in reference) + sum((each - mean) ** 2 for each in recent)
    freedom = len(reference) + len(recent) - 2
    error = math.sqrt(squares / freedom * (1 / len(reference) + 1 / len(recent))) / base
    half, share = max(quantile(CONFIDENCE, freedom) * error, RESOLUTION), mean / base - 1
    low, high = share - half, share + half
    found = change_point or not low <= 0 <= high
    return Change(share, low, high, len(recent), len(reference), found, confirmed)
