"""VPP as a router with one VRF for each segment. VPP routes frames by destination and rewrites the MACs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from podperf.addressing import LEFT_NETWORK, RIGHT_NETWORK, left_of, right_of
from podperf.dataplanes.base import Worker
from podperf.dataplanes.vpp import Vpp
from podperf.dataplanes.vpp_chain import VppChain
from podperf.dataplanes.vpp_segments import Segment
from podperf.model import Direction, Entry


class VppVrf(VppChain):
    """The two interfaces of a segment are in its VRF and have no addresses. Neighbours are static entries."""

    name: ClassVar[str] = "vpp-vrf"
    shown: ClassVar[Sequence[str]] = ("show ip fib summary", "show ip neighbors")

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        vrf = segment.number + 1  # 0 is the default VRF
        vpp.configure(f"ip table add {vrf}")
        # From VPP, the next hop to the left is the left end of the segment, and to the right the right end.
        for interface, hop, network in (
            (segment.left, left_of(segment.number), LEFT_NETWORK),
            (segment.right, right_of(segment.number), RIGHT_NETWORK),
        ):
            vpp.configure(f"set interface ip table {interface.name} {vrf}")
            vpp.configure(f"enable ip4 interface {interface.name}")
            vpp.configure(f"set ip neighbor {interface.name} {hop} {interface.neighbour} static")
            vpp.configure(f"ip route add {network} table {vrf} via {hop} {interface.name}")

    def entries(self, worker: Worker) -> Mapping[Direction, Entry]:
        return worker.entries
