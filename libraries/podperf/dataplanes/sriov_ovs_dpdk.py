"""Two models in one chain: virtual functions (VFs) to and from the network, Open vSwitch with DPDK between the pods.

North/south frames pass the NIC's embedded switch straight into the first and the last pod, east/west frames the virtual
switch: the combination that draft section 4.1.5 describes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.ovs_dpdk import OvsDpdk
from podperf.dataplanes.sriov import LEFT, RIGHT, describe_vfs, missing, on_to, vfs_along
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.way_back import WayBack
from podperf.kernel import pci, sriov
from podperf.kernel.sriov import VirtualFunction
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders.base import Forwarder


class SriovOvsDpdk(OvsDpdk):
    """The first pod has a VF of the left port, the last one of the right port; the switch has no port of the worker."""

    name: ClassVar[str] = "sriov-ovs-dpdk"
    model: ClassVar[NetworkingModel] = NetworkingModel.COMBINATION
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac",)

    _functions: Sequence[VirtualFunction]
    _peers: Mapping[str, str]

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return sriov.missing(host) or OvsDpdk.unavailable(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        if reason := missing(worker.host):
            raise Unavailable(reason)
        if worker.sriov.queues > 1:  # testpmd has as many on each of its devices
            raise Unavailable(
                f"{self.name} has pods between a virtual function and a socket of the switch with one queue: "
                f"worker.sriov.queues must be 1 for it, not {worker.sriov.queues}"
            )
        self._functions = vfs_along(worker, [LEFT, RIGHT], WayBack(worker.host, worker.directory, undo))
        first, last = self._functions
        self._peers = {first.address: worker.left.tester_mac, last.address: worker.right.tester_mac}
        for vf in self._functions:
            pci.give_to_user_space(worker.host, vf.address)
        super().set_up(worker, chain, undo)
        return {Direction.LEFT_TO_RIGHT: Entry(mac=first.mac), Direction.RIGHT_TO_LEFT: Entry(mac=last.mac)}

    def _beside_switch(self, chain: Chain) -> Mapping[str, str]:
        first, last = self._functions
        return {"pod1a": first.address, f"pod{chain.pods}b": last.address}

    def _forwarder(self, chain: Chain, devices: Sequence[str]) -> Forwarder:
        # The switch looks at no MAC, so only what leaves by a VF needs one.
        return on_to({each: self._peers[each] for each in devices if each in self._peers})

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), **describe_vfs(self._worker, self._functions)}
