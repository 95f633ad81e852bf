"""Chooses the flows of trials in which each frame is a new flow for the tables of the nodes. No I/O.

A pod has one address. So flows differ in the UDP destination port, of which there are some, and in the source port. A
trial sends from source ports that no other trial has had for HELD_SECONDS. By then the nodes have forgotten its flows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from podperf.errors import Unavailable
from podperf.frames import Range
from podperf.model import AddressedTraffic

FIRST_PORT = 1024  # of the destination ports; source ports follow them, so no flow is the answer to another one
SERVICE_PORTS = 32  # of a Service; each one is a rule in the lists of kube-proxy
POD_PORTS = 1024  # of a pod; a trial then takes few of its source ports
SOURCE_PORTS: Range = (FIRST_PORT + POD_PORTS, 65536 - FIRST_PORT - POD_PORTS)
HELD_SECONDS = 35.0  # net.netfilter.nf_conntrack_udp_timeout is 30 s: of a UDP flow without an answer


@dataclass
class NewFlows:
    """Divides the source ports among trials that send to this number of destination ports."""

    ports: int
    _next: int = SOURCE_PORTS[0]
    _sent: list[tuple[int, int, float]] = field(default_factory=list)  # first and last source port, and when

    def of_trial(self, flows: int, now: float) -> tuple[Range, float]:
        """The source ports of a trial with this many flows, and the seconds until all of these flows are new."""
        first, every = SOURCE_PORTS
        number = math.ceil(flows / self.ports)
        if number > every:
            raise Unavailable(f"each frame a new flow is possible with {every * self.ports} flows, not with {flows}")
        if self._next + number > first + every:
            self._next = first
        self._sent = [each for each in self._sent if each[2] + HELD_SECONDS > now]
        taken = [when for low, high, when in self._sent if low < self._next + number and high >= self._next]
        return (self._next, number), max([0.0, *(when + HELD_SECONDS - now for when in taken)])

    def sent(self, frames: int, flows: int, now: float) -> None:
        """Note a trial with this number of flows and sent frames. Unavailable if a frame was of no new flow."""
        used = min(math.ceil(frames / self.ports), math.ceil(flows / self.ports))
        if used:
            self._sent.append((self._next, self._next + used - 1, now))
            self._next += used
        if frames > flows:
            raise Unavailable(
                f"a trial sent {frames} frames of {flows} flows, so not each frame was a new flow: write a shorter "
                "method.mrr.duration"
            )


def from_ports(traffic: AddressedTraffic, ports: int, source_ports: Range) -> AddressedTraffic:
    """The traffic of a trial, to `ports` destination ports and from these source ports."""
    return replace(traffic, udp_ports=((FIRST_PORT, ports), source_ports))


def demand_many(traffic: AddressedTraffic, most: int) -> None:
    """Raise Unavailable for traffic whose few flows a trial would soon repeat."""
    if traffic.flows <= most:
        raise Unavailable(f"new_flows needs traffic.flows above {most}: a trial must send no flow twice")
