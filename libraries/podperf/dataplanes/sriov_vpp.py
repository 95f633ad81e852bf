"""Two models in one chain: virtual functions to and from the network, VPP and memif between the pods.

What the hackathon at IETF 113 measured as SR-IOV + VPP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.sriov_ends import FunctionsAtEnds, functions_at_ends
from podperf.dataplanes.vpp_l2patch import VppL2Patch
from podperf.hosts.base import Host
from podperf.kernel import sriov
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders.base import Forwarder


class SriovVpp(VppL2Patch):
    """VPP has no port of the worker."""

    name: ClassVar[str] = "sriov-vpp"
    model: ClassVar[NetworkingModel] = NetworkingModel.COMBINATION
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac",)

    _ends: FunctionsAtEnds

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host) or VppL2Patch.unavailable(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        self._ends = functions_at_ends(worker, self.name, undo)
        super().set_up(worker, chain, undo)
        return self._ends.entries

    def _beside_switch(self, chain: Chain) -> Mapping[str, str]:
        return self._ends.beside_switch(chain)

    def _forwarder(self, chain: Chain, devices: Sequence[str]) -> Forwarder:
        return self._ends.forwarder(devices)

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), **self._ends.describe()}
