"""VPP with layer 2 patches (`test l2patch`). Frames from one interface leave by the other one without a look-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.vpp import Vpp
from podperf.dataplanes.vpp_chain import VppChain
from podperf.dataplanes.vpp_segments import Segment


class VppL2Patch(VppChain):
    """The shortest path through VPP. The repository of the draft's authors also uses it."""

    name: ClassVar[str] = "vpp-l2patch"
    shown: ClassVar[Sequence[str]] = ("show l2patch",)

    def connect(self, vpp: Vpp, worker: Worker, segment: Segment) -> None:
        for one, other in ((segment.left, segment.right), (segment.right, segment.left)):
            vpp.configure(f"test l2patch rx {one.name} tx {other.name}")
