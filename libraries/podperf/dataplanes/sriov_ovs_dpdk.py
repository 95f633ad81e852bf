"""Two models in one chain: virtual functions to and from the network, Open vSwitch with DPDK between the pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.ovs_dpdk import OvsDpdk
from podperf.dataplanes.sriov_ends import FunctionsAtEnds, functions_at_ends
from podperf.hosts.base import Host
from podperf.kernel import sriov
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders.base import Forwarder


class SriovOvsDpdk(OvsDpdk):
    """The switch has no port of the worker."""

    name: ClassVar[str] = "sriov-ovs-dpdk"
    model: ClassVar[NetworkingModel] = NetworkingModel.COMBINATION
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac",)

    _ends: FunctionsAtEnds

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host) or OvsDpdk.unavailable(host)

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
