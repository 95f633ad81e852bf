"""A testbed as its topology file describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from podperf.model import Direction, FrameSize

Metric = Literal["mrr", "ndr", "pdr", "latency_p50", "latency_p99"]
Unit = Literal["ratio of baseline", "Mpps", "Gbps", "us"]


@dataclass(frozen=True)
class PortSettings:
    """One tester port.

    Without an `interface` the run makes a veth pair and gives the other end to the worker. With one, the existing
    interface is used as it is, inside `namespace` where given, and the data plane must be `external`.
    """

    interface: str | None = None
    namespace: str | None = None
    destination_mac: str | None = None  # where frames sent from this port go; None: the other port's MAC
    destination_address: str | None = None  # IPv4 within 198.18.0.0/15, or None for the flow's own


@dataclass(frozen=True)
class TesterSettings:
    """The tester of the testbed."""

    type: Literal["software"]
    engine: Literal["auto", "xdp", "packet-ring"]
    cpus: tuple[int, ...] | None  # None: chosen by placement
    left: PortSettings
    right: PortSettings


@dataclass(frozen=True)
class WorkerSettings:
    """The host that runs the system under test."""

    connection: Literal["local"]
    cpus: tuple[int, ...] | None  # None: chosen by placement


@dataclass(frozen=True)
class TrafficSettings:
    """Test traffic, unless a test says otherwise."""

    directions: tuple[Direction, ...]
    flows: int


@dataclass(frozen=True)
class MethodSettings:
    """How results are measured: the search preset, and the MRR trials."""

    search: str  # a preset of podperf.methods.presets: quick, csit, tst009, rfc2544
    mrr_trials: int
    mrr_trial_duration: float  # seconds


@dataclass(frozen=True)
class Threshold:
    """A bound that a result must keep to. It applies where every selector that is set matches.

    `minimum` for rates, `maximum` for latencies, in `unit`; a ratio is of the same run's `wire` result at the same size.
    """

    metric: Metric
    unit: Unit
    minimum: float | None = None
    maximum: float | None = None
    data_plane: str | None = None
    pods: int | None = None
    frame: FrameSize | None = None


@dataclass(frozen=True)
class Topology:
    """Everything that one topology file says."""

    path: str
    name: str
    description: str
    tester: TesterSettings
    worker: WorkerSettings
    traffic: TrafficSettings
    method: MethodSettings
    thresholds: tuple[Threshold, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # free text for the record: rack, contact, firmware

    @property
    def external(self) -> bool:
        """True when the tester's ports exist already and the black box between them is measured."""
        return self.tester.left.interface is not None
