"""Back-to-back frames: the longest burst of which no frame is lost, and the buffer time that follows (RFC 9004).

A burst leaves as fast as the tester can send. While it lasts, the system under test forwards a part of it. So the
buffer is smaller than the burst, and RFC 9004 section 5.4 corrects its time by the throughput.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.figures import kpps, milliseconds, number
from podperf.methods.base import ChainSource, MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics
from podperf.testers.base import Ability

NAME = "back_to_back"
FIRST_BURST = 64  # frames
USUAL_TRIALS = 8  # until the longest burst is found
RESOLUTION = 0.02  # a burst without loss and a burst with loss differ by this share, or by one frame


@dataclass(frozen=True)
class Burst:
    """The longest burst without loss in one repetition. `rate` is that of its frames in frames/s and direction.

    `limited`: it is the longest burst that the method tries. A burst of 0 frames has no rate.
    """

    frames: int
    rate: float = 0.0
    limited: bool = False


@dataclass(frozen=True)
class BackToBackResult:
    """The bursts of all repetitions. `throughput` is the NDR in frames/s and direction; None: it is not known."""

    bursts: tuple[Burst, ...]
    longest: int  # frames of the longest burst that was tried
    throughput: float | None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Frames of each burst."""
        return tuple(burst.frames for burst in self.bursts)

    @property
    def mean(self) -> float:
        """The mean length, in frames."""
        return statistics.fmean(self.lengths)

    @property
    def limited(self) -> bool:
        """Whether longer bursts may come through, too."""
        return any(burst.limited for burst in self.bursts)

    @property
    def rate(self) -> float | None:
        """Frames/s and direction within the bursts, their median. None if not even one frame came through."""
        rates = [burst.rate for burst in self.bursts if burst.rate > 0]
        return statistics.median(rates) if rates else None

    @property
    def implied_buffer_time(self) -> float | None:
        """Seconds: the time in which the mean burst arrives."""
        return None if self.rate is None else self.mean / self.rate

    @property
    def buffer_time(self) -> float | None:
        """Seconds: the implied time, less the share of it in which frames left the buffer again.

        None without a throughput, if bursts were no faster than that, or if the longest burst came through.
        """
        implied, rate = self.implied_buffer_time, self.rate
        if implied is None or rate is None or self.limited or self.throughput is None or self.throughput >= rate:
            return None
        return implied * (1 - self.throughput / rate)

    @property
    def metrics(self) -> Metrics:
        """Mean length and corrected buffer time. The length is a lower bound if the longest burst came through."""
        found = {
            "back_to_back": Measured(self.mean, min(self.lengths), max(self.lengths), lower_bound=self.limited),
        }
        if (seconds := self.buffer_time) is not None:
            found["buffer_time"] = Measured(seconds)
        return found

    @property
    def said(self) -> Sequence[str]:
        lengths = f"bursts without loss: {', '.join(map(str, self.lengths))} frames"
        none = "no buffer time: the longest burst came through, or no throughput below their rate was found"
        return [lengths] if self.buffer_time is not None else [lengths, none]

    def as_record(self) -> Mapping[str, Any]:
        """Lengths, their spread, and both buffer times in seconds."""
        return {
            "method": NAME,
            "source": "RFC 9004",
            "bursts": list(self.lengths),
            "mean": self.mean,
            "deviation": statistics.stdev(self.lengths) if len(self.lengths) > 1 else 0.0,
            "minimum": min(self.lengths),
            "maximum": max(self.lengths),
            "burst_rate": self.rate,
            "throughput": self.throughput,
            "implied_buffer_time": self.implied_buffer_time,
            "corrected_buffer_time": self.buffer_time,
            "longest_tried": self.longest,
            "resolution": RESOLUTION,
            "limited": self.limited,
        }


@dataclass(frozen=True)
class BackToBack:
    """`repetitions` searches for the longest burst without loss. No burst is longer than `longest` seconds.

    If such a burst comes through, the method ends: it has no buffer to measure.
    """

    repetitions: int
    longest: float
    throughput: float | None
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = True

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> BackToBackResult:
        """See FurtherMethod. `amount`: bursts without loss. Buffer times need the NDR, so the search goes first."""
        chain.demand(Ability.BURSTS)
        settings, ndr = chain.further_settings, chain.searched("ndr")
        repetitions = settings.repeated_bursts if amount is None else round(amount)
        return cls(repetitions, settings.longest_burst, ndr.value if ndr else None).run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return settings.repeated_bursts * USUAL_TRIALS * between

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        implied, corrected = (milliseconds(found[each]) for each in ("implied_buffer_time", "corrected_buffer_time"))
        rows = (
            ("Bursts without loss, frames", ", ".join(map(str, found["bursts"]))),
            ("Mean, standard deviation", f"{number(found['mean'])}, {number(found['deviation'])}"),
            ("Rate of the bursts", "" if found["burst_rate"] is None else f"{kpps(found['burst_rate'])} kpps"),
            ("Throughput (NDR)", "not found" if found["throughput"] is None else f"{kpps(found['throughput'])} kpps"),
            ("Buffer time, implied and corrected", f"{implied}, {corrected}"),
            ("Longest burst that was tried", f"{found['longest_tried']} frames"),
        )
        return MethodTable(f"Back-to-back frames ({found['source']})", rows)

    def run(self, source: ChainSource) -> BackToBackResult:
        """Measure."""
        longest = max(1, round(self.longest * source.maximum_load))
        bursts: list[Burst] = []
        start = min(FIRST_BURST, longest)
        while len(bursts) < self.repetitions and not any(burst.limited for burst in bursts):
            bursts.append(_longest_without_loss(source, start, longest))
            start = max(1, bursts[-1].frames)
        return BackToBackResult(tuple(bursts), longest, self.throughput)


def _longest_without_loss(source: ChainSource, start: int, longest: int) -> Burst:
    """A search by doubling or halving from `start`, and then by bisection."""
    best, lossy, frames = Burst(0), longest + 1, start
    while lossy - best.frames > max(1.0, RESOLUTION * best.frames):
        trial = source.burst(frames)
        if trial.lost:
            lossy = frames
        else:
            best = Burst(frames, trial.achieved_load, limited=frames == longest)
        frames = min(2 * best.frames or lossy, (best.frames + lossy) // 2, longest)
        frames = longest if lossy > longest and frames * 2 > longest else frames
    return best
