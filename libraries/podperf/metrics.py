"""The table of metrics: one entry says everything that thresholds, records, reports, plots, schemas and pages need.

To add a metric, add an entry to `METRICS`, and let the method that it names return a figure of this name. Then write
the schemas and pages anew with `docs/make_metrics.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from podperf.model import FrameSize, l1_bit_rate


@dataclass(frozen=True)
class Unit:
    """A unit that a threshold may be in. `of` converts an amount of a record, measured with such frames, to it."""

    name: str
    meaning: str
    of: Callable[[float, FrameSize], float]


RATIO = "ratio of baseline"  # a threshold on any metric may be in this unit


@dataclass(frozen=True)
class Quantity:
    """What some metrics are amounts of: its direction and its units.

    Records hold an amount under `key`, whose name is the unit. Tables and plots divide it by `scale` and write it in
    `unit`. Thresholds are in one of `units`, or a ratio of the baseline.
    """

    noun: str
    more_is_better: bool
    key: str
    unit: str
    scale: float
    units: tuple[Unit, ...]
    unit_words: str = ""  # what `unit` stands for, where a reader of the terminal may not know it

    @property
    def bound(self) -> str:
        """Which bound a threshold on it has."""
        return "minimum" if self.more_is_better else "maximum"


RATE = Quantity(
    "rate",
    more_is_better=True,
    key="frames_per_second",
    unit="kpps",
    scale=1e3,
    units=(
        Unit("Mpps", "million frames per second and direction", lambda rate, _: rate / 1e6),
        Unit(
            "Gbps",
            "L1 bits per second and direction: with preamble and interframe gap",
            lambda rate, frame: l1_bit_rate(rate, frame) / 1e9,
        ),
    ),
    unit_words="thousand frames/s per direction",
)
LATENCY = Quantity(
    "latency",
    more_is_better=False,
    key="nanoseconds",
    unit="us",
    scale=1e3,
    units=(Unit("us", "microseconds", lambda nanoseconds, _: nanoseconds / 1e3),),
)


COST = Quantity(
    "cost",
    more_is_better=False,
    key="instructions_per_frame",
    unit="instr",
    scale=1,
    units=(Unit("instructions", "instructions a frame, without those of the bare path", lambda cost, _: cost),),
    unit_words="instructions a frame, without those of the bare path",
)


class Need(StrEnum):
    """What a figure needs of the tester to be right."""

    NO_LOSS = "it loses no frame by itself"
    COUNT = "it counts each frame once"
    CLOCK = "its clock is right"


@dataclass(frozen=True)
class Metric:
    """One metric.

    `name` is its word in records and topologies, `label` the one in sentences, `head` the one above its column.
    `method` is the name of the method that measures it. `meaning` explains it in the documentation.
    """

    name: str
    label: str
    head: str
    quantity: Quantity
    method: str
    meaning: str
    needs: frozenset[Need]
    colour: str = "#616e7c"  # of its mark in a plot
    legend: str = ""  # of its bar, where data planes are ranked by it
    headline: int = 0  # of a rate, its place among those by which data planes are ranked; 0: it has none


METRICS: dict[str, Metric] = {
    each.name: each
    for each in (
        Metric(
            "mrr",
            label="MRR",
            head="MRR",
            quantity=RATE,
            method="mrr",
            meaning="what still comes back when the tester sends all it can; the median of several trials",
            legend="under overload",
            needs=frozenset((Need.COUNT, Need.CLOCK)),
            colour="#364fc7",
            headline=2,
        ),
        Metric(
            "ndr",
            label="NDR",
            head="NDR",
            quantity=RATE,
            method="ndrpdr",
            meaning="the highest load without loss",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            colour="#0b7285",
        ),
        Metric(
            "pdr",
            label="PDR",
            head="PDR",
            quantity=RATE,
            method="ndrpdr",
            meaning="the highest load with at most 0.5 % loss",
            legend="at most 0.5 % loss",
            needs=frozenset((Need.COUNT, Need.CLOCK)),
            colour="#b35c00",
            headline=1,
        ),
        Metric(
            "latency_p50",
            label="latency p50",
            head="p50",
            quantity=LATENCY,
            method="latency",
            meaning="the latency that half of the frames do not exceed, at half the PDR, where queues are short",
            needs=frozenset((Need.CLOCK,)),
        ),
        Metric(
            "latency_p99",
            label="latency p99",
            head="p99",
            quantity=LATENCY,
            method="latency",
            meaning="the latency that 99 % of the frames do not exceed, at half the PDR",
            needs=frozenset((Need.CLOCK,)),
        ),
        Metric(
            "cost",
            label="cost",
            head="cost",
            quantity=COST,
            method="cost",
            meaning="the instructions that one frame takes on a counted machine",
            needs=frozenset((Need.COUNT,)),
        ),
        Metric(
            "cost_in_bursts",
            label="cost in bursts",
            head="cost/32",
            quantity=COST,
            method="cost",
            meaning="the same in bursts of 32 frames, which share a part of the work",
            needs=frozenset((Need.COUNT,)),
        ),
    )
}


def by_quantity(metrics: Iterable[Metric]) -> Mapping[Quantity, Sequence[Metric]]:
    """These metrics, in their order, those of one quantity together."""
    found: dict[Quantity, list[Metric]] = {}
    for each in metrics:
        found.setdefault(each.quantity, []).append(each)
    return found


def rates() -> list[Metric]:
    """The metrics that are rates."""
    return [each for each in METRICS.values() if each.quantity is RATE]


def headlines() -> list[Metric]:
    """The rates by which data planes are ranked and runs compared, the most important first."""
    return sorted((each for each in rates() if each.headline), key=lambda each: each.headline)


@dataclass(frozen=True)
class Signs:
    """The signs that tell a bound from a figure: before a lower and an upper one, and behind one cut short."""

    at_least: str
    below: str
    cut_short: str = "*"


IN_TEXT = Signs(">= ", "< ")
IN_COLUMN = Signs(">=", "<")  # of a terminal, which has little room
ON_PAGE = Signs("≥ ", "< ")


@dataclass(frozen=True)
class Measured:
    """One figure with its spread, in the unit that records have it in: frames/s per direction, or ns.

    `low` and `high` bound it (MRR: slowest and fastest trial; NDR and PDR: the search's bounds). `lower_bound` is set
    when the tester reached its own limit first, so that the system under test may do better; `upper_bound` when no load
    that was tried was low enough, so that the figure lies somewhere below. `unfinished`: the search was cut short, and
    the figure may lie anywhere from `low` to `high`; beyond them, on the side that has none.
    """

    value: float
    low: float | None = None
    high: float | None = None
    lower_bound: bool = False
    upper_bound: bool = False
    unfinished: bool = False

    def bounded(self, amount: str, signs: Signs = IN_TEXT) -> str:
        """The value, written as this `amount`, with the sign of the bound that it is."""
        return f"{signs.at_least if self.lower_bound else signs.below if self.upper_bound else ''}{amount}"

    def written(self, amount: str, signs: Signs = IN_TEXT) -> str:
        """The same with the mark of a search that was cut short."""
        return f"{self.bounded(amount, signs)}{signs.cut_short if self.unfinished else ''}"

    @property
    def least(self) -> float:
        """The least that the true figure can be."""
        return 0.0 if self.upper_bound or (self.unfinished and self.low is None) else self.value

    @property
    def most(self) -> float:
        """The most that the true figure can be."""
        if self.lower_bound or (self.unfinished and self.high is None):
            return math.inf
        return self.high if self.unfinished and self.high is not None else self.value


Metrics = Mapping[str, Measured]  # by the name of the metric
