"""Chains whose ends are virtual functions (VFs), while a virtual switch joins the pods between them.

The combination that draft section 4.1.5 describes: north/south frames pass the NIC's embedded switch straight into the
first and the last pod, east/west frames the virtual switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.dataplanes.virtual_functions import LEFT, RIGHT, describe_vfs, missing, on_to, vfs_along
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.way_back import WayBack
from podperf.kernel import pci, sriov
from podperf.kernel.sriov import VirtualFunction
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders.testpmd import TestpmdForwarder


@dataclass(frozen=True)
class FunctionsAtEnds:
    """The first pod has a VF of the left port, the last one a VF of the right port."""

    worker: Worker
    first: VirtualFunction
    last: VirtualFunction

    def beside_switch(self, chain: Chain) -> Mapping[str, str]:
        """The ends of pods that are not the switch's, and the devices that they are."""
        return {"pod1a": self.first.address, f"pod{chain.pods}b": self.last.address}

    def forwarder(self, devices: Sequence[str]) -> TestpmdForwarder:
        """What a pod with these devices runs: a switch that looks at no MAC needs none, the NIC's does."""
        peers = {self.first.address: self.worker.left.peer_mac, self.last.address: self.worker.right.peer_mac}
        return on_to({each: peers[each] for each in devices if each in peers})

    @property
    def entries(self) -> Mapping[Direction, Entry]:
        """How frames must be addressed."""
        return {Direction.LEFT_TO_RIGHT: Entry(mac=self.first.mac), Direction.RIGHT_TO_LEFT: Entry(mac=self.last.mac)}

    def describe(self) -> dict[str, Any]:
        """Both, and their ports, as the kernel has them."""
        return describe_vfs(self.worker, [self.first, self.last])


def functions_at_ends(worker: Worker, data_plane: str, undo: ExitStack) -> FunctionsAtEnds:
    """Both VFs, ready for DPDK, until `undo`. Unavailable when this worker cannot have them."""
    if reason := missing(worker):
        raise Unavailable(reason)
    if worker.sriov.queues > 1:  # testpmd has as many on each of its devices
        raise Unavailable(
            f"{data_plane} has pods between a virtual function and a socket of the switch with one queue: "
            f"worker.sriov.queues must be 1 for it, not {worker.sriov.queues}"
        )
    first, last = vfs_along(worker, [LEFT, RIGHT], WayBack(worker.host, undo))
    for vf in (first, last):
        pci.give_to_user_space(worker.host, vf.address)
    return FunctionsAtEnds(worker, first, last)


class Switch(DataPlane, Protocol):
    """A data plane whose switch can do without the worker's ports."""

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        """With `ends` the switch has no port of the worker."""


class SriovAndSwitch(DataPlane):
    """Base class of data planes that combine the two. A subclass names the switch."""

    model: ClassVar[NetworkingModel] = NetworkingModel.COMBINATION
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac",)
    switch_has_cpus: ClassVar[bool] = True
    uses_virtual_functions: ClassVar[bool] = True
    switch: ClassVar[type[Switch]]

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return sriov.missing(host) or cls.switch.unavailable(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        ends = functions_at_ends(worker, self.name, undo)  # first, as pods start with them
        between = self.switch(ends).set_up(worker, chain, undo)

        def describe() -> Mapping[str, Any]:
            return {**between.describe(), **ends.describe()}

        return replace(between, entries=ends.entries, describe=describe)
