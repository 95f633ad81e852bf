"""The table of metrics. Thresholds, records, reports, plots, schemas and pages read a metric from its one entry.

To add a metric, add an entry to `METRICS`. The method in the entry (podperf.methods) must return a figure under the
metric's name. Then write the schemas and pages anew with `docs/make.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import Any, Self

from podperf.model import FrameSize, l1_bit_rate


@dataclass(frozen=True)
class Unit:
    """A unit of thresholds. `of` converts an amount of a record to this unit; it gets the amount and the frame size."""

    name: str
    meaning: str
    of: Callable[[float, FrameSize], float]


RATIO = "ratio of baseline"  # a threshold on any metric may be in this unit


@dataclass(frozen=True)
class Resolution:
    """Two figures of one system differ by no more than this: an `amount` in the unit of records, or a `share`."""

    amount: float
    share: float

    def of(self, figure: float) -> float:
        """The resolution at this figure, in the unit of records."""
        return max(self.amount, self.share * figure)


@dataclass(frozen=True)
class Quantity:
    """A physical quantity that metrics measure, with its units.

    Records hold an amount under `key`, and `key` names the unit there. Tables and plots divide the amount by `scale`
    and write it in `unit`. A threshold is in one of `units`, or a ratio of the baseline.
    """

    noun: str
    more_is_better: bool
    key: str
    unit: str
    scale: float
    units: tuple[Unit, ...]
    unit_words: str = ""  # `unit` in words, for readers of the terminal who may not know it
    resolution: Resolution | None = None  # None: figures vary from run to run, and only statistics show a change
    has_interval: bool = False  # whether records have the interval of each amount, with None at an open end
    of_one: str = ""  # what a rate of applications counts, in words: a `byte`, a `transaction`

    @property
    def bound(self) -> str:
        """The key of a threshold's bound on this quantity."""
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
    # A kernel draws the seeds of its hash tables anew at each boot. Between two boots rows differ by 2 instructions.
    resolution=Resolution(amount=5, share=0.0002),
)


BURST = Quantity(
    "burst length",
    more_is_better=True,
    key="frames",
    unit="frames",
    scale=1,
    units=(Unit("frames", "frames of a burst in each direction", lambda frames, _: frames),),
)
LOST_FRAMES = replace(
    BURST,
    noun="lost frames",
    more_is_better=False,
    units=(Unit("frames", "frames of all directions", lambda frames, _: frames),),
)
TIME = Quantity(
    "time",
    more_is_better=False,
    key="seconds",
    unit="ms",
    scale=1e-3,
    units=(Unit("ms", "milliseconds", lambda seconds, _: seconds * 1e3),),
)
BUFFER_TIME = replace(TIME, noun="buffer time", more_is_better=True)
VARIATION = Quantity(
    "variation",
    more_is_better=False,
    key="ratio",
    unit="%",
    scale=1e-2,
    units=(Unit("percent", "per cent", lambda ratio, _: ratio * 1e2),),
)
SHARE = Quantity(
    "share",
    more_is_better=True,
    key="ratio",
    unit="of the host's",
    scale=1,
    units=(Unit("percent", "per cent of the rate of the nodes' own network", lambda ratio, _: ratio * 1e2),),
    has_interval=True,
)
SHARE_OF_TIME = replace(
    SHARE,
    noun="share of time",
    more_is_better=False,
    units=(replace(SHARE.units[0], meaning="per cent of the time in the nodes' own network"),),
)
LOSS = replace(VARIATION, noun="loss", units=(replace(VARIATION.units[0], meaning="per cent of the frames"),))
MEMORY = Quantity(
    "memory",
    more_is_better=False,
    key="bytes",
    unit="KiB",
    scale=1024,
    units=(Unit("KiB", "1024 bytes", lambda amount, _: amount / 1024),),
)


CPU_TIME = Quantity(
    "CPU time",
    more_is_better=False,
    key="nanoseconds_per_frame",
    unit="ns/f",
    scale=1,
    units=(Unit("ns", "nanoseconds of CPU time a frame", lambda nanoseconds, _: nanoseconds),),
    unit_words="nanoseconds of CPU time that a frame takes in the system under test",
)


APPLICATION_WORDS = "Application traffic by TCP and UDP of the kernel. These are no figures of RFC 2544."
BIT_RATE = Quantity(
    "bit rate",
    more_is_better=True,
    key="bits_per_second",
    unit="Gbit/s",
    scale=1e9,
    units=(Unit("Gbit/s", "billion bits of the application per second", lambda rate, _: rate / 1e9),),
    of_one="byte",
)
TRANSACTIONS = Quantity(
    "transaction rate",
    more_is_better=True,
    key="transactions_per_second",
    unit="k/s",
    scale=1e3,
    units=(Unit("k/s", "thousand transactions per second", lambda rate, _: rate / 1e3),),
    unit_words="thousand transactions per second: one request and its response at a time",
    of_one="transaction",
)
BYTE_TIME = Quantity(
    "CPU time a byte",
    more_is_better=False,
    key="nanoseconds_per_byte",
    unit="ns/B",
    scale=1,
    units=(Unit("ns", "nanoseconds of CPU time a byte", lambda nanoseconds, _: nanoseconds),),
    unit_words="nanoseconds of CPU time that a byte takes in the system under test",
)
TRANSACTION_TIME = Quantity(
    "CPU time a transaction",
    more_is_better=False,
    key="nanoseconds_per_transaction",
    unit="us/tr",
    scale=1e3,
    units=(Unit("us", "microseconds of CPU time a transaction", lambda nanoseconds, _: nanoseconds / 1e3),),
    unit_words="microseconds of CPU time that a transaction takes in the system under test",
)


class Need(StrEnum):
    """A property of the tester. A figure that needs it is right only if the tester has it."""

    NO_LOSS = "the tester itself loses no frame"
    COUNT = "the tester counts each frame once"
    CLOCK = "the tester's clock is right"
    STAMPS = "the tester stamps frames with the right times"


@dataclass(frozen=True)
class Metric:
    """One metric.

    `name` is the metric's name in records and topologies, `label` in sentences, and `head` above its column.
    `method` is the name of the method that measures it. `meaning` explains it in the documentation. A metric without a
    `column` stands below the rows of the table, because few tests have it. A metric `only_on_pages` has no column on a
    terminal, which has little room.
    """

    name: str
    label: str
    head: str
    quantity: Quantity
    method: str
    meaning: str
    needs: frozenset[Need]
    colour: str = "#616e7c"  # of the metric's mark in a plot
    legend: str = ""  # of the metric's bars in the ranking of data planes
    headline: int = 0  # the rate's place in the order of ranking: 1 ranks first; 0: no ranking
    column: bool = True
    only_on_pages: bool = False
    application: bool = False  # of application traffic, which tables keep apart from all else


DELAY_VARIATION = "the delay variation: the latency that 99.9 % of the frames do not exceed, less the lowest (RFC 5481)"


def _latency_at(step: str, words: str) -> Iterator[Metric]:
    """Median, 99th percentile and variation of the latency at one load."""
    for name, label, head, meaning in (
        ("latency_p50", "latency p50", "p50", "the latency that half of the frames do not exceed"),
        ("latency_p99", "latency p99", "p99", "the latency that 99 % of the frames do not exceed"),
        ("delay_variation", "delay variation", "PDV", DELAY_VARIATION),
    ):
        yield Metric(
            f"{name}_at_{step}",
            label=f"{label} at {words}",
            head=f"{head} at {words}",
            quantity=LATENCY,
            method="latency_by_load",
            meaning=f"{meaning}, at {words}",
            needs=frozenset((Need.CLOCK, Need.STAMPS)),
            column=False,
        )


def _round_trips() -> Iterator[Metric]:
    """Median, 99th percentile and variation of round-trip times, where the two ends have different clocks."""
    for name, label, head, meaning in (
        ("round_trip_p50", "round trip p50", "RTT p50", "the round-trip time that half of the frames do not exceed"),
        ("round_trip_p99", "round trip p99", "RTT p99", "the round-trip time that 99 % of the frames do not exceed"),
        ("round_trip_variation", "round trip variation", "RTT PDV", DELAY_VARIATION),
    ):
        yield Metric(
            name,
            label=label,
            head=head,
            quantity=LATENCY,
            method="latency",
            meaning=f"{meaning}, at half the PDR, without the time in which the far end had the frame",
            needs=frozenset((Need.CLOCK, Need.STAMPS)),
            only_on_pages=name == "round_trip_variation",
        )


def _application_traffic() -> Iterator[Metric]:
    """The rates of each kind, and the CPU time of one stream and of one client."""
    one, requests = "of one TCP stream by iperf3", "by netperf: a request and a response of one byte, one at a time"
    for name, label, head, quantity, meaning in (
        ("tcp_stream", "TCP_STREAM", "TCP x1", BIT_RATE, f"the bit rate {one}"),
        ("tcp_streams", "TCP_STREAM of 8 streams", "TCP x8", BIT_RATE, "the bit rate of eight TCP streams together"),
        ("tcp_rr", "TCP_RR", "TCP_RR", TRANSACTIONS, f"transactions on one connection {requests}"),
        ("tcp_crr", "TCP_CRR", "TCP_CRR", TRANSACTIONS, "the same, and each transaction has a connection of its own"),
        ("udp_rr", "UDP_RR", "UDP_RR", TRANSACTIONS, f"transactions by UDP {requests}"),
        ("tcp_stream_cpu_time", "CPU time a byte", "CPU", BYTE_TIME, f"the CPU time of a byte {one}"),
        ("tcp_rr_cpu_time", "CPU time a transaction", "CPU", TRANSACTION_TIME, "the CPU time of a TCP_RR transaction"),
    ):
        yield Metric(name, label, head, quantity, "application_traffic", meaning, frozenset(), application=True)


def _host_shares() -> Iterator[Metric]:
    """Figures of pods of a cluster beside those of pods in the networks of its nodes: loss-free rates, and times at the
    same load."""
    of_frame, counted = "the CPU time a frame", frozenset((Need.COUNT,))
    for name, label, head, quantity, needs, meaning in (
        ("ndr", "pods' NDR", "share NDR", SHARE, counted, "the NDR between pods of a cluster"),
        ("pdr", "pods' PDR", "share PDR", SHARE, counted, "the PDR between pods of a cluster"),
        ("cpu_time", "pods' CPU time a frame", "share CPU", SHARE_OF_TIME, counted, f"{of_frame} of both pods"),
        (
            *("sender_cpu_time", "CPU time of the sender", "share CPU sender"),
            *(SHARE_OF_TIME, counted, f"{of_frame} of the pod that sends"),
        ),
        (
            *("receiver_cpu_time", "CPU time of the receiver", "share CPU receiver"),
            *(SHARE_OF_TIME, counted, f"{of_frame} of the pod that counts"),
        ),
        (
            *("round_trip", "pods' round trip p50", "share RTT p50", SHARE_OF_TIME),
            *(frozenset((Need.CLOCK, Need.STAMPS)), "the round-trip time that half of the frames do not exceed"),
        ),
    ):
        yield Metric(
            f"host_share_{name}",
            label=label,
            head=head,
            quantity=quantity,
            method="host_share",
            meaning=f"{meaning}, as a share of that in the networks of the nodes",
            needs=needs,
            only_on_pages=True,
        )


METRICS: dict[str, Metric] = {
    each.name: each
    for each in (
        Metric(
            "mrr",
            label="MRR",
            head="MRR",
            quantity=RATE,
            method="mrr",
            meaning="the rate that comes back while the tester sends as fast as it can; the median of several trials",
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
            "goal_rate",
            label="goal rate",
            head="goal",
            quantity=RATE,
            method="ndrpdr",
            meaning="the highest load with at most the loss ratio that the topology names (`method: loss_ratio`)",
            needs=frozenset((Need.COUNT, Need.CLOCK)),
            colour="#862e9c",
        ),
        Metric(
            "latency_p50",
            label="latency p50",
            head="p50",
            quantity=LATENCY,
            method="latency",
            meaning="the latency that half of the frames do not exceed, at half the PDR, where queues are short",
            needs=frozenset((Need.CLOCK, Need.STAMPS)),
        ),
        Metric(
            "latency_p99",
            label="latency p99",
            head="p99",
            quantity=LATENCY,
            method="latency",
            meaning="the latency that 99 % of the frames do not exceed, at half the PDR",
            needs=frozenset((Need.CLOCK, Need.STAMPS)),
        ),
        Metric(
            "delay_variation",
            label="delay variation",
            head="PDV",
            quantity=LATENCY,
            method="latency",
            meaning=f"{DELAY_VARIATION}, at half the PDR",
            needs=frozenset((Need.CLOCK, Need.STAMPS)),
            only_on_pages=True,
        ),
        *_round_trips(),
        Metric(
            "cpu_time",
            label="CPU time a frame",
            head="CPU",
            quantity=CPU_TIME,
            method="cpu_time",
            meaning="the CPU time that the system under test takes for one frame, at half the PDR",
            needs=frozenset((Need.COUNT,)),
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
        Metric(
            "loss_free_load",
            label="loss-free load",
            head="no loss",
            quantity=RATE,
            method="loss_curve",
            meaning="the highest load without loss, if all lower loads of the loss curve have none either",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            colour="#2b8a3e",
            column=False,
        ),
        Metric(
            "back_to_back",
            label="back-to-back",
            head="burst",
            quantity=BURST,
            method="back_to_back",
            meaning="the longest burst without loss, at the tester's full rate; the mean of several",
            needs=frozenset((Need.NO_LOSS, Need.COUNT)),
            column=False,
        ),
        Metric(
            "buffer_time",
            label="buffer time",
            head="buffer",
            quantity=BUFFER_TIME,
            method="back_to_back",
            meaning="the time of a burst that the buffers hold, corrected by the frames forwarded meanwhile (RFC 9004)",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        Metric(
            "recovery_time",
            label="recovery time",
            head="recovery",
            quantity=TIME,
            method="system_recovery",
            meaning="the time from the end of an overload of 110 % of the NDR to the last frame that is lost",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        Metric(
            "reconfiguration_loss",
            label="frames lost by a change",
            head="lost",
            quantity=LOST_FRAMES,
            method="reconfiguration",
            meaning="the frames that a change under load costs, less those lost without it; the median",
            needs=frozenset((Need.NO_LOSS, Need.COUNT)),
            column=False,
        ),
        Metric(
            "blocked_time",
            label="time lost by a change",
            head="blocked",
            quantity=TIME,
            method="reconfiguration",
            meaning="the time lost: frames lost / load, in the direction that lost more; the median",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        Metric(
            "restoration_time",
            label="time until the rate is back",
            head="back",
            quantity=TIME,
            method="reconfiguration",
            meaning="the time from the beginning of a change under load to the last frame that is lost; the median",
            needs=frozenset((Need.NO_LOSS, Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        Metric(
            "set_up_time",
            label="set-up time",
            head="set-up",
            quantity=TIME,
            method="repeated_instantiation",
            meaning="the time to attach the pods and start what the data plane needs, until frames cross; the mean",
            needs=frozenset(),
            column=False,
        ),
        Metric(
            "rate_variation",
            label="variation of the rate between set-ups",
            head="variation",
            quantity=VARIATION,
            method="repeated_instantiation",
            meaning="the standard deviation of the MRR from one set-up of a chain to the next, as a share of the mean",
            needs=frozenset((Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        Metric(
            "loss_bound",
            label="loss in a soak at most",
            head="loss",
            quantity=LOSS,
            method="soak",
            meaning="the upper bound of the loss ratio at 90 % of the NDR, with 95 % confidence",
            needs=frozenset((Need.NO_LOSS, Need.COUNT)),
            column=False,
        ),
        Metric(
            "memory_growth",
            label="memory growth",
            head="memory",
            quantity=MEMORY,
            method="soak",
            meaning="the growth of the memory of all processes that handle frames, in the soak test",
            needs=frozenset(),
            column=False,
        ),
        Metric(
            "host_share",
            label="pod network",
            head="share",
            quantity=SHARE,
            method="host_share",
            meaning="the rate between pods of a cluster, as a share of that between pods in the networks of its nodes",
            needs=frozenset((Need.COUNT,)),
            only_on_pages=True,
        ),
        *_host_shares(),
        Metric(
            "pairs_rate",
            label="rate of many pairs",
            head="pairs",
            quantity=RATE,
            method="many_pairs",
            meaning="the largest sum of the rates of pairs that send as fast as they can at the same time",
            needs=frozenset((Need.COUNT, Need.CLOCK)),
            column=False,
        ),
        *_latency_at("10", "10 % of PDR"),
        *_latency_at("90", "90 % of PDR"),
        *_latency_at("ndr", "NDR"),
        *_application_traffic(),
    )
}


def by_quantity(metrics: Iterable[Metric]) -> Mapping[Quantity, Sequence[Metric]]:
    """These metrics, grouped by quantity, otherwise in their order."""
    found: dict[Quantity, list[Metric]] = {}
    for metric in metrics:
        found.setdefault(metric.quantity, []).append(metric)
    return found


def rates() -> list[Metric]:
    """The metrics that are rates."""
    return [metric for metric in METRICS.values() if metric.quantity is RATE]


def headlines() -> list[Metric]:
    """The rates for the ranking of data planes and the comparison of runs, the most important first."""
    return sorted((rate for rate in rates() if rate.headline), key=lambda each: each.headline)


@dataclass(frozen=True)
class Signs:
    """The signs that mark a figure: before a lower or an upper bound, and behind an unfinished or a doubtful figure."""

    at_least: str
    below: str
    cut_short: str = "*"
    doubtful: str = "?"


IN_TEXT = Signs(">= ", "< ")
IN_WORDS = Signs("at least ", "below ")
IN_COLUMN = Signs(">=", "<")  # of a terminal, which has little room
ON_PAGE = Signs("≥ ", "< ")


@dataclass(frozen=True)
class Measured:
    """One figure with its spread, in the unit of records: frames/s per direction, or ns.

    `low` and `high` bound the figure. For MRR they are the slowest and the fastest trial, for NDR and PDR the bounds of
    the search. `lower_bound`: the true figure may be higher, because the tester reached its own limit first, or because
    the rate includes the work of programs at the ends of the chain. `upper_bound`: even the lowest load of the search
    was too high, and the true figure is lower. `unfinished`: the search was cut short. The true figure is then between
    `low` and `high`; if one of them is None, it has no limit on that side.
    `doubt`: the reason why the figure does not describe the system under test, so that nothing may judge it.
    `aggregate` is the sum of the directions, if they may differ.
    """

    value: float
    low: float | None = None
    high: float | None = None
    lower_bound: bool = False
    upper_bound: bool = False
    unfinished: bool = False
    doubt: str = ""
    aggregate: float | None = None

    @classmethod
    def median_of(cls, figures: Sequence[float], *, lower_bound: bool = False, unfinished: bool = False) -> Self:
        """The median, between the lowest and the highest of these figures."""
        return cls(median(figures), min(figures), max(figures), lower_bound, unfinished=unfinished)

    @classmethod
    def recorded(cls, found: Mapping[str, Any], key: str) -> Self:
        """A figure as a record has it: its value has the name `key`."""
        return cls(
            found[key],
            found.get(f"low_{key}"),
            found.get(f"high_{key}"),
            lower_bound=bool(found.get("lower_bound")),
            upper_bound=bool(found.get("upper_bound")),
            unfinished=bool(found.get("unfinished")),
            doubt=str(found.get("doubt") or ""),
        )

    def on_noisy_machine(self) -> Measured:
        """This figure without an upper end of its interval. Foreign work makes a system slower, never faster."""
        return replace(self, high=None)

    def bounded(self, amount: str, signs: Signs = IN_TEXT) -> str:
        """`amount`, which is the value in words, with the sign of a lower or upper bound before it."""
        return f"{signs.at_least if self.lower_bound else signs.below if self.upper_bound else ''}{amount}"

    def written(self, amount: str, signs: Signs = IN_TEXT) -> str:
        """`bounded`, with the marks of an unfinished search and of a doubt behind it."""
        marks = f"{signs.cut_short if self.unfinished else ''}{signs.doubtful if self.doubt else ''}"
        return f"{self.bounded(amount, signs)}{marks}"

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
