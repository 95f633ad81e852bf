"""Cost: the instructions that a frame takes, on a machine whose clock counts them.

Frames go in a closed loop, so that none is lost and none waits. The cost of the bare path is taken off.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from podperf.errors import TrialNotDelivered
from podperf.metrics import Measured, Metrics
from podperf.model import Loop, TrialResult

LoopSource = Callable[[Loop], TrialResult]
"""One valid trial of a closed loop across a chain that stands."""

Build = Callable[[], AbstractContextManager[LoopSource]]
"""Sets a chain up, and takes it down again at the end of the context."""

ONLY_COST = "a counted machine measures cost only, as one CPU does the work of tester and system under test"
BURSTS = {1: "cost", 32: "cost_in_bursts"}  # frames in flight, and the metric that they are of
WINDOWS = 32
SAME = 0.01 / 100  # figures that differ by no more than this share are the same
ENOUGH_ALIKE, MOST_BUILDS = 4, 12


@dataclass(frozen=True)
class Builds:
    """Instructions a frame of each build of one chain with so many frames in flight, the tester's own among them."""

    figures: tuple[float, ...] = ()

    @property
    def least(self) -> float:
        """The figure of the chain. In this build, no entry of a hash table stands behind another one."""
        return min(self.figures)

    @property
    def alike(self) -> int:
        """The number of builds with the least figure."""
        return sum(each <= self.least * (1 + SAME) for each in self.figures)


AllBuilds = Mapping[int, Builds]  # by the number of frames in flight; without those whose loop was never closed


@dataclass(frozen=True)
class CostResult:
    """The builds of a chain, and those of the bare path in the same boot of the machine; none on the bare path."""

    builds: AllBuilds
    bare_path: AllBuilds
    missing: Mapping[int, str]  # by the number of frames in flight, why there is no figure

    def cost(self, burst: int) -> float:
        """Instructions a frame with so many frames in flight."""
        return self.builds[burst].least - (self.bare_path[burst].least if burst in self.bare_path else 0.0)

    @property
    def metrics(self) -> Metrics:
        """A figure for each number of frames in flight."""
        return {name: Measured(self.cost(burst)) for burst, name in BURSTS.items() if burst in self.builds}

    def as_record(self) -> Mapping[str, Any]:
        """The figures, and each build that they come from."""
        return {
            "method": "cost",
            "instructions_per_frame": self.cost(1),
            "window": Loop.WINDOW,
            "windows": WINDOWS,
            "bursts": [self._burst(burst, builds) for burst, builds in self.builds.items()],
            "missing": {str(burst): reason for burst, reason in self.missing.items()},
        }

    def _burst(self, burst: int, builds: Builds) -> Mapping[str, Any]:
        bare_path = self.bare_path.get(burst)
        return {
            "frames": burst,
            "instructions_per_frame": self.cost(burst),
            "builds": list(builds.figures),
            "builds_with_the_least": builds.alike,
            "bare_path": None if bare_path is None else bare_path.least,
        }


@dataclass
class Cost:
    """The chain is built anew until `enough_alike` builds have cost the same, and else `most_builds` times.

    The kernel draws the seeds of its hash tables at random. In some builds entries collide, and each frame costs more.
    Only the least cost repeats.
    """

    enough_alike: int = ENOUGH_ALIKE
    most_builds: int = MOST_BUILDS
    name: str = "cost"

    def run(self, build: Build) -> tuple[AllBuilds, Mapping[int, str]]:
        """Measure. Without a loop that closes for a number of frames in flight, the reason in place of the builds.

        TrialNotDelivered where it does not close with one frame, either.
        """
        found: dict[int, Builds] = {}
        missing: dict[int, str] = {}
        number = 0
        while number < self.most_builds and not (number == self.enough_alike and _all_alike(found.values())):
            number += 1
            with build() as source:
                for burst in BURSTS:
                    if burst in missing:
                        continue
                    try:
                        figure = _median(source(Loop(burst, WINDOWS)))
                    except TrialNotDelivered as error:
                        if burst == 1:
                            raise
                        missing[burst] = str(error)
                        found.pop(burst, None)
                        continue
                    found[burst] = Builds((*(found[burst].figures if burst in found else ()), figure))
        return found, missing


def _all_alike(found: Iterable[Builds]) -> bool:
    return all(each.alike == len(each.figures) for each in found)


def _median(trial: TrialResult) -> float:
    """Instructions a frame in the median window. It has no tick of the clock, which few windows have."""
    windows: Sequence[int] = trial.windows
    return statistics.median(windows) / Loop.WINDOW
