"""Cost: the instructions that a frame takes, on a machine whose clock counts them.

Frames go in a closed loop, so that none is lost and none waits. The cost of the bare path is taken off, also of each
function.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.functions import Functions, most_first, rest, without
from podperf.metrics import Measured, Metrics
from podperf.model import Loop, TrafficProfile, TrialResult


class StandingChain(Protocol):
    """A chain that stands, between the tester's ports."""

    def loop(self, loop: Loop) -> TrialResult:
        """One valid trial of a closed loop. TrialNotDelivered where frames are lost, or overtake the sender."""

    def functions(self, windows: Sequence[int]) -> Functions:
        """Instructions a frame by function in these windows of the last loop, their mean. Unavailable with the reason
        where the machine does not tell."""


Build = Callable[[], AbstractContextManager[StandingChain]]
"""Sets a chain up, and takes it down again at the end of the context."""

ONLY_COST = "a counted machine measures cost only, as one CPU does the work of tester and system under test"
BURSTS = {1: "cost", 32: "cost_in_bursts"}  # frames in flight, and the metric that they are of
WINDOWS = 32
LEAST_WARM_UP = 8 * Loop.WINDOW  # frames in which caches and pools of the kernel fill
SAME = 0.01 / 100  # figures that differ by no more than this share are the same
NOTHING_TO_TAKE_OFF = "the bare path has no such figure, which would be taken off"
CHANCE = 3.0  # instructions that builds without a collision differ by; a collision in a hash table costs 5 or more
ENOUGH_ALIKE, MOST_BUILDS = 4, 12


@dataclass(frozen=True)
class Builds:
    """Instructions a frame of each build of one chain with so many frames in flight, the tester's own among them.

    `functions` are those of the build with the least figure. They are empty where `functions_missing` says why.
    """

    figures: tuple[float, ...] = ()
    functions: Functions = field(default_factory=lambda: MappingProxyType({}))
    functions_missing: str | None = None

    @property
    def least(self) -> float:
        """The figure of the chain. In this build, no entry of a hash table stands behind another one.

        It is the least. A single build may cost some instructions less by chance: the kernel frees an object in the
        first page of a slab by fewer. So of figures that differ from the least by no more than CHANCE, it is the one
        that came most often.
        """
        least = [each for each in sorted(self.figures) if each <= min(self.figures) + CHANCE]
        return max(least, key=self._like)

    @property
    def alike(self) -> int:
        """The number of builds with the least figure."""
        return self._like(self.least)

    def _like(self, figure: float) -> int:
        return sum(figure * (1 - SAME) <= each <= figure * (1 + SAME) for each in self.figures)

    def and_one_of(self, figure: float, functions: Callable[[], Functions]) -> Builds:
        """With one more build of this figure. Its functions are asked for if its figure is the chain's now."""
        figures = (*self.figures, figure)
        if self.figures and Builds(figures).least == self.least:
            return Builds(figures, self.functions, self.functions_missing)
        try:
            return Builds(figures, functions())
        except Unavailable as error:
            return Builds(figures, functions_missing=str(error))


AllBuilds = Mapping[int, Builds]  # by the number of frames in flight; without those whose loop was never closed


@dataclass(frozen=True)
class CostResult:
    """The builds of a chain, and those of the bare path in the same boot of the machine; none on the bare path."""

    builds: AllBuilds
    bare_path: AllBuilds
    missing: Mapping[int, str]  # by the number of frames in flight, why there is no figure

    @classmethod
    def beside(cls, bare_path: AllBuilds, builds: AllBuilds, missing: Mapping[int, str]) -> CostResult:
        """The result of a chain. A figure is missing if the bare path has none with as many frames in flight."""
        alone = {burst: NOTHING_TO_TAKE_OFF for burst in builds if bare_path and burst not in bare_path}
        return cls(
            {burst: each for burst, each in builds.items() if burst not in alone}, bare_path, {**missing, **alone}
        )

    def cost(self, burst: int) -> float:
        """Instructions a frame with so many frames in flight."""
        return self.builds[burst].least - (self.bare_path[burst].least if burst in self.bare_path else 0.0)

    def functions(self, burst: int) -> Functions:
        """The same by function. Empty where `functions_missing` says why."""
        if self.functions_missing(burst) is not None:
            return {}
        bare_path = self.bare_path[burst].functions if burst in self.bare_path else {}
        return without(self.builds[burst].functions, bare_path)

    def functions_missing(self, burst: int) -> str | None:
        """The reason why the functions are not known, or None."""
        bare_path = self.bare_path[burst].functions_missing if burst in self.bare_path else None
        return self.builds[burst].functions_missing or bare_path

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
        bare_path, functions = self.bare_path.get(burst), self.functions(burst)
        return {
            "frames": burst,
            "instructions_per_frame": self.cost(burst),
            "builds": list(builds.figures),
            "builds_with_the_least": builds.alike,
            "bare_path": None if bare_path is None else bare_path.least,
            "functions": dict(most_first(functions)),
            "in_no_function": rest(self.cost(burst), functions.values()),
            "functions_missing": self.functions_missing(burst),
        }


@dataclass
class Cost:
    """The chain is built anew until `enough_alike` builds have cost the same, and else `most_builds` times.

    The kernel draws the seeds of its hash tables at random. In some builds entries collide, and each frame costs more.
    Only the least cost repeats.
    """

    warm_up: int = LEAST_WARM_UP  # frames of each trial before its first window
    enough_alike: int = ENOUGH_ALIKE
    most_builds: int = MOST_BUILDS
    name: str = "cost"

    @classmethod
    def of(cls, traffic: TrafficProfile) -> Cost:
        """The method for this traffic. Each flow has its connection in the kernel's table before the first window."""
        flows = -(-traffic.flows // Loop.WINDOW) * Loop.WINDOW
        return cls(LEAST_WARM_UP + (flows if traffic.flows > 1 else 0))

    def run(self, build: Build) -> tuple[AllBuilds, Mapping[int, str]]:
        """Measure. Without a loop that closes for a number of frames in flight, the reason in place of the builds.

        TrialNotDelivered where it does not close with one frame, either.
        """
        found: dict[int, Builds] = {}
        missing: dict[int, str] = {}
        number = 0
        while number < self.most_builds and not (number == self.enough_alike and _settled(found.values())):
            number += 1
            with build() as chain:
                for burst in BURSTS:
                    if burst in missing:
                        continue
                    try:
                        windows = chain.loop(Loop(burst, WINDOWS, self.warm_up)).windows
                    except TrialNotDelivered as error:
                        if burst == 1:
                            raise
                        missing[burst] = str(error)
                        found.pop(burst, None)
                        continue
                    # The median window has no tick of the clock, which few windows have.
                    figure = statistics.median(windows) / Loop.WINDOW
                    functions = partial(chain.functions, middle(windows))
                    found[burst] = found.get(burst, Builds()).and_one_of(figure, functions)
        return found, missing


def _settled(found: Iterable[Builds]) -> bool:
    """Whether no build had a collision."""
    return all(max(each.figures) - min(each.figures) <= CHANCE for each in found)


def middle(windows: Sequence[int]) -> Sequence[int]:
    """The numbers of the windows whose mean is the median: one, or two of an even number."""
    ordered = sorted(range(len(windows)), key=lambda number: windows[number])
    return ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
