"""Computes the share of the nodes' own network that the network of pods reaches, from measurements by turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

from podperf.experiments.before_after import fewest_rounds
from podperf.experiments.comparison import VariantComparison
from podperf.experiments.contender import SMALLEST, Contender
from podperf.experiments.ratio_interval import ratio_interval
from podperf.figures import kpps, number
from podperf.frames import AddressFamily
from podperf.kubernetes.end_pair import COUNTS, SENDS
from podperf.metrics import IN_TEXT, METRICS, RATE, Measured, Metrics
from podperf.model import Chain, FrameSize, TrialResult

NAME = "host_share"
CLUSTER = Chain("external", 0)  # whatever network the cluster has
HOST, PODS = "host network", "pods"
ROUNDS, TRIAL = 8, 0.5  # the fewest rounds that a comparison looks at; seconds
FURTHER_TRIAL = 0.3  # seconds of a trial of CPU time or of round trips
ROUND_TRIP_LOAD = 0.5  # share of the load: both pods send and count then, and no frames come in trains
NOTHING = "-"

CPU_TIME, OF_SENDER, OF_RECEIVER = (f"{NAME}_{each}" for each in ("cpu_time", "sender_cpu_time", "receiver_cpu_time"))
ROUND_TRIP = f"{NAME}_round_trip"
OF_CPU_TIME = (CPU_TIME, OF_SENDER, OF_RECEIVER)
OF_RATES = {NAME: "mrr", f"{NAME}_ndr": "ndr", f"{NAME}_pdr": "pdr"}
OF_EACH = {**OF_RATES, **dict.fromkeys(OF_CPU_TIME, "cpu_time"), ROUND_TRIP: "round_trip_p50"}
"""The metric of the two figures whose ratio each share is."""

OneRound = Mapping[str, Mapping[str, float]]
"""The figures of one round at the load of both places, by place and by the name of their share."""


@dataclass(frozen=True)
class ClusterWay:
    """A way of frames through a cluster: what differs from the topology in the tester's pods, and in the traffic."""

    title: str
    pods: Mapping[str, Any]
    frame: FrameSize = SMALLEST
    flows: int | None = None
    family: AddressFamily | None = None
    metric: str = "mrr"  # the rate that is compared: one of OF_RATES
    further: bool = False  # whether CPU time and round trips are compared, too

    def beside_host(self, host: Mapping[str, Any], nodes: Sequence[str]) -> VariantComparison:
        """The comparison with pods in the networks of the nodes, whose settings are `host`. `nodes` are the names of
        the nodes of the tester's pods."""
        settings = {HOST: host, PODS: {**self.pods, "node_names": list(dict.fromkeys(nodes))}}
        variants = (
            Contender(name, CLUSTER, frame=self.frame, flows=self.flows, family=self.family, tester=pods)
            for name, pods in settings.items()
        )
        return VariantComparison(
            None,
            re.sub(r"[^a-z0-9]+", "-", self.title.lower()),
            f"{self.title}, beside the network of the nodes.",
            tuple(variants),
            self.frame,
            self.flows,
            metric=METRICS[self.metric],
            rounds=ROUNDS,
            trial_seconds=TRIAL,
        )


@dataclass(frozen=True)
class HostShare:
    """A figure of pods beside that of the nodes' own network: medians of the rounds in SI units, and their ratio.

    `name` is the metric of the share. An open end of the interval is None. Without figures, `reason` says why.
    `doubt` is that of a Measured.
    """

    pods: float = 0.0
    host: float = 0.0
    share: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    reason: str = ""
    name: str = NAME
    doubt: str = ""

    @classmethod
    def of(cls, comparison: Mapping[str, Any], doubt: str = "") -> Self:
        """The share of the rate in the document of a comparison with two variants, of which the host network is the
        first."""
        (host, pods) = (median(each["figures"]) for each in comparison["variants"])
        judged = comparison["variants"][1]["judgement"]
        share, low, high = (None if judged[key] is None else 1 + judged[key] for key in ("share", "low", "high"))
        (name,) = (name for name, metric in OF_RATES.items() if metric == comparison["metric"])
        return cls(pods, host, share, low, high, judged["rounds"], name=name, doubt=doubt)

    @classmethod
    def all_of(cls, document: Mapping[str, Any]) -> list[Self]:
        """All shares in the document of a record: that of the rate, and the further ones."""
        further = (document.get("further") or {}).get("shares") or {}
        return [
            cls.of(document),
            *(
                cls(
                    *(median(each["pods"]), median(each["host"])),
                    *(each["share"], each["low"], each["high"]),
                    rounds=len(each["pods"]),
                    name=name,
                )
                for name, each in further.items()
                if name in OF_EACH
            ),
        ]

    @property
    def metrics(self) -> Metrics:
        """The share as a figure of a record."""
        return {} if self.share is None else {self.name: Measured(self.share, self.low, self.high, doubt=self.doubt)}

    @property
    def interval(self) -> str:
        """`0.84 to 0.90`."""
        return " to ".join("open" if end is None else f"{end:.2f}" for end in (self.low, self.high))

    @property
    def unit(self) -> str:
        """The unit of `amounts`."""
        return METRICS[OF_EACH[self.name]].quantity.unit

    @property
    def amounts(self) -> tuple[str, str]:
        """The figures of the pods and of the host network."""
        quantity = METRICS[OF_EACH[self.name]].quantity
        written = kpps if quantity is RATE else lambda amount: number(amount / quantity.scale)
        return written(self.pods), written(self.host)

    @property
    def mark(self) -> str:
        """The mark of a doubt, or empty."""
        return IN_TEXT.doubtful if self.doubt else ""

    @property
    def words(self) -> str:
        """`pod network 0.87 of the host's (0.84 to 0.90): 207 beside 238 kpps`. Empty without a share."""
        if self.share is None:
            return ""
        metric = METRICS[self.name]
        told = f"{metric.label} {self.share:.2f} {metric.quantity.unit} ({self.interval})"
        return f"{told}: {' beside '.join(self.amounts)} {self.unit}"

    def __str__(self) -> str:
        if self.share is None:
            return NOTHING
        return f"{self.share:.2f}{self.mark} ({self.interval})"


def load_of_both(first: Mapping[str, Measured]) -> float:
    """The load at which further figures are compared: a quarter of the lower rate of the first round. At half of it, a
    machine with two CPUs that hold both nodes does not deliver each trial."""
    return min(each.value for each in first.values()) / 4


def cpu_times(trial: TrialResult) -> Mapping[str, float]:
    """Nanoseconds a frame of both pods, of the one that sends, and of the one that counts, as far as they are known."""
    found, frames = trial.cpu_time, trial.received
    if found is None or not frames:
        return {}
    times = {CPU_TIME: found.total, OF_SENDER: found.parts.get(SENDS), OF_RECEIVER: found.parts.get(COUNTS)}
    return {name: time / frames for name, time in times.items() if time}


def round_trips(trial: TrialResult) -> Mapping[str, float]:
    """The round-trip time that half of the frames do not exceed, in nanoseconds. Empty if none came back."""
    middle = trial.latency.percentile(50) if trial.latency else 0
    return {ROUND_TRIP: float(middle)} if middle else {}


def further_shares(rounds: Sequence[OneRound]) -> Mapping[str, Mapping[str, Any]]:
    """The shares of these rounds by name, in JSON types. One that too few rounds have is left out."""
    found = {}
    for name in OF_EACH:
        both = [each for each in rounds if all(name in each.get(place, ()) for place in (HOST, PODS))]
        if len(both) < fewest_rounds():
            continue
        host, pods = ([each[place][name] for each in both] for place in (HOST, PODS))
        ratio = ratio_interval(list(map(Measured, pods)), list(map(Measured, host)))
        found[name] = {"host": host, "pods": pods, "share": ratio.estimate, "low": ratio.low, "high": ratio.high}
    return found
