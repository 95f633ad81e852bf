"""Cost: the instructions that a frame takes, on a machine whose clock counts them.

Frames go in a closed loop, so that none is lost and none waits. The cost of the bare path is taken off, also of each
function and of the use of memory.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.functions import Profile, most_first, rest
from podperf.metrics import Measured, Metrics
from podperf.model import Loop, TrafficProfile, TrialResult


class StandingChain(Protocol):
    """A chain that stands, between the tester's ports."""

    def loop(self, loop: Loop) -> TrialResult:
        """One valid trial of a closed loop. TrialNotDelivered where frames are lost, or overtake the sender."""

    def profile(self, windows: Sequence[int]) -> Profile:
        """The work for a frame: the mean of these windows of the last loop. Unavailable with the reason where the
        machine does not tell."""


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
L1_BYTES = 32 * 1024
L1_DATA_CACHE = {  # QEMU's plug-in has this model of one
    "bytes": L1_BYTES,
    "line_bytes": 64,
    "sets": 1,
    "replacement": "least recently used",
    "addresses": "virtual",
}


@dataclass(frozen=True)
class Builds:
    """Instructions a frame of each build of one chain with one number of frames in flight, the tester's own included.

    `profile` is that of the build with the least figure. It is empty where `functions_missing` says why.
    """

    figures: tuple[float, ...] = ()
    profile: Profile = field(default_factory=Profile)
    functions_missing: str | None = None

    @property
    def least(self) -> float:
        """The figure of the chain. In this build, no entry of a hash table stands behind another one.

        It is the least. A single build may cost some instructions less by chance: the kernel frees an object in the
        first page of a slab by fewer. So of figures that differ from the least by no more than CHANCE, it is the one
        that came most often.
        """
        return max(sorted(self._without_collision), key=self._like)

    @property
    def alike(self) -> int:
        """The number of builds with the least figure."""
        return self._like(self.least)

    @property
    def without_collision(self) -> int:
        """The number of builds that differ from the least by no more than CHANCE."""
        return len(self._without_collision)

    @property
    def _without_collision(self) -> Sequence[float]:
        return [figure for figure in self.figures if figure <= min(self.figures) + CHANCE]

    def _like(self, figure: float) -> int:
        return sum(figure * (1 - SAME) <= each <= figure * (1 + SAME) for each in self.figures)

    def and_one_of(self, figure: float, profile: Callable[[], Profile]) -> Builds:
        """With one more build of this figure. Its profile is asked for if its figure is the chain's now."""
        figures = (*self.figures, figure)
        if self.figures and Builds(figures).least == self.least:
            return Builds(figures, self.profile, self.functions_missing)
        try:
            return Builds(figures, profile())
        except Unavailable as error:
            return Builds(figures, functions_missing=str(error))


AllBuilds = Mapping[int, Builds]  # by the number of frames in flight; without those whose loop was never closed


def json_of_builds(builds: AllBuilds) -> str:
    """Builds as JSON."""
    return json.dumps(
        [[burst, each.figures, asdict(each.profile), each.functions_missing] for burst, each in builds.items()]
    )


def builds_of_json(text: str) -> AllBuilds:
    """The builds that `json_of_builds` wrote."""
    return {
        burst: Builds(tuple(figures), Profile(**profile), missing)
        for burst, figures, profile, missing in json.loads(text)
    }


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
        """Instructions a frame with `burst` frames in flight."""
        return self.builds[burst].least - (self.bare_path[burst].least if burst in self.bare_path else 0.0)

    def profile(self, burst: int) -> Profile:
        """The same by function, and the use of memory. Empty where `functions_missing` says why."""
        if self.functions_missing(burst) is not None:
            return Profile()
        bare_path = self.bare_path[burst].profile if burst in self.bare_path else Profile()
        return self.builds[burst].profile.without(bare_path)

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
            "l1_data_cache": dict(L1_DATA_CACHE),
            "bursts": [self._burst(burst, builds) for burst, builds in self.builds.items()],
            "missing": {str(burst): reason for burst, reason in self.missing.items()},
        }

    def _burst(self, burst: int, builds: Builds) -> Mapping[str, Any]:
        bare_path, profile = self.bare_path.get(burst), self.profile(burst)
        detail = {"stacks": dict(most_first(profile.stacks)), "listings": dict(profile.listings)}
        return {
            "frames": burst,
            "instructions_per_frame": self.cost(burst),
            "builds": list(builds.figures),
            "builds_with_the_least": builds.alike,
            "bare_path": None if bare_path is None else bare_path.least,
            "functions": dict(most_first(profile.functions)),
            "in_no_function": rest(self.cost(burst), profile.functions.values()),
            "functions_missing": self.functions_missing(burst),
            "memory": {
                name: {"per_frame": sum(found.values()), "functions": dict(most_first(found))}
                for name, found in profile.memory.items()
            },
            **({name: found for name, found in detail.items() if found}),
        }


@dataclass
class Cost:
    """The chain is built anew until `enough_alike` builds had no collision, and else `most_builds` times.

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
        while number < self.most_builds and not self._settled(found.values()):
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
                    profile = partial(chain.profile, middle(windows))
                    found[burst] = found.get(burst, Builds()).and_one_of(figure, profile)
        return found, missing

    def _settled(self, found: Collection[Builds]) -> bool:
        """Whether enough builds of each figure had no collision."""
        return bool(found) and all(each.without_collision >= self.enough_alike for each in found)


def middle(windows: Sequence[int]) -> Sequence[int]:
    """The numbers of the windows whose mean is the median: one, or two of an even number."""
    ordered = sorted(range(len(windows)), key=lambda number: windows[number])
    return ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
