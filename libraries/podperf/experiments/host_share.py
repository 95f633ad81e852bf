"""Pods of a cluster beside pods in the networks of the same nodes, by turns: the comparison, and the share in its
result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Self

from podperf.experiments.comparison import VariantComparison
from podperf.experiments.contender import SMALLEST, Contender
from podperf.frames import AddressFamily
from podperf.metrics import METRICS, Measured, Metrics
from podperf.model import Chain, FrameSize

NAME = "host_share"
CLUSTER = Chain("external", 0)  # whatever network the cluster has
HOST, PODS = "host network", "pods"
ROUNDS, TRIAL = 8, 0.5  # the fewest rounds that a comparison looks at; seconds
NOTHING = "-"


@dataclass(frozen=True)
class ClusterWay:
    """A way of frames through a cluster: what differs from the topology in the tester's pods, and in the traffic."""

    title: str
    pods: Mapping[str, Any]
    frame: FrameSize = SMALLEST
    flows: int | None = None
    family: AddressFamily | None = None

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
            metric=METRICS["mrr"],
            rounds=ROUNDS,
            trial_seconds=TRIAL,
        )


@dataclass(frozen=True)
class HostShare:
    """The rate of pods beside that of the nodes' own network: medians of the rounds, in frames/s, and their ratio.

    An open end of the interval is None. Without figures, `reason` says why.
    """

    pods: float = 0.0
    host: float = 0.0
    share: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    reason: str = ""

    @classmethod
    def of(cls, comparison: Mapping[str, Any]) -> Self:
        """The share in the document of a comparison with two variants, of which the host network is the first."""
        (host, pods) = (median(each["figures"]) for each in comparison["variants"])
        judged = comparison["variants"][1]["judgement"]
        share, low, high = (None if judged[key] is None else 1 + judged[key] for key in ("share", "low", "high"))
        return cls(pods, host, share, low, high, judged["rounds"])

    @property
    def metrics(self) -> Metrics:
        """The share as a figure of a record."""
        return {} if self.share is None else {NAME: Measured(self.share, self.low, self.high)}

    @property
    def interval(self) -> str:
        """`0.84 to 0.90`."""
        return " to ".join("open" if end is None else f"{end:.2f}" for end in (self.low, self.high))

    def __str__(self) -> str:
        if self.share is None:
            return NOTHING
        return f"{self.share:.2f} ({self.interval})"
