"""VPP with a bridge domain for each segment. VPP switches frames by their destination MAC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.vpp import Vpp
from podperf.dataplanes.vpp_chain import VppChain
from podperf.dataplanes.vpp_segments import Segment


class VppBridgeDomain(VppChain):
    """Each domain has the tester's MACs as static entries. VPP never learns the MAC of a port that only receives, and
    would flood all frames for it."""

    name: ClassVar[str] = "vpp-bridge-domain"
    shown: ClassVar[Sequence[str]] = ("show bridge-domain", "show l2fib all")

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        domain = segment.number + 1  # 0 is VPP's own
        vpp.ask(f"create bridge-domain {domain}")
        for interface, tester in ((segment.left, worker.left.peer_mac), (segment.right, worker.right.peer_mac)):
            vpp.configure(f"set interface l2 bridge {interface.name} {domain}")
            vpp.configure(f"l2fib add {tester} {domain} {interface.name} static")
