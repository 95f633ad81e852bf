"""Reconfiguration: the frames that a change of a running data plane costs, and the time until the rate is back.

FD.io CSIT's reconfiguration tests ask this of a configuration that grows under load, and RFC 6201 of a part that is
reset. A trial at half the NDR goes on while one thing changes in its middle. The time lost is the number of lost frames
divided by the load (the frame-loss method of RFC 6201; CSIT calls it the effective blocked time). The time until the
rate is back is that from the beginning of the change to the last lost frame.

A machine loses frames without a change, too. So a trial in which nothing changes goes before each of these trials, and
what it lost is taken off. The median of several pairs is the figure, between the smallest and the largest pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from podperf.errors import PodperfError, Unavailable
from podperf.experiments.ratio_interval import least_error
from podperf.figures import kpps, milliseconds, percent, short
from podperf.methods.base import ChainSource, MeasuredChain, MethodTable, time_to_last_lost
from podperf.methods.presets import FurtherSettings
from podperf.methods.trials import ChangedTrial
from podperf.metrics import Measured, Metrics
from podperf.model import NOTHING, ChangeUnderLoad

NAME = "reconfiguration"
SHARE = 0.5  # of the NDR
STEADY = 0.1  # of the time behind the change: the rate is back if its last part of this share lost nothing


@dataclass(frozen=True)
class Outage:
    """The loss of one trial. The change took `change_seconds`.

    `blocked`: the time lost (s), which is lost frames / load, in the direction that lost more. `restored`: seconds from
    the beginning of the change to the last lost frame; 0: no frame was lost behind it; None: the tester does not tell.
    `ended`: the end of the trial lost nothing. `outlasted`: the change went on in the end of the trial or behind it, so
    that the trial may lack some of its loss.
    """

    lost: int
    blocked: float
    restored: float | None
    ended: bool
    change_seconds: float
    outlasted: bool = False

    @classmethod
    def of(cls, trial: ChangedTrial) -> Outage:
        """The outage in the worse direction of a trial."""
        result, load, began = trial.result, trial.result.trial.load, trial.began
        blocked = max((each.lost / load for each in result.directions), default=0.0)
        duration = result.trial.duration
        steady = (1 - STEADY) * (duration - (duration / 2 if began is None else began))
        outlasted = trial.seconds > steady
        if began is None or any(each.lost and each.last_lost is None for each in result.directions):
            return cls(result.lost, blocked, None, True, trial.seconds, outlasted)
        restored = max((time_to_last_lost(each, began * load, load) for each in result.directions), default=0.0)
        return cls(result.lost, blocked, restored, restored <= steady, trial.seconds, outlasted)


@dataclass(frozen=True)
class Pair:
    """Two trials, one after the other: the first one without a change."""

    without: Outage
    changed: Outage


@dataclass(frozen=True)
class ReconfigurationResult:
    """All pairs. `load` is in frames/s and direction, `duration` the seconds of a trial."""

    change: str  # its name
    words: str
    pairs: Sequence[Pair]
    load: float
    ndr: float
    duration: float
    unfinished: bool = False

    @property
    def lost(self) -> list[int]:
        """The frames that each change cost. Negative if the trial without a change lost more."""
        return [pair.changed.lost - pair.without.lost for pair in self.pairs]

    @property
    def restored(self) -> list[float]:
        """The seconds until the rate was back, of those trials whose tester tells."""
        return [pair.changed.restored for pair in self.pairs if pair.changed.restored is not None]

    @property
    def missing(self) -> Mapping[str, str]:
        """The reason why the time until the rate is back is not known. Empty if it is."""
        if len(self.restored) < len(self.pairs):
            return {"time until the rate is back": "not known: this tester does not tell which frame was lost last"}
        noisy = sum(1 for pair in self.pairs if pair.without.restored)
        if 2 * noisy >= len(self.pairs):
            reason = f"{noisy} of {len(self.pairs)} trials without a change lost frames, too, behind the same moment"
            return {"time until the rate is back": f"not judged: {reason}"}
        return {}

    @property
    def _outlasted(self) -> int:
        """The number of changes that outlasted their trials."""
        return sum(1 for pair in self.pairs if pair.changed.outlasted)

    @property
    def metrics(self) -> Metrics:
        """Medians of all pairs. They are lower bounds if half of the trials or more lost frames until their end, or if
        a change outlasted its trial."""
        blocked = [pair.changed.blocked - pair.without.blocked for pair in self.pairs]
        unended = sum(1 for pair in self.pairs if not pair.changed.ended)
        bound = self._outlasted > 0 or 2 * unended >= len(self.pairs)
        found = {
            "reconfiguration_loss": _median(self.lost, lower_bound=bound),
            "blocked_time": _median(blocked, lower_bound=bound),
        }
        if not self.missing:
            back = Measured.median_of(self.restored, lower_bound=bound, unfinished=self.unfinished)
            found["restoration_time"] = back
        return found

    @property
    def summary(self) -> str:
        """The figures with their intervals, and whether the loss is because of the change."""
        found = self.metrics
        figures = [
            f"lost {_with_interval(found['reconfiguration_loss'], 1)} frames",
            f"time lost {_with_interval(found['blocked_time'], 1e3)} ms",
        ]
        if back := found.get("restoration_time"):
            figures.append(f"rate back after {_with_interval(back, 1e3)} ms")
        if min(self.lost) > 0:
            verdict = "each change cost frames"
        elif self._outlasted:
            verdict = "not judged whether changes cost frames"
        elif statistics.median(self.lost) <= 0:
            verdict = "no frame was lost because of the change"
        else:
            verdict = "not every change cost frames"
        if self._outlasted:
            verdict += f"; {self._outlasted} of {len(self.pairs)} changes lasted until the end of their trials"
        return f"{', '.join(figures)}; {verdict}"

    @property
    def said(self) -> Sequence[str]:
        return [f"{self.words}: {self.summary}"]

    def as_record(self) -> Mapping[str, Any]:
        """Both trials of each pair, and the parameters."""
        return {
            "method": NAME,
            "source": "RFC 6201; FD.io CSIT, reconfiguration tests",
            "change": self.change,
            "words": self.words,
            "pairs": [asdict(pair) for pair in self.pairs],
            "summary": self.summary,
            "confidence": 1 - least_error(len(self.pairs)),
            "missing": dict(self.missing),
            "load": self.load,
            "share": SHARE,
            "of": self.ndr,
            "duration": self.duration,
            "resolution": 1 / self.load,
        }


def trial_seconds(settings: FurtherSettings, change: float) -> float:
    """The duration of a trial with a change that usually takes `change` seconds.

    The second half of a trial is behind the change, and a tenth of this half must be without loss.
    """
    return max(settings.reconfiguration_trial, 3 * change)


def _with_interval(figure: Measured, scale: float) -> str:
    median, *ends = (short((each or 0) * scale) for each in (figure.value, figure.low, figure.high))
    return f"{figure.bounded(median)} ({' to '.join(ends)})"


def _median(differences: Sequence[float], *, lower_bound: bool) -> Measured:
    """Differences that chance can make negative. No change brings frames back, so no figure is negative."""
    lowest, median, highest = (
        float(max(0, each)) for each in (min(differences), statistics.median(differences), max(differences))
    )
    return Measured(median, lowest, highest, lower_bound)


@dataclass(frozen=True)
class Reconfiguration:
    """`repetitions` pairs of trials of `duration` seconds at SHARE of the NDR."""

    change: str
    made: ChangeUnderLoad
    ndr: float
    repetitions: int
    duration: float
    unfinished: bool = False
    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = True

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None, *, change: str = "") -> ReconfigurationResult | None:
        """See FurtherMethod. `amount`: pairs of trials. `change`: by default the first one that the chain offers."""
        chain.known_limits()
        offered, settings = chain.sut.changes, chain.further_settings
        change = change or next((name for name, each in offered.items() if not each.refused), "")
        if change not in offered:
            others = f"; it offers: {', '.join(offered)}" if offered else ""
            wanted = f"the change {change!r}" if change else "a change"
            raise Unavailable(f"{chain.sut.chain} does not offer {wanted} while frames cross{others}")
        if offered[change].refused:
            raise Unavailable(offered[change].refused)
        repetitions = settings.reconfigurations if amount is None else round(amount)
        if repetitions < 1:
            raise PodperfError(f"a reconfiguration takes 1 or more pairs of trials, not {repetitions}")
        if (ndr := chain.searched("ndr")) is None:
            return None
        duration = trial_seconds(settings, offered[change].seconds)
        method = cls(change, offered[change], ndr.value, repetitions, duration, ndr.unfinished)
        return method.run(chain.trials(NAME))

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return 2 * settings.reconfigurations * (settings.reconfiguration_trial + between)

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        rows = [
            (
                str(place),
                str(pair["without"]["lost"]),
                str(pair["changed"]["lost"]),
                milliseconds(pair["changed"]["blocked"]),
                milliseconds(pair["changed"]["restored"]),
                milliseconds(pair["changed"]["change_seconds"]),
            )
            for place, pair in enumerate(found["pairs"], 1)
        ]
        at = f"{kpps(found['load'])} kpps ({percent(found['share'])} of the NDR), trials of {found['duration']:g} s"
        title = f"Reconfiguration ({found['source']}): {found['words']}, at {at}"
        heads = ("Pair", "lost without", "lost with", "time lost", "rate back after", "change took")
        return MethodTable(title, rows, heads, f"Median (smallest to largest pair): {found['summary']}.")

    def run(self, source: ChainSource) -> ReconfigurationResult:
        """Measure."""
        load = min(SHARE * self.ndr, source.maximum_load)
        pairs = [
            Pair(*(Outage.of(source.during(each.make, load, self.duration)) for each in (NOTHING, self.made)))
            for _ in range(self.repetitions)
        ]
        return ReconfigurationResult(
            self.change, self.made.words, pairs, load, self.ndr, self.duration, self.unfinished
        )
